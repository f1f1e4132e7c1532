"""Fixtures of this worker's tests: its Env over fakes on one clock, and a client who is signed in."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from core import Request, Secret, http
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace, FakeQueue
from core.testing import env as fakes
from links.auth import COOKIE, User, auth
from links.env import Env
from links.main import app

CONFIG = Path(__file__).parent.parent / "wrangler.toml"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def env(clock: FakeClock) -> Env:
    cache = FakeKVNamespace(clock=clock, places=2)  # each sees the other's writes a minute later
    secret = Secret("a-secret-for-tests-that-is-long-enough")
    return fakes(Env, config=CONFIG, clock=clock, CACHE=cache, JWT_SECRET=secret)


@pytest.fixture
async def ctx(clock: FakeClock) -> AsyncIterator[FakeExecutionContext]:
    ctx = FakeExecutionContext(clock=clock)
    yield ctx
    await ctx.drain()


@pytest.fixture
def visitor(env: Env, ctx: FakeExecutionContext) -> Client[Env]:
    return Client(app, env, ctx)


@pytest.fixture
def join(env: Env, ctx: FakeExecutionContext) -> Callable[[str], Awaitable[Client[Env]]]:
    """Make an account without a password, and give a browser that is signed in to it."""

    async def join(name: str) -> Client[Env]:
        insert = env.DB.prepare("INSERT INTO users (email, password) VALUES (?, '') RETURNING id")
        user = User(str(await insert.bind(f"{name}@example.com").one("id")))
        client = Client(app, env, ctx)
        req = Request(http.Request("https://links.test/"), env, ctx)
        client.cookies[COOKIE] = await auth.issue(req, user, expires_in=3600)
        return client

    return join


@pytest.fixture
async def ada(join: Callable[[str], Awaitable[Client[Env]]]) -> Client[Env]:
    return await join("ada")


@pytest.fixture
def count_clicks(env: Env, ctx: FakeExecutionContext) -> Callable[[], Awaitable[None]]:
    """Hand the clicks that wait to the consumer, as the platform does after a second."""

    async def count_clicks() -> None:
        await ctx.drain()
        assert isinstance(env.CLICKS, FakeQueue)
        await env.CLICKS.deliver(lambda batch: app.consume(batch, env, ctx))

    return count_clicks
