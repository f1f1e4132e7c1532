"""Bodies in pieces: one task drives what makes them, in the context of the handler, whoever asks for the pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from core.app import App
from core.hosts.asgi import asgi
from core.http.driven import Driven
from core.http.sse import encode_events
from core.middleware.request_id import current_request_id, request_id
from core.request import Request
from core.response import Response
from core.testing import Client

KINDS: list[Callable[[AsyncIterator[str]], AsyncIterator[bytes]]] = [
    Driven,
    lambda texts: encode_events(texts, None),
    lambda texts: encode_events(texts, 15.0),
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=["stream", "sse", "sse with heartbeats"])
colour: ContextVar[str] = ContextVar("colour", default="none")


async def in_tasks_of_their_own(stream: AsyncIterator[bytes]) -> str:
    """Everything that a stream gives, each piece asked for by another task, as a runtime's `pull` does."""
    found = b""
    while True:
        try:
            found += await asyncio.create_task(_next(stream))
        except StopAsyncIteration:
            return found.decode()


async def _next(stream: AsyncIterator[bytes]) -> bytes:
    return await anext(stream)


@each_kind
async def test_a_timeout_around_yield_fires_while_the_next_piece_is_made(kind: Any) -> None:
    async def texts() -> AsyncIterator[str]:
        try:
            async with asyncio.timeout(0.01):
                yield "one"
                await asyncio.Event().wait()
        except TimeoutError:
            yield "late"

    async with asyncio.timeout(60):
        found = await in_tasks_of_their_own(kind(texts()))
    assert "one" in found
    assert "late" in found


@each_kind
async def test_and_while_nobody_asks_for_the_next_piece(kind: Any) -> None:
    ended = asyncio.Event()

    async def texts() -> AsyncIterator[str]:
        try:
            async with asyncio.timeout(0.01):
                while True:
                    yield "piece"
        except TimeoutError:
            ended.set()
            yield "late"

    stream = kind(texts())
    async with asyncio.timeout(60):
        assert b"piece" in await anext(stream)
        await ended.wait()  # the client reads slowly
        assert b"late" in await anext(stream)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


@each_kind
@pytest.mark.parametrize("slow", [False, True])
async def test_a_task_group_that_fails_ends_the_stream(kind: Any, slow: bool) -> None:
    failing = asyncio.Event()

    async def fails() -> None:
        await failing.wait()
        raise OSError("the database is gone")

    async def texts() -> AsyncIterator[str]:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            yield "one"
            await asyncio.Event().wait()

    stream = kind(texts())
    async with asyncio.timeout(60):
        assert b"one" in await anext(stream)
        failing.set()
        if slow:
            await asyncio.sleep(0.01)
        with pytest.raises(ExceptionGroup) as caught:
            await asyncio.create_task(_next(stream))
    assert isinstance(caught.value.exceptions[0], OSError)


@each_kind
async def test_context_variables_of_the_generator_keep_their_values(kind: Any) -> None:
    async def texts() -> AsyncIterator[str]:
        token = colour.set("blue")
        yield colour.get()
        yield colour.get()
        colour.reset(token)
        yield colour.get()

    found = await in_tasks_of_their_own(kind(texts()))
    assert found.count("blue") == 2
    assert found.count("none") == 1
    assert colour.get() == "none"


@each_kind
async def test_a_reader_that_leaves_closes_the_generator_in_its_own_task(kind: Any) -> None:
    tasks: list[object] = []

    async def texts() -> AsyncIterator[str]:
        try:
            tasks.append(asyncio.current_task())
            yield "one"
        finally:
            await asyncio.sleep(0)
            tasks.append(asyncio.current_task())

    stream = kind(texts())
    await anext(stream)
    await asyncio.create_task(stream.aclose())
    assert len(tasks) == 2
    assert tasks[0] is tasks[1]


async def test_what_cleaning_up_raises_is_told_to_who_closes() -> None:
    async def texts() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            raise OSError("cannot close")

    driven = Driven(texts())
    assert await anext(driven) == b"one"
    with pytest.raises(OSError, match="cannot close"):
        await driven.aclose()


async def test_a_generator_that_goes_on_after_its_reader_left_is_ended() -> None:
    async def texts() -> AsyncIterator[str]:
        yield "one"
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield "not yet"

    driven = Driven(texts())
    assert await anext(driven) == b"one"
    assert await driven.ready(0.01) is False
    async with asyncio.timeout(60):
        await driven.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(driven)


async def test_no_piece_is_made_before_it_is_asked_for() -> None:
    made: list[int] = []

    async def numbers() -> AsyncIterator[str]:
        for number in range(3):
            made.append(number)
            yield str(number)

    driven = Driven(numbers())
    for expected in range(3):
        await asyncio.sleep(0)
        assert len(made) == expected
        assert await anext(driven) == str(expected).encode()


# -- on every host


def numbered() -> App[Any]:
    app: App[Any] = App()
    app.use(request_id(generator=lambda: "the-id"))

    async def ids() -> AsyncIterator[str]:
        for _ in range(2):
            yield current_request_id.get() or "empty"

    @app.get("/stream")
    async def stream(req: Request[Any], res: Response) -> None:
        res.stream(ids())

    @app.get("/sse")
    async def events(req: Request[Any], res: Response) -> None:
        res.sse(ids())

    return app


async def over_fetch(app: App[Any], path: str) -> str:
    return await (await Client(app, None).get(path)).text()


async def over_asgi(app: App[Any], path: str) -> str:
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "query_string": b"",
        "headers": [],
    }
    await asgi(app)({**scope, "client": None}, asyncio.Event().wait, send)  # type: ignore[arg-type]  # nothing is read
    return b"".join(sent).decode()


@pytest.mark.parametrize("ask", [over_fetch, over_asgi])
@pytest.mark.parametrize("path", ["/stream", "/sse"])
async def test_the_request_id_is_known_while_a_body_is_streamed(ask: Any, path: str) -> None:
    found = await ask(numbered(), path)
    assert found.count("the-id") == 2, json.dumps(found)
