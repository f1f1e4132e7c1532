"""Alarms: when each object of a namespace is looked at, and how an alarm that is due runs, fails and is tried again.

An object's own database says which alarm is set. The schedule of the namespace only says when to look; it may look in
vain, and never too late.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs

from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.store import Database
from core.bindings.durable_object import AlarmInvocationInfo
from core.context import Clock, TimerHandle

if TYPE_CHECKING:
    from core.backends.embedded.durable_object.life import LiveObject

__all__ = ["AlarmRow", "AlarmRunner", "AlarmSchedule"]

ALARM_RETRIES: Final = 6
ALARM_BACKOFF: Final = 2.0

_log = logging.getLogger("core.durable_object")


@attrs.frozen
class AlarmRow:
    """An alarm as it is stored. `mark` tells one setting of it from the next."""

    time: int
    scheduled: int
    retries: int
    mark: str


class AlarmSchedule:
    """The times to look for the alarms of a namespace's objects, kept in `database` and as timers on `clock`.

    `fire_alarm` is called with the id of an object whose alarm may be due.
    """

    def __init__(self, database: Database, clock: Clock, fire_alarm: Callable[[ObjectId], None]) -> None:
        self._database = database
        self._clock = clock
        self._fire_alarm = fire_alarm
        self._timers: dict[str, tuple[int, TimerHandle]] = {}
        database.insist(self._set_up)

    def start(self) -> None:
        """Plan what was noted before. Call it with the event loop running."""
        rows = self._database.connection.execute("SELECT object, name, time FROM alarms").fetchall()
        for digits, name, time in rows:
            self.plan(ObjectId(digits, name), time)

    def stop(self) -> None:
        """Look for nothing more until the next start."""
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def note(self, id: ObjectId, time: int | None) -> None:
        """Remember when to look for an object's alarm; None for never."""
        connection = self._database.connection
        if time is None:
            connection.execute("DELETE FROM alarms WHERE object = ?", (id.digits,))
        else:
            connection.execute(
                "INSERT INTO alarms VALUES (?, ?, ?) ON CONFLICT (object) DO UPDATE SET time = excluded.time",
                (id.digits, id.name, time),
            )
        before = self._timers.pop(id.digits, None)
        if before is not None:
            before[1].cancel()
        if time is not None:
            self.plan(id, time)

    def expect(self, id: ObjectId, time: int) -> None:
        """Look for an alarm at `time` as well, before it is kept: the one that is kept so far may yet stay."""
        found = self._database.connection.execute("SELECT time FROM alarms WHERE object = ?", (id.digits,)).fetchone()
        if found is None or time < found[0]:
            self.note(id, time)

    def plan(self, id: ObjectId, time: int) -> None:
        """Look for an object's alarm at a time, unless it is looked for earlier."""
        before = self._timers.get(id.digits)
        if before is None or time < before[0]:
            if before is not None:
                before[1].cancel()
            wait = max(0.0, time / 1000 - self._clock.time())
            self._timers[id.digits] = time, self._clock.call_later(wait, lambda: self._due(id))

    def _due(self, id: ObjectId) -> None:
        self._timers.pop(id.digits, None)
        self._fire_alarm(id)

    def _set_up(self) -> None:
        self._database.connection.execute(
            "CREATE TABLE IF NOT EXISTS alarms (object TEXT NOT NULL PRIMARY KEY, name TEXT, time INTEGER NOT NULL)"
            " WITHOUT ROWID"
        )


class AlarmRunner:
    """Runs the alarms of one object."""

    def __init__(self, living: LiveObject) -> None:
        self._object = living
        self.task: asyncio.Task[None] | None = None

    def fire(self) -> None:
        """Run the alarm, if the storage says that it is due and it does not run yet."""
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._run())

    async def fire_now(self) -> bool:
        """Run the alarm whatever the time. Returns True if one was set."""
        row = self._object.storage.read_alarm()
        if row is None:
            return False
        self._object.storage.postpone(row, math.floor(self._object.objects.clock.time() * 1000), retries=row.retries)
        self.fire()
        task = self.task
        if task is not None:
            await asyncio.shield(task)
        return True

    async def _run(self) -> None:
        try:
            await self._handle()
            later = self._object.storage.read_alarm()
            if later is not None:
                self._object.objects.alarms.note(self._object.id, later.time)
        except Exception:
            _log.exception("the alarm of %r could not be handled; it is looked at again", self._object.id)
            # Not at once: a disk that is full stays so for a while.
            self._object.objects.alarms.plan(
                self._object.id, math.floor((self._object.objects.clock.time() + ALARM_BACKOFF) * 1000)
            )
        finally:
            self.task = None

    def _forget(self) -> None:
        # One that is being taken back may yet stay, while that is not kept.
        if not self._object.storage.is_writing:
            self._object.objects.alarms.note(self._object.id, None)

    async def _handle(self) -> None:
        storage = self._object.storage
        row = storage.read_alarm()
        if row is None:
            self._forget()
            return
        if row.time > self._object.objects.clock.time() * 1000:
            return
        storage.firing = row.mark
        try:
            await self._object.call("alarm", (AlarmInvocationInfo(row.retries, row.retries > 0, row.scheduled),), {})
        except Exception:
            storage.firing = None
            again = row.retries < ALARM_RETRIES
            _log.exception(
                "the alarm of %s %s failed; %s",
                self._object.objects.cls.__name__,
                self._object.id.name or self._object.id,
                "it is tried again" if again else "it failed too often and is given up",
            )
            wait = ALARM_BACKOFF * 2**row.retries
            storage.postpone(
                row,
                math.floor((self._object.objects.clock.time() + wait) * 1000) if again else None,
                retries=row.retries + 1,
            )
        else:
            storage.firing = None
            storage.postpone(row, None)
        if storage.read_alarm() is None:
            self._forget()
