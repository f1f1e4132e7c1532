"""What a connection of our HTTP server writes, byte by byte, for each way in which an ASGI application may answer."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import socket
from typing import Any

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from core.hosts import exchange
from core.hosts.connection import Connection, State
from core.hosts.limits import Limits

START = "http.response.start"
BODY = "http.response.body"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer as the path says."""

    async def start(*headers: tuple[bytes, bytes], status: int = 200) -> None:
        await send({"type": START, "status": status, "headers": headers})

    async def body(data: bytes, more_body: bool = False) -> None:
        await send({"type": BODY, "body": data, "more_body": more_body})

    match scope["path"]:
        case "/known":
            await start((b"content-length", b"4"))
            await body(b"pong")
        case "/large":
            await start((b"content-length", b"100000"))
            await body(b"x" * 100_000)
        case "/parts":
            await start((b"content-length", b"4"))
            await body(b"po", more_body=True)
            await body(b"ng")
        case "/stream":
            await start()
            for part in (b"first", b"", b"second"):
                await body(part, more_body=True)
            await body(b"")
        case "/last":
            await start((b"connection", b"close"), (b"content-length", b"4"))
            await body(b"last")
        case "/unchanged":
            await start((b"content-length", b"4"), status=304)
            await body(b"")
        case "/echo":
            data = b""
            more = True
            while more:
                message = await receive()
                data += message.get("body", b"")
                more = message.get("more_body", False)
            await start((b"content-length", b"%d" % len(data)), (b"x-method", scope["method"].encode()))
            await body(data)
        case "/given":
            name, _, value = scope["query_string"].partition(b"=")
            await start((name, value.replace(b"%0d", b"\r")), (b"content-length", b"0"))
            await body(b"")
        case "/nothing":
            return
        case "/fails":
            raise LookupError("a secret")
        case "/fails-within":
            await start()
            await body(b"a part", more_body=True)
            raise LookupError("a secret")
        case "/short":
            await start((b"content-length", b"4"))
            await body(b"po")
        case "/long":
            await start((b"content-length", b"4"))
            await body(b"pong and more")
        case "/body-first":
            await body(b"pong")
        case "/twice":
            await start((b"content-length", b"4"))
            await body(b"pong")
            await body(b"pong")


async def answered(*pieces: bytes, until: bytes = b"") -> bytes:
    """The bytes that come back for those pieces, to the end of the connection or those of `until`."""
    loop = asyncio.get_running_loop()
    state = State(Limits())
    config = uvicorn.Config(application, interface="asgi3", log_config=None, proxy_headers=False)
    config.load()
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        await loop.connect_accepted_socket(
            lambda: Connection(config=config, server_state=state, app_state={}), sock=theirs
        )

        async def send() -> None:
            for piece in pieces:
                await loop.sock_sendall(ours, piece)
                await asyncio.sleep(0)

        received = b""
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(send())
            while not until or not received.endswith(until):
                if not (piece := await loop.sock_recv(ours, 65536)):
                    break
                received += piece
    for _ in range(3):
        await asyncio.sleep(0)
    assert not state.tasks
    assert not state.connections
    return received


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
            request("/known", CLOSE, "Expect: 100-continue", "Content-Length: 2", method="POST"),
            OK + b"content-length: 4\r\n" + CLOSED + b"pong",
            id="a body that nobody reads",
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
