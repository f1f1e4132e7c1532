"""A Durable Object that cannot keep what it wrote never answers that it did, whatever its method returns."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.disk import full

from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.store import Store
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject, DurableObjectTransaction
from core.errors import DurableObjectError
from core.testing.clock import FakeClock

# The disk of the test that runs: the method fills it, the test empties it.
disk = contextlib.ExitStack()
LATER = 4_102_444_800_000


class Writer(DurableObject[Any]):
    """An object that writes in every way there is."""

    async def begin(self) -> None:
        self.in_memory = True
        await self.ctx.storage.put({"old": 1, "older": 1})
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a); DELETE FROM t; INSERT INTO t VALUES (1)")
        await self.ctx.storage.set_alarm(LATER)

    async def state(self) -> list[Any]:
        storage = self.ctx.storage
        rows = storage.sql.exec("SELECT a FROM t").to_array()
        return [await storage.list(), rows, await storage.get_alarm(), hasattr(self, "in_memory")]

    async def write(self, kind: str, how: str) -> str:
        """Write while the disk has space, or has none; then wait, or answer at once. Nothing that fails is told."""
        with contextlib.suppress(BaseException):
            if how == "full before":
                disk.enter_context(full())
            await getattr(self, f"write_{kind}")()
        if how != "full before":
            disk.enter_context(full())
        if how == "full, then idle":
            # The commit fails meanwhile, and there is space again for all that follows.
            with contextlib.suppress(BaseException):
                await asyncio.sleep(0.01)
            disk.close()
        return "stored"

    async def write_put(self) -> None:
        await self.ctx.storage.put("new", 1)

    async def write_puts(self) -> None:
        await self.ctx.storage.put({"new": 1, "old": 2})

    async def write_delete(self) -> None:
        await self.ctx.storage.delete("old")

    async def write_deletes(self) -> None:
        await self.ctx.storage.delete(["old", "older"])

    async def write_kv(self) -> None:
        self.ctx.storage.kv.put("new", 1)
        self.ctx.storage.kv.delete("old")

    async def write_sql(self) -> None:
        self.ctx.storage.sql.exec("INSERT INTO t VALUES (2); UPDATE t SET a = a + 1")

    async def write_schema(self) -> None:
        self.ctx.storage.sql.exec("DROP TABLE t; CREATE TABLE t (a, b)")

    async def write_alarm(self) -> None:
        await self.ctx.storage.set_alarm(LATER + 1000)

    async def write_earlier_alarm(self) -> None:
        await self.ctx.storage.set_alarm(LATER - 1000)

    async def write_no_alarm(self) -> None:
        await self.ctx.storage.delete_alarm()

    async def write_transaction(self) -> None:
        async def body(txn: DurableObjectTransaction) -> None:
            await txn.put("new", 1)
            await txn.set_alarm(LATER + 1000)
            self.ctx.storage.sql.exec("DELETE FROM t")

        await self.ctx.storage.transaction(body)
        # One more write: the transaction is kept already, and this is not.
        await self.ctx.storage.put("newer", 1)

    async def write_transaction_sync(self) -> None:
        self.ctx.storage.transaction_sync(lambda: self.ctx.storage.kv.put("new", 1))
        await self.ctx.storage.put("newer", 1)

    async def write_deferred(self) -> None:
        """By a task of its own."""

        async def put() -> None:
            await self.ctx.storage.put("new", 1)

        await asyncio.gather(put())

    async def write_in_section(self) -> None:
        async def put() -> None:
            await self.ctx.storage.put("new", 1)

        await self.ctx.block_concurrency_while(put)
        await self.ctx.storage.put("newer", 1)

    async def write_sync(self) -> None:
        await self.ctx.storage.put("new", 1)
        await self.ctx.storage.sync()

    async def write_nothing(self) -> None:
        await self.ctx.storage.delete_all()

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        await self.ctx.storage.put("rang", info.retry_count)

    async def in_background(self) -> str:
        """Answer, and write later."""

        async def put() -> None:
            await asyncio.sleep(0)
            await self.ctx.storage.put("new", 1)
            disk.enter_context(full())

        self.ctx.wait_until(put())
        return "begun"

    async def conflict(self) -> str:
        await self.ctx.storage.put("new", 1)
        with contextlib.suppress(DurableObjectError):
            self.ctx.storage.sql.exec(
                "CREATE UNIQUE INDEX i ON t (a); INSERT INTO t VALUES (2); INSERT OR ROLLBACK INTO t VALUES (2)"
            )
        return "stored"

    async def wait(self) -> str:
        await asyncio.sleep(60)
        return "waited"


KINDS = sorted(name.removeprefix("write_") for name in vars(Writer) if name.startswith("write_"))
# Those that are kept before they return: they have no write left that waits.
AT_ONCE = ("deferred", "nothing", "sync")
WAYS = [
    *((kind, how) for kind in KINDS if kind not in AT_ONCE for how in ("full, then answered", "full, then idle")),
    *((kind, "full before") for kind in KINDS if kind not in ("alarm", "earlier_alarm")),
]


@pytest.fixture
async def writers(tmp_path: Path) -> AsyncIterator[EmbeddedDurableObjectNamespace[Writer]]:
    with Store(tmp_path) as store, disk:
        namespace = EmbeddedDurableObjectNamespace(store, "W", Writer)
        yield namespace
        disk.close()
        await namespace.close()


@pytest.mark.parametrize(("kind", "how"), WAYS)
async def test_no_answer_leaves_for_a_write_that_is_not_kept(
    writers: EmbeddedDurableObjectNamespace[Writer], kind: str, how: str
) -> None:
    one = writers.get_by_name("a")
    await one.begin()
    kept, rows, alarm, _ = await one.state()
    if kind in ("transaction", "transaction_sync", "in_section") and how != "full before":
        kept = {**kept, "new": 1}
    if kind == "transaction" and how != "full before":
        rows, alarm = [], LATER + 1000
    try:
        with pytest.raises(DurableObjectError, match=r"could not be kept: .*\.sqlite\. .*and try again"):
            await one.write(kind, how)
    finally:
        disk.close()
    # The next call works, and finds what was kept before.
    assert await one.state() == [kept, rows, alarm, False]
    await one.begin()
    assert (await one.state())[1:] == [[{"a": 1}], LATER, True]


async def test_a_write_of_nobody_is_told_in_the_log_and_ends_the_calls_that_run(
    writers: EmbeddedDurableObjectNamespace[Writer], caplog: pytest.LogCaptureFixture
) -> None:
    one = writers.get_by_name("a")
    await one.begin()
    waiting = asyncio.ensure_future(one.wait())
    with caplog.at_level(logging.ERROR, "core.durable_object"):
        assert await one.in_background() == "begun"
        with pytest.raises(DurableObjectError, match="could not be kept"):
            await waiting
    disk.close()
    assert "the writes of the object a are lost" in caplog.text
    assert (await one.state())[0] == {"old": 1, "older": 1}


async def test_a_statement_that_undoes_everything_resets_the_object(
    writers: EmbeddedDurableObjectNamespace[Writer],
) -> None:
    one = writers.get_by_name("a")
    await one.begin()
    before = await one.state()
    with pytest.raises(DurableObjectError, match="UNIQUE constraint failed"):
        await one.conflict()
    assert await one.state() == [*before[:3], False]


async def test_an_alarm_waits_for_a_disk_with_space_and_is_not_called_again_and_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "core.durable_object")
    clock = FakeClock()
    with Store(tmp_path, clock=clock) as store:
        namespace = EmbeddedDurableObjectNamespace(store, "W", Writer)
        one = namespace.get_by_name("a")
        await one.begin()
        clock_to_alarm = LATER / 1000 - clock.time()
        with full():
            await clock.advance(clock_to_alarm + 1)
        assert "rang" not in (await one.state())[0]
        await clock.advance(100)
        assert "rang" in (await one.state())[0]
        await namespace.close()


@pytest.mark.parametrize("late", [False, True])
async def test_an_alarm_that_was_moved_and_not_kept_goes_off_when_it_would_have(tmp_path: Path, late: bool) -> None:
    clock = FakeClock()
    with Store(tmp_path, clock=clock) as store, disk:
        namespace = EmbeddedDurableObjectNamespace(store, "W", Writer)
        one = namespace.get_by_name("a")
        await one.begin()
        kind = "no_alarm" if late else "alarm"
        with pytest.raises(DurableObjectError):
            await one.write(kind, "full, then answered")
        disk.close()
        await clock.advance(LATER / 1000 - clock.time() + 0.5)
        assert (await one.state())[0]["rang"] == 0
        await namespace.close()
