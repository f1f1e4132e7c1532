"""Cron triggers: a schedule that calls a handler at each moment of some expressions, once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from core.backends.embedded.store import Store
from core.context import Clock, ScheduledEvent, TimerHandle
from core.events.cron import Cron

_log = logging.getLogger("core.cron")

_MADE_UP_FOR: Final = 3600.0
"""Seconds within which a moment that passed while no process ran, or the machine slept, is made up for."""

_LONGEST_WAIT: Final = 60.0
"""Seconds until the time of day is looked at again: timers do not follow a clock that is set, or a machine's sleep."""

Handler = Callable[[ScheduledEvent], Awaitable[None]]


class CronSchedule:
    """Calls a handler whenever one of some expressions comes up.

    A moment is written down before its handler is called, so that it is never handled twice, also when the process
    is started anew within its minute or two processes share the store's directory. The last one of the past hour that
    passed while no process ran is made up for at the start, once for each expression, and so is one that the clock was
    set past. A handler that is still running does not hold back the next moment.
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
            self._look(cron, self._known(cron, now))

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

    def _look(self, cron: Cron, after: float) -> None:
        """Begin the last moment that passed since `after`, if one did, and look again when the next one comes."""
        now = self._clock.time()
        # A job that was missed a day ago is stale, and a program that begins again does not expect it.
        moment, missed = cron.next(max(after, now - _MADE_UP_FOR)), None
        while moment <= now:
            missed, moment = moment, cron.next(moment)
        if missed is not None:
            after = missed
            task = asyncio.get_running_loop().create_task(self._fire(cron, missed))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        self._timers[cron.text] = self._clock.call_later(
            min(moment - now, _LONGEST_WAIT), lambda: self._look(cron, after)
        )

    async def _fire(self, cron: Cron, moment: float) -> None:
        try:
            if await self._database.patiently(lambda: self._claim(cron.text, int(moment))):
                await self._handler(ScheduledEvent(cron.text, moment))
        except Exception:
            _log.exception('the trigger "%s" of %s failed', cron.text, datetime.fromtimestamp(moment, UTC).isoformat())

    def _known(self, cron: Cron, now: float) -> float:
        """The moment that was written down last: before its first start an expression has missed none."""

        def known() -> float:
            with self._database.transaction() as connection:
                connection.execute("INSERT OR IGNORE INTO cron_fired VALUES (?, ?)", (cron.text, int(now)))
                row = connection.execute("SELECT moment FROM cron_fired WHERE cron = ?", (cron.text,)).fetchone()
                return float(row[0])

        return self._database.insist(known)

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
