"""A lifespan, applications mounted below it, requests and responses passed on, clients that go away: on every host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import attrs

from core import (
    Bindings,
    CoreError,
    DurableObject,
    DurableObjectNamespace,
    Next,
    Request,
    Response,
    create_app,
    http,
)
from core.http.websocket import WebSocket


@attrs.frozen
class Env(Bindings):
    GREETING: str
    ROOMS: DurableObjectNamespace[Room]


class Room(DurableObject["Env"]):
    """Answers with what reached it."""

    async def fetch(self, request: http.Request, /) -> http.Response:
        """In pieces, with headers of every kind."""
        told = f"{request.method} {http.URL(request.url).pathname} {request.headers.get('x-a')} {await request.text()}"

        async def pieces() -> AsyncIterator[bytes]:
            for piece in (told, " and", " more"):
                yield piece.encode()

        response = http.Response(pieces(), status=203, headers={"x-theirs": "1", "content-type": "text/css"})
        response.headers.append("set-cookie", "a=1")
        response.headers.append("set-cookie", "b=2")
        return response


app = create_app(Env)
entered: list[str] = []


@app.lifespan
async def greeting(env: Env) -> AsyncIterator[str]:
    entered.append(env.GREETING)
    await asyncio.sleep(0.01)
    yield env.GREETING
    print("lifespan left", flush=True)


@app.use
async def mark(req: Request[Env], res: Response, next: Next) -> None:
    await next()
    res.header("x-mark", str(res.status_code))


@app.get("/lifespan")
async def lifespan(req: Request[Env], res: Response) -> None:
    res.json([req.state[greeting], entered])


@app.all("/room/*")
async def room(req: Request[Env], res: Response) -> None:
    res.header("x-own", "1").cookie("own", "3")
    res.send(await req.env.ROOMS.get_by_name("one").fetch(req.to_http()))


seen: dict[str, list[bool]] = {}


@app.get("/waiting/:name")
async def waiting(req: Request[Env], res: Response) -> None:
    """Answer when the client is gone, or after five seconds."""
    await watch(req)
    res.text("done")


@app.get("/streaming/:name")
async def streaming(req: Request[Env], res: Response) -> None:
    """Stream, and watch beside it."""
    watching = asyncio.ensure_future(watch(req))
    req.ctx.wait_until(watching)

    async def pieces() -> AsyncIterator[bytes]:
        while not watching.done():
            yield b"tick"
            await asyncio.sleep(0.05)

    res.stream(pieces())


async def watch(req: Request[Env]) -> None:
    """Ask until the client is gone."""
    mine = seen.setdefault(req.params["name"], [])
    for _ in range(100):
        mine.append(await req.is_disconnected())
        if mine[-1]:
            return
        await asyncio.sleep(0.05)


@app.get("/still/:name")
async def still(req: Request[Env], res: Response) -> None:
    before = [await req.is_disconnected(), await req.is_disconnected()]
    await asyncio.sleep(0.05)
    res.json([*before, await req.is_disconnected()])


@app.get("/seen/:name")
async def show_seen(req: Request[Env], res: Response) -> None:
    res.json(seen.get(req.params["name"], []))


async def inner(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application with a lifespan, answers in pieces, background work and a WebSocket."""
    if scope["type"] == "lifespan":
        assert (await receive())["type"] == "lifespan.startup"
        scope["state"]["pool"] = "open"
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("inner left", flush=True)
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["type"] == "http":
        size = 0
        while (message := await receive()).get("more_body"):
            size += len(message["body"])
        size += len(message.get("body", b""))
        text = f"{scope['method']} {scope['root_path']} {scope['path']} {size} {scope['state']['pool']}".encode()
        headers = [(b"content-type", b"text/plain"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        for number in range(3):
            await send({"type": "http.response.body", "body": b"%d;" % number, "more_body": True})
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": text})
        await asyncio.sleep(0.05)
        seen.setdefault("background", []).append(True)
    else:
        await talk(scope, receive, send)


async def talk(scope: Any, receive: Any, send: Any) -> None:
    """Echoes until it is asked to leave."""
    await receive()
    if scope["path"].endswith("/refused"):
        await send({"type": "websocket.close"})
        return
    protocol = next(iter(scope["subprotocols"]), None)
    await send({"type": "websocket.accept", "subprotocol": protocol})
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") == "leave":
            await send({"type": "websocket.close", "code": 4001, "reason": "bye"})
        elif message.get("text") is not None:
            await send({"type": "websocket.send", "text": f"{scope['path']} {message['text']}"})
        else:
            await send({"type": "websocket.send", "bytes": message["bytes"][::-1]})
    seen.setdefault("closed-inner", []).append(True)


app.mount("/inner", inner)

old = create_app(Env)


@old.all("/a/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], req.query.get("q"), await req.text(), req.env.GREETING])


@old.get("/refused")
async def refuse(req: Request[Env], res: Response) -> None:
    raise CoreError(403)


@old.websocket("/talk", protocols=["chat.v1"])
async def echo(req: Request[Env], socket: WebSocket) -> None:
    async for message in socket:
        if message == "leave":
            await socket.close(4001, "bye")
            seen.setdefault("closed-old", []).append(True)
            return
        await socket.send(f"/old{req.path} {message}" if isinstance(message, str) else message[::-1])


app.mount("/old", old.fetch)
