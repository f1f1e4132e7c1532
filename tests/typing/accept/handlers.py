"""Every type checker must accept this: the request path, typed from end to end."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypedDict, assert_type

import attrs

from core import (
    App,
    Bindings,
    CoreError,
    D1Database,
    ExecutionContext,
    KVNamespace,
    MessageBatch,
    Middleware,
    Next,
    Params,
    Query,
    Queue,
    Request,
    Response,
    Router,
    ScheduledEvent,
    create_app,
    http,
    public,
)


@attrs.frozen
class Job:
    name: str


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    JOBS: Queue[Job]
    ORIGINS: str


@attrs.frozen
class User:
    id: str


@attrs.frozen
class Admin(User):
    level: int = 1


class HasSessions(Protocol):
    @property
    def SESSIONS(self) -> KVNamespace: ...


class Shape(TypedDict):
    a: int


app = create_app(Env)
assert_type(app, App[Env])
assert_type(create_app(), App[Any])


@app.get("/users/:id")
async def show(req: Request[Env], res: Response) -> None:
    assert_type(req.env, Env)
    assert_type(req.env.SESSIONS, KVNamespace)
    assert_type(req.params["id"], str)
    assert_type(req.query, Query)
    assert_type(req.query.get("page"), str | None)
    assert_type(req.query.get("page", "1"), str)
    assert_type(req.header("x"), str | None)
    assert_type(req.start_time, float)
    assert_type(await req.json(User), User)
    assert_type(await req.json(list[User]), list[User])
    assert_type(await req.json(Shape), Shape)
    assert_type(await req.text(), str)
    assert_type(req.query.parse(User), User)
    res.status(200).header("x", "y").json(User("1"))


@app.post("/users")
async def create(req: Request[Env], res: Response) -> Response:
    return res.status(201).json({})


@app.get("/orgs/:org")
async def narrow(req: Request[Env, object, Literal["org"]], res: Response) -> None:
    assert_type(req.params, Params[Literal["org"]])
    req.params["org"]


async def injected(req: Request[HasSessions], res: Response, next: Next) -> None:
    assert_type(req.env.SESSIONS, KVNamespace)
    await next()


async def anything(request: Request, response: Response, go_on: Next) -> Response | None:
    if request.id:
        return response.status(401).json({"error": "Unauthorized"})
    await go_on()
    return None


def on_leaving(status: int, duration_ms: float) -> None: ...


@app.get("/leaving")
async def leaving(req: Request[Env], res: Response) -> None:
    seen: list[int] = []
    res.on_send(on_leaving).on_send(lambda status, duration_ms: seen.append(status)).send()


app.use(injected)
app.use("/x", injected, anything)
app.get("/both", injected, anything, show)
app.get("/open", public(), show)

shared: Router[HasSessions] = Router()
shared.use(injected)
app.use("/shared", shared)


def factory() -> Middleware[object]:
    async def made(req: Request[object], res: Response, next: Next) -> None:
        await next()

    return made


app.use(factory())


async def who(req: Request[HasSessions]) -> Admin:
    raise CoreError(401, "Unauthorized")


admin = app.authenticated(who)
assert_type(admin, Router[Env, Admin, object])


@admin.get("/stats")
async def stats(req: Request[Env, Admin], res: Response) -> None:
    assert_type(req.user, Admin)
    res.json(req.user.level)


@admin.get("/wider")
async def wider(req: Request[Env, User], res: Response) -> None:
    res.json(req.user.id)


@admin.get("/plain")
async def plain(req: Request[Env], res: Response) -> None:
    res.json({})


async def sets_the_user(req: Request[Env], res: Response, next: Next) -> None:
    req.user = User("1")
    req.id = "r"
    await next()


@app.on_error
async def on_error(err: Exception, req: Request[Env], res: Response, next: Next) -> None:
    res.status(getattr(err, "status", 500)).json({"error": str(err)})


@app.not_found
async def not_found(req: Request[Env], res: Response) -> Response:
    return res.status(404).json({"error": "Not Found"})


@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        assert_type(message.body, Job)


@app.scheduled("0 * * * *")
async def hourly(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
    assert_type(event.cron, str)


async def through_the_door(env: Env, ctx: ExecutionContext) -> None:
    response = await app.fetch(http.Request("https://example.test/"), env, ctx)
    assert_type(response, http.Response)
    assert_type(response.status, int)
    await env.JOBS.send(Job("a"))
