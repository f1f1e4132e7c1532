"""An application with one binding of every kind that the explorer shows."""

import logging
from typing import Any

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
    R2Bucket,
    Request,
    Response,
    ScheduledEvent,
    create_app,
)
from core.bindings.durable_object import AlarmInvocationInfo


@attrs.frozen
class Job:
    text: str


class Counter(DurableObject[Any]):
    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        await self.ctx.storage.put("rang", True)

    async def increment(self) -> int:
        value: int = (await self.ctx.storage.get("value") or 0) + 1
        await self.ctx.storage.put("value", value)
        return value


@attrs.frozen
class Env(Bindings):
    NOTES: KVNamespace
    DB: D1Database
    FILES: R2Bucket
    JOBS: Queue[Job]
    COUNTER: DurableObjectNamespace[Counter]


app = create_app(Env)


@app.get("/notes/:key")
async def read_note(req: Request[Env], res: Response) -> None:
    note = await req.env.NOTES.get(req.params["key"])
    if note is None:
        raise CoreError(404, "No such note")
    res.json({"note": note})


@app.post("/jobs")
async def send_job(req: Request[Env], res: Response) -> None:
    await req.env.JOBS.send(await req.json(Job))
    res.status(202).json({"ok": True})


@app.post("/count")
async def count(req: Request[Env], res: Response) -> None:
    res.json({"count": await req.env.COUNTER.get_by_name("one").increment()})


@app.get("/slow-list")
async def slow_list(req: Request[Env], res: Response) -> None:
    logging.getLogger("workshop").warning("one statement for each job")
    found = [await req.env.DB.prepare("SELECT text FROM jobs WHERE id = ?").bind(id).first() for id in range(1, 13)]
    res.json({"jobs": len(found)})


@app.get("/feed")
async def feed(req: Request[Env], res: Response) -> None:
    db = req.env.DB
    posts = (await db.prepare("SELECT author_id FROM posts ORDER BY id LIMIT 300").all()).results
    names = [
        await db.prepare("SELECT name FROM authors WHERE id = ?").bind(post["author_id"]).first("name")
        for post in posts
    ]
    res.json({"by": names})


@app.get("/counted-list")
async def counted_list(req: Request[Env], res: Response) -> None:
    db = req.env.DB
    await db.batch(
        [
            *(db.prepare("INSERT INTO counted (text) VALUES (?)").bind(text) for text in ("c", "a", "b")),
            db.prepare("SELECT * FROM counted"),
        ]
    )
    await db.prepare("SELECT text FROM counted ORDER BY text LIMIT 1").all()
    await db.exec("UPDATE counted SET text = 'd' WHERE text > ''")
    res.status(204).send()


@app.post("/echo")
async def echo(req: Request[Env], res: Response) -> None:
    res.json(await req.json())


@app.get("/broken")
async def broken(req: Request[Env], res: Response) -> None:
    await req.env.DB.prepare("SELECT * FROM no_such_table").all()  # type: ignore[core-sql]  # the error page is what is tested


@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        if message.body.text == "fail":
            raise ValueError("this job fails")
        await env.DB.prepare("INSERT INTO jobs (text) VALUES (?)").bind(message.body.text).run()


@app.scheduled("0 3 * * *")
async def tidy(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
    await env.NOTES.put("tidied", "yes")
