"""Cron triggers: which moments an expression means, and a schedule that calls a handler at each of them, once.

Five fields, in UTC: minute, hour, day of month, month, day of week. The platform's own reading, which differs from
Unix in that days of the week are 1 (Sunday) to 7 (Saturday), and in what it knows beyond ranges, lists and steps:
names, `L`, `W` and `#`. A day of the month and one of the week that are both given: either will do, as in Unix.
https://developers.cloudflare.com/workers/configuration/cron-triggers/, https://docs.rs/saffron
"""

from __future__ import annotations

import asyncio
import calendar
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, NoReturn, assert_never

import attrs

from core.backends.embedded.store import Store
from core.context import Clock, ScheduledEvent, TimerHandle
from core.errors import OptionError

_log = logging.getLogger("core.cron")

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


@attrs.frozen
class _Numbers:
    """The numbers that hold. `free` is `*` alone, which leaves the choice to the other field of the day."""

    numbers: frozenset[int]
    free: bool = False


@attrs.frozen
class _LastDay:
    """`L`, `L-3`, `LW`, `L-3W`: the last day of the month, or one before it, or the weekday nearest to that."""

    before: int
    weekday: bool


@attrs.frozen
class _NearestWeekday:
    """`15W`: the weekday of the month that is nearest to a day."""

    day: int


@attrs.frozen
class _LastOf:
    """`6L`: the last such day of the week in the month."""

    weekday: int


@attrs.frozen
class _Nth:
    """`MON#2`: the second such day of the week in the month."""

    weekday: int
    nth: int


@attrs.frozen
class Cron:
    """A cron expression, read. `Cron.parse("*/15 9-17 * * MON-FRI")`."""

    text: str
    _minute: _Numbers
    _hour: _Numbers
    _day: _Numbers | _LastDay | _NearestWeekday
    _month: _Numbers
    _weekday: _Numbers | _LastOf | _Nth

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
        cron = cls(
            text,
            reader.numbers("minute", fields[0], 0, 59),
            reader.numbers("hour", fields[1], 0, 23),
            reader.day_of_month(fields[2]),
            reader.numbers("month", fields[3], 1, 12, _MONTHS),
            reader.day_of_week(fields[4]),
        )
        cron.next(0.0)
        return cron

    def next(self, after: float) -> float:
        """The first moment after `after` that the expression means; both in seconds since 1970."""
        moment = datetime.fromtimestamp(after // 60 * 60 + 60, UTC)
        day = moment.date()
        hour, minute = moment.hour, moment.minute
        for _ in range(_YEARS_AHEAD * 366):
            if day.month not in self._month.numbers:
                day = _first_of_next_month(day)
                hour = minute = 0
                continue
            if self._is_day(day):
                for at_hour in sorted(self._hour.numbers):
                    if at_hour < hour:
                        continue
                    first = minute if at_hour == hour else 0
                    for at_minute in sorted(self._minute.numbers):
                        if at_minute >= first:
                            return datetime(day.year, day.month, day.day, at_hour, at_minute, tzinfo=UTC).timestamp()
            day += timedelta(days=1)
            hour = minute = 0
        raise OptionError(f'cron expression "{self.text}" never comes: no month has such a day')

    def _is_day(self, day: date) -> bool:
        any_day = isinstance(self._day, _Numbers) and self._day.free
        any_weekday = isinstance(self._weekday, _Numbers) and self._weekday.free
        if any_day:
            return any_weekday or self._is_weekday(day)
        return self._is_day_of_month(day) or (not any_weekday and self._is_weekday(day))

    def _is_day_of_month(self, day: date) -> bool:
        last = calendar.monthrange(day.year, day.month)[1]
        match self._day:
            case _Numbers(numbers):
                return day.day in numbers
            case _LastDay(before, weekday):
                wanted = last - before
            case _NearestWeekday(wanted):
                weekday = True
            case _:
                assert_never(self._day)
        if not 1 <= wanted <= last:
            return False
        found = day.replace(day=wanted)
        return day == (_nearest_weekday(found) if weekday else found)

    def _is_weekday(self, day: date) -> bool:
        # Sunday is 1 here, and 7 in ISO's count.
        weekday = day.isoweekday() % 7 + 1
        match self._weekday:
            case _Numbers(numbers):
                return weekday in numbers
            case _LastOf(wanted):
                return weekday == wanted and day.day > calendar.monthrange(day.year, day.month)[1] - 7
            case _Nth(wanted, nth):
                return weekday == wanted and (day.day - 1) // 7 + 1 == nth
            case _:
                assert_never(self._weekday)


def _first_of_next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _nearest_weekday(day: date) -> date:
    """The weekday that is nearest to `day` in the same month."""
    match day.isoweekday():
        case 6:
            return day + timedelta(days=2) if day.day == 1 else day - timedelta(days=1)
        case 7:
            last = calendar.monthrange(day.year, day.month)[1]
            return day - timedelta(days=2) if day.day == last else day + timedelta(days=1)
        case _:
            return day


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def numbers(self, name: str, text: str, low: int, high: int, names: Names | None = None) -> _Numbers:
        if text == "*":
            return _Numbers(frozenset(range(low, high + 1)), free=True)
        spans = [self.span(name, part, low, high, names) for part in text.upper().split(",")]
        return _Numbers(frozenset(number for span in spans for number in span))

    def day_of_month(self, text: str) -> _Numbers | _LastDay | _NearestWeekday:
        name = "day of month"
        if match := re.fullmatch(r"L(?:-(\d+))?(W?)", text):
            return _LastDay(0 if match[1] is None else self.number(name, match[1], 1, 30), bool(match[2]))
        if match := re.fullmatch(r"(\d+)W", text):
            return _NearestWeekday(self.number(name, match[1], 1, 31))
        return self.numbers(name, text, 1, 31)

    def day_of_week(self, text: str) -> _Numbers | _LastOf | _Nth:
        name = "day of week"
        if text == "L":
            return _Numbers(frozenset({7}))
        if match := re.fullmatch(r"(\w+)L", text):
            return _LastOf(self.number(name, match[1].upper(), 1, 7, _WEEKDAYS))
        if match := re.fullmatch(r"(\w+)#(\w+)", text):
            return _Nth(self.number(name, match[1].upper(), 1, 7, _WEEKDAYS), self.number(name, match[2], 1, 5))
        return self.numbers(name, text, 1, 7, _WEEKDAYS)

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


_MADE_UP_FOR: Final = 3600.0
"""Seconds within which a moment that passed while no process ran is made up for."""

Handler = Callable[[ScheduledEvent], Awaitable[None]]


class CronSchedule:
    """Calls a handler whenever one of some expressions comes up.

    A moment is written down before its handler is called, so that it is never handled twice, also when the process
    is started anew within its minute or two processes share the store's directory. The last one of the past hour that
    passed while no process ran is made up for at the start, once for each expression. A handler that is still running
    does not hold back the next moment.
    """

    def __init__(self, store: Store, expressions: Iterable[str], handler: Handler) -> None:
        self._clock: Clock = store.clock
        self._database = store.database("cron", "fired")
        self._crons = [Cron.parse(text) for text in dict.fromkeys(expressions)]
        self._handler = handler
        self._timers: dict[str, TimerHandle] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._database.insist(self._set_up)

    def start(self) -> None:
        """Begin. Call it with the event loop running."""
        now = self._clock.time()
        for cron in self._crons:
            missed = self._missed(cron, now)
            if missed is not None:
                self._begin(cron, missed)
            self._plan(cron, now)

    async def close(self) -> None:
        """Call no more handlers, and wait for those that are running."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._running:
            await asyncio.wait(self._running)

    def next_times(self) -> dict[str, float]:
        """Return the next time of each expression, in seconds since 1970."""
        now = self._clock.time()
        return {cron.text: cron.next(now) for cron in self._crons}

    def _plan(self, cron: Cron, after: float) -> None:
        moment = cron.next(after)
        self._timers[cron.text] = self._clock.call_later(
            max(0.0, moment - self._clock.time()), lambda: self._due(cron, moment)
        )

    def _due(self, cron: Cron, moment: float) -> None:
        now = self._clock.time()
        if now < moment:
            # Timers keep another time than the clock does, and may be early by a little.
            self._timers[cron.text] = self._clock.call_later(moment - now, lambda: self._due(cron, moment))
            return
        self._plan(cron, max(moment, now))
        self._begin(cron, moment)

    def _begin(self, cron: Cron, moment: float) -> None:
        task = asyncio.get_running_loop().create_task(self._fire(cron, moment))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _fire(self, cron: Cron, moment: float) -> None:
        try:
            if await self._database.patiently(lambda: self._claim(cron.text, int(moment))):
                await self._handler(ScheduledEvent(cron.text, moment))
        except Exception:
            _log.exception('the trigger "%s" of %s failed', cron.text, datetime.fromtimestamp(moment, UTC).isoformat())

    def _missed(self, cron: Cron, now: float) -> float | None:
        """The last moment that passed since the one that was written down. An expression is known from its first start
        on: nothing was missed before that.
        """

        def known() -> float:
            with self._database.transaction() as connection:
                connection.execute("INSERT OR IGNORE INTO cron_fired VALUES (?, ?)", (cron.text, int(now)))
                row = connection.execute("SELECT moment FROM cron_fired WHERE cron = ?", (cron.text,)).fetchone()
                return float(row[0])

        # A job that was missed a day ago is stale, and a program that begins again does not expect it.
        moment = cron.next(max(self._database.insist(known), now - _MADE_UP_FOR))
        missed = None
        while moment <= now:
            missed, moment = moment, cron.next(moment)
        return missed

    def _claim(self, text: str, moment: int) -> bool:
        """Write a moment down; whether nobody had."""
        with self._database.transaction() as connection:
            # Moments of one expression only go forward.
            changed = connection.execute(
                "INSERT INTO cron_fired VALUES (?, ?) ON CONFLICT (cron) DO UPDATE SET moment = excluded.moment"
                " WHERE excluded.moment > moment",
                (text, moment),
            )
            return changed.rowcount > 0

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS cron_fired (cron TEXT NOT NULL PRIMARY KEY, moment INTEGER NOT NULL)"
                " WITHOUT ROWID"
            )
