"""Consumers and handlers of times that do not fit the application."""

from __future__ import annotations

from typing import Protocol

import attrs

from core import Bindings, D1Database, ExecutionContext, KVNamespace, MessageBatch, ScheduledEvent, create_app


@attrs.frozen
class Env(Bindings):
    DB: D1Database


@attrs.frozen
class Other(Bindings):
    CACHE: KVNamespace


class HasCache(Protocol):
    @property
    def CACHE(self) -> KVNamespace: ...


@attrs.frozen
class Job:
    name: str


app = create_app(Env)


@app.queue("a")  # E
async def wrong_env(batch: MessageBatch[Job], env: Other, ctx: ExecutionContext) -> None: ...


@app.queue("b")  # E
async def wrong_protocol(batch: MessageBatch[Job], env: HasCache, ctx: ExecutionContext) -> None: ...


@app.queue("c")  # E
async def wrong_order(env: Env, batch: MessageBatch[Job], ctx: ExecutionContext) -> None: ...


@app.queue("d")  # E
async def too_few(batch: MessageBatch[Job], env: Env) -> None: ...


@app.queue("e")  # E
def not_async(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None: ...


@app.queue("f")  # E
async def returns_a_number(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> int:
    return 1


@app.scheduled()  # E
async def wrong_tick(event: ScheduledEvent, env: Other, ctx: ExecutionContext) -> None: ...
