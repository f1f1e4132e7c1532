"""The rows of an object's database: its keys and values, and its alarm."""

from __future__ import annotations

import math
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from core.backends.embedded.clone import load
from core.backends.embedded.durable_object.alarms import AlarmRow
from core.backends.embedded.durable_object.arguments import MAX_VALUE
from core.backends.embedded.durable_object.living import Living
from core.backends.embedded.durable_object.transactions import ObjectDatabase
from core.errors import DurableObjectError, DurableObjectTypeError, DurableObjectValueError


class ObjectRecords(ObjectDatabase):
    """The keys and values of one object, and its alarm, as rows."""

    def __init__(self, living: Living) -> None:
        super().__init__(living)
        # The mark of the alarm whose handler runs: it does not count as set.
        self.firing: str | None = None

    # ------------------------------------------------------------------ keys and values

    def read(self, raw: bytes, missing: Any = None) -> Any:
        """The value under a key."""
        found = self.rows("SELECT value FROM _cf_KV WHERE key = ?", (raw,))
        return load(found[0][0]) if found else missing

    def write(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Store values under keys that are in order, all or none."""
        checked: list[tuple[bytes, bytes]] = []
        for raw, data in pairs:
            if len(raw) + len(data) > MAX_VALUE:
                raise DurableObjectValueError(
                    f"Keys and values together cannot be larger than {MAX_VALUE} bytes. "
                    f"A pair of size {len(raw) + len(data)} was provided."
                )
            checked.append((raw, data))
        self.change("INSERT INTO _cf_KV VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", *checked)

    def remove(self, raws: Iterable[bytes]) -> int:
        """Delete keys. Returns how many there were."""
        return self.change("DELETE FROM _cf_KV WHERE key = ?", *((raw,) for raw in raws))

    def scan(
        self,
        *,
        start: str | None = None,
        start_after: str | None = None,
        end: str | None = None,
        prefix: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[str, Any]]:
        """Keys and values of a range, in the order of the keys' bytes."""
        if start is not None and start_after is not None:
            raise DurableObjectTypeError("list() cannot be called with both start and startAfter values.")
        if limit is not None and limit <= 0:
            raise DurableObjectTypeError("List limit must be positive.")
        conditions: list[str] = []
        values: list[Any] = []
        for condition, bound in (("key >= ?", start), ("key > ?", start_after), ("key < ?", end)):
            if bound is not None:
                conditions.append(condition)
                values.append(bound.encode("utf-8", "surrogatepass"))
        if prefix:
            raw = prefix.encode("utf-8", "surrogatepass")
            # UTF-8 has no byte 0xff: there is always a next one.
            conditions += ["key >= ?", "key < ?"]
            values += [raw, raw[:-1] + bytes([raw[-1] + 1])]
        sql = "SELECT key, value FROM _cf_KV"
        if conditions:
            sql += f" WHERE {' AND '.join(conditions)}"
        sql += f" ORDER BY key{' DESC' if reverse else ''}"
        if limit is not None:
            sql += " LIMIT ?"
            values.append(limit)
        for key, value in self.rows(sql, values):
            yield key.decode(), load(value)

    # ------------------------------------------------------------------ the alarm

    def read_alarm(self) -> AlarmRow | None:
        """The alarm that is set."""
        # Not `_database`: after a reset, too, the alarm says what comes next.
        connection = self._object.objects.database(self._object.id).connection
        try:
            found = connection.execute("SELECT time, scheduled, retries, mark FROM _cf_ALARM").fetchone()
        except sqlite3.Error as error:
            raise DurableObjectError(f"the alarm cannot be read: {error}") from error
        return None if found is None else AlarmRow(*found)

    def write_alarm(self, time: int) -> None:
        """Set the alarm. A time that has passed means now."""
        if time <= 0:
            raise DurableObjectTypeError("setAlarm() cannot be called with an alarm time <= 0")
        if not self._object.has_alarm_handler:
            raise DurableObjectError(
                "Your Durable Object class must have an alarm() handler in order to call setAlarm()"
            )
        time = max(time, math.floor(self._object.objects.clock.time() * 1000))
        # Noted before it is kept: an alarm too many is looked at in vain, one too few would never go off.
        try:
            self._object.objects.alarms.expect(self._object.id, time)
        except sqlite3.Error as error:
            raise DurableObjectError(f"the alarm cannot be noted: {self.explain(error)}") from error
        self.change("INSERT OR REPLACE INTO _cf_ALARM VALUES (1, ?, ?, 0, ?)", (time, time, secrets.token_hex(8)))

    def remove_alarm(self) -> None:
        """Delete the alarm."""
        self.change("DELETE FROM _cf_ALARM", ())

    def postpone(self, row: AlarmRow, time: int | None, *, retries: int = 0) -> None:
        """Move an alarm, or delete it where `time` is None, unless it was set anew meanwhile."""
        connection = self._object.objects.database(self._object.id).connection
        if time is None:
            connection.execute("DELETE FROM _cf_ALARM WHERE mark = ?", (row.mark,))
        else:
            connection.execute("UPDATE _cf_ALARM SET time = ?, retries = ? WHERE mark = ?", (time, retries, row.mark))

    def plan_alarm(self) -> None:
        """Look for the alarm that is set: after a transaction or a reset it may be another than was expected."""
        row = self.read_alarm()
        if row is not None:
            self._object.objects.alarms.plan(self._object.id, row.time)
