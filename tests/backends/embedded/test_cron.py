"""Cron expressions as the platform reads them, and a schedule that calls its handler once at each moment."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.embedded.cron import Cron, CronSchedule
from core.backends.embedded.store import Store
from core.context import ScheduledEvent
from core.errors import OptionError
from core.testing.clock import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)


def times(text: str, count: int = 3, start: datetime = START) -> list[str]:
    cron, at = Cron.parse(text), start.timestamp()
    found: list[str] = []
    for _ in range(count):
        at = cron.next(at)
        found.append(datetime.fromtimestamp(at, UTC).strftime("%a %Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("* * * * *", ["Thu 2026-01-01 00:01", "Thu 2026-01-01 00:02", "Thu 2026-01-01 00:03"]),
        ("*/20 * * * *", ["Thu 2026-01-01 00:20", "Thu 2026-01-01 00:40", "Thu 2026-01-01 01:00"]),
        ("5/25 9 * * *", ["Thu 2026-01-01 09:05", "Thu 2026-01-01 09:30", "Thu 2026-01-01 09:55"]),
        ("0 9-17/4 * * *", ["Thu 2026-01-01 09:00", "Thu 2026-01-01 13:00", "Thu 2026-01-01 17:00"]),
        ("0 22-2/2 * * *", ["Thu 2026-01-01 02:00", "Thu 2026-01-01 22:00", "Fri 2026-01-02 00:00"]),
        ("30 0 1,15 * *", ["Thu 2026-01-01 00:30", "Thu 2026-01-15 00:30", "Sun 2026-02-01 00:30"]),
        # Days of the week begin with Sunday, as 1.
        ("0 0 * * 1", ["Sun 2026-01-04 00:00", "Sun 2026-01-11 00:00", "Sun 2026-01-18 00:00"]),
        ("0 0 * * mon-wed", ["Mon 2026-01-05 00:00", "Tue 2026-01-06 00:00", "Wed 2026-01-07 00:00"]),
        ("0 0 * * FRI-SUN", ["Fri 2026-01-02 00:00", "Sat 2026-01-03 00:00", "Sun 2026-01-04 00:00"]),
        ("0 0 * JUN-jul 1", ["Sun 2026-06-07 00:00", "Sun 2026-06-14 00:00", "Sun 2026-06-21 00:00"]),
        # Of a day of the month and one of the week either will do.
        ("0 0 13 * FRI", ["Fri 2026-01-02 00:00", "Fri 2026-01-09 00:00", "Tue 2026-01-13 00:00"]),
        ("0 0 L * *", ["Sat 2026-01-31 00:00", "Sat 2026-02-28 00:00", "Tue 2026-03-31 00:00"]),
        ("0 0 L-3 * *", ["Wed 2026-01-28 00:00", "Wed 2026-02-25 00:00", "Sat 2026-03-28 00:00"]),
        ("0 0 LW * *", ["Fri 2026-01-30 00:00", "Fri 2026-02-27 00:00", "Tue 2026-03-31 00:00"]),
        ("0 0 L-3W * *", ["Wed 2026-01-28 00:00", "Wed 2026-02-25 00:00", "Fri 2026-03-27 00:00"]),
        ("0 0 1W * *", ["Mon 2026-02-02 00:00", "Mon 2026-03-02 00:00", "Wed 2026-04-01 00:00"]),
        ("0 0 15W * *", ["Thu 2026-01-15 00:00", "Mon 2026-02-16 00:00", "Mon 2026-03-16 00:00"]),
        ("0 0 31W * *", ["Fri 2026-01-30 00:00", "Tue 2026-03-31 00:00", "Fri 2026-05-29 00:00"]),
        ("0 0 * * 6L", ["Fri 2026-01-30 00:00", "Fri 2026-02-27 00:00", "Fri 2026-03-27 00:00"]),
        ("0 0 * * MON#2", ["Mon 2026-01-12 00:00", "Mon 2026-02-09 00:00", "Mon 2026-03-09 00:00"]),
        ("0 0 * * SUN#5", ["Sun 2026-03-29 00:00", "Sun 2026-05-31 00:00", "Sun 2026-08-30 00:00"]),
        ("0 0 * * L", ["Sat 2026-01-03 00:00", "Sat 2026-01-10 00:00", "Sat 2026-01-17 00:00"]),
        ("0 0 29 2 *", ["Tue 2028-02-29 00:00", "Sun 2032-02-29 00:00", "Fri 2036-02-29 00:00"]),
    ],
)
def test_an_expression_means_these_moments(text: str, wanted: list[str]) -> None:
    assert times(text) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("* * * *", "has 4 fields. It needs five"),
        ("0 0 0 * * *", "has 6 fields"),
        ("", "has 0 fields"),
        ("60 * * * *", "the minute is wrong: 60 is not from 0 to 59"),
        ("* 24 * * *", "the hour is wrong: 24"),
        ("* * 0 * *", "the day of month is wrong: 0 is not from 1 to 31"),
        ("* * * 13 *", "the month is wrong: 13"),
        ("* * * * 0", r"the day of week is wrong: 0 is not from 1 to 7 \(1 is Sunday, 7 is Saturday\)"),
        ("* * * * 8", "the day of week is wrong: 8"),
        ("* * * FOO *", '"FOO" is not a number from 1 to 12 or JAN to DEC'),
        ("MON * * * *", "the minute is wrong"),
        ("*/0 * * * *", "the step of the minute is wrong: 0"),
        ("1,* * * * *", r"a \* must be alone in its field"),
        ("1- * * * *", "the minute is wrong"),
        (", * * * *", "the minute is wrong"),
        ("-1 * * * *", "the minute is wrong"),
        ("0 0 ? * *", "the day of month is wrong"),
        ("0 0 1,L * *", "the day of month is wrong"),
        ("0 0 L-31 * *", "the day of month is wrong: 31"),
        ("0 0 * * MON#6", "the day of week is wrong: 6 is not from 1 to 5"),
        ("0 0 30 2 *", "never comes"),
        ("0 0 31 4,6,9,11 *", "never comes"),
        ("@daily", "has 1 fields"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_field_and_the_reason(text: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        Cron.parse(text)


fields = st.tuples(
    st.sampled_from(["*", "*/7", "0", "5-10", "1,59", "50-5/3"]),
    st.sampled_from(["*", "*/5", "23", "22-3", "0,12"]),
    st.sampled_from(["*", "1", "L", "LW", "15W", "*/10", "28-31"]),
    st.sampled_from(["*", "2", "JAN-MAR", "*/5"]),
    st.sampled_from(["*", "MON-FRI", "1", "6L", "TUE#3"]),
).map(" ".join)


@given(fields, st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)))
def test_the_next_moment_is_the_first_one_after(text: str, naive: datetime) -> None:
    cron, after = Cron.parse(text), naive.replace(tzinfo=UTC).timestamp()
    found = cron.next(after)
    assert found > after
    assert found % 60 == 0
    # Asked from anywhere in between, it is the same one: none lies before it.
    assert cron.next(after + (found - after) / 2) == found
    assert cron.next(found - 0.5) == found
    assert cron.next(found) > found


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
