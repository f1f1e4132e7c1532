"""One object's database, and the rows in it: its keys and values, and its alarm.

Writes without waiting in between are kept together, or lost together. Storage never lets another call in between, since
no storage method waits for anything (the platform's input gate, by construction). Where writes cannot be kept, the
object is reset: every call that runs fails, whatever it would have answered, and the object is made anew.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from core.backends.embedded.clone import load
from core.backends.embedded.d1 import Engine
from core.backends.embedded.disk import StoreBusyError, store_error
from core.backends.embedded.durable_object.alarms import AlarmRow, AlarmSchedule
from core.backends.embedded.durable_object.arguments import MAX_VALUE, reset_error
from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.durable_object.sockets import ObjectSockets
from core.backends.embedded.keys import after_prefix
from core.backends.embedded.store import Database, is_busy
from core.bindings.durable_object import DurableObject
from core.context import Clock
from core.errors import DurableObjectError, DurableObjectTypeError, DurableObjectValueError

T = TypeVar("T")

_log = logging.getLogger("core.durable_object")


AroundAlarm: TypeAlias = Callable[[str, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Takes the name of an object's class, and what runs its alarm."""


class Home(Protocol):
    """The objects of a namespace, as one of them sees them. See `Objects`."""

    cls: type[DurableObject[Any]]
    clock: Clock
    alarms: AlarmSchedule
    around_alarm: AroundAlarm | None

    def database(self, id: ObjectId) -> Database: ...
    def make(self, living: Any, /) -> DurableObject[Any]: ...
    def sockets(self, id: ObjectId, /) -> ObjectSockets: ...
    def forget(self, living: Any, /) -> None: ...


class Living(Protocol):
    """An object that lives, as its storage sees it. See `LiveObject`."""

    id: ObjectId
    broken: BaseException | None

    @property
    def objects(self) -> Home: ...
    def reset(self, why: BaseException, /) -> None: ...
    async def turn(self) -> None: ...
    async def exclusively(self, action: Callable[[], Awaitable[T]], /) -> T: ...


class ObjectRecords:
    """The database of a live object, the transactions that are open in it, and its rows: keys, values and the alarm."""

    def __init__(self, living: Living) -> None:
        self._object = living
        self._open: Database | None = None
        self._commit_soon: asyncio.Handle | None = None
        self._transactions = 0
        # True while something is written that is not kept yet, as far as SQLite has not undone it by itself.
        self.is_writing: bool = False
        # The mark of the alarm whose handler runs: it does not count as set.
        self.firing: str | None = None

    @property
    def _database(self) -> Database:
        if self._object.broken is not None:
            raise reset_error(self._object.broken)
        if self._open is None:
            self._open = self._object.objects.database(self._object.id)
        return self._open

    @property
    def engine(self) -> Engine:
        engine: Engine = self._database.engine
        return engine

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        try:
            return self._database.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self.failed(error) from error

    def change(self, sql: str, *values: Sequence[object]) -> int:
        """Run a statement of ours that writes, once for each of `values`, and return how many rows changed."""
        self.writing()
        try:
            return max(0, self._database.connection.executemany(sql, values).rowcount)
        except sqlite3.Error as error:
            raise self.failed(error) from error

    def writing(self) -> None:
        """Begin the transaction that keeps writes without waiting in between together, unless it has begun."""
        if not self.is_writing:
            self._run("BEGIN IMMEDIATE")
            self.is_writing = True
            self._commit_soon = asyncio.get_running_loop().call_soon(self.commit_idle)

    def commit_idle(self) -> None:
        """Keep the writes, with nobody waiting for it but the calls that a failure ends."""
        try:
            self.commit()
        except DurableObjectError:
            _log.exception("the writes of the object %s are lost", self._object.id.name or self._object.id)

    def commit(self) -> None:
        """Keep the writes, unless a transaction of the application's is still open.

        Raises DurableObjectError where that is not possible: the object is reset then, and all of it is gone.
        """
        if self._commit_soon is not None:
            self._commit_soon.cancel()
            self._commit_soon = None
        if self.is_writing and not self._transactions:
            try:
                self._database.connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self.lost(error) from error
            self.is_writing = False

    def failed(self, error: sqlite3.Error) -> DurableObjectError:
        """The error to raise for one of SQLite's. Where SQLite gave up the whole transaction, the object is reset."""
        if self.is_writing and not self._database.connection.in_transaction:
            return self.lost(error)
        return DurableObjectError(self.explain(error))

    def lost(self, error: sqlite3.Error) -> DurableObjectError:
        """Reset the object, whose writes are gone. Returns the error to raise."""
        why = self.explain(error)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CONSTRAINT:
            lost = DurableObjectError(
                "Durable Object was reset and rolled back to its last known good state because the application left "
                f"the database in a state where constraints were violated: {why}"
            )
        else:
            lost = DurableObjectError(f"Durable Object was reset because its writes could not be kept: {why}")
        self._object.reset(lost)
        return lost

    def explain(self, error: sqlite3.Error) -> str:
        location = self._database.location
        found = StoreBusyError(location, self._database.timeout) if is_busy(error) else store_error(location, error)
        return self.engine.explain(error) if found is None else f"{found.reason}: {found.code}. {found}"

    def discard(self) -> None:
        """Undo the writes that were not kept, and close for good."""
        if self._commit_soon is not None:
            self._commit_soon.cancel()
            self._commit_soon = None
        database, self._open = self._open, None
        self.is_writing = False
        self._transactions = 0
        if database is not None and database.connection.in_transaction:
            database.connection.execute("ROLLBACK")

    def begin(self) -> str:
        """Begin a transaction of the application's, within those there are, and return its savepoint."""
        self.writing()
        savepoint = f"_cf_savepoint_{self._transactions + 1}"
        self._run(f"SAVEPOINT {savepoint}")
        self._transactions += 1
        return savepoint

    def end(self, savepoint: str, *, undo: bool) -> None:
        """Keep or undo the writes since the savepoint."""
        if undo and self._object.broken is not None:
            return  # a reset has undone everything, and planned the alarm
        release = f"RELEASE {savepoint}"
        self._run(*((f"ROLLBACK TO {savepoint}", release) if undo else (release,)))
        self._transactions -= 1
        self.commit()
        self.plan_alarm()

    def _run(self, *statements: str) -> None:
        try:
            for statement in statements:
                self._database.connection.execute(statement)
        except sqlite3.Error as error:
            raise self.failed(error) from error

    # ------------------------------------------------------------------ keys and values

    def read(self, raw: bytes, missing: object = None) -> object:
        found = self.rows("SELECT value FROM _cf_KV WHERE key = ?", (raw,))
        return load(found[0][0]) if found else missing

    def write(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Store values under keys that are in order, all or none."""
        for raw, data in pairs:
            if len(raw) + len(data) > MAX_VALUE:
                raise DurableObjectValueError(
                    f"Keys and values together cannot be larger than {MAX_VALUE} bytes. "
                    f"A pair of size {len(raw) + len(data)} was provided."
                )
        self.change("INSERT INTO _cf_KV VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", *pairs)

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
    ) -> Iterator[tuple[str, object]]:
        """Keys and values of a range, in the order of the keys' bytes."""
        if start is not None and start_after is not None:
            raise DurableObjectTypeError("list() cannot be called with both start and startAfter values.")
        if limit is not None and limit <= 0:
            raise DurableObjectTypeError("List limit must be positive.")
        raw = (prefix or "").encode("utf-8", "surrogatepass")
        bounds = [("key >= ?", start), ("key > ?", start_after), ("key < ?", end)]
        given = [(test, bound.encode("utf-8", "surrogatepass")) for test, bound in bounds if bound is not None]
        given += [("key >= ?", raw), ("key < ?", after_prefix(raw))]
        where = " AND ".join(test for test, _ in given)
        sql = f"SELECT key, value FROM _cf_KV WHERE {where} ORDER BY key{' DESC' if reverse else ''} LIMIT ?"
        for key, value in self.rows(sql, [*(bound for _, bound in given), -1 if limit is None else limit]):
            yield key.decode(), load(value)

    # ------------------------------------------------------------------ the alarm

    def read_alarm(self) -> AlarmRow | None:
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
        if self._object.objects.cls.alarm is DurableObject.alarm:
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
