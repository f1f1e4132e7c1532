"""What two replays have in common, and the fewest records on which a request still does the same.

The fewest are looked for by halves, each of which is made small beside what the other one needs (Junker, "QuickXplain",
2004). First is tried what the calls of the request have seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, TypeVar, cast

import attrs

from core.errors import DeveloperError
from core.testing.recorded.values import ANY_ID, ANY_TIME, Answer, Record, Unordered, is_id, is_time, parts_of
from core.testing.simulation.log import shown

T = TypeVar("T")

_LATER: Final = (1.618, -1.618)
"""Seconds between two replays: later, and where a window or a token ends in between, before."""
_FEW: Final = 5
"""Rows of a column that have a value: where more have it, it says little about any of them."""


async def lasting(play: Callable[[float], Awaitable[Answer]], time: float) -> Answer:
    """The answer of `play(time)`, with ANY_TIME and ANY_ID for what another replay a little later has otherwise.

    Raises DeveloperError where the two differ in more than that.
    """
    one = await play(time)
    try:
        return common(one, await play(time + _LATER[0]))
    except DeveloperError:
        return common(one, await play(time + _LATER[1]))


def likely(rows: Sequence[tuple[str, Record]], seen: Collection[object], written: Collection[str]) -> set[int]:
    """The numbers of the rows, with their places, that calls which have `seen` these texts and numbers may be about:
    each has one that is rare in its column, or is in a Durable Object with few that was called, or is the last one
    before those that were `written` into its place, which may count on from it.
    """
    values = [[("", parts_of(place)[1]), *record.items()] for place, record in rows]
    count = Counter(
        (place, *each) for (place, _), row in zip(rows, values, strict=True) for each in row if _plain(each)
    )
    last = {place: number for number, (place, _) in enumerate(rows) if place in written}
    return {*last.values()} | {
        number
        for number, (place, _) in enumerate(rows)
        if any(_plain(each) and each[1] in seen and count[place, *each] <= _FEW for each in values[number])
    }


def _plain(pair: tuple[str, object]) -> bool:
    return isinstance(pair[1], str | bytes | int | float) and not isinstance(pair[1], bool)


async def fewest(items: Sequence[T], same: Callable[[list[T]], Awaitable[bool]], first: int = 0) -> list[T]:
    """Some of `items`, none of which can be left out, for which `same` holds as it does for all of them.

    The `first` ones are tried without the others before anything else, then with ever more of those that follow.
    """

    async def of(these: Sequence[T], beside: Sequence[T], at: int) -> list[T]:
        """Those of `these` that are needed with `beside`, which alone are too few."""
        if len(these) == 1:
            return [*these]
        one, other = these[:at], these[at:]
        later = [] if await same([*beside, *one]) else await of(other, [*beside, *one], min(2 * at, len(other) // 2))
        if later and await same([*beside, *later]):
            return later
        return [*await of(one, [*beside, *later], len(one) // 2), *later]

    if not items or await same([]):
        return []
    return await of(items, [], first if 0 < first < len(items) else len(items) // 2)


def common(one: Answer, other: Answer) -> Answer:
    """The answer that both are, with ANY_TIME and ANY_ID where they differ. Raises DeveloperError where they differ in
    more than that.
    """
    fields: dict[str, object] = attrs.asdict(one, recurse=False)
    return Answer(**{name: _common(name, value, getattr(other, name)) for name, value in fields.items()})


def _common(what: str, one: object, other: object) -> Any:
    if one == other:
        return one
    match one, other:
        case dict(), dict() if one.keys() == other.keys():
            ours, theirs = cast("Record", one), cast("Record", other)
            return {key: _common(f"{what}, {key}", value, theirs[key]) for key, value in ours.items()}
        case list(), list() if len(cast("list[object]", one)) == len(cast("list[object]", other)):
            if not isinstance(one, Unordered):
                pairs = zip(cast("list[object]", one), cast("list[object]", other), strict=True)
                return [_common(f"{what}, {number}", *pair) for number, pair in enumerate(pairs)]
            left = [*cast("list[Record]", other)]
            found = Unordered()
            for record in one:
                # Ids may sort otherwise in each replay, so each record goes with the one that is most like it.
                like = max(left, key=lambda each: sum(each.get(key, ...) == value for key, value in record.items()))
                left.remove(like)
                found.append(_common(what, record, like))
            return found
        case _ if is_time(one) and is_time(other):
            return ANY_TIME
        case _ if is_id(one) and is_id(other) and what != "status":
            return ANY_ID
        case _:
            raise DeveloperError(
                f"two replays of it differ in {what}: {shown(one)} and {shown(other)}. A test of it would not pass each "
                "time. Let it depend on the request, its bindings and the clock of `req.ctx` alone"
            )
