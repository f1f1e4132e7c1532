"""`core serve --python` under 200 writes a second: processes that are replaced, and processes that are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands import Command, ask, until
from tests.support.load import SteadyLoad

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


def go_on(load: SteadyLoad, answers: int = 200) -> None:
    """Wait for further answers."""
    since = len(load.answers)
    until(lambda: len(load.answers), lambda count: count >= since + answers)


def told(load: SteadyLoad) -> str:
    seconds = load.answers[-1][0] - load.answers[0][0]
    return (
        f"{len(load.answers)} answers, {len(load.answers) / seconds:.0f} a second, {len(load.failed)} failed, "
        f"{load.announced} connections ended with their answer, the longest answer took {load.longest:.2f} s"
    )


def test_no_write_fails_while_a_new_version_takes_over(serve: Callable[..., Command], shop: Path) -> None:
    served = serve()
    port, _ = served.ports()
    with SteadyLoad(port, request="POST /notes/{}") as load:
        go_on(load)
        main = shop / "main.py"
        main.write_text(main.read_text().replace('VERSION = "first"', 'VERSION = "second"'))
        asked = time.monotonic()
        served.process.send_signal(signal.SIGHUP)
        served.until("replaced the processes")
        changed = time.monotonic()
        go_on(load)
    print(f"{told(load)}; the change took {changed - asked:.1f} s")
    # A kept connection that just ended would have failed a write here, which nobody may send twice.
    assert load.failed == []
    assert load.announced > 0
    assert {body for _, came, body in load.answers if came < asked} == {b"first"}
    assert {body for sent, _, body in load.answers if sent > changed} == {b"second"}
    assert ask(port, "/have", "POST", str(load.acknowledged)).json()["db"] == []


def test_no_acknowledged_write_is_lost_by_kills(serve: Callable[..., Command]) -> None:
    served = serve()
    port, _ = served.ports()
    with SteadyLoad(port, request="POST /notes/{}") as load:
        for _ in range(3):
            go_on(load)
            before = set(served.children())
            os.kill(max(before), signal.SIGKILL)
            until(lambda: set(served.children()), lambda now: len(now) == len(before) and now != before)  # noqa: B023
        go_on(load)
    print(told(load))
    assert ask(port, "/have", "POST", str(load.acknowledged)).json()["db"] == []
    # Each of the 20 connections was at most once in the hands of each of the killed.
    assert len(load.failed) <= 3 * 20, load.failed
