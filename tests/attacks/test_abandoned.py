"""An answer has one owner, which closes it: nothing stays behind an answer that no client gets."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.asgi import Exchange, scope_of

from core import App, CoreError, Next, Request, Response, create_app, http
from core.hosts.asgi import asgi
from core.http.websocket import WebSocket
from core.middleware.compress import compress
from core.middleware.etag import etag
from core.middleware.timeout import timeout
from core.types import WebSocketHandler

pytestmark = pytest.mark.usefixtures("frozen_heap")

TIMES = 20


class Source:
    """A stream with something to close, which no generator has before its first piece."""

    def __init__(self) -> None:
        self.closed = 0
        self.descriptor = os.open(os.devnull, os.O_RDONLY)

    def __aiter__(self) -> Source:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        return b"piece" * 1000

    async def aclose(self) -> None:
        if not self.closed:
            os.close(self.descriptor)
        self.closed += 1


async def streaming(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that streams until it is told that its client is gone."""
    if scope["type"] != "http":
        return
    gone = asyncio.ensure_future(_until_gone(receive))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    while not gone.done():
        await send({"type": "http.response.body", "body": b"piece", "more_body": True})
        await asyncio.sleep(0)


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
        pass


def sent_stream(res: Response) -> None:
    res.stream(Source())


def passed_on(res: Response) -> None:
    res.send(http.Response(Source()))


def passed_on_again(res: Response) -> None:
    res.send(http.Response(http.Response(Source()).body))


def events(res: Response) -> None:
    res.sse(Source())


SENDERS = {"stream": sent_stream, "pass-on": passed_on, "pass-on of a body": passed_on_again, "events": events}


async def raise_after_next(req: Request, res: Response, next: Next) -> None:
    await next()
    raise CoreError(418)


async def raise_anything(req: Request, res: Response, next: Next) -> None:
    await next()
    raise RuntimeError("after the answer")


async def not_modified(req: Request, res: Response, next: Next) -> None:
    await next()
    res.status(304)


async def pass_through(req: Request, res: Response, next: Next) -> None:
    await next()


ENDINGS: dict[str, tuple[Any, str]] = {
    "raise after next": (raise_after_next, "GET"),
    "an error after next": (raise_anything, "GET"),
    "304": (not_modified, "GET"),
    "HEAD": (pass_through, "HEAD"),
    "client gone": (pass_through, "GET gone"),
    "cancelled": (pass_through, "GET cancelled"),
    "send raises": (pass_through, "GET refused"),
}
AROUND = {
    "plain": (),
    "compress": (compress(min_size=0),),
    "timeout": (timeout(duration=60_000, include_body=True),),
    "etag": (etag(),),
}


def census() -> tuple[int, int]:
    """The number of tasks, and of open descriptors. A thread of an earlier test may close one of these meanwhile."""
    return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))


async def chattering(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that sends on a WebSocket until it is told that its client is gone."""
    if scope["type"] != "websocket":
        return
    gone = asyncio.ensure_future(_until_gone(receive))
    await send({"type": "websocket.accept"})
    while not gone.done():
        await send({"type": "websocket.send", "text": "piece"})
        await asyncio.sleep(0)


async def listen(req: Request, socket: WebSocket) -> None:
    async for _ in socket:
        pass


async def speak(req: Request, socket: WebSocket) -> None:
    while True:
        await socket.send("piece")
        await asyncio.sleep(0)


async def listen_and_speak(req: Request, socket: WebSocket) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(listen(req, socket))
        group.create_task(speak(req, socket))


SESSIONS: dict[str, WebSocketHandler[Any, Any]] = {
    "listens": listen,
    "speaks": speak,
    "listens and speaks": listen_and_speak,
}
SOCKET_ENDINGS: dict[str, tuple[Any, str]] = {
    "raise after next": (raise_after_next, ""),
    "an error after next": (raise_anything, ""),
    "client gone": (pass_through, "gone"),
    "client gone before it is accepted": (pass_through, "refused"),
    "cancelled": (pass_through, "cancelled"),
}


async def abandon_socket(app: App[Any], ending: str) -> None:
    """Open a WebSocket, and leave as `ending` says."""
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inbox.put_nowait({"type": "websocket.connect"})
    accepted = asyncio.Event()

    async def send(message: Any) -> None:
        if ending == "refused":
            raise OSError("the client is gone")
        if message["type"] == "websocket.accept":
            accepted.set()
            if ending == "gone":
                inbox.put_nowait({"type": "websocket.disconnect", "code": 1001})
        elif ending == "gone":
            raise OSError("the client is gone")

    served = asgi(app)
    scope = scope_of(type="websocket", scheme="ws", subprotocols=[])
    asking = asyncio.ensure_future(served(scope, inbox.get, send))
    if ending == "cancelled":
        await accepted.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        asking.cancel()
    await asyncio.wait((asking,))
    assert asking.cancelled() == (ending == "cancelled")
    assert asking.cancelled() or isinstance(asking.exception(), OSError) == (ending == "refused")
    await served.context.drain()


async def abandon(app: App[Any], how: str) -> None:
    """Ask once, and leave as `how` says."""
    served = asgi(app)
    method, _, ending = how.partition(" ")
    exchange = Exchange(method, ending)
    asking = asyncio.ensure_future(served(exchange.scope, exchange.receive, exchange.send))
    if ending == "cancelled":
        await exchange.began.wait()
        asking.cancel()
    await asyncio.wait((asking,))
    assert asking.cancelled() == (ending == "cancelled")
    assert asking.cancelled() or isinstance(asking.exception(), OSError) == (ending == "refused")
    await served.context.drain()


async def settled(count: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    gc.collect()  # what earlier tests have left open would be closed in the middle of one
    for _ in range(20):  # tasks that have ended leave the table in the loop's next turns
        await asyncio.sleep(0)
    return count()


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("sender", [*SENDERS, "mount"])
async def test_nothing_stays_behind_an_answer_that_no_client_gets(sender: str, ending: str, around: str) -> None:
    app = create_app()
    middleware, how = ENDINGS[ending]
    app.use(middleware)
    for one in AROUND[around]:
        app.use(one)
    if sender == "mount":
        app.mount("/", streaming)
    else:

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            SENDERS[sender](res)

    await abandon(app, how)
    before = await settled(census)
    for _ in range(TIMES):
        await abandon(app, how)
    after = await settled(census)
    await app.shutdown(None)
    assert after <= before


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_file_that_no_client_gets_is_closed(ending: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 3_000_000)
    app = create_app()
    middleware, how = ENDINGS[ending]
    app.use(middleware)

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        res.file(tmp_path / "large")

    await abandon(app, how)
    before = await settled(census)
    for _ in range(TIMES):
        await abandon(app, how)
    assert await settled(census) <= before


@pytest.mark.parametrize("ending", SOCKET_ENDINGS)
@pytest.mark.parametrize("session", [*SESSIONS, "mount"])
async def test_nothing_stays_behind_a_websocket_that_its_client_leaves(session: str, ending: str) -> None:
    app = create_app()
    middleware, how = SOCKET_ENDINGS[ending]
    app.use(middleware)
    if session == "mount":
        app.mount("/", chattering)
    else:
        app.websocket("/")(SESSIONS[session])

    await abandon_socket(app, how)
    before = await settled(census)
    for _ in range(TIMES):
        await abandon_socket(app, how)
    after = await settled(census)
    await app.shutdown(None)
    assert after <= before


async def test_a_stream_that_was_sent_too_late_for_a_timeout_is_closed() -> None:
    sources: list[Source] = []
    app = create_app()
    app.use(timeout(duration=1))

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            sources.append(Source())
            res.stream(sources[0])

    await abandon(app, "GET")
    assert [source.closed for source in sources] == [1]


async def test_the_generator_of_a_stream_cleans_up_in_its_own_task() -> None:
    ended: list[str] = []

    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"piece"
        finally:
            ended.append("closed")

    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        res.stream(pieces())

    await abandon(app, "GET gone")
    assert ended == ["closed"]
