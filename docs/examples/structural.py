"""A middleware for every application that has the binding, and an application that has it."""

from __future__ import annotations

from typing import Protocol

import attrs

from core import Bindings, KVNamespace, Next, Request, Response, create_app


# --8<-- [start:middleware]
class HasSessions(Protocol):
    @property
    def SESSIONS(self) -> KVNamespace: ...


async def count_visits(req: Request[HasSessions], res: Response, next: Next) -> None:
    visits = int(await req.env.SESSIONS.get("visits") or 0) + 1
    req.ctx.wait_until(req.env.SESSIONS.put("visits", str(visits)))
    res.header("X-Visits", str(visits))
    await next()


# --8<-- [end:middleware]


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    GREETING: str


app = create_app(Env)
app.use(count_visits)


@app.get("/")
async def greet(req: Request[Env], res: Response) -> None:
    res.text(req.env.GREETING)
