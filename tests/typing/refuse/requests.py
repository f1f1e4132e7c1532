"""Lifespans, mounts and parsed parameters that do not fit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import attrs

from core import Bindings, Request, Response, create_app, http


@attrs.frozen
class Env(Bindings):
    URL: str


@attrs.frozen
class Other(Bindings):
    x: int


class Pool: ...


@attrs.frozen
class Order:
    id: int


app = create_app(Env)


@app.lifespan
async def pool(env: Env) -> AsyncIterator[Pool]:
    yield Pool()


@app.lifespan  # E
async def wrong_env(env: Other) -> AsyncIterator[Pool]:
    yield Pool()


@app.lifespan  # E
async def not_a_generator(env: Env) -> Pool:
    return Pool()


async def handler(req: Request[Env], res: Response) -> None:
    req.state[pool].nope  # E
    pool.of(req).nope  # E
    req.state[1]  # E
    req.params.parse(Order).nope  # E
    number: int = req.headers.parse(Order)  # E
    res.send(number)  # E
    app.url_for("/users")  # E
    flag: str = await req.is_disconnected()  # E
    print(flag)


async def not_a_response(request: http.Request) -> str:
    return ""


async def two(request: http.Request, env: Any) -> http.Response:
    return http.Response()


app.mount("/x", not_a_response)  # E
app.mount("/x", two)  # E
app.mount("/x", "/y")  # E
