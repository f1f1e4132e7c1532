"""Consumers of queues and handlers of times take the application's Env, or what it has of it."""

from __future__ import annotations

from typing import Any, Protocol, assert_type

import attrs

from core import App, Bindings, D1Database, ExecutionContext, MessageBatch, ScheduledEvent, create_app


@attrs.frozen
class Env(Bindings):
    DB: D1Database


class HasDB(Protocol):
    @property
    def DB(self) -> D1Database: ...


@attrs.frozen
class Job:
    name: str


app = create_app(Env)
anything: App[Any] = App()


@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        assert_type(message.body, Job)


@app.queue("a")
async def protocol(batch: MessageBatch[Job], env: HasDB, ctx: ExecutionContext) -> None: ...


@app.queue("b")
async def loose(batch: MessageBatch[Job], env: object, ctx: object) -> None: ...


@app.queue("c")
async def any_env(batch: MessageBatch[dict[str, Any]], env: Any, ctx: ExecutionContext) -> None: ...


@anything.queue("d")
async def on_any(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None: ...


@app.scheduled("* * * * *")
async def tick(event: ScheduledEvent, env: HasDB, ctx: ExecutionContext) -> None: ...


class Worker:
    async def consume(self, batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None: ...


app.queue("m")(Worker().consume)


async def direct(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    await work(batch, env, ctx)
