"""What two replays have in common, and the fewest records on which a request still does the same.

The fewest are looked for by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", 2002): first nothing, then ever smaller parts are taken away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from core.errors import DeveloperError
from core.testing.recorded.values import ANY_ID, ANY_TIME, Answer, Record, State, Unordered, is_id, is_time

T = TypeVar("T")

_LATER: Final = (1.618, -1.618)
"""Seconds between two replays: later, and where a window or a token ends in between, before."""


async def lasting(play: Callable[[float], Awaitable[Answer]], time: float) -> Answer:
    """The answer of `play(time)`, with ANY_TIME and ANY_ID for what another replay a little later has otherwise.

    Raises DeveloperError where the two differ in more than that.
    """
    one = await play(time)
    try:
        return common(one, await play(time + _LATER[0]))
    except DeveloperError:
        return common(one, await play(time + _LATER[1]))


async def fewest(items: list[T], same: Callable[[list[T]], Awaitable[bool]]) -> list[T]:
    """Some of `items`, none of which can be left out, for which `same` holds as it does for all of them."""
    if not items or await same([]):
        return []
    size = (len(items) + 1) // 2
    while True:
        before, at = len(items), 0
        while at < len(items):
            rest = items[:at] + items[at + size :]
            if rest and await same(rest):
                items = rest
            else:
                at += size
        if size == 1 and len(items) == before:
            break
        size = max(1, min(size, len(items)) // 2)
    return items


def common(one: Answer, other: Answer) -> Answer:
    """The answer that both are, with ANY_TIME and ANY_ID where they differ. Raises DeveloperError where they differ in
    more than that.
    """
    if one.status != other.status:
        raise _differs("the status", one.status, other.status)
    return Answer(
        one.status,
        _common("the body", one.body, other.body),
        _common("Location", one.location, other.location),
        _places("added", one.added, other.added),
        _places("removed", one.removed, other.removed),
    )


def _differs(what: str, one: Any, other: Any) -> DeveloperError:
    return DeveloperError(
        f"two replays of it differ in {what}: {_short(one)} and {_short(other)}. A test of it would not pass each time. "
        "Let it depend on the request, its bindings and the clock of `req.ctx` alone"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _places(what: str, one: Any, other: Any) -> State:
    if one.keys() != other.keys():
        raise _differs(what, [*one], [*other])
    return {place: _records(f"{what} {place}", one[place], other[place]) for place in one}


def _records(what: str, one: list[Record], other: list[Record]) -> list[Record]:
    if len(one) != len(other):
        raise _differs(what, one, other)
    left, found = [*other], Unordered()
    for record in one:
        # Ids may sort otherwise in each replay, so each record goes with the one that is most like it.
        like = max(left, key=lambda each: sum(each.get(key, ...) == value for key, value in record.items()))
        left.remove(like)
        found.append(_common(what, record, like))
    return found


def _common(what: str, one: Any, other: Any) -> Any:
    if one == other:
        return one
    match one, other:
        case dict(), dict() if one.keys() == other.keys():
            ours, theirs = cast("Record", one), cast("Record", other)
            return {key: _common(f"{what}, {key}", value, theirs[key]) for key, value in ours.items()}
        case list(), list() if len(cast("list[object]", one)) == len(cast("list[object]", other)):
            pairs = zip(cast("list[object]", one), cast("list[object]", other), strict=True)
            return [_common(f"{what}, {number}", *pair) for number, pair in enumerate(pairs)]
        case _ if is_time(one) and is_time(other):
            return ANY_TIME
        case _ if is_id(one) and is_id(other):
            return ANY_ID
        case _:
            raise _differs(what, one, other)
