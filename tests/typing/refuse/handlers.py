"""Every type checker must refuse each line that ends in `# E`, and no other."""

from __future__ import annotations

from typing import Literal

import attrs

from core import Bindings, KVNamespace, Next, Queue, Request, Response, Router, create_app


@attrs.frozen
class Job:
    name: str


@attrs.frozen
class User:
    id: str


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    JOBS: Queue[Job]


@attrs.frozen
class Other(Bindings):
    COUNTERS: KVNamespace


app = create_app(Env)


@app.get("/a")
async def typo(req: Request[Env], res: Response) -> None:
    req.env.SESSION  # E


@app.get("/b/:id")
async def wrong_name(req: Request[Env, object, Literal["id"]], res: Response) -> None:
    req.params["idd"]  # E


@app.get("/c")
async def assigns(req: Request[Env], res: Response) -> None:
    req.env = Env  # E
    req.params = {}  # E


@app.get("/d")  # E
async def returns_a_number(req: Request[Env], res: Response) -> int:
    return 1


@app.get("/e")  # E
async def of_another_env(req: Request[Other], res: Response) -> None:
    res.json({})


@app.get("/f")  # E
def not_async(req: Request[Env], res: Response) -> None:
    res.json({})


async def three_wrong(req: Request[Other], res: Response, next: Next) -> None:
    await next()


app.use(three_wrong)  # E

others: Router[Other] = Router()
app.use("/others", others)  # E


async def who(req: Request[Env]) -> User:
    return User("1")


users = app.authenticated(who)


@users.get("/g")  # E
async def of_another_user(req: Request[Env, Job], res: Response) -> None:
    res.json({})


async def sends(env: Env) -> None:
    await env.JOBS.send(User("1"))  # E


async def statuses(res: Response) -> None:
    res.status("200")  # E
    res.header("x", 1)  # E


async def late(status: int, duration_ms: float) -> None: ...
def of_one(status: int) -> None: ...


async def callbacks(res: Response) -> None:
    res.on_send(late)  # E
    res.on_send(of_one)  # E
