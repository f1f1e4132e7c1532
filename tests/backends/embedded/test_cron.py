"""A schedule of cron expressions, which calls its handler once at each moment."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.backends.embedded.cron import CronSchedule
from core.backends.embedded.store import Store
from core.context import ScheduledEvent
from core.testing.clock import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)


class Handler:
    def __init__(self) -> None:
        self.events: list[ScheduledEvent] = []

    async def __call__(self, event: ScheduledEvent) -> None:
        self.events.append(event)


async def test_a_schedule_calls_its_handler_at_each_moment_with_the_moment() -> None:
    clock = FakeClock(START.timestamp() + 30)
    with Store(clock=clock) as store:
        handler = Handler()
        schedule = CronSchedule(store, ["* * * * *", "*/2 * * * *"], handler)
        schedule.start()
        assert schedule.next_times() == {
            "* * * * *": START.timestamp() + 60,
            "*/2 * * * *": START.timestamp() + 120,
        }
        await clock.advance(150)
        # Which of two expressions comes first at one moment is not promised.
        assert sorted((event.scheduled_time - START.timestamp(), event.cron) for event in handler.events) == [
            (60, "* * * * *"),
            (120, "* * * * *"),
            (120, "*/2 * * * *"),
            (180, "* * * * *"),
        ]
        await schedule.close()
        await clock.advance(600)
        assert len(handler.events) == 4


async def test_a_moment_is_handled_once_by_two_schedules_of_one_store_and_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock(START.timestamp() + 59)
    handler = Handler()
    with Store(tmp_path, clock=clock) as one, Store(tmp_path, clock=clock) as two:
        schedules = [CronSchedule(store, ["* * * * *"], handler) for store in (one, two)]
        for schedule in schedules:
            schedule.start()
        await clock.advance(1)
        assert len(handler.events) == 1
        for schedule in schedules:
            await schedule.close()
    # Set back by less than a minute, as a clock may be, the moment comes up again and is not handled again.
    again = FakeClock(START.timestamp() + 59.5)
    with Store(tmp_path, clock=again) as store:
        schedule = CronSchedule(store, ["* * * * *"], handler)
        schedule.start()
        await again.advance(1)
        assert len(handler.events) == 1
        await again.advance(60)
        assert len(handler.events) == 2
        await schedule.close()


@pytest.mark.parametrize(
    ("cron", "stopped", "minutes"),
    [
        ("0 * * * *", 35, [60]),  # the moment fell while nothing ran
        ("*/5 * * * *", 35, [60]),  # several did: the last one is made up for, once
        ("0 1 * * *", 24 * 60, []),  # it is too long ago
        ("0 * * * *", 5, []),  # none did
    ],
)
async def test_the_last_moment_of_the_past_hour_that_passed_while_nothing_ran_is_made_up_for(
    tmp_path: Path, cron: str, stopped: int, minutes: list[int]
) -> None:
    handler = Handler()
    # Begun for the first time at half past, where nothing was missed before, and again after `stopped` minutes, twice.
    for after in (30, 30 + stopped, 30 + stopped):
        clock = FakeClock((START + timedelta(minutes=after, seconds=1)).timestamp())
        with Store(tmp_path, clock=clock) as store:
            schedule = CronSchedule(store, [cron], handler)
            schedule.start()
            await clock.advance(0)
            await schedule.close()
    assert [(event.scheduled_time - START.timestamp()) / 60 for event in handler.events] == [
        minute if cron != "*/5 * * * *" else 65 for minute in minutes
    ]


class SetForward(FakeClock):
    """A clock whose time of day is set, or that a machine's sleep carries on, while its timers know nothing of it."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


@pytest.mark.parametrize(
    ("cron", "ahead", "minutes"),
    [
        ("0 * * * *", 59 * 60, [60]),
        ("*/5 * * * *", 59 * 60, [60]),  # several passed: the last one is made up for, once
        ("0 1 * * *", 24 * 3600, []),  # it passed too long ago
    ],
)
async def test_what_passes_while_the_clock_is_set_forward_comes_up_within_a_minute(
    cron: str, ahead: float, minutes: list[int]
) -> None:
    clock, handler = SetForward((START + timedelta(minutes=1)).timestamp()), Handler()
    with Store(clock=clock) as store:
        schedule = CronSchedule(store, [cron], handler)
        schedule.start()
        clock.ahead = ahead + 30
        await clock.advance(60)
        await schedule.close()
    assert [(event.scheduled_time - START.timestamp()) / 60 for event in handler.events] == minutes


async def test_a_slow_handler_does_not_hold_back_the_next_moment_and_close_waits_for_it() -> None:
    clock = FakeClock(START.timestamp())
    begun: list[float] = []
    ended: list[float] = []

    async def slow(event: ScheduledEvent) -> None:
        begun.append(event.scheduled_time)
        await clock.sleep(90)
        ended.append(event.scheduled_time)

    with Store(clock=clock) as store:
        schedule = CronSchedule(store, ["* * * * *"], slow)
        schedule.start()
        await clock.advance(120)
        assert len(begun) == 2
        closing = asyncio.ensure_future(schedule.close())
        await clock.advance(200)
        await closing
        assert ended == begun


async def test_a_handler_that_fails_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock(START.timestamp())
    calls = 0

    async def fail(event: ScheduledEvent) -> None:
        nonlocal calls
        calls += 1
        raise LookupError("why it failed")

    with Store(clock=clock) as store:
        schedule = CronSchedule(store, ["* * * * *"], fail)
        schedule.start()
        with caplog.at_level(logging.ERROR, "core.cron"):
            await clock.advance(120)
        await schedule.close()
    assert calls == 2
    assert 'the trigger "* * * * *" of 2026-01-01T00:01:00+00:00 failed' in caplog.text
    assert "why it failed" in caplog.text
