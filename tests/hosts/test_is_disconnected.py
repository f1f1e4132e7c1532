"""`is_disconnected` is true once the client is gone, on each host, and asking takes nothing of the body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from tests.support.fetch import PlainContext, answer

from core import App, Request, Response, create_app
from core.hosts.asgi import asgi
from core.hosts.workers.context import Given
from core.hosts.workers.request import WorkersRequest


def application() -> tuple[App[Any], asyncio.Event]:
    app, left = create_app(), asyncio.Event()

    @app.post("/")
    async def show(req: Request, res: Response) -> None:
        before = [await req.is_disconnected(), await req.is_disconnected()]
        body = await req.text()
        still = await req.is_disconnected()
        left.set()
        await asyncio.sleep(0)
        res.json([before, body, still, await req.is_disconnected(), await req.is_disconnected()])

    @app.post("/stream")
    async def stream(req: Request, res: Response) -> None:
        await req.is_disconnected()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            yield b"b" if not await req.is_disconnected() else b"gone"

        res.stream(pieces())

    return app, left


async def over_asgi(app: App[Any], path: str, messages: list[Any], left: asyncio.Event) -> list[Any]:
    sent: list[Any] = []

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "headers": [], "scheme": "http", "server": ("localhost", 80), "client": None,
    }  # fmt: skip
    await asgi(app)(scope, receive, send)
    return sent


async def test_asgi_tells_and_the_body_stays() -> None:
    app, left = application()
    pieces = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"cd", "more_body": False},
    ]
    sent = await over_asgi(app, "/", pieces, left)
    assert sent[1]["body"] == b'[[false,false],"abcd",false,true,true]'


async def test_asgi_looks_behind_a_body_that_nobody_reads() -> None:
    app, left = create_app(), asyncio.Event()
    told: list[bool] = []

    @app.post("/")
    async def poll(req: Request, res: Response) -> None:
        for _ in range(3):
            told.append(await req.is_disconnected())
        left.set()
        await asyncio.sleep(0)
        told.extend([await req.is_disconnected(), await req.is_disconnected()])
        res.text(await req.text())

    pieces = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"cd", "more_body": False},
    ]
    sent = await over_asgi(app, "/", pieces, left)
    assert told == [False, False, False, True, True]
    assert sent[1]["body"] == b"abcd"


async def test_asgi_looks_no_further_than_a_few_pieces_of_a_large_body() -> None:
    app, left = create_app(), asyncio.Event()

    @app.post("/")
    async def poll(req: Request, res: Response) -> None:
        for _ in range(100):
            assert not await req.is_disconnected()
        left_over = len(pieces)
        res.json([left_over, len(await req.bytes())])

    pieces: list[Any] = [{"type": "http.request", "body": b"x" * 20_000, "more_body": True} for _ in range(50)]
    pieces.append({"type": "http.request", "body": b"", "more_body": False})
    sent = await over_asgi(app, "/", pieces, left)
    assert sent[1]["body"] == b"[47,1000000]"


async def test_asgi_tells_in_a_streamed_body() -> None:
    app, left = application()
    sent = await over_asgi(app, "/stream", [{"type": "http.request", "body": b"x"}], left)
    assert [message["body"] for message in sent[1:]] == [b"a", b"b", b""]


async def test_a_worker_asks_the_signal_of_the_request() -> None:
    given = SimpleNamespace(signal=SimpleNamespace(aborted=False))
    context = PlainContext()
    req = WorkersRequest(Given(context, given), "GET", "https://example.test/", None, context)
    assert not await req.is_disconnected()
    given.signal.aborted = True
    assert await req.is_disconnected()
    del given.signal
    assert not await req.is_disconnected()


async def test_a_request_of_a_test_has_a_client() -> None:
    app, _ = application()
    assert (await answer(app, method="POST", body="x"))[1] == [[False, False], "x", False, False, False]
