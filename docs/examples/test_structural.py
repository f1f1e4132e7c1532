"""Middleware for every application, as the explanation of Env describes it."""

from __future__ import annotations

from core.testing import Client, FakeExecutionContext, env
from structural import Env, app


async def test_visits_are_counted_in_the_background() -> None:
    ctx = FakeExecutionContext()
    client = Client(app, env(Env, GREETING="hello"), ctx)
    assert (await client.get("/")).headers["x-visits"] == "1"
    await ctx.drain()
    assert (await client.get("/")).headers["x-visits"] == "2"
    await ctx.drain()
