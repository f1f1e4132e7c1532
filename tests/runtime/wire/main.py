"""An application for the contract of the wire: it reads bodies in every way, and says what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import attrs

from core import Bindings, Request, Response, create_app
from core.middleware.body_limit import body_limit


@attrs.frozen
class Env(Bindings):
    """No bindings."""


app = create_app(Env)

whole: list[str] = []
"""The ways in which a body was read to its end."""
received: list[str] = []
"""The last message that each request of the mounted application received."""


@app.get("/")
async def hello(req: Request[Env], res: Response) -> None:
    res.text("hello")


@app.get("/whole")
async def list_whole(req: Request[Env], res: Response) -> None:
    res.json(whole)


@app.get("/received")
async def list_received(req: Request[Env], res: Response) -> None:
    res.json(received)


@app.post("/stream")
async def stream(req: Request[Env], res: Response) -> None:
    size = 0
    async for chunk in req.stream():
        size += len(chunk)
    whole.append("stream")
    res.text(f"{size}")


@app.post("/bytes")
async def read_bytes(req: Request[Env], res: Response) -> None:
    size = len(await req.bytes())
    whole.append("bytes")
    res.text(f"{size}")


@app.post("/form")
async def form(req: Request[Env], res: Response) -> None:
    fields = await req.form()
    whole.append("form")
    res.text(f"{len(str(fields['text']))}")


@app.post("/json")
async def read_json(req: Request[Env], res: Response) -> None:
    size = len(await req.json(str))
    whole.append("json")
    res.text(f"{size}")


@app.post("/limited", body_limit(max_size=1_000_000))
async def limited(req: Request[Env], res: Response) -> None:
    size = len(await req.bytes())
    whole.append("limited")
    res.text(f"{size}")


@app.post("/echo")
async def echo(req: Request[Env], res: Response) -> None:
    res.stream(req.stream())


@app.get("/said/:length")
async def said(req: Request[Env], res: Response) -> None:
    """Two bytes more than two, under whatever length was asked for."""
    res.header("content-length", req.params["length"]).text("abcd")


@app.get("/streamed/:length")
async def streamed(req: Request[Env], res: Response) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"ab"
        yield b"cd"

    res.header("content-length", req.params["length"]).stream(pieces())


@app.get("/events")
async def events(req: Request[Env], res: Response) -> None:
    async def forever() -> AsyncIterator[str]:
        yield "first"
        await asyncio.Event().wait()

    res.sse(forever())


async def mounted(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Reads to the end of the body, and answers."""
    if scope["type"] != "http":
        return
    message = await receive()
    while message["type"] == "http.request" and message["more_body"]:
        message = await receive()
    received.append(message["type"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"mounted"})


app.mount("/mounted", mounted)
