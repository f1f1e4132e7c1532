"""The embedded Durable Objects beyond the contract: what lasts, alarms over a restart, two processes, kill -9."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.killing import written_until_killed

from core.backends.embedded.clone import dump, load
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.store import Store
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject, DurableObjectState
from core.errors import DurableObjectError, UnsupportedBindingError
from core.testing.clock import FakeClock


class Counter(DurableObject[Any]):
    def __init__(self, ctx: DurableObjectState, env: Any) -> None:
        super().__init__(ctx, env)
        self.in_memory = 0

    async def increment(self) -> int:
        count: int = (await self.ctx.storage.get("count") or 0) + 1
        await self.ctx.storage.put("count", count)
        self.in_memory += 1
        return count

    async def seen(self) -> int:
        return self.in_memory

    async def arm(self, milliseconds: float) -> None:
        await self.ctx.storage.set_alarm(milliseconds)

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        await self.ctx.storage.put("rang", (await self.ctx.storage.get("rang") or 0) + 1)

    async def rang(self) -> int:
        return await self.ctx.storage.get("rang") or 0

    async def hold(self) -> None:
        await self.ctx.block_concurrency_while(asyncio.Event().wait)

    async def fail_to_load(self) -> None:
        async def fail() -> None:
            raise LookupError("why it failed")

        await self.ctx.block_concurrency_while(fail)

    async def give_up_loading(self) -> None:
        section = asyncio.ensure_future(self.ctx.block_concurrency_while(asyncio.Event().wait))
        await asyncio.sleep(0)
        section.cancel()
        await asyncio.gather(section, return_exceptions=True)

    async def bookmark(self) -> str:
        return await self.ctx.storage.get_current_bookmark()


class Stillborn(DurableObject[Any]):
    made = 0

    def __init__(self, ctx: DurableObjectState, env: Any) -> None:
        super().__init__(ctx, env)
        type(self).made += 1
        if type(self).made == 1:
            raise LookupError("the first one fails")

    async def hello(self) -> str:
        return "hello"

    async def arm(self) -> None:
        await self.ctx.storage.set_alarm(1_900_000_000_000)


async def test_storage_lasts_and_memory_does_not(tmp_path: Path) -> None:
    for wanted in (1, 2, 3):
        with Store(tmp_path) as store:
            namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
            assert await namespace.get_by_name("a").increment() == wanted
            assert await namespace.get_by_name("a").seen() == 1
            await namespace.close()


def test_bytes_among_values_are_as_long_as_they_are_and_those_of_earlier_versions_can_be_read() -> None:
    value = {"a": [b"\xff" * 1000, {"b": b""}], "c": b"c", "$": 1}
    assert load(dump(value)) == value
    assert len(dump(value)) < 1200
    assert load(b'J{"a":{"$":"bytes","v":"aGk="}}') == {"a": b"hi"}


async def test_an_alarm_goes_off_after_a_restart_at_its_time_or_at_once_when_it_has_passed(tmp_path: Path) -> None:
    clock = FakeClock()
    for late in (False, True):
        with Store(tmp_path, clock=clock) as store:
            namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
            before = await namespace.get_by_name("a").rang()
            await namespace.get_by_name("a").arm((clock.time() + 60) * 1000)
            await namespace.close()
        await clock.advance(100 if late else 10)
        with Store(tmp_path, clock=clock) as store:
            namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
            namespace.start()
            await clock.advance(1 if late else 51)
            assert await namespace.get_by_name("a").rang() == before + 1
            await namespace.close()


@pytest.mark.parametrize("kind", ["named", "unique", "of a jurisdiction"])
async def test_an_alarm_goes_off_where_objects_came_without_the_schedule(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    with Store(tmp_path / "before", clock=clock) as store:
        namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
        await namespace.get_by_name("idle").increment()
        ids = namespace.jurisdiction("eu") if kind == "of a jurisdiction" else namespace
        id = ids.new_unique_id() if kind == "unique" else ids.id_from_name("a")
        await ids.get(id).arm((clock.time() + 60) * 1000)
        await namespace.close()
    shutil.copytree(tmp_path / "before" / "durable_objects" / "C", tmp_path / "now" / "durable_objects" / "C")
    (tmp_path / "now" / "durable_objects" / "C" / f"{'0' * 64}.sqlite").write_bytes(b"no database")
    for _ in range(2):  # The schedule is made once, and then kept.
        with Store(tmp_path / "now", clock=clock) as store:
            namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
            namespace.start()
            await clock.advance(61)
            ids = namespace.jurisdiction("eu") if kind == "of a jurisdiction" else namespace
            assert await ids.get(ids.id_from_string(str(id))).rang() == 1
            await namespace.close()
    assert [record.getMessage().count(f"{'0' * 64}.sqlite cannot be read") for record in caplog.records] == [1]


async def test_an_object_lives_in_one_process(tmp_path: Path) -> None:
    code = (
        "import sys, asyncio\n"
        "from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace\n"
        "from core.backends.embedded.store import Store\n"
        "from core.bindings.durable_object import DurableObject\n"
        "class Counter(DurableObject): pass\n"
        "async def main():\n"
        "    EmbeddedDurableObjectNamespace(Store(sys.argv[1]), 'C', Counter).start()\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(tmp_path), stdout=subprocess.PIPE)
    assert other.stdout is not None
    try:
        assert await other.stdout.readline() == b"ready\n"
        with Store(tmp_path) as store:
            namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
            with pytest.raises(DurableObjectError, match="belong to another process that is still running"):
                await namespace.get_by_name("a").increment()
            other.kill()
            await other.wait()
            assert await namespace.get_by_name("a").increment() == 1
            await namespace.close()
    finally:
        if other.returncode is None:
            other.kill()
            await other.wait()


async def test_many_objects_are_not_all_kept_open(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
        for number in range(150):
            assert await namespace.get_by_name(str(number)).increment() == 1
        for number in range(150):
            assert await namespace.get_by_name(str(number)).increment() == 2
        await namespace.close()


async def test_a_critical_section_that_never_ends_resets_the_object_after_30_seconds() -> None:
    clock = FakeClock()
    with Store(clock=clock) as store:
        namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
        holding = asyncio.ensure_future(namespace.get_by_name("a").hold())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(namespace.get_by_name("a").increment())
        await clock.advance(29)
        assert not waiting.done()
        await clock.advance(2)
        for call in (holding, waiting):
            with pytest.raises(DurableObjectError, match="waited for too long"):
                await call
        assert await namespace.get_by_name("a").increment() == 1
        await namespace.close()


async def test_a_critical_section_that_fails_resets_the_object() -> None:
    with Store() as store:
        namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
        one = namespace.get_by_name("a")
        await one.increment()
        with pytest.raises(DurableObjectError, match=r"^why it failed$"):
            await one.fail_to_load()
        assert await one.seen() == 0
        assert await one.increment() == 2
        await namespace.close()


async def test_a_critical_section_that_is_cancelled_resets_the_object() -> None:
    with Store() as store:
        namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
        one = namespace.get_by_name("a")
        await one.increment()
        with pytest.raises(DurableObjectError, match="cancelled"):
            await one.give_up_loading()
        assert await one.seen() == 0
        await namespace.close()


async def test_a_constructor_that_fails_is_tried_again_with_the_next_call() -> None:
    with Store() as store:
        namespace = EmbeddedDurableObjectNamespace(store, "S", Stillborn)
        with pytest.raises(DurableObjectError, match=r"^the first one fails$"):
            await namespace.get_by_name("a").hello()
        assert await namespace.get_by_name("a").hello() == "hello"
        with pytest.raises(DurableObjectError, match=r"must have an alarm\(\) handler"):
            await namespace.get_by_name("a").arm()
        await namespace.close()


async def test_a_caller_that_goes_away_does_not_end_the_call() -> None:
    with Store() as store:
        namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
        call = asyncio.ensure_future(namespace.get_by_name("a").increment())
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await namespace.get_by_name("a").increment() == 2
        await namespace.close()


async def test_one_name_is_of_one_class() -> None:
    with Store() as store:
        EmbeddedDurableObjectNamespace(store, "C", Counter)
        with pytest.raises(ValueError, match="are of the class Counter already, not Stillborn"):
            EmbeddedDurableObjectNamespace(store, "C", Stillborn)


async def test_what_only_the_platform_has_says_so() -> None:
    with Store() as store:
        namespace = EmbeddedDurableObjectNamespace(store, "C", Counter)
        with pytest.raises(UnsupportedBindingError, match="point-in-time recovery"):
            await namespace.get_by_name("a").bookmark()
        await namespace.close()


async def test_a_failing_alarm_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Counter):
        async def alarm(self, info: AlarmInvocationInfo, /) -> None:
            raise LookupError("why it failed")

    clock = FakeClock()
    with Store(clock=clock) as store:
        namespace = EmbeddedDurableObjectNamespace(store, "F", Failing)
        await namespace.get_by_name("a").arm(1)
        with caplog.at_level(logging.ERROR, "core.durable_object"):
            await clock.advance(1)
        await namespace.close()
    assert "the alarm of Failing a failed; it is tried again" in caplog.text
    assert "why it failed" in caplog.text


WORKER = """
import asyncio, os, sys
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.store import Store
from core.bindings.durable_object import DurableObject
class Pair(DurableObject):
    async def write(self, number):
        async def body(txn):
            await txn.put("a", number)
            await asyncio.sleep(0)
            await txn.put("b", number)
        await self.ctx.storage.transaction(body)
        await self.ctx.storage.put("c", number)
        await self.ctx.storage.put("d", number)
        self.ctx.storage.kv.put("e", number)
        self.ctx.storage.kv.delete(f"gone-{number - 3}")
        await self.ctx.storage.put(f"gone-{number}", 1)
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (?)", number)
        await self.ctx.storage.set_alarm(4_000_000_000_000 + number)
    async def alarm(self, info):
        pass
async def main(state, log, first):
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    pairs = EmbeddedDurableObjectNamespace(Store(state), "P", Pair)
    for number in range(first, 1_000_000):
        await pairs.get_by_name(str(number % 3)).write(number)
        os.write(descriptor, f"{number}\\n".encode())
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


class Pair(DurableObject[Any]):
    async def read(self) -> dict[str, Any]:
        values: dict[str, Any] = await self.ctx.storage.list()
        values["sql"] = [row["a"] for row in self.ctx.storage.sql.exec("SELECT a FROM t").to_array()]
        values["alarm"] = await self.ctx.storage.get_alarm()
        return values


def test_no_answered_write_is_lost_and_no_transaction_torn_by_kill_9(tmp_path: Path) -> None:
    state = tmp_path / "state"
    answered = written_until_killed(WORKER, state, tmp_path / "log", seed=11)

    async def check() -> None:
        with Store(state) as store:
            pairs = EmbeddedDurableObjectNamespace(store, "P", Pair)
            for key in range(3):
                values = await pairs.get_by_name(str(key)).read()
                last = max(number for number in answered if number % 3 == key)
                assert values["a"] == values["b"] >= last
                # Written without waiting in between: all of it or nothing.
                assert values["c"] == values["d"] == values["e"] >= last
                assert [name for name in values if name.startswith("gone-")] == [f"gone-{values['c']}"]
                assert {number for number in answered if number % 3 == key} <= {*values["sql"]}
                assert values["sql"][-1] == values["c"] == values["alarm"] - 4_000_000_000_000
            await pairs.close()

    asyncio.run(check())


async def test_a_schema_that_asks_for_the_present_is_refused_and_undone_and_what_came_before_it_stays() -> None:
    class Rows(DurableObject[Any]):
        async def run(self, sql: str) -> Any:
            return self.ctx.storage.sql.exec(sql).to_array()

    with Store(clock=FakeClock()) as store:
        rows = EmbeddedDurableObjectNamespace(store, "R", Rows).get_by_name("a")
        with pytest.raises(DurableObjectError, match="non-deterministic"):
            await rows.run("CREATE TABLE a (a); INSERT INTO a VALUES (1); CREATE INDEX b ON a (datetime('now'))")
        assert await rows.run("SELECT name FROM sqlite_master WHERE name IN ('a', 'b')") == [{"name": "a"}]
