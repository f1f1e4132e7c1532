"""The question for health, which goes where clients go."""

from __future__ import annotations

import asyncio
import socket

import pytest

from core.hosts.limits import Limits
from core.hosts.process import UNAVAILABLE
from core.hosts.server import Server
from core.runtime.listening import ASK_UVICORN, ask_listener


async def test_nobody_accepts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert (
            await ask_listener(listener, ASK_UVICORN, seconds=0.2) == "a new connection was not answered within 0.2 s"
        )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "a new connection was closed without an answer"),
        (UNAVAILABLE, "a new connection was answered 503"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", None),
    ],
)
async def test_the_answer_of_a_client_counts(answer: bytes, said: str | None) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with await asyncio.start_server(serve, sock=listener.dup()):
            assert await ask_listener(listener, ASK_UVICORN) == said


async def test_the_server_answers_and_no_application_is_asked() -> None:
    asked: list[object] = []

    async def application(scope: object, receive: object, send: object) -> None:
        asked.append(scope)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(application, Limits(), arrivals=0)
        serving = asyncio.ensure_future(server.serve(sockets=[listener.dup()]))
        assert await ask_listener(listener, ASK_UVICORN) is None
        server.should_exit = True
        await serving
    assert asked == []
