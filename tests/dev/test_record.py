"""The recorder: every call of a binding is recorded in the exchange that made it."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from core import Bindings, D1Database, D1Error, KVNamespace, Queue, R2Bucket
from core.calls import add_hook
from core.dev.record import LONGEST_DETAIL, MOST_CALLS, Recorder, current
from core.env import inject
from core.testing import FakeD1Database, FakeKVNamespace, FakeQueue, FakeR2Bucket


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    FILES: R2Bucket
    JOBS: Queue[Any]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def env(recorder: Recorder) -> Env:
    fakes = {
        "KV": (FakeKVNamespace({"a": "1"}), "kv"),
        "DB": (FakeD1Database(), "d1"),
        "FILES": (FakeR2Bucket(), "r2"),
        "JOBS": (FakeQueue[Any](), "queue"),
    }
    for name, (fake, kind) in fakes.items():
        add_hook(fake, recorder.hook, name=name, kind=kind)
    return inject(Env, {name: fake for name, (fake, _) in fakes.items()})


async def test_each_call_is_noted_with_its_arguments_and_its_time(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    try:
        assert await env.KV.get("a") == "1"
        await env.FILES.put("file", b"12345")
        await env.JOBS.send({"text": "hello"}, delay_seconds=5)
        statement = env.DB.prepare("SELECT ? + ? AS sum").bind(1, 2)
        assert await statement.first("sum") == 3
        results = await env.DB.batch([env.DB.prepare("SELECT 1 AS one"), statement])
    finally:
        current.reset(token)
    recorder.end(exchange)

    assert [row.results for row in results] == [[{"one": 1}], [{"sum": 3}]]
    assert [(call.binding, call.method, call.detail) for call in exchange.calls] == [
        ("KV", "get", "'a'"),
        ("FILES", "put", "'file', 5 bytes"),
        ("JOBS", "send", "{'text': 'hello'}, delay_seconds=5"),
        ("DB", "first", "SELECT ? + ? AS sum  ← 1, 2"),
        ("DB", "batch", "[SELECT 1 AS one, SELECT ? + ? AS sum  ← 1, 2]"),
    ]
    assert all(call.duration is not None and call.duration >= 0 for call in exchange.calls)
    assert exchange.as_json()["calls"][0]["binding"] == "KV"


async def test_an_error_is_noted_and_comes_out_as_it_was(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    try:
        with pytest.raises(D1Error, match="no such table"):
            await env.DB.prepare("SELECT * FROM nowhere").all()
    finally:
        current.reset(token)

    assert exchange.calls[0].error is not None
    assert "no such table" in exchange.calls[0].error


async def test_work_in_the_background_belongs_to_the_request_that_began_it(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    task = asyncio.ensure_future(env.KV.put("b", "2"))
    current.reset(token)
    recorder.end(exchange)
    await task

    (call,) = exchange.calls
    assert (call.method, call.background) == ("put", True)


async def test_calls_outside_of_every_exchange_are_made_all_the_same(env: Env) -> None:
    assert await env.KV.get("a") == "1"


async def test_what_is_noted_stays_small(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    for _ in range(MOST_CALLS + 3):
        await env.KV.get("a")
    current.reset(token)
    other = recorder.begin("request", "GET", "/")
    token = current.set(other)
    await env.DB.prepare(f"SELECT '{'x' * 5000}'").first()
    current.reset(token)

    assert len(exchange.calls) == MOST_CALLS
    assert exchange.left_out == 3
    assert len(other.calls[0].detail) == LONGEST_DETAIL


async def test_who_follows_hears_of_every_change_and_the_slow_miss_the_oldest(recorder: Recorder) -> None:
    heard: list[int] = []

    async def follow() -> None:
        async for exchange in recorder.follow():
            heard.append(exchange.number)

    following = asyncio.ensure_future(follow())
    await asyncio.sleep(0)
    for _ in range(500):  # more than are kept, before the follower runs again
        recorder.begin("request", "GET", "/")
    await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert heard[-1] == 500
    assert len(heard) == 200
    assert len(recorder.exchanges) == 200
