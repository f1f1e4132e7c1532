"""The health address of `core serve`: the state of the processes, and under `/metrics` the numbers, where they are
kept.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from core.runtime.listening import open_listener

__all__ = ["ASKED_SECONDS", "ASK_UVICORN", "ASK_WORKERD", "Numbers", "Report", "ask_listener", "start_health"]

ASKED_SECONDS = 2.0
"""The time that an answer to the question for health may take."""

# Servers answer these themselves: no application sees them.
ASK_UVICORN = b"OPTIONS * HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n"
"""A request to the server itself (RFC 9110, section 9.3.7), which workerd would hand on."""
ASK_WORKERD = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
"""A request without Host, which workerd refuses as soon as it has accepted the connection."""

Report: TypeAlias = Callable[[], Awaitable[tuple[int, Mapping[str, Any]]]]
"""Gives status and body: 200 while the application can answer, else 503."""


Numbers: TypeAlias = Callable[[], Awaitable[str]]
"""Gives the numbers as the text of OpenMetrics."""

_REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


async def ask_listener(listener: socket.socket, ask: bytes, *, seconds: float = ASKED_SECONDS) -> str | None:
    """Connect where clients connect, and ask. The reason why a client would not be answered, or None.

    Which of the processes that share the listener answers is not known.
    """
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


async def start_health(address: tuple[str, int], report: Report, numbers: Numbers | None = None) -> asyncio.Server:
    """Answer at `address`, for as long as the server is open. Raises DeveloperError where it cannot listen there."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(30):
                head = await reader.readuntil(b"\r\n\r\n")
                type_ = "application/json"
                if head.split(b" ", 2)[1].partition(b"?")[0] != b"/metrics":
                    status, said = await report()
                    body = json.dumps(said).encode()
                elif numbers is None:
                    status, body = 404, b'{"error": "Nothing is measured. Start core serve with --metrics"}'
                else:
                    from core.metrics import CONTENT_TYPE

                    status, body, type_ = 200, (await numbers()).encode(), CONTENT_TYPE
                writer.write(
                    f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {type_}\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError, TimeoutError):
            pass  # whoever asked is gone, or sent something else
        finally:
            writer.close()

    return await asyncio.start_server(answer, sock=open_listener(*address, options="--health"))
