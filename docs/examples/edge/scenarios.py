"""The test of each fault, for the handlers that have it and for those that do not."""

import asyncio
from typing import Any, Literal, TypeAlias

import attrs

from core import D1Database
from core.testing import (
    Client,
    FakeClock,
    FakeD1Database,
    FakeDurableObjectNamespace,
    FakeExecutionContext,
    FakeKVNamespace,
    FakeQueue,
    FakeR2Bucket,
    call_log,
    env,
    exactly_once_effect,
    never_more_than,
    no_lost_update,
)
from edge.faults import Counter, Env, Payment, Reminder, Shop, app

Version: TypeAlias = Literal["broken", "repaired"]

TABLES = """
CREATE TABLE names (name TEXT);
CREATE TABLE payments (message TEXT);
CREATE TABLE bills (day REAL);
CREATE TABLE letters (person TEXT);
CREATE TABLE sessions (name TEXT);
CREATE TABLE links (name TEXT, target TEXT);
"""


SPARE = env(Env)


def bindings(**given: object) -> Env:
    """An Env of what a scenario uses, and of nothing else: a run takes longer to make fakes than to run."""
    unused = {field.name: getattr(SPARE, field.name) for field in attrs.fields(Env)}
    values: dict[str, Any] = {**unused, **given}
    return env(Env, **values)


async def database() -> FakeD1Database:
    made = FakeD1Database()
    await made.exec(TABLES)
    return made


async def rows(db: D1Database, table: str) -> object:
    return await db.prepare(f"SELECT count(*) AS n FROM {table}").first("n")


# --8<-- [start:lost-update]
async def lost_update(version: Version) -> None:
    counters = FakeDurableObjectNamespace(Counter)
    client = Client(app, bindings(KV=FakeKVNamespace(), COUNTERS=counters))
    answers = await asyncio.gather(*[client.post(f"/{version}/visits") for _ in range(3)])
    assert sorted([(await answer.json())["visits"] for answer in answers]) == [1, 2, 3]
    no_lost_update(call_log())


# --8<-- [end:lost-update]


# --8<-- [start:insert]
async def check_then_insert(version: Version) -> None:
    db = await database()
    client = Client(app, bindings(DB=db))
    answers = await asyncio.gather(client.post(f"/{version}/names/ada"), client.post(f"/{version}/names/ada"))
    assert sorted(answer.status for answer in answers) == [201, 409]


# --8<-- [end:insert]


# --8<-- [start:object]
async def await_in_an_object(version: Version) -> None:
    shops = FakeDurableObjectNamespace(Shop)
    await shops.storage("books").put("stock", 1)
    client = Client(app, bindings(KV=FakeKVNamespace(), SHOPS=shops))
    answers = await asyncio.gather(client.post(f"/{version}/sales"), client.post(f"/{version}/sales"))
    assert [(await answer.json())["sold"] for answer in answers].count(True) == 1


# --8<-- [end:object]


# --8<-- [start:duplicate]
async def duplicate_delivery(version: Version) -> None:
    db = await database()
    payments: FakeQueue[Payment] = FakeQueue(version)
    client = Client(app, bindings(DB=db, **{version.upper(): payments}))
    await payments.send(Payment(1))
    while payments.waiting:
        await payments.deliver(lambda batch: app.consume(batch, client.env, client.ctx))
    assert await rows(db, "payments") == 1
    exactly_once_effect(version)(call_log())


# --8<-- [end:duplicate]


# --8<-- [start:poison]
async def poison_message(version: Version) -> None:
    db = await database()
    payments: FakeQueue[Payment] = FakeQueue(version)
    client = Client(app, bindings(DB=db, **{version.upper(): payments}))
    await payments.send(Payment(-1))
    await payments.send(Payment(1))
    while payments.waiting:
        try:
            await payments.deliver(lambda batch: app.consume(batch, client.env, client.ctx))
        except ValueError:
            continue  # the platform delivers the rest again
    assert await rows(db, "payments") == 1


# --8<-- [end:poison]


# --8<-- [start:cron]
async def cron_twice(version: Version) -> None:
    db = await database()
    await Client(app, bindings(DB=db)).trigger("0 0 * * *" if version == "broken" else "0 1 * * *")
    assert await rows(db, "bills") == 1


# --8<-- [end:cron]


# --8<-- [start:logout]
async def logged_out_elsewhere(version: Version) -> None:
    db = await database()
    await db.exec("INSERT INTO sessions VALUES ('ada')")
    shared = bindings(DB=db, KV=FakeKVNamespace({"session": "ada"}))
    frankfurt, dulles = Client(app, shared), Client(app, shared)
    assert (await dulles.get(f"/{version}/me")).status == 200
    await frankfurt.post(f"/{version}/logout")
    assert (await dulles.get(f"/{version}/me")).status == 401


# --8<-- [end:logout]


# --8<-- [start:negative]
async def missing_is_remembered(version: Version) -> None:
    shared = bindings(KV=FakeKVNamespace(), DB=await database())
    frankfurt, dulles = Client(app, shared), Client(app, shared)
    assert (await dulles.get(f"/{version}/links/a")).status == 404
    await frankfurt.put(f"/{version}/links/a")
    assert (await dulles.get(f"/{version}/links/a")).status == 200


# --8<-- [end:negative]


# --8<-- [start:etag]
async def overwritten_object(version: Version) -> None:
    files = FakeR2Bucket()
    client = Client(app, bindings(FILES=files))
    await asyncio.gather(client.post(f"/{version}/lines"), client.post(f"/{version}/lines"))
    found = await files.get("lines")
    assert found is not None
    assert await found.text() == "xx"


# --8<-- [end:etag]


# --8<-- [start:cut-off]
async def cut_off(version: Version) -> None:
    kv = FakeKVNamespace()
    ctx = FakeExecutionContext()
    client = Client(app, bindings(KV=kv), ctx)
    answer = await client.post(f"/{version}/orders")
    await ctx.drain()
    if answer.status == 201:
        assert await kv.get("order") == "1 book"


# --8<-- [end:cut-off]


# --8<-- [start:alarm]
async def alarm_retried(version: Version) -> None:
    db = await database()
    clock = FakeClock()
    reminders = FakeDurableObjectNamespace(Reminder, clock=clock)
    await bindings(DB=db, REMINDERS=reminders).REMINDERS.get_by_name("ada").remind(version)
    await clock.advance(600)
    assert await rows(db, "letters") == 1


# --8<-- [end:alarm]


# --8<-- [start:burst]
async def burst(version: Version) -> None:
    codes: FakeQueue[Payment] = FakeQueue()
    counters = FakeDurableObjectNamespace(Counter)
    client = Client(app, bindings(KV=FakeKVNamespace(), COUNTERS=counters, BROKEN=codes, REPAIRED=codes))
    await asyncio.gather(*[client.post(f"/{version}/codes") for _ in range(4)])
    never_more_than(2, per=60, of=lambda call: call.method == "send")(call_log())


# --8<-- [end:burst]
