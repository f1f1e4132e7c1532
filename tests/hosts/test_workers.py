"""A request that comes from the runtime, as far as it needs no runtime to be looked at."""

from __future__ import annotations

import time
from typing import NoReturn

import pytest
from tests.support.fetch import PlainContext

from core.hosts.workers.context import Given, WorkersContext
from core.hosts.workers.request import WorkersRequest


class Untouched:
    """The objects of an event, of which none may be asked for: each one that crosses over costs time."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name} was asked for")


def test_a_plain_request_asks_nothing_of_the_runtime() -> None:
    given = Untouched()
    req = WorkersRequest(given, "GET", "https://example.test/a%20b?c=d", None, WorkersContext(given))
    assert (req.method, req.path, req.url, dict(req.query)) == (
        "GET",
        "/a%20b",
        "https://example.test/a%20b?c=d",
        {"c": "d"},
    )
    with pytest.raises(AssertionError, match="request was asked for"):
        _ = req.edge


def test_the_time_of_receipt_is_the_runtimes() -> None:
    given = Given(None)
    given.received = 1_500.0
    assert WorkersRequest(given, "GET", "https://example.test/", None, PlainContext()).received == 1.5


def test_no_duration_is_negative_where_two_clocks_round_differently() -> None:
    given = Given(None)
    given.received = (time.perf_counter() + 60) * 1000
    assert WorkersRequest(given, "GET", "https://example.test/", None, PlainContext())._elapsed() == 0.0
