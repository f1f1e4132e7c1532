"""An application that uses every kind of binding which exists once, and says which process did what."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator

import attrs

from core import (
    Bindings,
    CoreError,
    D1Database,
    DurableObject,
    DurableObjectNamespace,
    ExecutionContext,
    KVNamespace,
    MessageBatch,
    Queue,
    Request,
    Response,
    create_app,
    http,
)
from core.http.websocket import WebSocket

VERSION = "first"


@attrs.frozen
class Order:
    """An argument whose class crosses to the other process and back."""

    number: int


class Counter(DurableObject["Env"]):
    """Counts, and remembers what it was given."""

    async def add(self, order: Order) -> Order:
        """Count one more."""
        count = (await self.ctx.storage.get("count") or 0) + 1
        await self.ctx.storage.put("count", count)
        await self.ctx.storage.put(f"order-{order.number}", count)
        return Order(count)

    async def has(self, numbers: list[int]) -> list[bool]:
        """True for each that was counted."""
        return [await self.ctx.storage.get(f"order-{number}") is not None for number in numbers]

    async def refuse(self) -> None:
        """Raise an error with all that one may have."""
        raise CoreError(409, "Sold out", headers={"x-why": "sold"}, code="SOLD_OUT")

    async def fetch(self, request: http.Request) -> http.Response:
        """Answer with the body in capitals, in pieces, and two cookies."""
        text = await request.text()

        async def pieces() -> AsyncIterator[bytes]:
            for letter in text:
                yield letter.upper().encode()

        response = http.Response(pieces(), status=201, headers={"x-process": str(os.getpid())})
        response.headers.append("set-cookie", "a=1")
        response.headers.append("set-cookie", "b=2")
        return response


@attrs.frozen
class Env(Bindings):
    """The bindings."""

    KV: KVNamespace
    DB: D1Database
    JOBS: Queue[dict[str, int]]
    COUNTER: DurableObjectNamespace[Counter]


app = create_app(Env)


def stub(req: Request[Env]) -> Counter:
    return req.env.COUNTER.get_by_name("all")


@app.get("/")
async def about(req: Request[Env], res: Response) -> None:
    res.json({"process": os.getpid(), "url": req.url, "ip": req.ip, "version": VERSION})


@app.post("/orders/:number")
async def order(req: Request[Env], res: Response) -> None:
    """Keep a number in every kind of storage, and say so when all of them have it."""
    number = int(req.params["number"])
    counted = await stub(req).add(Order(number))
    await req.env.DB.prepare("INSERT INTO notes (number) VALUES (?)").bind(number).run()
    await req.env.KV.put(f"order-{number}", str(counted.number))
    await req.env.JOBS.send({"number": number})
    res.status(201).json(counted.number)


@app.post("/notes/:number")
async def note(req: Request[Env], res: Response) -> None:
    """Keep a number in the database alone, which any process may write."""
    await req.env.DB.prepare("INSERT INTO notes (number) VALUES (?)").bind(int(req.params["number"])).run()
    res.text(VERSION)


@app.post("/have")
async def have(req: Request[Env], res: Response) -> None:
    """Say what is missing of some numbers, by the place where it should be."""
    numbers = await req.json(list[int])
    rows = {row[0] for row in await req.env.DB.prepare("SELECT number FROM notes").raw()}
    in_object: list[bool] = []
    for start in range(0, len(numbers), 100):
        in_object += await stub(req).has(numbers[start : start + 100])
    missing = {
        "object": [number for number, there in zip(numbers, in_object, strict=True) if not there],
        "db": [number for number in numbers if number not in rows],
        "kv": [number for number in numbers if await req.env.KV.get(f"order-{number}") is None],
        "queue": [number for number in numbers if await req.env.KV.get(f"job-{number}") is None],
    }
    res.json(missing)


@app.get("/refused")
async def refused(req: Request[Env], res: Response) -> None:
    await stub(req).refuse()


@app.post("/fetched")
async def fetched(req: Request[Env], res: Response) -> None:
    answer = await stub(req).fetch(http.Request("http://counter/", method="POST", body=await req.text()))
    cookies = answer.headers.get_set_cookie()
    res.json([answer.status, answer.headers["x-process"], cookies, await answer.text()])


@app.get("/slow")
async def slow(req: Request[Env], res: Response) -> None:
    print("slow began", flush=True)
    await asyncio.sleep(0.5)
    res.text("done")


@app.get("/hang")
async def hang(req: Request[Env], res: Response) -> None:
    while True:
        time.sleep(0.01)  # noqa: ASYNC251 - the event loop waits, and the processor does not


@app.get("/endless")
async def endless(req: Request[Env], res: Response) -> None:
    print("endless began", flush=True)

    async def ticks() -> AsyncIterator[bytes]:
        while True:
            yield b"tick"
            await asyncio.sleep(0.05)

    res.stream(ticks())


@app.get("/kv/:key")
async def kv(req: Request[Env], res: Response) -> None:
    res.text(await req.env.KV.get(req.params["key"]) or "nothing")


@app.websocket("/echo")
async def echo(req: Request[Env], socket: WebSocket) -> None:
    async for message in socket:
        if message == "bye":
            await socket.close(4000)
            return
        await socket.send(message)


@app.queue("jobs")
async def jobs(batch: MessageBatch[dict[str, int]], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await env.KV.put(f"job-{message.body['number']}", "1")
        await env.KV.put("consumer", str(os.getpid()))


@app.get("/events")
async def events(req: Request[Env], res: Response) -> None:
    async def told() -> AsyncIterator[str]:
        while True:
            yield "tick"
            await asyncio.sleep(0.2)

    res.sse(told())
