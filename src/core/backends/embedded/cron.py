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
