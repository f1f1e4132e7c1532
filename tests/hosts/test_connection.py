"""What a connection of our HTTP server writes, byte by byte, for each way in which an ASGI application may answer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import re
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.connections import answered, application

from core.hosts import exchange
from core.hosts.connection import Connection
from core.hosts.limits import Limits
from core.hosts.process import UNAVAILABLE
from core.hosts.server import Server


def request(path: str, *lines: str, method: str = "GET", version: str = "1.1", body: bytes = b"") -> bytes:
    head = "\r\n".join([f"{method} {path} HTTP/{version}", "Host: a.test", *lines])
    return head.encode("latin-1") + b"\r\n\r\n" + body


CLOSE = "Connection: close"
OK = b"HTTP/1.1 200 OK\r\n"
CLOSED = b"connection: close\r\n\r\n"
INTERNAL = (
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"
    b"connection: close\r\n\r\nInternal Server Error"
)


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        pytest.param(request("/known", CLOSE), OK + b"content-length: 4\r\n" + CLOSED + b"pong", id="known"),
        pytest.param(request("/parts", CLOSE), OK + b"content-length: 4\r\n" + CLOSED + b"pong", id="parts"),
        pytest.param(
            request("/large", CLOSE), OK + b"content-length: 100000\r\n" + CLOSED + b"x" * 100_000, id="large"
        ),
        pytest.param(request("/last"), OK + b"content-length: 4\r\n" + CLOSED + b"last", id="ended by the application"),
        pytest.param(request("/known", version="1.0"), OK + b"content-length: 4\r\n" + CLOSED + b"pong", id="HTTP/1.0"),
        pytest.param(
            request("/stream", CLOSE),
            OK + b"transfer-encoding: chunked\r\n" + CLOSED + b"5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n",
            id="stream",
        ),
        pytest.param(request("/stream", version="1.0"), OK + CLOSED + b"firstsecond", id="stream over HTTP/1.0"),
        pytest.param(
            request("/known", "Connection: Keep-Alive", version="1.0") * 2
            + request("/stream", "Connection: Keep-Alive", version="1.0"),
            (OK + b"content-length: 4\r\nconnection: keep-alive\r\n\r\npong") * 2 + OK + CLOSED + b"firstsecond",
            id="a kept connection over HTTP/1.0",
        ),
        pytest.param(request("/bare", CLOSE), b"HTTP/1.1 204 No Content\r\n" + CLOSED, id="nothing but a status"),
        pytest.param(
            request("/events"),
            OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n",
            id="events that the server ends",
        ),
        pytest.param(
            request("/events", version="1.0"),
            OK + b"content-type: text/event-stream\r\n" + CLOSED + b"data: x\n\n",
            id="events that the server ends, over HTTP/1.0",
        ),
        pytest.param(request("/known", CLOSE, method="HEAD"), OK + b"content-length: 4\r\n" + CLOSED, id="HEAD"),
        pytest.param(request("/stream", CLOSE, method="HEAD"), OK + CLOSED, id="HEAD of a stream"),
        pytest.param(
            request("/unchanged", CLOSE), b"HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n" + CLOSED, id="304"
        ),
        pytest.param(
            request("/echo", CLOSE, "Expect: 100-continue", "Content-Length: 2", method="POST", body=b"hi"),
            b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 2\r\nx-method: POST\r\n" + CLOSED + b"hi",
            id="a body that is waited for",
        ),
        pytest.param(
            request(
                "/echo",
                CLOSE,
                "Transfer-Encoding: chunked",
                method="POST",
                body=b"2\r\nhi\r\n0\r\nX-Late: 1\r\nHost: b.test\r\n\r\n",
            ),
            OK + b"content-length: 2\r\nx-method: POST\r\n" + CLOSED + b"hi",
            id="trailers",
        ),
        pytest.param(
            request("/echo", "Expect: 100-continue", "Content-Length: 2", method="POST", version="1.0", body=b"hi"),
            OK + b"content-length: 2\r\nx-method: POST\r\n" + CLOSED + b"hi",
            id="a body that is waited for, over HTTP/1.0",
        ),
        pytest.param(
            request("/known", "Expect: 100-continue", "Content-Length: 2", method="POST"),
            OK + b"content-length: 4\r\n" + CLOSED + b"pong",
            id="a body that nobody reads",
        ),
        pytest.param(request("http://a.test", CLOSE), OK + b"content-length: 1\r\n" + CLOSED + b"/", id="no path"),
        pytest.param(
            request("HTTP://a.test:80?a=b", CLOSE), OK + b"content-length: 1\r\n" + CLOSED + b"/", id="a query"
        ),
        pytest.param(
            request("/given?x-name=value", CLOSE), OK + b"x-name: value\r\ncontent-length: 0\r\n" + CLOSED, id="header"
        ),
    ],
)
async def test_an_answer_is_framed(sent: bytes, received: bytes) -> None:
    assert await answered(sent) == received


@pytest.mark.parametrize(
    ("path", "received", "reason"),
    [
        ("/nothing", INTERNAL, "RuntimeError: the application has not answered"),
        ("/fails", INTERNAL, "LookupError: a secret"),
        ("/fails-within", OK + b"transfer-encoding: chunked\r\n\r\n6\r\na part\r\n", "LookupError: a secret"),
        ("/short", OK + b"content-length: 4\r\n\r\n", "RuntimeError: the body has another length than its head says"),
        ("/long", OK + b"content-length: 4\r\n\r\n", "RuntimeError: the body has another length than its head says"),
        ("/body-first", INTERNAL, "RuntimeError: http.response.body before http.response.start"),
        ("/given?x-name=a%0db", INTERNAL, "RuntimeError: a header cannot be sent: x-name"),
        ("/given?x(name=a", INTERNAL, "RuntimeError: a header cannot be sent: x(name"),
        ("/given?transfer-encoding=gzip", INTERNAL, "RuntimeError: a header cannot be sent: transfer-encoding"),
        ("/given?content-length=-1", INTERNAL, "RuntimeError: a header cannot be sent: content-length"),
    ],
)
async def test_an_application_that_does_not_answer_is_told_and_ends_the_connection(
    path: str, received: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "uvicorn.error"):
        assert await answered(request(path)) == received
    (record,) = caplog.records
    assert record.message == "Exception in ASGI application\n"
    assert record.exc_info is not None
    assert f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}" == reason


async def test_a_second_answer_is_told_and_the_first_one_stands(caplog: pytest.LogCaptureFixture) -> None:
    pong = OK + b"content-length: 4\r\n\r\npong"
    assert await answered(request("/twice"), request("/known"), until=pong * 2) == pong * 2
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "http.response.body after the answer"


async def test_headers_that_differ_on_every_answer_are_written_and_fill_a_bounded_table() -> None:
    names = [f"/given?x-number={number}" for number in range(2500)]
    received = await answered(*map(request, names), request("/last"))
    assert re.findall(rb"x-number: (\d+)", received) == [b"%d" % number for number in range(2500)]
    assert 0 < len(exchange._LINES) <= exchange._LINES_MOST


REFUSED = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\n"
    b"connection: close\r\n\r\nInvalid HTTP request received."
)


@pytest.mark.parametrize(
    "wrong",
    [
        request("http://"),
        request("/known", method="CONNECT"),
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a test\r\n\r\n",
        b"what is this\r\n\r\n",
    ],
)
@pytest.mark.parametrize("number", [1, 2])
async def test_a_head_that_is_refused_takes_no_answer_from_the_requests_before_it(wrong: bytes, number: int) -> None:
    pong = OK + b"content-length: 4\r\n\r\npong"
    assert await answered(request("/known") * number + wrong) == pong * number + REFUSED


async def test_a_host_that_http_1_0_may_leave_out_is_asked_for_by_http_1_1() -> None:
    first = b"GET /known HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    received = await answered(first + b"GET /known HTTP/1.1\r\n\r\n")
    assert received == OK + b"content-length: 4\r\nconnection: keep-alive\r\n\r\npong" + REFUSED


async def test_a_coding_that_is_not_spoken_here_is_no_body_of_a_request() -> None:
    """RFC 9112, section 6.1."""
    sent = request("/echo", "Transfer-Encoding: gzip", "Transfer-Encoding: Chunked", body=b"2\r\nhi\r\n0\r\n\r\n")
    received = await answered(request("/known") + sent)
    assert received.startswith(OK + b"content-length: 4\r\n\r\npongHTTP/1.1 501 Not Implemented\r\n")
    assert b"\r\nconnection: close\r\n" in received


async def test_a_coding_is_no_part_of_http_1_0() -> None:
    """RFC 9112, section 6.1."""
    lines = ("Connection: keep-alive", "Transfer-Encoding: chunked")
    sent = request("/echo", *lines, method="POST", version="1.0", body=b"2\r\nhi\r\n0\r\n\r\n")
    assert await answered(sent) == REFUSED


async def test_a_websocket_of_another_version_is_told_the_one_that_is_spoken() -> None:
    """RFC 6455, section 4.4."""
    received = await answered(WEBSOCKET.replace(b"Version: 13", b"Version: 8"))
    assert received.startswith(b"HTTP/1.1 426 Upgrade Required\r\n")
    assert b"\r\nsec-websocket-version: 13\r\n" in received
    assert b"\r\nupgrade: websocket\r\n" in received


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("http://b.test:81/host", b"b.test:81"),
        ("HTTPS://[::1]/host?a=http://c.test", b"[::1]"),
        ("http://who@b.test/host", b"b.test"),
    ],
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_the_host_of_a_target_that_names_one_is_that(target: str, host: bytes, version: str) -> None:
    """RFC 9112, section 3.2.2."""
    received = await answered(request(target, "X-Other: 1", CLOSE, version=version))
    assert received == OK + b"content-length: %d\r\n" % len(host) + CLOSED + host


async def test_a_websocket_at_a_target_that_names_a_host_opens_at_its_path() -> None:
    sent = WEBSOCKET.replace(b"GET /socket", b"GET http://b.test/host?a=b")
    assert (await answered(sent, until=b"/host b.test")).startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize("path", ["/turns", "/large", "/stream"])
async def test_a_client_that_has_said_that_it_sends_no_more_reads_its_answers(path: str) -> None:
    whole = await answered(request("/turns") + request(path, CLOSE))
    assert await answered(request("/turns") + request(path), ends=True) in (whole, whole.replace(CLOSED, b"\r\n"))


async def test_an_application_is_told_that_a_client_sends_no_more_which_may_be_gone() -> None:
    sent = request("/gone", "Content-Length: 5", method="POST", body=b"first")
    assert await answered(sent, ends=True) == OK + b"content-length: 4\r\n" + CLOSED + b"gone"


async def test_a_stream_ends_with_a_client_that_sends_no_more(caplog: pytest.LogCaptureFixture) -> None:
    assert await answered(request("/left"), ends=True) == OK + b"transfer-encoding: chunked\r\n\r\n"
    assert not caplog.records


async def test_a_client_that_ends_within_a_body_has_no_answer() -> None:
    assert await answered(request("/gone", "Content-Length: 5", method="POST", body=b"fir"), ends=True) == b""


async def test_a_body_that_breaks_behind_its_answer_has_no_second_one() -> None:
    sent = request("/known", "Transfer-Encoding: chunked", method="POST", body=b"2\r\nhi\r\n")
    pong = OK + b"content-length: 4\r\n\r\npong"
    assert await answered(sent, until=pong, then=b"what is this\r\n") == pong


@pytest.mark.parametrize("length", ["Content-Length: 4000000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(("path", "answer"), [("/last", b"last"), ("/fails", INTERNAL)])
async def test_a_client_that_is_answered_while_it_sends_its_body_reads_the_answer(
    length: str, path: str, answer: bytes
) -> None:
    # Ended by the server. A reset would take the answer with it, or fail where the client sends.
    sent = request(path, length, method="POST", body=(b"f\r\nfifteen letters\r\n" * 200_000)[:4_000_000])
    assert (await answered(sent)).endswith(answer)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="blank lines"),
        pytest.param(b"GET /", id="target"),
        pytest.param(b"GET /known HTTP/1.1\r\nX: ", id="header"),
        pytest.param(request("/echo", "Transfer-Encoding: chunked", method="POST", body=b"0\r\nX: "), id="trailer"),
        pytest.param(request("/echo", "Transfer-Encoding: chunked", method="POST", body=b"1;x="), id="extension"),
    ],
)
async def test_a_line_without_an_end_ends_the_connection(sent: bytes) -> None:
    limits = Limits(head_seconds=0, body_seconds=0)
    server, stop = Server(application, limits, arrivals=0.0), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.ensure_future(server.serve_until(listener, stop))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):  # it may be reset while this sends
                writer.write(sent + (b"x" if sent else b"\r\n") * 2**20)
                await reader.read()
        writer.close()
        stop.set()
        await serving


async def test_who_is_cut_off_at_a_stop_is_told_to_return_and_no_error_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, stop = Server(application, Limits(), arrivals=0.0, grace=0), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener, caplog.at_level(logging.ERROR, "uvicorn.error"):
        serving = asyncio.ensure_future(server.serve_until(listener, stop))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(request("/echo", "Expect: 100-continue", "Content-Length: 2", method="POST"))
        async with asyncio.timeout(10):
            await reader.readuntil(b"\r\n\r\n")  # so that it waits for the body
            stop.set()
            assert await reader.read() == UNAVAILABLE
            await serving
        writer.close()
    assert [record.message for record in caplog.records] == [
        "Cancel 1 running task(s), timeout graceful shutdown exceeded"
    ]


async def test_the_next_request_of_a_kept_connection_is_answered_at_a_stop_and_learns_of_it() -> None:
    server, stop = Server(application, Limits(), arrivals=60.0), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.ensure_future(server.serve_until(listener, stop))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        async with asyncio.timeout(10):
            writer.write(request("/known"))
            await reader.readuntil(b"pong")
            stop.set()
            while not server.server_state.stopping:  # noqa: ASYNC110 - no event of its own
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            writer.write(request("/known"))
            assert (await reader.read()).endswith(b"content-length: 4\r\n" + CLOSED + b"pong")
            await serving
        writer.close()


async def test_a_head_in_pieces_has_room_for_large_headers() -> None:
    head = request("/last", *(f"X-{number}: {'x' * 1000}" for number in range(60)))
    assert await answered(*(head[at : at + 100] for at in range(0, len(head), 100))) == ANSWERS[-1]


H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")
WEBSOCKET = request(
    "/socket",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    "body", [("Content-Length: 5", b"first"), ("Transfer-Encoding: chunked", b"5\r\nfirst\r\n0\r\n\r\n")]
)
async def test_an_upgrade_to_what_is_not_spoken_here_is_a_plain_request(body: tuple[str, bytes], cut: bool) -> None:
    head, rest = request("/echo", *H2C, body[0], method="POST"), body[1] + request("/last")
    received = OK + b"content-length: 5\r\nx-method: POST\r\n\r\nfirst" + ANSWERS[-1]
    assert await answered(*([head, rest] if cut else [head + rest])) == received


async def test_hundreds_of_upgrades_in_one_piece_are_answered() -> None:
    received = await answered(request("/known", *H2C) * 2000 + request("/last"))
    assert received == (OK + b"content-length: 4\r\n\r\npong") * 2000 + ANSWERS[-1]


@pytest.mark.parametrize("first", ["/known", "/turns"])
async def test_a_websocket_opens_behind_the_answers_to_the_requests_before_it(first: str) -> None:
    received = await answered(request(first) * 2 + WEBSOCKET, until=b"\x81\x04pong")
    assert received.startswith((OK + b"content-length: 4\r\n\r\npong") * 2 + b"HTTP/1.1 101 ")


SEVERAL = (
    request("/known"),
    request("/echo", "Content-Length: 5", method="POST", body=b"first"),
    request("/stream"),
    request("/echo", "Transfer-Encoding: chunked", method="PUT", body=b"3\r\nsec\r\n3\r\nond\r\n0\r\n\r\n"),
    request("/known", method="HEAD"),
    request("/known", "Content-Length: 6", method="POST", body=b"unread"),
    request("/last"),
)
ANSWERS = (
    OK + b"content-length: 4\r\n\r\npong",
    OK + b"content-length: 5\r\nx-method: POST\r\n\r\nfirst",
    OK + b"transfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n",
    OK + b"content-length: 6\r\nx-method: PUT\r\n\r\nsecond",
    OK + b"content-length: 4\r\n\r\n",
    OK + b"content-length: 4\r\n\r\npong",
    OK + b"content-length: 4\r\n" + CLOSED + b"last",
)


async def test_nothing_of_a_connection_is_left_to_the_garbage_collector() -> None:
    def there() -> int:
        return sum(isinstance(one, Connection | exchange.Exchange) for one in gc.get_objects())

    gc.collect()
    before = there()
    gc.disable()
    try:
        await answered(*SEVERAL)
        assert there() == before
    finally:
        gc.enable()


@given(
    st.permutations(range(len(SEVERAL) - 1)),
    st.sets(st.integers(1, sum(map(len, SEVERAL)) - 1), max_size=30),
)
def test_requests_in_any_order_and_in_any_pieces_have_their_answers_in_that_order(
    order: list[int], cuts: set[int]
) -> None:
    order = [*order, len(SEVERAL) - 1]
    sent = b"".join(SEVERAL[number] for number in order)
    ends = [0, *sorted(cuts), len(sent)]
    pieces = [sent[start:end] for start, end in itertools.pairwise(ends)]
    received = asyncio.run(answered(*pieces))
    assert received == b"".join(ANSWERS[number] for number in order)
