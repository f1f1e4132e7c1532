"""An application that uses everything a worker can: what the tests beside it ask over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import attrs

from core import (
    Bindings,
    D1Database,
    DurableObjectNamespace,
    ExecutionContext,
    KVNamespace,
    Queue,
    R2Bucket,
    Request,
    Response,
    Secret,
    create_app,
    http,
)
from core.bindings.calls import BindingCall, Proceed, add_hook
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject
from core.bindings.queue import MessageBatch
from core.bindings.r2 import FixedLengthStream
from core.context import ScheduledEvent
from core.errors import D1Error, KVError
from core.hosts.workers import durable_object, entrypoint
from core.http.sse import Event
from core.http.websocket import WebSocket
from core.middleware.compress import compress
from core.middleware.request_id import current_request_id, request_id
from core.spans import current_traceparent


@attrs.frozen
class Job:
    number: int
    note: str = ""


class Counter(DurableObject["Env"]):
    """Counts in its storage, wakes up by its alarm, and answers requests."""

    async def increment(self, by: int = 1, *, note: str = "") -> dict[str, Any]:
        count = (await self.ctx.storage.get("count") or 0) + by
        await self.ctx.storage.put("count", count)
        return {"count": count, "note": note, "name": self.name}

    async def fail(self) -> None:
        raise ValueError("the counter refuses")

    async def echo(self, value: Any) -> Any:
        return value

    async def wake(self, milliseconds: int) -> None:
        await self.ctx.storage.set_alarm(time.time() * 1000 + milliseconds)

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        await self.ctx.storage.put("woken", info.retry_count + 1)

    async def woken(self) -> int | None:
        value: int | None = await self.ctx.storage.get("woken")
        return value

    async def query(self) -> list[Any]:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (n INTEGER, b BLOB, s TEXT)")
        self.ctx.storage.sql.exec("INSERT INTO t VALUES (?, ?, ?)", 7, b"\x00\xff", None)
        return self.ctx.storage.sql.exec("SELECT * FROM t LIMIT 1").to_array()

    async def fetch(self, request: http.Request, /) -> http.Response:
        text = await request.text()
        if request.path == "/zipped":
            return http.Response(gzip.compress(b"zipped " * 100), headers={"Content-Encoding": "gzip"})
        return http.Response(f"{request.method} {request.path} {text}", status=202, headers={"x-from": "counter"})


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    JOBS: Queue[Job]
    COUNTER: DurableObjectNamespace[Counter]
    GREETING: str
    LIMITS: dict[str, int]
    TOKEN: Secret
    FILES: R2Bucket | None


app = create_app(Env)
Default = entrypoint(app)
PlatformCounter = durable_object(Counter, Env)
running = 0


@app.get("/")
async def hello(req: Request[Env], res: Response) -> None:
    res.text("hello")


@app.put("/files/:name")
async def keep_file(req: Request[Env], res: Response) -> None:
    assert req.env.FILES is not None
    stored = await req.env.FILES.put(
        req.params["name"], FixedLengthStream(req.stream(), int(req.header("Content-Length") or 0))
    )
    res.json(stored.etag)


@app.get("/files/:name")
async def give_file(req: Request[Env], res: Response) -> None:
    assert req.env.FILES is not None
    found = await req.env.FILES.get(req.params["name"])
    if found is None:
        res.status(404).send()
    else:
        res.stream(found.body)


@app.get("/env")
async def show_env(req: Request[Env], res: Response) -> None:
    res.json({"greeting": req.env.GREETING, "limits": req.env.LIMITS, "token": len(req.env.TOKEN.reveal())})


@app.all("/inspect/:name")
async def inspect(req: Request[Env], res: Response) -> None:
    """Everything about a request that crosses over."""
    res.header("x-one", "1").header("Set-Cookie", "a=1").header("Set-Cookie", "b=2").status(203)
    res.json(
        {
            "method": req.method,
            "url": req.url,
            "path": req.path,
            "name": req.params["name"],
            "query": req.query.get_all("q"),
            "headers": dict(req.headers.items()),
            "cookies": dict(req.cookies),
            "ip": req.ip,
            "edge": req.edge,
            "body": (await req.bytes()).hex(),
        }
    )


@app.post("/upload")
async def upload(req: Request[Env], res: Response) -> None:
    size = chunks = 0
    async for chunk in req.stream():
        size += len(chunk)
        chunks += 1
    res.json({"size": size, "chunks": chunks})


@app.post("/upper")
async def upper(req: Request[Env], res: Response) -> None:
    """Streams in both directions at once."""

    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in req.stream():
            yield chunk.upper()

    res.stream(chunks())


@app.get("/ticks/:count")
async def ticks(req: Request[Env], res: Response) -> None:
    async def chunks() -> AsyncIterator[str]:
        try:
            for number in range(int(req.params["count"])):
                yield f"{number};"
                await asyncio.sleep(0.05)
        finally:
            closed.append(req.params["count"])

    res.header("Content-Length", req.query.get("length")).stream(chunks(), content_type="text/plain")


closed: list[str] = []


@app.get("/closed")
async def show_closed(req: Request[Env], res: Response) -> None:
    res.json(closed)


@app.get("/zipped/:how", compress(min_size=1))
async def zipped(req: Request[Env], res: Response) -> None:
    async def chunks() -> AsyncIterator[str]:
        for _ in range(100):
            yield "zipped "

    match req.params["how"]:
        case "whole":
            res.text("zipped " * 100)
        case "stream":
            res.stream(chunks(), content_type="text/plain")
        case "by-hand":
            res.header("Content-Encoding", "gzip").send(gzip.compress(b"zipped " * 100))
        case _:
            res.send(await req.env.COUNTER.get_by_name("zipped").fetch(http.Request("https://object.test/zipped")))


@app.get("/broken")
async def broken(req: Request[Env], res: Response) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"before"
        raise RuntimeError("the source broke")

    res.stream(chunks())


@app.get("/events")
async def events(req: Request[Env], res: Response) -> None:
    async def source() -> AsyncIterator[Event]:
        for number in range(3):
            yield Event(event="tick", data={"number": number}, id=str(number))
            await asyncio.sleep(0.02)

    res.sse(source())


colour: ContextVar[str] = ContextVar("colour", default="none")


@app.get("/one-task", request_id(generator=lambda: "the-id"))
async def one_task(req: Request[Env], res: Response) -> None:
    async def source() -> AsyncIterator[str]:
        colour.set("blue")
        try:
            async with asyncio.timeout(0.05):
                yield f"{current_request_id.get()};"
                yield f"{colour.get()};"
                await asyncio.Event().wait()
        except TimeoutError:
            yield "late"

    res.stream(source(), content_type="text/plain")


@app.websocket("/socket", protocols=["chat.v1"], headers={"X-Room": "one", "Set-Cookie": "seen=1"})
async def socket(req: Request[Env], socket: WebSocket) -> None:
    try:
        while (message := await socket.receive()) != "bye":
            await socket.send(message if isinstance(message, bytes) else f"echo {message}")
        await socket.close(4001, "as you wish")
    finally:
        await req.env.KV.put("socket", "closed")


@app.post("/later/:key")
async def later(req: Request[Env], res: Response) -> None:
    """Answers at once and works on."""
    key = req.params["key"]

    async def work() -> None:
        await asyncio.sleep(0.5)
        await req.env.KV.put(key, "done")

    req.ctx.wait_until(work())
    res.status(202).send()


@app.get("/slow/:key")
async def slow(req: Request[Env], res: Response) -> None:
    """Takes half a second and leaves a trace at its end."""
    print(f"slow {req.params['key']} began")
    await asyncio.sleep(0.5)
    await req.env.KV.put(req.params["key"], "to the end")
    res.text("slow")


@app.get("/spans")
async def spans(req: Request[Env], res: Response) -> None:
    async def one(number: int) -> tuple[str, str]:
        with req.ctx.span(f"task {number}", number=number) as outer:
            await asyncio.sleep(0.01)
            with req.ctx.span("inside") as inner:
                inner.set_attribute("late", True)
                await asyncio.sleep(0)
                return type(inner).__name__, type(outer).__name__

    failed = ""
    try:
        with req.ctx.span("fails"):
            raise ValueError("on purpose")
    except ValueError as error:
        failed = str(error)
    res.json({"kinds": await asyncio.gather(one(1), one(2)), "failed": failed, "after": current_traceparent()})


@app.get("/together")
async def together(req: Request[Env], res: Response) -> None:
    """Tells how many of its kind were running beside it."""
    global running
    running += 1
    try:
        seen = running
        await asyncio.sleep(0.2)
        res.json(max(seen, running))
    finally:
        running -= 1


@app.get("/work/:number")
async def work(req: Request[Env], res: Response) -> None:
    """A little of everything, for load."""
    number = int(req.params["number"])
    await req.env.KV.put(f"work:{number % 50}", str(number))
    value = await req.env.KV.get(f"work:{number % 50}")
    row = await req.env.DB.prepare("SELECT ? + 1 AS next, ? AS text").bind(number, "ä").first()
    res.json({"value": value, "row": row})


@app.get("/kv/:key")
async def get_kv(req: Request[Env], res: Response) -> None:
    res.json(await req.env.KV.get(req.params["key"]))


@app.put("/kv/:key")
async def put_kv(req: Request[Env], res: Response) -> None:
    await req.env.KV.put(req.params["key"], await req.text())
    res.status(204).send()


@app.post("/jobs/:number")
async def send_job(req: Request[Env], res: Response) -> None:
    await req.env.JOBS.send(Job(int(req.params["number"]), "sent"))
    res.status(202).send()


@app.queue("jobs")
async def consume(batch: MessageBatch[Any], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        if message.body["number"] == 13 and message.attempts == 1:
            message.retry()
            continue
        if message.body["number"] == 503:
            if message.attempts == 1:
                raise KVError("KV PUT failed: 503 Service Unavailable")
            await env.KV.put("waited", str(time.time() - message.timestamp.timestamp()))
        await env.KV.put(
            f"job:{message.body['number']}", f"{message.body['note']} {message.attempts} {message.timestamp:%Y}"
        )
        message.ack()


@app.scheduled()
async def tick(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
    await env.KV.put("cron", event.cron)


@app.post("/counters/:name")
async def count(req: Request[Env], res: Response) -> None:
    stub = req.env.COUNTER.get_by_name(req.params["name"])
    res.json(await stub.increment(2, note="kept"))


@app.get("/counters/:name/rpc")
async def call_counter(req: Request[Env], res: Response) -> None:
    """Values of every kind to an object and back, its errors, its own fetch."""
    stub = req.env.COUNTER.get_by_name(req.params["name"])
    value = {"list": [1, 2.5, None, "ä", True], "bytes": b"\x00\xff", "nested": {"a": {"b": None}}, "big": 2**60}
    back = await stub.echo(value)
    try:
        await stub.fail()
        failed = "no"
    except Exception as error:
        failed = f"{type(error).__name__}: {error}"
    answer = await stub.fetch(http.Request("https://object.test/some/path", method="POST", body="text"))
    rows = await stub.query()
    res.json(
        {
            "same": back == value,
            "failed": failed,
            "fetch": [answer.status, answer.headers["x-from"], await answer.text()],
            "none": await stub.echo(None),
            "row": [rows[0]["n"], rows[0]["b"].hex(), rows[0]["s"]],
        }
    )


@app.get("/hooked/:name")
async def hooked(req: Request[Env], res: Response) -> None:
    """Calls of several kinds of bindings, as a hook sees them; one call it answers itself."""
    seen: list[Any] = []

    async def hook(call: BindingCall, proceed: Proceed, /) -> Any:
        seen.append([call.binding, call.method, [*call.target], [*call.args], dict(call.options)])
        return "answered" if call.args == ("not there",) else await proceed()

    env = req.env
    bindings: list[tuple[str, Any]] = [("KV", env.KV), ("DB", env.DB), ("COUNTER", env.COUNTER)]
    for name, binding in bindings:
        add_hook(binding, hook, name=name, kind=name.lower())
    try:
        statement = env.DB.prepare("SELECT ? AS a").bind(1)
        answers: list[Any] = [await env.KV.get("not there"), await statement.first("a")]
        batch = await env.DB.batch([statement])
        await env.KV.put_json("hooked", [1], expiration_ttl=60)
        answers.append(await env.COUNTER.get_by_name(req.params["name"]).increment(2, note="hooked"))
    finally:
        for _, binding in bindings:
            binding._hook = None
    seen[2][3] = [[statement.sql, list(statement.values)] for statement in seen[2][3][0]]
    res.json({"seen": seen, "answers": answers[:2], "batch": batch[0].results})


@app.post("/counters/:name/alarm")
async def set_alarm(req: Request[Env], res: Response) -> None:
    await req.env.COUNTER.get_by_name(req.params["name"]).wake(100)
    res.status(202).send()


@app.get("/counters/:name/alarm")
async def get_alarm(req: Request[Env], res: Response) -> None:
    res.json(await req.env.COUNTER.get_by_name(req.params["name"]).woken())


@app.get("/sync")
async def sync(req: Request[Env], res: Response) -> None:
    """Synchronous code that waits for the platform, by JSPI."""
    from pyodide.ffi import can_run_sync, run_sync

    await asyncio.sleep(0)
    if not can_run_sync():
        res.status(501).text("no JSPI")
        return
    run_sync(req.env.KV.put("sync", "yes"))
    res.json(run_sync(req.env.KV.get("sync")))


@app.post("/judge")
async def judge(req: Request[Env], res: Response) -> None:
    """What D1 says against statements, each in a batch that is undone: its last statement fails whenever it runs."""
    database = req.env.DB
    given = await req.json()
    await database.batch([database.prepare(sql) for sql in given["setup"]])
    found: list[str | None] = []
    for sql in given["statements"]:
        try:
            await database.batch([database.prepare(sql), database.prepare("SELECT json('[')")])
        except D1Error as error:
            found.append(None if "malformed JSON" in str(error) else str(error))
    res.json(found)


@app.post("/repeat/:times")
async def repeat(req: Request[Env], res: Response) -> None:
    res.text((await req.json())["text"] * int(req.params["times"]))


@app.post("/die")
async def die(req: Request[Env], res: Response) -> None:
    res.json(json.loads(await req.text()))  # the standard library's own, which follows it all the way


@app.get("/hang")
async def hang(req: Request[Env], res: Response) -> None:
    while True:
        pass


@app.get("/fail")
async def fail(req: Request[Env], res: Response) -> None:
    raise RuntimeError("boom")
