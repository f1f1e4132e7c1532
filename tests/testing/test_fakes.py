"""The fakes of KV and D1: what they record, how they fail, how they lag. Their semantics are the contracts'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from core.bindings.d1 import D1Database
from core.bindings.kv import KVListResult, KVNamespace
from core.errors import D1Error, KVError
from core.testing import FakeClock, FakeD1Database, FakeKVNamespace, FakeR2Bucket
from core.testing.calls import Call


def test_a_fake_fits_its_protocol() -> None:
    assert isinstance(FakeKVNamespace(), KVNamespace)
    assert isinstance(FakeD1Database(), D1Database)


async def test_a_namespace_may_begin_with_values() -> None:
    kv = FakeKVNamespace({"a": "1", "b": b"\xff"})
    assert await kv.get("a") == "1"
    assert await kv.get("b", "bytes") == b"\xff"


@pytest.mark.parametrize("fake", [FakeKVNamespace, FakeR2Bucket])
def test_a_number_is_no_value_to_begin_with(fake: Callable[[Any], object]) -> None:
    """`bytes(5)` would be five zero bytes."""
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'int'"):
        fake({"visits": 5})


async def test_every_call_is_recorded_in_order() -> None:
    kv = FakeKVNamespace()
    await kv.put("k", "v", expiration_ttl=60, metadata=None)
    await kv.get("k", cache_ttl=30)
    await kv.get(["k"])
    await kv.list(prefix="k")
    await kv.delete("k")
    assert kv.calls == [
        Call("put", ("k", "v"), {"expiration_ttl": 60}),
        Call("get", ("k", "text"), {"cache_ttl": 30}),
        Call("get", (["k"], "text")),
        Call("list", (), {"prefix": "k", "limit": 1000}),
        Call("delete", ("k",)),
    ]
    kv.calls.clear()
    assert kv.calls == []


async def test_a_call_that_is_refused_is_recorded_too() -> None:
    kv = FakeKVNamespace()
    with pytest.raises(KVError):
        await kv.put("", "v")
    assert [call.method for call in kv.calls] == ["put"]


async def test_the_calls_of_a_database_are_what_reached_it() -> None:
    db = FakeD1Database()
    await db.exec("CREATE TABLE t (a)")
    insert = db.prepare("INSERT INTO t VALUES (?)")
    await insert.bind("x").run()
    await db.batch([insert.bind("y"), db.prepare("SELECT 1")])
    await db.prepare("SELECT a FROM t").first("a")
    assert db.calls == [
        Call("exec", ("CREATE TABLE t (a)",)),
        Call("run", ("INSERT INTO t VALUES (?)", "x")),
        Call("batch", ([("INSERT INTO t VALUES (?)", ("y",)), ("SELECT 1", ())],)),
        Call("first", ("SELECT a FROM t",), {"args": ("a",)}),
    ]


async def test_the_next_call_fails_and_changes_nothing() -> None:
    kv = FakeKVNamespace({"k": "old"})
    kv.fail_next(KVError("KV PUT failed: 429 Too Many Requests"))
    with pytest.raises(KVError, match="429 Too Many Requests"):
        await kv.put("k", "new")
    assert await kv.get("k") == "old"
    await kv.put("k", "new")
    assert await kv.get("k") == "new"


async def test_only_the_named_method_fails_and_as_often_as_asked() -> None:
    kv = FakeKVNamespace()
    kv.fail_next(KVError("no"), method="delete", times=2)
    kv.fail_next(RuntimeError("first"))
    with pytest.raises(RuntimeError, match="first"):
        await kv.get("k")
    assert await kv.get("k") is None
    for _ in range(2):
        with pytest.raises(KVError, match="no"):
            await kv.delete("k")
    await kv.delete("k")
    with pytest.raises(ValueError, match="must be at least 1"):
        kv.fail_next(KVError("no"), times=0)


async def test_a_database_fails_as_told() -> None:
    db = FakeD1Database()
    db.fail_next(D1Error("D1_ERROR: Network connection lost."), method="batch")
    assert await db.prepare("SELECT 1 AS a").first("a") == 1
    with pytest.raises(D1Error, match="Network connection lost"):
        await db.batch([db.prepare("SELECT 1")])


async def test_latency_passes_on_the_clock() -> None:
    clock = FakeClock()
    kv = FakeKVNamespace({"k": "v"}, clock=clock, latency=0.2)
    reading = asyncio.create_task(kv.get("k"))
    await clock.advance(0.1)
    assert not reading.done()
    await clock.advance(0.1)
    assert reading.done()
    assert await reading == "v"
    kv.latency = 0
    assert await kv.get("k") == "v"
    assert kv.latency == 0


async def test_writes_are_seen_late_when_reads_are_stale() -> None:
    clock = FakeClock()
    kv = FakeKVNamespace({"k": "old", "gone": "v"}, clock=clock, staleness=60)
    await kv.put("k", "new", metadata=1)
    await kv.put("fresh", "v")
    await kv.delete("gone")
    clock.advance(59)
    assert await kv.get(["k", "fresh", "gone"]) == {"k": "old", "fresh": None, "gone": "v"}
    assert [key.name for key in (await kv.list()).keys] == ["gone", "k"]
    clock.advance(1)
    assert await kv.get(["k", "fresh", "gone"]) == {"k": "new", "fresh": "v", "gone": None}
    assert [key.name for key in (await kv.list()).keys] == ["fresh", "k"]


async def test_without_staleness_everything_is_seen_at_once_again() -> None:
    kv = FakeKVNamespace(staleness=60)
    await kv.put("k", "1")
    assert await kv.list() == KVListResult([], list_complete=True)
    kv.staleness = 0
    assert kv.staleness == 0
    assert await kv.get("k") == "1"
    await kv.put("k", "2")
    assert await kv.get("k") == "2"


async def test_a_write_that_is_not_seen_yet_is_checked_all_the_same() -> None:
    kv = FakeKVNamespace(staleness=60)
    with pytest.raises(KVError, match="Invalid expiration_ttl of 1"):
        await kv.put("k", "v", expiration_ttl=1)


@pytest.mark.parametrize(
    ("message", "constraint", "columns"),
    [
        ("D1_ERROR: UNIQUE constraint failed: users.email", "UNIQUE", ("users.email",)),
        ("D1_ERROR: UNIQUE constraint failed: t.a, t.b: SQLITE_CONSTRAINT", "UNIQUE", ("t.a", "t.b")),
        ("UNIQUE constraint failed: users.email", "UNIQUE", ("users.email",)),
        ("D1_ERROR: CHECK constraint failed: a <> 'UNIQUE constraint failed: t.a': SQLITE_CONSTRAINT", "CHECK", ()),
        ("D1_EXEC_ERROR: Error in line 1: SELECC 'UNIQUE constraint failed: t.a': syntax error", None, ()),
        ("D1_ERROR: Network connection lost.", None, ()),
        ("", None, ()),
    ],
)
def test_an_error_made_by_hand_tells_its_constraint_too(
    message: str, constraint: str | None, columns: tuple[str, ...]
) -> None:
    error = D1Error(message)
    assert (error.constraint, error.columns) == (constraint, columns)
