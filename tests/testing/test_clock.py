"""A clock stands still until it is moved; called it jumps, awaited it walks."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context import Clock
from core.testing.clock import FakeClock


def test_it_is_a_clock_that_stands_still() -> None:
    clock = FakeClock(100.5)
    same: Clock = clock
    assert (same.time(), same.monotonic()) == (100.5, 0.0)
    assert repr(clock) == "FakeClock(100.5)"


def test_a_plain_call_moves_it_at_once() -> None:
    clock = FakeClock(100)
    clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (102.5, 2.5)
    clock.advance(0)
    assert clock.time() == 102.5


def test_it_does_not_go_back() -> None:
    clock = FakeClock()
    with pytest.raises(ValueError, match="a clock does not go back"):
        clock.advance(-1)


def test_timers_go_off_in_order_each_at_its_own_time() -> None:
    clock = FakeClock(0)
    seen: list[tuple[str, float]] = []
    for name, seconds in (("late", 3), ("early", 1), ("also early", 1), ("never", 10)):
        clock.call_later(seconds, lambda name=name: seen.append((name, clock.time())))  # type: ignore[misc]  # bound here
    cancelled = clock.call_later(2, lambda: seen.append(("cancelled", clock.time())))
    cancelled.cancel()
    cancelled.cancel()
    assert clock.pending == 4
    clock.advance(5)
    assert seen == [("early", 1), ("also early", 1), ("late", 3)]
    assert clock.time() == 5
    assert clock.pending == 1


def test_a_timer_may_set_another_inside_the_same_move() -> None:
    clock = FakeClock(0)
    seen: list[float] = []

    def tick() -> None:
        seen.append(clock.time())
        clock.call_later(1, tick)

    clock.call_later(1, tick)
    clock.advance(3.5)
    assert seen == [1, 2, 3]


async def test_awaited_it_lets_tasks_run_at_their_own_times() -> None:
    clock = FakeClock(0)
    seen: list[tuple[str, float]] = []

    async def worker(name: str, pause: float) -> None:
        while True:
            await clock.sleep(pause)
            await asyncio.sleep(0)
            seen.append((name, clock.time()))

    tasks = [asyncio.create_task(worker("two", 2)), asyncio.create_task(worker("three", 3))]
    await clock.advance(6)
    assert seen == [("two", 2), ("three", 3), ("two", 4), ("three", 6), ("two", 6)]
    assert clock.time() == 6
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert clock.pending == 0


async def test_a_plain_call_wakes_sleepers_when_the_test_next_awaits() -> None:
    clock = FakeClock(0)
    woken: list[float] = []

    async def sleeper() -> None:
        await clock.sleep(5)
        woken.append(clock.time())

    task = asyncio.create_task(sleeper())
    await asyncio.sleep(0)
    clock.advance(7)
    assert woken == []
    await task
    assert woken == [7]


async def test_a_move_that_is_kept_is_made_once_when_it_is_awaited() -> None:
    clock = FakeClock(0)
    move = clock.advance(5)
    assert clock.time() == 0
    await move
    assert clock.time() == 5
    await move
    del move
    assert clock.time() == 5


async def test_sleeping_for_nothing_only_lets_others_run() -> None:
    clock = FakeClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.pending == 0


async def test_what_a_timer_raises_goes_to_the_loop_and_stops_nobody() -> None:
    clock = FakeClock(0)
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(str(context["exception"])))

    def fail() -> None:
        raise RuntimeError("oops")

    seen: list[float] = []
    clock.call_later(1, fail)
    clock.call_later(2, lambda: seen.append(clock.time()))
    clock.advance(3)
    assert told == ["oops"]
    assert seen == [2]


@given(st.lists(st.floats(0, 100), max_size=20), st.lists(st.floats(0, 30), min_size=1, max_size=10))
def test_timers_always_go_off_in_the_order_of_their_times(delays: list[float], moves: list[float]) -> None:
    clock = FakeClock(0)
    seen: list[float] = []
    for delay in delays:
        clock.call_later(delay, lambda: seen.append(clock.monotonic()))
    for move in moves:
        clock.advance(move)
    assert seen == sorted(delay for delay in delays if delay <= clock.monotonic())
