"""One request to a process on this machine: its answer whole, or none."""

from __future__ import annotations

import asyncio

import pytest

from core.runtime.process import exchange


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell", (200, b"well")),
        (b"HTTP/1.1 503 Unavailable\r\ncontent-length:0\r\n\r\n", (503, b"")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwe\r\n2\r\nll\r\n0\r\n\r\n", (200, b"well")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwe", (0, b"")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n", (0, b"")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwe\r\n2\r\nl", (0, b"")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwe\r\n", (0, b"")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\nwe", (0, b"")),
        (b"well\r\n\r\n", (0, b"")),
        (b"", (0, b"")),
    ],
)
async def test_an_answer_that_ends_early_is_none(sent: bytes, found: tuple[int, bytes]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port: int = server.sockets[0].getsockname()[1]
        assert await exchange(port, "GET", "/", b"", 5) == found
