"""Checkers: rules over the calls of a run, as pure functions. Each raises AssertionError with what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from core.testing.simulation.log import SimulatedCall
from core.testing.simulation.scheduler import Check

_GETS = frozenset({"get", "get_with_metadata", "head"})


def no_lost_update(calls: Sequence[SimulatedCall], /) -> None:
    """No event writes what it has read after another one wrote it: a key of KV, an object of R2.

    A put to R2 that its condition refused is no write.
    """
    for write in calls:
        if write.kind not in ("kv", "r2") or write.key is None or not write.event or not _wrote(write):
            continue
        before = [call for call in calls if _same(call, write) and _moment(call) < _moment(write)]
        reads = [call for call in before if call.event == write.event and call.method in _GETS]
        for other in before if reads else ():
            read = reads[-1]
            if _wrote(other) and other.event != write.event and _moment(read) < _moment(other):
                raise AssertionError(f"an update is lost:\n  {read}\n  {other}\n  {write}")


def linearizable(key: str, /) -> Check:
    """The reads and writes of `key` in KV are those of one register: some order of them within their times explains
    every read.
    """

    def check(calls: Sequence[SimulatedCall], /) -> None:
        ours = [call for call in calls if call.kind == "kv" and call.key == key and call.method in _REGISTER]
        # A write that failed may have had its effect, and a write without an end may have one later.
        ours = [call for call in ours if call.took_effect is not None]
        ends = [call.ended if call.ended is not None else len(calls) * 10 for call in ours]
        initial = next((call.result for call in ours if call.method == "get"), None)
        seen: set[tuple[frozenset[int], str]] = set()

        def explained(done: frozenset[int], value: object) -> bool:
            if len(done) == len(ours):
                return True
            state = (done, repr(value))  # a value of JSON has no hash
            if state in seen:
                return False
            seen.add(state)
            left = [number for number in range(len(ours)) if number not in done]
            first_end = min(ends[number] for number in left)
            for number in left:
                call = ours[number]
                then = value if call.method == "get" else call.args[1] if call.method == "put" else None
                fits = call.began <= first_end and (call.method != "get" or call.result == value)
                if fits and explained(done | {number}, then):
                    return True
            return False

        # Before the first write the key has whatever the test began with: what the first read saw, or nothing.
        if not explained(frozenset(), None) and not (initial is not None and explained(frozenset(), initial)):
            raise AssertionError("\n  ".join([f"no order explains the reads of {key!r}:", *map(str, ours)]))

    return check


_REGISTER = frozenset({"get", "put", "delete"})


def exactly_once_effect(queue: str, /) -> Check:
    """However often the messages of `queue` are delivered, no batch repeats what another one did.

    That is a row of D1 that it changed, a message that it sent, or a call of a Durable Object, with the same values.

    Two messages that mean the same need something that tells them apart in what they write.
    """

    def check(calls: Sequence[SimulatedCall], /) -> None:
        done: dict[object, SimulatedCall] = {}
        for call in calls:
            if not call.event.startswith(f"batch of {queue}") or " in " in call.event or not _wrote(call):
                continue
            if call.kind not in ("d1", "queue", "durable_object") or (call.kind == "d1" and not _changed(call)):
                continue
            first = done.setdefault(call.call, call)
            if first is not call:
                raise AssertionError(f"the queue {queue} has its effect twice:\n  {first}\n  {call}")

    return check


def no_read_of_older_than(seconds: float, /) -> Check:
    """No read of KV gives a value that was overwritten more than `seconds` before the read."""

    def check(calls: Sequence[SimulatedCall], /) -> None:
        for read in calls:
            if read.kind != "kv" or read.method != "get" or read.took_effect is None or read.key is None:
                continue
            writes = [call for call in calls if _same(call, read) and _wrote(call) and _moment(call) < _moment(read)]
            values = [call.args[1] if call.method == "put" else None for call in writes]
            newest = max((number for number, value in enumerate(values) if value == read.result), default=-1)
            if newest + 1 < len(writes) and read.time - writes[newest + 1].time > seconds:
                raise AssertionError(f"a read is older than {seconds} s:\n  {writes[newest + 1]}\n  {read}")

    return check


def never_more_than(count: int, /, *, per: float, of: Callable[[SimulatedCall], bool] | None = None) -> Check:
    """At most `count` calls take effect within any `per` seconds: those that `of` picks, every write without it."""

    def check(calls: Sequence[SimulatedCall], /) -> None:
        chosen = [call for call in calls if call.took_effect is not None and (call.writes if of is None else of(call))]
        times = sorted(call.time for call in chosen)
        for number in range(len(times) - count):
            if times[number + count] - times[number] < per:
                shown = "\n  ".join(str(call) for call in chosen[number : number + count + 1])
                raise AssertionError(f"more than {count} calls within {per} s:\n  {shown}")

    return check


def _moment(call: SimulatedCall) -> int:
    return -1 if call.took_effect is None else call.took_effect


def _same(call: SimulatedCall, other: SimulatedCall) -> bool:
    return call.binding == other.binding and call.key == other.key and call.took_effect is not None


def _wrote(call: SimulatedCall) -> bool:
    if call.took_effect is None or not call.writes:
        return False
    return not (call.kind == "r2" and call.method == "put" and call.ended is not None and call.result is None)


def _changed(call: SimulatedCall) -> bool:
    result: Any = call.result
    results = cast("Sequence[Any]", result) if isinstance(result, list | tuple) else (result,)
    return any(getattr(getattr(result, "meta", None), "changes", 1) for result in results)
