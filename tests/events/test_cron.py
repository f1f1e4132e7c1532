"""Cron expressions as the platform reads them, and their refusal where a handler is registered for one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import ExecutionContext, ScheduledEvent, create_app
from core.errors import OptionError, RegistrationError
from core.events.cron import Cron

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


async def nightly(event: ScheduledEvent, env: Any, ctx: ExecutionContext) -> None: ...


@pytest.mark.parametrize("text", ["bad cron", "@hourly", "0 0 0 * * *", "61 * * * *", "0 0 30 2 *", ""])
def test_a_handler_of_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(RegistrationError, match=rf'^scheduled\(…\): cron expression "{re.escape(text)}"'):
        create_app().scheduled(text)(nightly)
