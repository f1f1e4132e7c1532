"""Durable Objects: namespaces, stubs that are typed as the class, state and storage."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol, assert_type

import attrs

from core.bindings.durable_object import (
    AlarmInvocationInfo,
    DurableObject,
    DurableObjectId,
    DurableObjectJurisdiction,
    DurableObjectNamespace,
    DurableObjectState,
    DurableObjectStorage,
    DurableObjectStub,
    DurableObjectTransaction,
    SqlStorage,
    SqlStorageCursor,
    SqlStorageValue,
)
from core.http import Request, Response


@attrs.frozen
class Env:
    GREETING: str


@attrs.frozen
class Pair:
    number: int
    text: str | None


class Counter(DurableObject[Env]):
    def __init__(self, ctx: DurableObjectState, env: Env) -> None:
        super().__init__(ctx, env)
        ctx.block_concurrency_while(self.load)

    async def load(self) -> None:
        assert_type(self.env, Env)
        assert_type(self.ctx, DurableObjectState)

    async def increment(self, by: int = 1) -> int:
        return by

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        assert_type(info.retry_count, int)
        assert_type(info.is_retry, bool)
        assert_type(info.scheduled_time, int)

    async def fetch(self, request: Request, /) -> Response:
        return Response(await request.text())


class CountsSomewhereElse(DurableObjectStub, Protocol):
    async def increment(self, by: int = 1) -> int: ...


async def calls(counters: DurableObjectNamespace[Counter], request: Request) -> None:
    assert_type(counters.id_from_name("a"), DurableObjectId)
    assert_type(counters.id_from_string("0"), DurableObjectId)
    made = counters.new_unique_id(jurisdiction="eu")
    assert_type(made.name, str | None)
    assert_type(made.jurisdiction, DurableObjectJurisdiction | None)
    assert_type(made.equals(made), bool)
    counter = counters.get(made, location_hint="weur")
    assert_type(counter, Counter)
    assert_type(counters.get_by_name("a"), Counter)
    assert_type(counters.jurisdiction("eu"), DurableObjectNamespace[Counter])
    assert_type(await counter.increment(by=2), int)
    assert_type(await counter.fetch(request), Response)
    assert_type(counter.id, DurableObjectId)
    assert_type(counter.name, str | None)


async def calls_by_protocol(counters: DurableObjectNamespace[CountsSomewhereElse]) -> None:
    assert_type(await counters.get_by_name("a").increment(), int)


def a_class_fits_a_protocol_of_it(
    counters: DurableObjectNamespace[Counter],
) -> DurableObjectNamespace[CountsSomewhereElse]:
    return counters


async def calls_untyped(counters: DurableObjectNamespace, request: Request) -> None:
    stub = counters.get_by_name("a")
    assert_type(stub, DurableObjectStub)
    assert_type(await stub.fetch(request), Response)


async def state(ctx: DurableObjectState) -> None:
    async def section() -> int:
        return 1

    assert_type(ctx.id, DurableObjectId)
    assert_type(ctx.storage, DurableObjectStorage)
    assert_type(await ctx.block_concurrency_while(section), int)
    ctx.wait_until(section())


async def storage(storage: DurableObjectStorage) -> None:
    assert_type(await storage.get("k"), Any)
    assert_type(await storage.get(["a", "b"]), dict[str, Any])
    assert_type(await storage.list(prefix="a", start="b", end="c", reverse=True, limit=5), dict[str, Any])
    await storage.put("k", 1)
    await storage.put({"a": 1, "b": [2]}, allow_unconfirmed=True)
    assert_type(await storage.delete("k"), bool)
    assert_type(await storage.delete(["a", "b"]), int)
    await storage.delete_all()
    assert_type(await storage.get_alarm(), int | None)
    await storage.set_alarm(1_800_000_000_000)
    await storage.set_alarm(datetime(2030, 1, 1, tzinfo=UTC))
    await storage.delete_alarm()
    await storage.sync()
    assert_type(await storage.get_current_bookmark(), str)
    assert_type(await storage.get_bookmark_for_time(1.0), str)
    assert_type(await storage.on_next_session_restore_bookmark("b"), str)


async def transactions(storage: DurableObjectStorage) -> None:
    async def body(txn: DurableObjectTransaction) -> str:
        assert_type(await txn.get("k"), Any)
        await txn.put("k", 1)
        assert_type(await txn.delete("k"), bool)
        txn.rollback()
        return "done"

    assert_type(await storage.transaction(body), str)

    def count() -> int:
        return 1

    assert_type(storage.transaction_sync(count), int)


def sql(sql: SqlStorage) -> None:
    cursor = sql.exec("SELECT ?", 1)
    assert_type(cursor, SqlStorageCursor)
    assert_type(cursor.column_names, list[str])
    assert_type(cursor.rows_read, int)
    assert_type(cursor.rows_written, int)
    assert_type(cursor.one(), dict[str, SqlStorageValue])
    assert_type(cursor.to_array(), list[dict[str, SqlStorageValue]])
    assert_type(cursor.raw(), Iterator[list[SqlStorageValue]])
    assert_type(next(cursor), dict[str, SqlStorageValue])
    for row in cursor:
        assert_type(row, dict[str, SqlStorageValue])
    typed = cursor.as_(Pair)
    assert_type(typed.one(), Pair)
    assert_type(typed.to_array(), list[Pair])
    assert_type(next(typed), Pair)
    for each in typed:
        assert_type(each.number, int)
    assert_type(sql.database_size, int)


def kv(storage: DurableObjectStorage) -> None:
    storage.kv.put("k", 1)
    assert_type(storage.kv.get("k"), Any)
    assert_type(storage.kv.delete("k"), bool)
    assert_type(storage.kv.list(prefix="a"), Iterable[tuple[str, Any]])
