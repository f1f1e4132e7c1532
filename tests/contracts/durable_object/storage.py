"""The promises of a Durable Object's storage: keys and values, and transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeVar, cast
from uuid import UUID

from tests.contracts.contract import refused
from tests.contracts.durable_object.subject import Colour, Level, Point, Subject, Subjects, Word, case, contract

from core.errors import DurableObjectError, DurableObjectTypeError, DurableObjectValueError

T = TypeVar("T")

# ---------------------------------------------------------------------- storage


@case()
async def values_of_every_kind_come_back(one: Subject) -> None:
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
        {"constructor": 2, "__proto__": [{"constructor": {"name": "Date"}}]},
        [
            {"constructor": None, "a": {1: {"constructor": None}}},
            {"b": [b"", datetime(2026, 1, 1, tzinfo=UTC), {2**60}]},
        ],
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        {1, 2},
        {1: "a", "1": "b", 2.5: {3: [{4: 5}]}, None: "c"},
        {1, "1", None},
    ]
    for value in values:
        await one.put("k", value)
        got = await one.get("k")
        assert got == value, value
        assert type(got) is type(value), value


@case()
async def a_datetime_keeps_its_milliseconds(one: Subject) -> None:
    for year in (1, 1969, 2026, 9999):
        moment = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        await one.put("k", [moment])
        assert await one.get("k") == [moment.replace(microsecond=999_000)]
        assert await one.echo({"at": moment}) == {"at": moment.replace(microsecond=999_000)}


@case()
async def what_is_stored_has_no_class(one: Subject) -> None:
    await one.put("k", [Point(1, ("a",))])
    assert await one.get("k") == [{"x": 1, "tags": ["a"]}]


@case()
async def a_member_of_an_enum_is_the_text_or_number_that_it_is(one: Subject) -> None:
    for value in (Word.HI, Level.LOW, {Word.HI: [Level.LOW]}, {Word.HI}):
        got = await one.echo(value)
        assert got == value
        assert "Word" not in repr(got)
        assert "Level" not in repr(got)
    assert type(await one.echo(Word.HI)) is str
    assert type((await one.echo(Point(Level.LOW))).x) is int


@case()
async def a_dict_has_plain_keys_and_a_set_plain_items(one: Subject) -> None:
    for value in ({(1, 2): 3}, {b"x": 1}, {datetime(2026, 1, 1, tzinfo=UTC): 1}, {b"x"}, {(1, 2)}, [{"a": {b"x": 1}}]):
        await refused(one.store(value), DurableObjectTypeError)
        await refused(one.put("k", value), DurableObjectTypeError)
    assert await one.get("k") is None
    assert await one.echo({1: {2: "x"}, "1": {True, "y"}}) == {1: {2: "x"}, "1": {True, "y"}}


@contract.case()
async def a_missing_key_is_none(subjects: Subjects) -> None:
    assert await subjects.get_by_name("one").get("nope") is None


@case()
async def several_at_once(one: Subject) -> None:
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


@case()
async def a_list_is_a_range_in_the_order_of_utf_8(one: Subject) -> None:
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


@case()
async def half_a_surrogate_pair_in_a_key_is_no_question_mark(one: Subject) -> None:
    await one.put("a\ud800", 1)
    assert await one.get("a\ud800") == 1
    assert await one.get("a?") is None


@case()
async def what_has_no_kind_of_its_own_is_refused(one: Subject) -> None:
    naive = datetime(2026, 1, 1)
    for value in (object(), [object()], naive, {"at": naive}, date(2026, 1, 1), UUID(int=1), [Decimal(1)], Colour.RED):
        await refused(one.echo(value), DurableObjectTypeError)
        await refused(one.put("k", value), DurableObjectTypeError)
        await refused(one.store(value), DurableObjectTypeError)
    await refused(one.give_object(), DurableObjectTypeError)
    await refused(one.store_colour(), DurableObjectTypeError)
    await refused(one.arm_at(datetime(2100, 1, 1)), DurableObjectTypeError)
    assert await one.get("k") is None


@case()
async def storage_has_limits(one: Subject) -> None:
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
    photo = {"name": "ada", "parts": [b"\0" * 950_000, b"\xff" * 950_000]}
    await one.put("photo", photo)
    assert await one.get("photo") == photo
    await refused(one.put("k"), DurableObjectTypeError, "put() called with undefined value.")


@case()
async def delete_all_leaves_nothing(one: Subject) -> None:
    await one.put("k", 1)
    await one.sql("CREATE TABLE t (a)")
    await one.arm(4_102_444_800_000)
    await one.wipe()
    assert await one.listed() == []
    assert await one.armed() is None
    await refused(one.sql("SELECT * FROM t"), DurableObjectError)


@case()
async def keys_and_values_without_waiting(one: Subject) -> None:
    assert await one.kv() == [["b", 2]]
    assert await one.get("b") == 2


# ---------------------------------------------------------------------- transactions


@case()
async def a_transaction_is_kept_whole_or_not_at_all(one: Subject) -> None:
    assert await one.transact("well") == "well"
    assert await one.get(["a", "b"]) == {"a": "well", "b": "well"}
    await refused(one.transact("fail"), LookupError)
    assert await one.get(["a", "b"]) == {"a": "well", "b": "well"}
    assert await one.transact("rollback") == "rollback"
    assert await one.get(["a", "b"]) == {"a": "well", "b": "well"}


@case()
async def a_transaction_that_waits_for_nothing(one: Subject) -> None:
    assert await one.transact_sync("well") == "well"
    await refused(one.transact_sync("fail"), LookupError)
    assert await one.get("a") == "well"


@case()
async def other_calls_see_a_transaction_whole(one: Subject) -> None:

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


@case()
async def a_transaction_that_has_ended_takes_nothing_more(one: Subject) -> None:
    error = await refused(one.use_late(), DurableObjectError)
    assert "on transaction that has already committed" in str(error)
    assert await one.get("late") is None
