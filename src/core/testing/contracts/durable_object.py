"""The promises of every Durable Object: its ids, its calls, its storage, its alarm.

The cases call `Subject`, a class that a worker under test has to have: every implementation is tried with the same one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import attrs

from core.bindings.durable_object import (
    AlarmInvocationInfo,
    DurableObject,
    DurableObjectNamespace,
    DurableObjectState,
    DurableObjectTransaction,
)
from core.errors import DurableObjectError, DurableObjectTypeError, DurableObjectValueError
from core.http import Request, Response
from core.testing.contracts.contract import Contract, MovingClock, refused

__all__ = ["Point", "Subject", "clean", "contract"]

T = TypeVar("T")


@attrs.frozen
class Point:
    """A value that goes in and out of a typed call."""

    x: int
    tags: tuple[str, ...] = ()


class Subject(DurableObject[Any]):
    """The object that the cases call."""

    def __init__(self, ctx: DurableObjectState, env: Any) -> None:
        super().__init__(ctx, env)
        self.loaded: Any = None
        self.running = 0
        self.most_running = 0
        ctx.block_concurrency_while(self.load)

    async def load(self) -> None:
        """Read something before anything else happens."""
        await asyncio.sleep(0)
        self.loaded = await self.ctx.storage.get("loaded") or "nothing"

    async def get_loaded(self) -> Any:
        """Return the value that `load` read."""
        return self.loaded

    async def increment(self, by: int = 1) -> int:
        """Count, with nothing but storage in between."""
        count = (await self.ctx.storage.get("count") or 0) + by
        await self.ctx.storage.put("count", count)
        return cast("int", count)

    async def alone(self) -> int:
        """Be in a critical section, and say how many were at most."""

        async def section() -> None:
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.running -= 1

        await self.ctx.block_concurrency_while(section)
        return self.most_running

    async def move(self, point: Point, *, by: int) -> Point:
        """A call with types of its own."""
        return Point(point.x + by, (*point.tags, "moved"))

    async def keep(self, values: list[int]) -> int:
        """Change what was given."""
        values.append(0)
        return len(values)

    async def put_and_fail(self, key: str, value: Any) -> None:
        """Write, and raise."""
        await self.ctx.storage.put(key, value)
        raise LookupError("after the put")

    async def put(self, key: Any, *value: Any) -> None:
        """Call `put` of storage."""
        await self.ctx.storage.put(key, *value)

    async def store(self, value: Any) -> None:
        """Store what only the object has: `value` within its own list."""
        await self.ctx.storage.put("k", [value])

    async def echo(self, value: Any) -> Any:
        """The same again."""
        return value

    async def get(self, key: Any) -> Any:
        """Call `get` of storage."""
        return await self.ctx.storage.get(key)

    async def remove(self, key: Any) -> Any:
        """Call `delete` of storage."""
        return await self.ctx.storage.delete(key)

    async def listed(self, **options: Any) -> list[str]:
        """The keys of storage's `list`."""
        return [*(await self.ctx.storage.list(**options))]

    async def wipe(self) -> None:
        """Call `delete_all` of storage."""
        await self.ctx.storage.delete_all()

    async def kv(self) -> Any:
        """The keys and values without waiting."""
        kv = self.ctx.storage.kv
        kv.put("b", 2)
        kv.put("a", 1)
        assert kv.get("a") == 1
        assert kv.get("nope") is None
        assert kv.delete("a") is True
        assert kv.delete("a") is False
        return [list(pair) for pair in kv.list()]

    async def transact(self, how: str) -> Any:
        """A transaction that ends well, fails or is rolled back."""

        async def body(txn: DurableObjectTransaction) -> str:
            await txn.put({"a": how, "b": how})
            assert await txn.get("a") == how
            await asyncio.sleep(0)
            await txn.delete("gone")
            if how == "fail":
                raise LookupError("in the transaction")
            if how == "rollback":
                txn.rollback()
            return how

        return await self.ctx.storage.transaction(body)

    async def transact_sync(self, how: str) -> str:
        """A transaction that waits for nothing."""

        def body() -> str:
            self.ctx.storage.kv.put("a", how)
            if how == "fail":
                raise LookupError("in the transaction")
            return how

        return self.ctx.storage.transaction_sync(body)

    async def use_late(self) -> None:
        """A transaction's handle after its end."""
        kept: list[DurableObjectTransaction] = []

        async def body(txn: DurableObjectTransaction) -> None:
            kept.append(txn)

        await self.ctx.storage.transaction(body)
        await kept[0].put("late", 1)

    async def sql(self, query: str, *bindings: Any) -> Any:
        """The rows of one `exec`."""
        return self.ctx.storage.sql.exec(query, *bindings).to_array()

    async def sql_one(self, query: str) -> Any:
        """The only row."""
        return self.ctx.storage.sql.exec(query).one()

    async def sql_cursor(self) -> Any:
        """Return the other facts of a cursor."""
        sql = self.ctx.storage.sql
        sql.exec("CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        cursor = sql.exec("SELECT a, b FROM t ORDER BY a")
        assert cursor.column_names == ["a", "b"]
        assert next(cursor) == {"a": 1, "b": "x"}
        assert [*cursor.raw()] == [[2, "y"]]
        assert cursor.to_array() == []
        assert sql.database_size > 0
        return cursor.rows_read

    async def sql_transaction(self) -> Any:
        """SQL and values in one transaction that fails."""

        async def body(txn: DurableObjectTransaction) -> None:
            self.ctx.storage.sql.exec("INSERT INTO t VALUES (99, 'no')")
            await txn.put("k", "no")
            raise LookupError("in the transaction")

        with contextlib.suppress(LookupError):
            await self.ctx.storage.transaction(body)
        count = self.ctx.storage.sql.exec("SELECT count(*) AS n FROM t WHERE a = 99").one()
        return [count["n"], await self.ctx.storage.get("k")]

    async def arm(self, milliseconds: float) -> None:
        """Set the alarm."""
        await self.ctx.storage.set_alarm(milliseconds)

    async def arm_at(self, when: datetime) -> None:
        """Set the alarm by a datetime."""
        await self.ctx.storage.set_alarm(when)

    async def armed(self) -> int | None:
        """Return the time of the alarm."""
        return await self.ctx.storage.get_alarm()

    async def disarm(self) -> None:
        """Take the alarm back."""
        await self.ctx.storage.delete_alarm()

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        """Note that it went off, fail as often as was asked for, and set it again if that was asked for."""
        rings: list[Any] = await self.ctx.storage.get("rings") or []
        inside = await self.ctx.storage.get_alarm()
        await self.ctx.storage.put("rings", [*rings, [info.retry_count, info.is_retry, inside]])
        failures = await self.ctx.storage.get("failures") or 0
        if failures:
            await self.ctx.storage.put("failures", failures - 1)
            raise LookupError("in the alarm")
        again = await self.ctx.storage.get("again")
        if again is not None:
            await self.ctx.storage.delete("again")
            await self.ctx.storage.set_alarm(again)

    async def rings(self) -> Any:
        """Return the calls that `alarm` noted."""
        return await self.ctx.storage.get("rings") or []

    async def abort(self) -> None:
        """Reset the object."""
        await self.ctx.storage.put("before", 1)
        self.ctx.abort("because")

    async def abort_and_go_on(self) -> str:
        """Reset the object, and take no notice of it."""
        with contextlib.suppress(BaseException):
            self.ctx.abort("because")
        with contextlib.suppress(BaseException):
            self.ctx.storage.kv.put("after", 1)
        return "went on"

    async def fail_in_section(self, key: str, *, caught: bool) -> str:
        """Fail in a critical section, and perhaps take no notice of it."""

        async def section() -> None:
            await self.ctx.storage.put(key, "in the section")
            raise LookupError("in the section")

        try:
            await self.ctx.block_concurrency_while(section)
        except BaseException:
            if not caught:
                raise
        return "went on"

    async def violate(self, key: str, *, pause: bool) -> str:
        """Write what cannot be kept, and say that it was."""
        await self.ctx.storage.put(key, 1)
        self.ctx.storage.sql.exec("INSERT INTO child VALUES (99)")
        if pause:
            with contextlib.suppress(BaseException):
                await asyncio.sleep(0.01)
        return "stored"

    async def violate_in_transaction(self, key: str) -> str:
        """The same in a transaction."""

        async def body(txn: DurableObjectTransaction) -> None:
            await txn.put(key, 1)
            self.ctx.storage.sql.exec("INSERT INTO child VALUES (99)")

        with contextlib.suppress(BaseException):
            await self.ctx.storage.transaction(body)
        return "stored"

    async def get_most_running(self) -> int:
        """Return a count that exists only in memory."""
        return self.most_running

    async def fetch(self, request: Request, /) -> Response:
        """Say what was asked."""
        return Response(f"{request.method} {request.url} {await request.text()}", status=201)

    def local(self) -> str:
        """Not async, so not for a stub."""
        return "local"

    async def _private(self) -> str:
        return "private"


async def clean(namespace: DurableObjectNamespace[Subject]) -> None:
    """Empty the object that the cases use."""
    await namespace.get_by_name("one").wipe()
    await namespace.get_by_name("two").wipe()


contract: Contract[DurableObjectNamespace[Subject]] = Contract("durable_object", clean)
Subjects = DurableObjectNamespace[Subject]


# ---------------------------------------------------------------------- ids


@contract.case()
async def a_name_has_one_id(subjects: Subjects) -> None:
    first, again, other = (subjects.id_from_name(name) for name in ("a", "a", "b"))
    assert str(first) == str(again)
    assert first == again
    assert first.equals(again)
    assert not first.equals(other)
    assert first.name == "a"
    assert len(str(first)) == 64
    assert int(str(first), 16) >= 0


@contract.case()
async def an_id_comes_back_from_its_text(subjects: Subjects) -> None:
    for made in (subjects.id_from_name("a"), subjects.new_unique_id()):
        back = subjects.id_from_string(str(made))
        assert str(back) == str(made)
        assert back.equals(made)
    assert str(subjects.new_unique_id()) != str(subjects.new_unique_id())


def raised(call: Callable[[], object]) -> BaseException | None:
    """Return the exception that a call raises."""
    try:
        call()
    except Exception as error:
        return error
    return None


@contract.case()
async def what_is_no_id_is_refused(subjects: Subjects) -> None:
    for text in ("", "abc", "z" * 64, "0" * 63):
        error = raised(lambda text=text: subjects.id_from_string(text))  # type: ignore[misc]  # the value of this round
        assert isinstance(error, TypeError)
        assert str(error) == "Invalid Durable Object ID: must be 64 hex digits"
    error = raised(lambda: subjects.id_from_string("0" * 64))
    assert isinstance(error, TypeError)
    assert str(error) == "Durable Object ID is not valid for this namespace."


@contract.case(paired=True)
async def an_id_of_another_namespace_is_refused(subjects: Subjects, other: Subjects) -> None:
    foreign = other.id_from_name("a")
    assert isinstance(raised(lambda: subjects.get(foreign)), TypeError)
    assert isinstance(raised(lambda: subjects.id_from_string(str(foreign))), TypeError)


@contract.case()
async def a_stub_knows_its_id_and_name(subjects: Subjects) -> None:
    stub = subjects.get_by_name("one")
    assert stub.name == "one"
    assert str(stub.id) == str(subjects.id_from_name("one"))
    unnamed = subjects.get(subjects.id_from_string(str(stub.id)))
    assert str(unnamed.id) == str(stub.id)


# ---------------------------------------------------------------------- calls


@contract.case()
async def all_stubs_of_an_id_reach_one_object(subjects: Subjects) -> None:
    await subjects.get_by_name("one").increment()
    await subjects.get(subjects.id_from_name("one")).increment(by=5)
    assert await subjects.get(subjects.id_from_string(str(subjects.id_from_name("one")))).increment() == 7
    assert await subjects.get_by_name("two").increment() == 1


@contract.case()
async def nothing_comes_between_two_calls_of_storage(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    counts = await asyncio.gather(*(one.increment() for _ in range(25)))
    assert sorted(counts) == [*range(1, 26)]


@contract.case()
async def a_critical_section_is_alone(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    assert max(await asyncio.gather(*(one.alone() for _ in range(5)))) == 1


@contract.case()
async def calls_wait_for_what_the_constructor_began(subjects: Subjects) -> None:
    fresh = subjects.get(subjects.new_unique_id())
    assert await fresh.get_loaded() == "nothing"


@contract.case()
async def arguments_and_results_keep_their_types(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    assert await one.move(Point(1, ("a",)), by=2) == Point(3, ("a", "moved"))


@contract.case()
async def arguments_are_copies(subjects: Subjects) -> None:
    values = [1, 2]
    assert await subjects.get_by_name("one").keep(values) == 3
    assert values == [1, 2]


@contract.case()
async def what_a_method_raises_reaches_the_caller_and_its_writes_stay(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    error = await refused(one.put_and_fail("k", "v"), LookupError)
    assert "after the put" in str(error)
    assert await one.get("k") == "v"


@contract.case()
async def only_public_async_methods_can_be_called(subjects: Subjects) -> None:
    one: Any = subjects.get_by_name("one")
    for name in ("nope", "local", "_private", "ctx", "env", "alarm"):
        assert isinstance(raised(lambda name=name: getattr(one, name)), AttributeError), name  # type: ignore[misc]  # as above


@contract.case()
async def what_cannot_be_copied_cannot_be_passed(subjects: Subjects) -> None:
    one: Any = subjects.get_by_name("one")
    await refused(one.keep([print]), DurableObjectTypeError)
    await refused(one.put("k", print), DurableObjectTypeError)


@contract.case()
async def fetch_hands_over_a_request(subjects: Subjects) -> None:
    request = Request("https://object.test/a?b=c", method="POST", body="hello")
    response = await subjects.get_by_name("one").fetch(request)
    assert response.status == 201
    assert await response.text() == "POST https://object.test/a?b=c hello"


@contract.case()
async def an_aborted_object_starts_anew_from_what_was_kept(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.put("loaded", "kept")
    assert await one.get_loaded() == "nothing"
    error = await refused(one.abort(), DurableObjectError)
    assert "because" in str(error)
    assert await one.get_loaded() == "kept"


@contract.case()
async def an_abort_cannot_be_caught(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    error = await refused(one.abort_and_go_on(), DurableObjectError)
    assert "because" in str(error)
    assert await one.get("after") is None


@contract.case()
async def a_critical_section_that_fails_resets_the_object(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.alone()
    for call in (one.fail_in_section("k", caught=False), one.fail_in_section("k", caught=True)):
        error = await refused(call, DurableObjectError)
        assert str(error) == "The Durable Object was reset: LookupError: in the section", error
        # What it wrote is undone, and what was in memory is gone.
        assert await one.get("k") is None
        assert await one.get_most_running() == 0


# ---------------------------------------------------------------------- the output gate


CHILDREN = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY);"
    "CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
)


@contract.case()
async def an_answer_waits_for_its_writes(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.sql(CHILDREN)
    for pause in (False, True):
        assert await one.alone() == 1
        error = await refused(one.violate("k", pause=pause), DurableObjectError)
        assert str(error) == (
            "Durable Object was reset and rolled back to its last known good state because the application left the "
            "database in a state where constraints were violated: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT "
            "(extended: SQLITE_CONSTRAINT_FOREIGNKEY)"
        )
        # The next call works, and finds what was kept before.
        assert await one.get("k") is None
        assert await one.get_most_running() == 0
        assert await one.sql("SELECT * FROM child") == []
    await one.put("k", 2)
    assert await one.get("k") == 2


@contract.case()
async def a_transaction_that_cannot_be_kept_fails_its_call(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.sql(CHILDREN)
    await refused(one.violate_in_transaction("k"), DurableObjectError)
    assert await one.get("k") is None
    assert await one.sql("SELECT * FROM child") == []
    assert await one.transact("well") == "well"


# ---------------------------------------------------------------------- storage


@contract.case()
async def values_of_every_kind_come_back(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    values: list[Any] = [
        None,
        True,
        0,
        -1.5,
        2**40,
        2**60,
        -(2**70),
        float("inf"),
        "",
        "é😀\x00",
        b"",
        b"\x00\xff",
        [1, [2, "x"]],
        {"a": {"b": None}},
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        {1, 2},
        {1: "a", "1": "b", 2.5: {3: [{4: 5}]}, None: "c"},
        {1, "1", None},
    ]
    for value in values:
        await one.put("k", value)
        assert await one.get("k") == value, value


@contract.case()
async def a_dict_has_plain_keys_and_a_set_plain_items(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    for value in ({(1, 2): 3}, {b"x": 1}, {datetime(2026, 1, 1, tzinfo=UTC): 1}, {b"x"}, {(1, 2)}, [{"a": {b"x": 1}}]):
        await refused(one.store(value), DurableObjectTypeError)
        await refused(one.put("k", value), DurableObjectTypeError)
    assert await one.get("k") is None
    assert await one.echo({1: {2: "x"}, "1": {True, "y"}}) == {1: {2: "x"}, "1": {True, "y"}}


@contract.case()
async def a_missing_key_is_none(subjects: Subjects) -> None:
    assert await subjects.get_by_name("one").get("nope") is None


@contract.case()
async def several_at_once(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.put({"b": 2, "a": 1, "c": 3})
    assert await one.get(["c", "nope", "a"]) == {"a": 1, "c": 3}
    assert [*(await one.get(["c", "a"]))] == ["a", "c"]
    assert await one.remove("a") is True
    assert await one.remove("a") is False
    assert await one.remove(["a", "b", "c"]) == 2
    assert await one.listed() == []


@contract.case()
async def objects_have_storage_of_their_own(subjects: Subjects) -> None:
    await subjects.get_by_name("one").put("k", 1)
    assert await subjects.get_by_name("two").get("k") is None


@contract.case()
async def a_list_is_a_range_in_the_order_of_utf_8(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    for key in ("b", "a", "ab", "\uff5e", "😀", "c"):
        await one.put(key, key)
    every = ["a", "ab", "b", "c", "\uff5e", "😀"]
    for options, wanted in (
        ({}, every),
        ({"reverse": True}, every[::-1]),
        ({"limit": 2}, every[:2]),
        ({"limit": 2, "reverse": True}, ["😀", "\uff5e"]),
        ({"start": "ab"}, every[1:]),
        ({"start_after": "ab"}, every[2:]),
        ({"end": "b"}, every[:2]),
        ({"start": "ab", "end": "c"}, ["ab", "b"]),
        ({"prefix": "a"}, ["a", "ab"]),
        ({"prefix": "a", "start": "aa"}, ["ab"]),
        ({"prefix": "a", "end": "ab"}, ["a"]),
        ({"prefix": "nope"}, []),
        ({"start": "c", "end": "a"}, []),
    ):
        assert await one.listed(**cast("dict[str, Any]", options)) == wanted, options
    both = "list() cannot be called with both start and startAfter values."
    await refused(one.listed(start="a", start_after="b"), DurableObjectTypeError, both)
    await refused(one.listed(limit=0), DurableObjectTypeError, "List limit must be positive.")


@contract.case()
async def storage_has_limits(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.put("k" * 2048, 1)
    message = "Keys cannot be larger than 2048 bytes. A key of size 2049 was provided."
    await refused(one.put("k" * 2049, 1), DurableObjectValueError, message)
    await refused(one.get("é" * 1024 + "k"), DurableObjectValueError, message)
    await one.put({f"k{number}": number for number in range(128)})
    message = "Maximum number of key value pairs is 128. 129 pairs were provided."
    await refused(one.put({f"k{number}": number for number in range(129)}), DurableObjectValueError, message)
    await refused(one.get(["k"] * 129), DurableObjectValueError)
    await one.put("large", b"x" * 1_900_000)
    await refused(one.put("large", b"x" * 2_100_000), DurableObjectValueError)
    assert len(await one.get("large")) == 1_900_000
    await refused(one.put("k"), DurableObjectTypeError, "put() called with undefined value.")


@contract.case()
async def delete_all_leaves_nothing(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.put("k", 1)
    await one.sql("CREATE TABLE t (a)")
    await one.arm(4_102_444_800_000)
    await one.wipe()
    assert await one.listed() == []
    assert await one.armed() is None
    await refused(one.sql("SELECT * FROM t"), DurableObjectError)


@contract.case()
async def keys_and_values_without_waiting(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    assert await one.kv() == [["b", 2]]
    assert await one.get("b") == 2


# ---------------------------------------------------------------------- transactions


@contract.case()
async def a_transaction_is_kept_whole_or_not_at_all(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    assert await one.transact("well") == "well"
    assert await one.get(["a", "b"]) == {"a": "well", "b": "well"}
    await refused(one.transact("fail"), LookupError)
    assert await one.get(["a", "b"]) == {"a": "well", "b": "well"}
    assert await one.transact("rollback") == "rollback"
    assert await one.get(["a", "b"]) == {"a": "well", "b": "well"}


@contract.case()
async def a_transaction_that_waits_for_nothing(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    assert await one.transact_sync("well") == "well"
    await refused(one.transact_sync("fail"), LookupError)
    assert await one.get("a") == "well"


@contract.case()
async def other_calls_see_a_transaction_whole(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")

    async def settled(call: Awaitable[T]) -> T | Exception:
        try:
            return await call
        except Exception as error:
            return error

    results = await asyncio.gather(
        *(settled(one.transact("fail" if number % 2 else f"n{number}")) for number in range(6)),
        *(settled(one.get(["a", "b"])) for _ in range(6)),
    )
    for seen in results[6:]:
        assert isinstance(seen, dict)
        values = cast("dict[str, Any]", seen)
        assert values.get("a") == values.get("b")
        assert values.get("a") != "fail"


@contract.case()
async def a_transaction_that_has_ended_takes_nothing_more(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    error = await refused(one.use_late(), DurableObjectError)
    assert "on transaction that has already committed" in str(error)
    assert await one.get("late") is None


# ---------------------------------------------------------------------- SQL


@contract.case()
async def sql_has_rows_and_bindings(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.sql("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c BLOB)")
    await one.sql("INSERT INTO t VALUES (?, ?, ?), (?, ?, ?)", 1, "x", b"\x00", 2, None, None)
    assert await one.sql("SELECT * FROM t ORDER BY a") == [
        {"a": 1, "b": "x", "c": b"\x00"},
        {"a": 2, "b": None, "c": None},
    ]
    assert await one.sql("SELECT a FROM t WHERE b = ?", "x") == [{"a": 1}]
    assert await one.sql_one("SELECT count(*) AS n FROM t") == {"n": 2}
    none = "Expected exactly one result from SQL query, but got no results."
    await refused(one.sql_one("SELECT a FROM t WHERE a > 9"), DurableObjectError, none)
    many = "Expected exactly one result from SQL query, but got multiple results."
    await refused(one.sql_one("SELECT a FROM t"), DurableObjectError, many)


@contract.case()
async def a_cursor_goes_on_where_it_stopped(subjects: Subjects) -> None:
    assert await subjects.get_by_name("one").sql_cursor() == 2


@contract.case()
async def sql_is_in_transactions_too(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.sql("CREATE TABLE t (a, b)")
    assert await one.sql_transaction() == [0, None]


@contract.case()
async def sql_binds_numbers_as_d1_does(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    query = "SELECT typeof(?1) AS type, ?1 AS value, 'n' || ?1 AS text"
    for bound, kind, value, text in (
        (True, "real", 1, "n1.0"),
        (False, "real", 0, "n0.0"),
        (5, "real", 5, "n5.0"),
        (-2.5, "real", -2.5, "n-2.5"),
        (2**40, "real", 2**40, "n1099511627776.0"),
        (float("inf"), "real", float("inf"), "nInf"),
        (float("-inf"), "real", float("-inf"), "n-Inf"),
        (float("nan"), "null", None, None),
        (None, "null", None, None),
        ("é😀", "text", "é😀", "né😀"),
        ("a\ud800b", "text", "a\ufffdb", "na\ufffdb"),
    ):
        assert await one.sql(query, bound) == [{"type": kind, "value": value, "text": text}], bound
    assert await one.sql("SELECT ? / ? AS quotient", 7, 2) == [{"quotient": 3.5}]
    assert await one.sql("SELECT ? AS most", 2**53 - 1) == [{"most": 2**53 - 1}]
    await one.sql("CREATE TABLE t (a INTEGER, b TEXT)")
    await one.sql("INSERT INTO t VALUES (?, ?)", 5, 5)
    assert await one.sql("SELECT typeof(a) AS a, b FROM t") == [{"a": "integer", "b": "5.0"}]
    for number in (2**53, -(2**53), 2**60, 2**70):
        error = await refused(one.sql(query, number), DurableObjectTypeError)
        assert str(error).startswith(f"{number} is beyond 2**53 - 1")
    for unfit in ([1, 2], {"a": 1}, {1}, datetime(2026, 1, 1, tzinfo=UTC)):
        await refused(one.sql(query, unfit), DurableObjectTypeError)


@contract.case()
async def sql_gives_numbers_and_texts_as_they_are(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    assert await one.sql("SELECT 9e999 AS a, -9e999 AS b, 1e20 AS c, 3.0 AS d, 2.5 AS e, x'00' AS f, NULL AS g") == [
        {"a": float("inf"), "b": float("-inf"), "c": 1e20, "d": 3, "e": 2.5, "f": b"\x00", "g": None}
    ]
    # Text that is no UTF-8, read and written back.
    assert await one.sql("SELECT CAST(x'61ff62' AS TEXT) AS t") == [{"t": "a\ufffdb"}]
    await one.sql("CREATE TABLE t (a TEXT)")
    assert await one.sql("INSERT INTO t VALUES (CAST(x'ff' AS TEXT)) RETURNING a") == [{"a": "\ufffd"}]
    assert await one.sql("SELECT a, count(*) AS n FROM t") == [{"a": "\ufffd", "n": 1}]


@contract.case()
async def a_text_of_several_statements_keeps_what_it_did_before_one_that_fails(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    await one.sql("CREATE TABLE t (a UNIQUE)")
    for text, message in (
        ("INSERT INTO t VALUES (1); INSERT INTO nope VALUES (2); INSERT INTO t VALUES (3)", "no such table: nope"),
        ("INSERT INTO t VALUES (4); INSERT INTO t VALUES (5), (1); INSERT INTO t VALUES (6)", "UNIQUE constraint"),
        ("INSERT INTO t VALUES (7); INSERT INTO t VALUES (?); SELECT 1", "When executing multiple SQL statements"),
        ("INSERT INTO t VALUES (8); BAD", 'near "BAD": syntax error'),
    ):
        error = await refused(one.sql(text), DurableObjectError)
        assert str(error).startswith(message), error
    assert await one.sql("SELECT a FROM t ORDER BY a") == [{"a": 1}, {"a": 4}, {"a": 7}, {"a": 8}]
    for text in ("", ";", "SELECT 1;;", "SELECT 1; -- done"):
        await refused(one.sql(text), DurableObjectError, "SQL code did not contain a statement.")


@contract.case()
async def sql_errors_are_sqlites(subjects: Subjects) -> None:
    one = subjects.get_by_name("one")
    error = await refused(one.sql("SELECT * FROM nope"), DurableObjectError)
    assert str(error).startswith("no such table: nope")
    await one.sql("CREATE TABLE t (a UNIQUE)")
    await one.sql("INSERT INTO t VALUES (1)")
    error = await refused(one.sql("INSERT INTO t VALUES (1)"), DurableObjectError)
    assert "UNIQUE constraint failed: t.a" in str(error)
    for statement in ("BEGIN", "COMMIT", "SAVEPOINT a", "ATTACH 'x' AS y", "SELECT * FROM _cf_KV"):
        await refused(one.sql(statement), DurableObjectError)
    assert await one.sql("SELECT a FROM t") == [{"a": 1}]


# ---------------------------------------------------------------------- alarms


@contract.case(timed=True)
async def an_alarm_goes_off_at_its_time(subjects: Subjects, clock: MovingClock) -> None:
    one = subjects.get_by_name("one")
    when = int(clock.time() + 10) * 1000
    await one.arm(when)
    assert await one.armed() == when
    await clock.advance(5)
    assert await one.rings() == []
    await clock.advance(6)
    # While it is handled it does not count as set.
    assert await one.rings() == [[0, False, None]]
    assert await one.armed() is None
    await clock.advance(100)
    assert len(await one.rings()) == 1


@contract.case(timed=True)
async def an_alarm_can_be_moved_and_taken_back(subjects: Subjects, clock: MovingClock) -> None:
    one = subjects.get_by_name("one")
    await one.arm((clock.time() + 5) * 1000)
    await one.arm_at(datetime.fromtimestamp(clock.time() + 20, UTC))
    await clock.advance(10)
    assert await one.rings() == []
    await clock.advance(11)
    assert len(await one.rings()) == 1
    await one.arm((clock.time() + 5) * 1000)
    await one.disarm()
    assert await one.armed() is None
    await clock.advance(10)
    assert len(await one.rings()) == 1


@contract.case(timed=True)
async def an_alarm_in_the_past_goes_off_now(subjects: Subjects, clock: MovingClock) -> None:
    one = subjects.get_by_name("one")
    await one.arm(1)
    await clock.advance(1)
    assert len(await one.rings()) == 1
    await refused(one.arm(0), DurableObjectTypeError, "setAlarm() cannot be called with an alarm time <= 0")


@contract.case(timed=True)
async def an_alarm_that_fails_is_tried_again(subjects: Subjects, clock: MovingClock) -> None:
    one = subjects.get_by_name("one")
    await one.put("failures", 2)
    await one.arm((clock.time() + 1) * 1000)
    await clock.advance(2)
    assert len(await one.rings()) == 1
    await clock.advance(2)
    assert len(await one.rings()) == 2
    await clock.advance(5)
    assert [ring[:2] for ring in await one.rings()] == [[0, False], [1, True], [2, True]]
    await clock.advance(100)
    assert len(await one.rings()) == 3


@contract.case(timed=True)
async def an_alarm_is_given_up_after_six_retries(subjects: Subjects, clock: MovingClock) -> None:
    one = subjects.get_by_name("one")
    await one.put("failures", 100)
    await one.arm((clock.time() + 1) * 1000)
    await clock.advance(1000)
    assert [ring[0] for ring in await one.rings()] == [0, 1, 2, 3, 4, 5, 6]
    assert await one.armed() is None


@contract.case(timed=True)
async def an_alarm_may_set_the_next_one(subjects: Subjects, clock: MovingClock) -> None:
    one = subjects.get_by_name("one")
    again = int(clock.time() + 30) * 1000
    await one.put("again", again)
    await one.arm((clock.time() + 1) * 1000)
    await clock.advance(5)
    assert await one.armed() == again
    await clock.advance(30)
    assert len(await one.rings()) == 2
    assert await one.armed() is None
