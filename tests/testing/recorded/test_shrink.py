"""The fewest records, what two replays have in common, and records in any order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DeveloperError
from core.testing import ANY_ID, ANY_TIME, Answer
from core.testing.recorded.shrink import common, fewest, lasting, likely
from core.testing.recorded.values import Record, Unordered


@given(st.sets(st.integers(0, 60), max_size=8))
def test_what_is_needed_is_left_and_nothing_else(needed: set[int]) -> None:
    import asyncio

    tries = 0

    async def same(items: list[int]) -> bool:
        nonlocal tries
        tries += 1
        return needed <= set(items)

    assert asyncio.run(fewest([*range(61)], same)) == sorted(needed)
    assert tries <= 1 if not needed else True


@pytest.mark.parametrize(
    ("needed", "first", "most"),
    [({137}, 0, 16), ({0, 1, 2}, 3, 6), ({0, 1, 2, 4, 6, 7}, 4, 20), ({0, 199}, 1, 30), ({5}, 6, 9)],
)
async def test_a_few_rows_of_two_hundred_are_found_in_a_few_replays(needed: set[int], first: int, most: int) -> None:
    tries = 0

    async def same(items: list[int]) -> bool:
        nonlocal tries
        tries += 1
        return needed <= {*items}

    assert await fewest([*range(200)], same, first) == sorted(needed)
    assert tries <= most, tries


def test_rows_are_likely_by_what_is_rare_in_them() -> None:
    rows: list[tuple[str, Record]] = [("DB.users", {"id": number, "admin": 0}) for number in range(1, 100)]
    rows += [("ROOM[lobby]", {"key": "open", "value": True}), ("ROOM[attic]", {"key": "open", "value": False})]

    assert likely(rows, {7, 0, "lobby", "GET"}, {"DB.posts"}) == {6, 99}
    assert likely(rows, set(), {"DB.users"}) == {98}


def test_what_differs_is_a_time_or_an_id() -> None:
    one = Answer(
        201, {"id": "a1", "at": "2026-01-01T00:00:00Z", "n": [1, 2]}, None, {"DB.t": Unordered([{"id": "a1", "k": 1}])}
    )
    other = Answer(
        201, {"id": "b2", "at": "2026-01-01T00:00:02Z", "n": [1, 2]}, None, {"DB.t": Unordered([{"id": "b2", "k": 1}])}
    )

    assert repr(common(one, other)) == repr(
        Answer(201, {"id": ANY_ID, "at": ANY_TIME, "n": [1, 2]}, None, {"DB.t": Unordered([{"id": ANY_ID, "k": 1}])})
    )


def test_records_whose_ids_sort_otherwise_are_told_apart_by_the_rest() -> None:
    one = Answer(200, None, None, {"DB.t": Unordered([{"id": "a", "k": 1}, {"id": "z", "k": 2}])})
    other = Answer(200, None, None, {"DB.t": Unordered([{"id": "b", "k": 2}, {"id": "y", "k": 1}])})

    assert repr(common(one, other).added) == "{'DB.t': [{'id': ANY_ID, 'k': 1}, {'id': ANY_ID, 'k': 2}]}"


@pytest.mark.parametrize("other", [Answer(404, {"a": [1]}), Answer(200, {"a": [1, 2]}), Answer(200, {"b": [1]})])
def test_an_answer_that_differs_in_more_is_refused(other: Answer) -> None:
    with pytest.raises(DeveloperError, match="two replays of it differ in"):
        common(Answer(200, {"a": [1]}), other)


async def test_a_window_that_ends_between_two_replays_is_avoided() -> None:
    async def play(time: float) -> Answer:
        return Answer(200 if time <= 100 else 429, {"at": time})

    with pytest.raises(DeveloperError):
        common(await play(100), await play(101.618))
    assert (await lasting(play, 100)).status == 200


records = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3), max_size=5)


@given(records, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_count(given: list[dict[str, Any]], random: Any) -> None:
    shuffled = [*given]
    random.shuffle(shuffled)

    assert Unordered(given) == shuffled
    assert shuffled == Unordered(given)
    assert Unordered(given) != [*shuffled, {"d": 1}]


def test_records_with_any_id_leave_the_exact_ones_theirs() -> None:
    assert Unordered([{"id": 1}, {"id": 2}]) == [{"id": ANY_ID}, {"id": 1}]
    assert Unordered([{"id": 1}, {"id": 2}]) != [{"id": 3}, {"id": ANY_ID}]


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 11, 25, tzinfo=UTC),
        "2026-11-25T10:00:00.123Z",
        "2026-11-25",
        "Wed, 25 Nov 2026 10:00:00 GMT",
        1_795_627_110,
        1_795_627_110_123.5,
    ],
)
def test_times(value: object) -> None:
    assert value == ANY_TIME


@pytest.mark.parametrize("value", ["", "soon", 12, None, True, []])
def test_no_times(value: object) -> None:
    assert value != ANY_TIME
