"""The health address of `core serve`: any request there is answered with the state of the processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from core.runtime.listening import open_listener

__all__ = ["Report", "start_health"]

Report: TypeAlias = Callable[[], Awaitable[tuple[int, Mapping[str, Any]]]]
"""Gives status and body: 200 while the application can answer, else 503."""


async def start_health(address: tuple[str, int], report: Report) -> asyncio.Server:
    """Answer at `address`, for as long as the server is open. Raises DeveloperError where it cannot listen there."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(30):
                await reader.readuntil(b"\r\n\r\n")
                status, said = await report()
                body = json.dumps(said).encode()
                reason = "OK" if status == 200 else "Service Unavailable"
                writer.write(
                    f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # whoever asked is gone, or sent something else
        finally:
            writer.close()

    return await asyncio.start_server(answer, sock=open_listener(*address, options="--health"))
