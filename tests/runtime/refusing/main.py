"""An application whose bindings are asked for what they refuse, or have no place to keep it."""

from __future__ import annotations

from typing import Any

import attrs

from core import (
    Bindings,
    CoreError,
    D1Database,
    DurableObjectNamespace,
    KVNamespace,
    Queue,
    R2Bucket,
    Request,
    Response,
    create_app,
)
from core.bindings.durable_object import DurableObject
from core.errors import BindingError


class Box(DurableObject["Env"]):
    """Keeps a value."""

    async def keep(self, value: str) -> None:
        if value == "wrong":
            self.ctx.storage.sql.exec("INSERT INTO nothing VALUES (1)")
        await self.ctx.storage.put("value", value)
        await self.ctx.storage.sync()


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    FILES: R2Bucket
    JOBS: Queue[Any]
    BOXES: DurableObjectNamespace[Box]


app = create_app(Env)


async def write(env: Env, kind: str, value: str) -> None:
    """Write a value to the binding of a kind; none of them takes `wrong`."""
    wrong = value == "wrong"
    match kind:
        case "kv":
            await env.KV.put("key", value, metadata="x" * 2000 if wrong else None)
        case "d1":
            if not wrong:
                await env.DB.prepare("CREATE TABLE IF NOT EXISTS t (value)").run()
            await (
                env.DB.prepare("INSERT INTO nothing VALUES (?)" if wrong else "INSERT INTO t VALUES (?)")
                .bind(value)
                .run()
            )
        case "r2":
            await env.FILES.put("key", value, md5="0" * 32 if wrong else None)
        case "queue":
            await env.JOBS.send("x" * 200_000 if wrong else value)
        case "durable_object":
            await env.BOXES.get_by_name("box").keep(value)
        case _:
            raise CoreError(404)


@app.post("/write/:kind/:value")
async def answer(req: Request[Env], res: Response) -> None:
    await write(req.env, req.params["kind"], req.params["value"])
    res.status(204).send()


@app.post("/told/:kind/:value")
async def tell(req: Request[Env], res: Response) -> None:
    try:
        await write(req.env, req.params["kind"], req.params["value"])
    except BindingError as error:
        res.json({"type": type(error).__name__, "said": str(error), "retryable": error.retryable})
    else:
        res.json(None)
