"""Alarms: when each object of a namespace is looked at.

An object's own database says which alarm is set. The schedule of the namespace only says when to look; it may look in
vain, and never too late. Where it is missing, as in a backup, it is made from what the objects say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.store import Database
from core.context import Clock, TimerHandle


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

    def start(self, stored: Callable[[], Iterable[tuple[ObjectId, int]]]) -> None:
        """Plan the alarms that were noted before. Call it with the event loop running.

        `stored` reads the alarms that objects have, for a schedule that is new.
        """
        self._database.insist(lambda: self._set_up(stored))
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

    def _set_up(self, stored: Callable[[], Iterable[tuple[ObjectId, int]]]) -> None:
        with self._database.transaction() as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alarms'").fetchone() is None:
                connection.execute(
                    "CREATE TABLE alarms (object TEXT NOT NULL PRIMARY KEY, name TEXT, time INTEGER NOT NULL)"
                    " WITHOUT ROWID"
                )
                rows = [(id.digits, id.name, time) for id, time in stored()]
                connection.executemany("INSERT INTO alarms VALUES (?, ?, ?)", rows)
