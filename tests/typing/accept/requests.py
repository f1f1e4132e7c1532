"""Parameters and headers as types, lifespans, mounts, responses that are passed on, and paths of handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Literal, Protocol, TypedDict, assert_type
from uuid import UUID

import attrs

from core import App, Bindings, ExecutionContext, Request, Response, create_app, http
from core.context import StateKey
from core.testing import Client


@attrs.frozen
class Env(Bindings):
    URL: str


class HasURL(Protocol):
    @property
    def URL(self) -> str: ...


class Pool:
    async def fetch(self) -> int:
        return 1


@attrs.frozen
class Order:
    id: UUID
    kind: Literal["new", "old"] = "new"


class Row(TypedDict):
    id: str


app = create_app(Env)


@app.lifespan
async def pool(env: Env) -> AsyncIterator[Pool]:
    yield Pool()


@app.lifespan
async def of_a_protocol(env: HasURL) -> AsyncIterator[int]:
    yield 1


assert_type(pool, StateKey[Pool])
assert_type(of_a_protocol, StateKey[int])


@app.get("/:id")
async def handler(req: Request[Env], res: Response) -> Response:
    assert_type(req.state[pool], Pool)
    assert_type(pool.of(req), Pool)
    assert_type(pool(req), Pool)
    assert_type(pool.of_env(req.env), Pool)
    assert_type(await req.state[pool].fetch(), int)
    req.state["x"] = 1
    anything: Any = req.state["x"]
    assert_type(req.params.parse(Order), Order)
    assert_type(req.params.parse(Row), Row)
    assert_type(req.headers.parse(Order), Order)
    assert_type(req.headers.parse(Order | None), Order | None)
    assert_type(req.to_http(), http.Request)
    assert_type(await req.is_disconnected(), bool)
    assert_type(req.url_for(handler, id=anything), str)
    assert_type(app.url_for(handler, id=7), str)
    return res.send(http.Response("x"))


async def asgi(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None: ...


async def fetch(request: http.Request) -> http.Response:
    return http.Response()


async def fetch_with_env(request: http.Request, env: Env, ctx: ExecutionContext) -> http.Response:
    return http.Response()


app.mount("/asgi", asgi)
app.mount("/fetch", fetch)
app.mount("/env", fetch_with_env)
app.mount("/app", App(Env).fetch)


async def started(env: Env) -> None:
    await app.startup(env)
    await app.shutdown(env)
    async with Client(app, env) as client:
        assert_type(client, Client[Env])
