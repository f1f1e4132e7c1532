"""The promises of middleware that keeps something hold in every order of its calls, and when bindings fail."""

import asyncio
import os
from typing import Any, Literal

import attrs
import pytest

from core import Bindings, DurableObjectNamespace, KVNamespace, Request, Response, create_app
from core.middleware.cache import cache
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_object import RateLimiterObject
from core.middleware.rate_limit_stores import DurableObjectStore, KVStore, RateLimitStore
from core.middleware.sessions import session_of, sessions
from core.testing import (
    Client,
    FakeClock,
    FakeDurableObjectNamespace,
    FakeExecutionContext,
    FakeKVNamespace,
    simulate,
)

pytestmark = pytest.mark.slow

RUNS = int(os.environ.get("CORE_RUNS", "60"))
"""`make fuzz` asks for 5,000."""


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    LIMITS: DurableObjectNamespace[RateLimiterObject]


UNUSED = FakeDurableObjectNamespace(RateLimiterObject)

remembering = create_app(Env)
remembering.use(sessions(Env, kv_binding="KV", secret=lambda req: "a secret of 32 characters, or more"))


@remembering.get("/values")
async def values(req: Request[Env], res: Response) -> None:
    res.json(dict(await session_of(req)))


@remembering.post("/values/:key")
async def keep(req: Request[Env], res: Response) -> None:
    (await session_of(req))[req.params["key"]] = True
    res.status(204).send()


@remembering.post("/login")
async def log_in(req: Request[Env], res: Response) -> None:
    session = await session_of(req)
    session.regenerate()
    session["user"] = "ada"
    res.status(204).send()


@remembering.post("/logout")
async def log_out(req: Request[Env], res: Response) -> None:
    (await session_of(req)).destroy()
    res.status(204).send()


async def visitor() -> Client[Env]:
    client = Client(remembering, Env(KV=FakeKVNamespace(), LIMITS=UNUSED))
    while (await client.post("/values/first")).status != 204:
        pass
    return client


async def kept_by(client: Client[Env]) -> Any:
    while (answer := await client.get("/values")).status != 200:
        pass
    return await answer.json()


def test_requests_of_one_session_each_keep_what_they_changed() -> None:
    async def test() -> None:
        client = await visitor()
        await asyncio.gather(*[client.post(f"/values/{key}") for key in "abc"])
        assert await kept_by(client) == dict.fromkeys(["first", *"abc"], True)

    simulate(runs=RUNS)(test)()


@pytest.mark.parametrize("faults", [(), ("error", "crash")], ids=["none", "error and crash"])
def test_a_session_that_was_destroyed_stays_so(faults: tuple[Literal["error", "crash"], ...]) -> None:
    async def test() -> None:
        client = await visitor()
        before = dict(client.cookies)
        _, out = await asyncio.gather(client.post("/values/a"), client.post("/logout"))
        if out.status == 204:
            client.cookies = before
            assert await kept_by(client) == {}

    simulate(runs=RUNS, faults=faults)(test)()


def test_a_login_that_fails_costs_nobody_the_session() -> None:
    async def test() -> None:
        client = await visitor()
        before = dict(client.cookies)
        answer = await client.post("/login")
        assert (await kept_by(client)).get("first")
        if answer.status == 204:
            client.cookies = before
            assert await kept_by(client) == {}

    simulate(runs=RUNS, faults=["error"])(test)()


@pytest.mark.parametrize(
    ("store", "faults"),
    [
        (KVStore[Env]("KV"), ()),
        (KVStore[Env]("KV"), ("error",)),
        (DurableObjectStore[Env]("LIMITS"), ("error", "crash", "evict", "alarm")),
    ],
    ids=["KV", "KV that fails", "Durable Object"],
)
def test_no_burst_passes_a_limit(store: RateLimitStore, faults: Any) -> None:
    app = create_app(Env)
    app.use(rate_limit(Env, store=store, limit=2, window=60, on_store_error="closed"))

    @app.get("/")
    async def get(req: Request[Env], res: Response) -> None:
        res.json({})

    async def test() -> None:
        clock = FakeClock()
        limits, ctx = FakeDurableObjectNamespace(RateLimiterObject, clock=clock), FakeExecutionContext(clock=clock)
        client = Client(app, Env(KV=FakeKVNamespace(clock=clock), LIMITS=limits), ctx)
        for wait in (120, 0):  # 120 s after the start of a window its object's alarm goes off
            passed = 0
            for _ in range(2):
                answers = await asyncio.gather(*[client.get("/") for _ in range(2)])
                passed += [answer.status for answer in answers].count(200)
                await ctx.drain()
            assert passed <= 2
            await clock.advance(wait)

    simulate(runs=RUNS, faults=faults)(test)()


def test_a_cache_whose_namespace_fails_gives_only_fresh_answers_to_the_same_question() -> None:
    app = create_app(Env)
    app.use(cache(Env, kv_binding="KV", max_age=30))

    @app.get("/")
    async def get(req: Request[Env], res: Response) -> None:
        res.vary("Accept-Language")
        res.json({"at": req.clock.time(), "language": req.header("accept-language")})

    async def test() -> None:
        clock = FakeClock()
        ctx = FakeExecutionContext(clock=clock)
        client = Client(app, Env(KV=FakeKVNamespace(clock=clock), LIMITS=UNUSED), ctx)
        languages = ["en", "de", "en"]
        for _ in range(3):
            answers = await asyncio.gather(*[client.get("/", headers={"Accept-Language": each}) for each in languages])
            bodies = [await answer.json() for answer in answers]
            assert [body["language"] for body in bodies] == languages
            assert all(clock.time() - body["at"] < 30 for body in bodies)
            await clock.advance(13)
            await ctx.drain()

    simulate(runs=RUNS, faults=["error"])(test)()
