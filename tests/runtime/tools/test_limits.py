"""`core serve --python` as clients see it that open more than is good, say less than a request, or stay too long."""

from __future__ import annotations

import re
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.commands import PATIENCE, Command, ask, until
from tests.support.openmetrics import samples

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


@contextmanager
def connected(port: int, sent: bytes = b"") -> Generator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(sent)
        yield connection


def answer(port: int, sent: bytes) -> bytes:
    """The bytes that come back until the server closes."""
    with connected(port, sent) as connection:
        return rest(connection)


def rest(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received


CLOSE = b"Host: a.test\r\nConnection: close\r\n\r\n"


def test_a_thousand_idle_connections_keep_nobody_out(serve: Callable[..., Command]) -> None:
    served = serve("--workers", "1", "--metrics", "--idle-timeout", "2")
    port, health = served.ports()
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(connected(port))
        assert ask(port).status == 200
        assert ask(health).json()["status"] == "ok"
        found = samples(ask(health, "/metrics").text)
        assert found["core_process_open_connections", "process=web 0"] >= 1000
        assert found["core_process_requests_in_flight", "process=web 0"] == 0
        assert 0 <= found["core_process_event_loop_lag_seconds", "process=web 0"] < 5


def test_who_comes_beyond_the_limit_is_told_when_to_return(serve: Callable[..., Command]) -> None:
    port, health = serve("--workers", "1", "--max-connections", "20").ports()
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connected(port, b"GET / HTTP/1.1\r\n"))
        told = answer(port, b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000)
        assert told.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in told
        said = ask(health)
        assert (said.status, said.json()["status"]) == (503, "failing")
        assert said.json()["processes"]["web 0"] == "all of its 20 connections are taken"
        assert said.json()["address"] == "a new connection was answered 503"
    until(lambda: ask(health).status, lambda status: status == 200)
    assert ask(port).status == 200


def test_hundreds_beyond_the_limit_are_turned_away_and_nothing_fails(serve: Callable[..., Command]) -> None:
    served = serve("--workers", "1", "--max-connections", "20")
    port, health = served.ports()
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connected(port, b"GET / HTTP/1.1\r\n"))
        beyond = [stack.enter_context(connected(port)) for _ in range(400)]
        assert rest(beyond[-1]).startswith(b"HTTP/1.1 503 ")
    until(lambda: ask(health).status, lambda status: status == 200)
    assert ask(port).status == 200
    assert not [line for line in served.lines if "Traceback" in line or "ERROR" in line]


def test_a_low_limit_of_files_is_told_in_a_line(serve: Callable[..., Command]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        served = serve("--workers", "1")
        served.ports()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for pid in served.children():
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] == min(hard, 2 * 4096 + 512)
    assert not any("open files" in line for line in served.lines)
    more = serve("--max-connections", "1000000", "--state", ".core/other")
    more.until(r"each process takes \d+ connections instead of 1000000: .* or name fewer with --max-connections")


def test_a_client_that_takes_its_time_is_cut_off(serve: Callable[..., Command]) -> None:
    port, _ = serve("--workers", "1", "--head-timeout", "1", "--body-timeout", "2", "--idle-timeout", "3").ports()
    with ExitStack() as stack:
        began = time.monotonic()
        silent = stack.enter_context(connected(port))
        half = stack.enter_context(connected(port, b"GET / HTTP/1.1\r\nHost: a"))
        body = stack.enter_context(connected(port, b"POST /orders/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"))
        upload = stack.enter_context(connected(port, b"POST /have HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"))
        kept = stack.enter_context(connected(port, b"GET /kv/a HTTP/1.1\r\nHost: a\r\n\r\n"))
        slow = stack.enter_context(connected(port, b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
        assert rest(silent) == b""
        assert rest(half).startswith(b"HTTP/1.1 408 ")
        assert 1 <= time.monotonic() - began < 10
        assert rest(upload).startswith(b"HTTP/1.1 408 ")
        rest(body)
        assert rest(kept).startswith(b"HTTP/1.1 200 ")
        assert 3 <= time.monotonic() - began < 30
        # Whoever waits for a handler waits as long as that takes.
        assert rest(slow).endswith(b"done")


BAD_HOSTS = [
    b"",
    b"Host: a\r\nHost: a\r\n",
    b"Host: a\r\nHost: b\r\n",
    b"Host: a/b?c\r\n",
    b"Host: <svg>\r\n",
    b"Host: u@a\r\n",
]


def test_a_request_has_one_host_that_is_one(serve: Callable[..., Command]) -> None:
    port, _ = serve("--workers", "1").ports()
    for lines in BAD_HOSTS:
        told = answer(port, b"GET /kv/a HTTP/1.1\r\n" + lines + b"\r\n")
        assert told.startswith(b"HTTP/1.1 400 "), lines
    for lines in (b"Host: a:80\r\n", b"Host: [::1]:8\r\n", b"HOST: xn--a.test\r\n", b"Host:\r\n"):
        told = answer(port, b"GET /kv/a HTTP/1.1\r\n" + lines + b"Connection: close\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 200 "), lines
    assert answer(port, b"GET /kv/a HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_what_is_malformed_is_a_400_after_the_answers_before_it(serve: Callable[..., Command]) -> None:
    port, _ = serve("--workers", "1").ports()
    chunked = b"POST /have HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    for wrong in (b"zz\r\nabc\r\n", b"3\r\nabcdef\r\n0\r\n\r\n", b"-1\r\n\r\n"):
        assert answer(port, chunked + wrong).startswith(b"HTTP/1.1 400 "), wrong
    get = b"GET /kv/%d HTTP/1.1\r\nHost: a\r\n\r\n"
    told = answer(port, b"".join(get % number for number in range(20)) + b"what is this\r\n\r\n")
    assert re.findall(rb"HTTP/1.1 (\d+) ", told) == [b"200"] * 20 + [b"400"]


def test_a_pipelining_client_gets_every_answer_in_order(serve: Callable[..., Command]) -> None:
    port, _ = serve("--workers", "1").ports()
    asked = b"".join(b"POST /orders/%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" % n for n in range(1, 30))
    told = answer(port, asked + b"GET /kv/a HTTP/1.1\r\n" + CLOSE)
    assert re.findall(rb"HTTP/1.1 (\d+) ", told) == [b"201"] * 29 + [b"200"]
    assert [int(number) for number in re.findall(rb"\r\n\r\n(\d+)HTTP", told)] == list(range(1, 30))


def test_at_a_stop_newcomers_are_turned_away_and_streams_of_events_end(serve: Callable[..., Command]) -> None:
    served = serve("--workers", "1", "--stop-timeout", "60")
    port, _ = served.ports()
    with ExitStack() as stack:
        get = b" HTTP/1.1\r\nHost: a\r\n\r\n"
        events = [stack.enter_context(connected(port, b"GET /events" + get)) for _ in range(150)]
        for one in events:
            received = b""
            while b"data: " not in received:
                received += one.recv(65536)
        assert ask(port).status == 200
        slow = stack.enter_context(connected(port, b"GET /slow" + get))
        served.until("slow began")
        began = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        served.until("stopping")
        until(lambda: answer(port, b"GET /kv/a HTTP/1.1\r\n" + CLOSE)[:13], lambda told: told == b"HTTP/1.1 503 ")
        for one in events:
            assert rest(one).endswith(b"0\r\n\r\n")
        assert time.monotonic() - began < 30
        assert rest(slow).endswith(b"done")
    assert served.finish(by_itself=True) == 0
