"""The addresses of a service: where clients connect, open while processes come and go, and the health address."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from core.errors import DeveloperError
from core.hosts.process import UNAVAILABLE

_BACKLOG = 2048

# Servers answer these themselves: no application sees them.
ASK_UVICORN = b"OPTIONS * HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n"
"""A request to the server itself (RFC 9110, section 9.3.7), which workerd would hand on."""
ASK_WORKERD = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
"""A request without Host, which workerd refuses as soon as it has accepted the connection."""


def authority(host: str, port: int) -> str:
    """The address as it stands in a URL, where an IPv6 address has brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_listener(host: str, port: int, *, options: str = "--host and --port") -> socket.socket:
    """Open a listening socket, which processes may inherit. Raises DeveloperError, which names `options`, where the
    address is taken or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol: on a socket that does not name it the event loop sets no TCP_NODELAY, and every answer of two
    # packets waits for the client's delayed acknowledgement, 40 ms.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(_BACKLOG)
        opened.setblocking(False)
        opened.set_inheritable(True)
    except OSError as error:
        opened.close()
        raise DeveloperError(
            f"cannot listen on {authority(host, port)}: {error.strerror}. Choose another address with {options}"
        ) from error
    return opened


async def turn_away(listener: socket.socket) -> asyncio.Server:
    """Answer the connections that wait at `listener`, and all that arrive there from now on, with 503.

    workerd does not accept any more once it stops, but has the socket until it ends, and everybody would wait for that.
    """

    async def answer(head: bytes) -> bytes:
        return UNAVAILABLE

    return await _answer_each(listener, answer, seconds=1)


async def _answer_each(
    listener: socket.socket, answer: Callable[[bytes], Awaitable[bytes]], *, seconds: float
) -> asyncio.Server:
    """Read the head of a request on each connection, write the answer to it, and close."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(seconds):
                # Bytes that were not read would reset the connection, and the answer with it.
                writer.write(await answer(await reader.readuntil(b"\r\n\r\n")))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError, TimeoutError):
            pass  # whoever asked is gone, or sent something else
        except asyncio.CancelledError:
            pass  # with the loop, at the end: some versions of asyncio write a traceback for that
        finally:
            writer.close()

    return await asyncio.start_server(converse, sock=listener, backlog=_BACKLOG)


async def turn_away_while_down(listener: socket.socket, is_up: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Turn clients away whenever no process has been up for `seconds`; it never returns.

    For a moment they wait for the next process. One that cannot start, as where its bucket is frozen, would have them
    wait for ever.
    """
    away: asyncio.Server | None = None
    last = time.monotonic()
    try:
        while True:
            await asyncio.sleep(min(0.5, seconds))
            if is_up():
                last = time.monotonic()
                if away is not None:
                    away.close()
                    away = None
            elif away is None and time.monotonic() - last > seconds:
                away = await turn_away(listener.dup())
    finally:
        if away is not None:
            away.close()


async def ask_listener(listener: socket.socket, ask: bytes, *, seconds: float = 2.0) -> str | None:
    """Ask where clients connect, whichever process answers: the reason why a client would not be answered, or None."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(ask)
                line = await reader.readline()
            finally:
                writer.close()
    except TimeoutError:
        return f"a new connection was not answered within {seconds:g} s"
    except OSError as error:
        return f"a new connection failed: {error.strerror or error}"
    status = line.split(b" ", 2)[1:2]
    if not status:
        return "a new connection was closed without an answer"
    return "a new connection was answered 503" if status == [b"503"] else None


async def start_health(
    address: tuple[str, int],
    report: Callable[[], Awaitable[tuple[int, Mapping[str, object]]]],
    numbers: Callable[[], Awaitable[str]] | None = None,
) -> asyncio.Server:
    """Answer at `address`, for as long as the server is open. Raises DeveloperError where it cannot listen there.

    `report` gives status and body: 200 while the application can answer, else 503; `numbers` the text of OpenMetrics.
    """

    async def answer(head: bytes) -> bytes:
        type_ = "application/json"
        if head.split(b" ", 2)[1].partition(b"?")[0] != b"/metrics":
            status, said = await report()
            body = json.dumps(said).encode()
        elif numbers is None:
            status, body = 404, b'{"error": "Nothing is measured. Start core serve with --metrics"}'
        else:
            from core.telemetry.metrics import CONTENT_TYPE

            status, body, type_ = 200, (await numbers()).encode(), CONTENT_TYPE
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {type_}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        ).encode()
        return head + body

    return await _answer_each(open_listener(*address, options="--health"), answer, seconds=30)
