"""The attempts of messages and the numbers of calls in the explorer, without a browser."""

from __future__ import annotations

import pytest
from tests.explorer.browser import call, read
from tests.support.running import RunningDev

pytestmark = pytest.mark.slow


def test_a_dead_letter_says_how_often_it_failed(dev: RunningDev) -> None:
    call(dev, "POST", "/queues/jobs/send", {"body": {"text": "fail"}, "content_type": "json", "delay_seconds": None})
    dev.until(lambda line: "QUEUE" in line and " err " in line)
    (letter,) = call(dev, "GET", "/queues/dead-jobs")["rows"]
    assert letter["attempts"] == 1


def test_the_numbers_are_those_of_the_application_alone(dev: RunningDev) -> None:
    dev.fetch("/notes/counted")
    before = counted(dev)
    assert before
    call(dev, "PUT", "/kv/NOTES/value", {"key": "a", "value": "b"})
    call(dev, "GET", "/kv/NOTES/value?key=a")
    call(dev, "POST", "/kv/NOTES/delete", {"keys": ["a"]})
    call(dev, "POST", "/d1/DB/migrate")
    assert counted(dev) == before


def counted(dev: RunningDev) -> list[str]:
    text = read(dev, "GET", "/metrics/text").decode()
    return [line for line in text.splitlines() if line.startswith("core_binding_calls_total")]
