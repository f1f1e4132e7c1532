"""Cron triggers: which moments an expression means.

Five fields, in UTC: minute, hour, day of month, month, day of week. The platform's own reading, which differs from
Unix in that days of the week are 1 (Sunday) to 7 (Saturday), and in what it knows beyond ranges, lists and steps:
names, `L`, `W` and `#`. A day of the month and one of the week that are both given: either will do, as in Unix.
https://developers.cloudflare.com/workers/configuration/cron-triggers/, https://docs.rs/saffron
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Final, NoReturn, TypeAlias

import attrs

from core.errors import OptionError

Names = Mapping[str, int]

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"], 1
    )
}
_WEEKDAYS: Final = {name: number for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"], 1)}

# The rarest moment that there is comes every 28 years (a certain weekday on 29 February), and after 40 across 2100.
_YEARS_AHEAD: Final = 41

IsDay: TypeAlias = Callable[[date], bool]
"""A field of the day: which days it means."""


@attrs.frozen
class Cron:
    """A cron expression, read. `Cron.parse("*/15 9-17 * * MON-FRI")`."""

    text: str
    _minutes: Sequence[int]
    _hours: Sequence[int]
    _months: Sequence[int]
    _days: Sequence[IsDay]
    """The fields of the day, but for `*` alone, which leaves the choice to the other one."""

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Read an expression. Raises OptionError, which says which field is wrong and why.

        Every field takes `*`, numbers, ranges, lists and steps (`5`, `1-5`, `1,3-5`, `*/15`, `9-17/2`, `5/10`), and a
        range may run over the end (`22-2`, `FRI-MON`). Months are 1-12 or JAN-DEC, days of the week 1-7 or SUN-SAT.
        Alone in its field, a day of the month may be `L` (the last), `L-3` (three before it), `LW` (the last weekday),
        `L-3W` or `15W` (the weekday nearest to it), and a day of the week `6L` (the last Friday), `MON#2` (the second
        Monday) or `L` (Saturday). Raises OptionError also for moments that never come, such as 30 February.
        """
        fields = text.split()
        if len(fields) != 5:
            raise OptionError(
                f'cron expression "{text}" has {len(fields)} fields. It needs five: '
                "minute, hour, day of month, month, day of week"
            )
        reader = _Reader(text)
        minutes, hours = reader.numbers("minute", fields[0], 0, 59), reader.numbers("hour", fields[1], 0, 23)
        day = reader.day_of_month(fields[2])
        months = reader.numbers("month", fields[3], 1, 12, _MONTHS)
        weekday = reader.day_of_week(fields[4])
        days = [is_day for is_day, field in ((day, fields[2]), (weekday, fields[4])) if field != "*"]
        cron = cls(text, minutes, hours, months, days)
        cron.next(0.0)
        return cron

    def next(self, after: float) -> float:
        """The first moment after `after` that the expression means; both in seconds since 1970."""
        moment = datetime.fromtimestamp(after // 60 * 60 + 60, UTC)
        day, earliest = moment.date(), (moment.hour, moment.minute)
        for _ in range(_YEARS_AHEAD * 366):
            if day.month not in self._months:
                day = _next_month(day)
            else:
                if not self._days or any(is_day(day) for is_day in self._days):
                    for at in product(self._hours, self._minutes):
                        if at >= earliest:
                            return datetime(day.year, day.month, day.day, *at, tzinfo=UTC).timestamp()
                day += timedelta(days=1)
            earliest = (0, 0)
        raise OptionError(f'cron expression "{self.text}" never comes: no month has such a day')


def _days_in_month(day: date) -> int:
    return (_next_month(day) - timedelta(days=1)).day


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _weekday(day: date) -> int:
    # Sunday is 1 here, and 7 in ISO's count.
    return day.isoweekday() % 7 + 1


def _is_nearest_weekday(day: date, to: int) -> bool:
    """True for the weekday of a month that is nearest to its day `to`, where it has that day."""
    last = _days_in_month(day)
    if not 1 <= to <= last:
        return False
    match day.replace(day=to).isoweekday():
        case 6:
            to += 2 if to == 1 else -1
        case 7:
            to += -2 if to == last else 1
        case _:
            pass
    return day.day == to


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def numbers(self, name: str, text: str, low: int, high: int, names: Names | None = None) -> list[int]:
        if text == "*":
            return [*range(low, high + 1)]
        spans = [self.span(name, part, low, high, names) for part in text.upper().split(",")]
        return sorted({number for span in spans for number in span})

    def day_of_month(self, text: str) -> IsDay:
        name = "day of month"
        if match := re.fullmatch(r"L(?:-(\d+))?(W?)", text):
            before = 0 if match[1] is None else self.number(name, match[1], 1, 30)
            if match[2]:
                return lambda day: _is_nearest_weekday(day, _days_in_month(day) - before)
            return lambda day: day.day == _days_in_month(day) - before
        if match := re.fullmatch(r"(\d+)W", text):
            wanted = self.number(name, match[1], 1, 31)
            return lambda day: _is_nearest_weekday(day, wanted)
        days = self.numbers(name, text, 1, 31)
        return lambda day: day.day in days

    def day_of_week(self, text: str) -> IsDay:
        name = "day of week"
        if match := re.fullmatch(r"(\w+)L", text):
            last = self.number(name, match[1].upper(), 1, 7, _WEEKDAYS)
            return lambda day: _weekday(day) == last and day.day > _days_in_month(day) - 7
        if match := re.fullmatch(r"(\w+)#(\w+)", text):
            weekday, nth = self.number(name, match[1].upper(), 1, 7, _WEEKDAYS), self.number(name, match[2], 1, 5)
            return lambda day: _weekday(day) == weekday and (day.day - 1) // 7 + 1 == nth
        weekdays = [7] if text == "L" else self.numbers(name, text, 1, 7, _WEEKDAYS)
        return lambda day: _weekday(day) in weekdays

    def span(self, name: str, part: str, low: int, high: int, names: Names | None) -> Iterable[int]:
        body, slash, step_text = part.partition("/")
        step = self.number(f"step of the {name}", step_text, 1, high - low) if slash else 1
        if body == "*":
            if not slash:
                self.refuse(name, "a * must be alone in its field")
            return range(low, high + 1, step)
        first_text, dash, last_text = body.partition("-")
        first = self.number(name, first_text, low, high, names)
        if not dash:
            return range(first, high + 1, step) if slash else (first,)
        last = self.number(name, last_text, low, high, names)
        if first <= last:
            return range(first, last + 1, step)
        return [*range(first, high + 1), *range(low, last + 1)][::step]

    def number(self, name: str, text: str, low: int, high: int, names: Names | None = None) -> int:
        if names is not None and text in names:
            return names[text]
        if not re.fullmatch(r"\d{1,4}", text, re.ASCII):
            spelled = "" if names is None else f" or {next(iter(names))} to {list(names)[-1]}"
            self.refuse(name, f'"{text}" is not a number from {low} to {high}{spelled}')
        number = int(text)
        if not low <= number <= high:
            hint = " (1 is Sunday, 7 is Saturday)" if names is _WEEKDAYS else ""
            self.refuse(name, f"{number} is not from {low} to {high}{hint}")
        return number

    def refuse(self, name: str, why: str) -> NoReturn:
        raise OptionError(f'cron expression "{self.text}": the {name} is wrong: {why}')
