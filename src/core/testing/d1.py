"""`FakeD1Database`: the embedded database in memory, with its migrations applied, a call log and faults."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from core.backends.embedded.d1 import EmbeddedD1Database, EmbeddedD1PreparedStatement, EmbeddedD1Session
from core.backends.embedded.d1.engine import Answer
from core.backends.embedded.d1.reads import RowsRead
from core.backends.embedded.migrations import apply_at_once
from core.backends.embedded.store import Store
from core.bindings.calls import BindingCall, Proceed, add_hook
from core.context import Clock, system_clock
from core.sql.migrations import read_migrations
from core.testing import seam
from core.testing.calls import Call, Faulty


class FakeD1Database(Faulty, EmbeddedD1Database):
    """A `D1Database` in memory for tests, with the semantics of the embedded one.

        db = FakeD1Database(migrations="migrations")
        db.fail_next(D1Error("D1_ERROR: Network connection lost."))

    `migrations`: a folder of `*.sql` files to apply, in order. `clock`: what `CURRENT_TIMESTAMP` and `datetime('now')`
    follow. `latency`: seconds on the clock that every call takes.

    Recorded are the calls that reach the database: `Call("first", (sql, *values))`, `Call("batch", (queries,))` with
    `(sql, values)` for each statement, `Call("exec", (sql,))`.

    `rows_read` is the number of rows that statements have read so far, which a database bills: those that their plans
    visit, and those that an ORDER BY without an index sorts. A test holds a budget with it:

        before = db.rows_read
        await client.get("/orders")
        assert db.rows_read - before <= 20

    Raises FileNotFoundError for a folder that is missing and `MigrationError` for a file that fails.
    """

    def __init__(
        self, *, migrations: str | os.PathLike[str] | None = None, clock: Clock = system_clock, latency: float = 0.0
    ) -> None:
        super().__init__(Store(clock=clock), "DB")
        self._versions: _Versions | None = None
        if "replica" in seam.running.faults:
            self._versions = _Versions(self)
            add_hook(self, self._versions, name="DB", kind="d1")
        self._reads = self.engine.reads = RowsRead(self.engine.database, clock)
        self._begin("DB", "d1", clock, latency)
        if migrations is not None:
            apply_at_once(self, read_migrations(migrations))

    @property
    def rows_read(self) -> int:
        """The rows that all statements have read so far. Migrations do not count."""
        return self._reads.total

    def with_session(self, constraint_or_bookmark: str | None = None, /) -> EmbeddedD1Session:
        """Return a session. See `D1Database.with_session`."""
        session = super().with_session(constraint_or_bookmark)
        if self._versions is None:
            return session
        at_primary = constraint_or_bookmark is not None and constraint_or_bookmark.strip() == "first-primary"
        return _LateSession(self, session.get_bookmark(), self._versions, at_primary)

    def _recorded(self, call: BindingCall) -> Call:
        """A statement's call has its text and values as arguments, and its own arguments as an option."""
        if call.method == "batch" and call.args and isinstance(call.args[0], (list, tuple)):
            given = cast("Sequence[object]", call.args[0])
            return Call(
                "batch", ([(s.sql, s.values) if isinstance(s, EmbeddedD1PreparedStatement) else s for s in given],)
            )
        if not call.target:
            return Call(call.method, call.args)
        args = tuple(
            value for value in (*call.args, *call.options.values()) if value is not None and value is not False
        )
        return Call(call.method, call.target, {"args": args} if args else {})


class _Versions:
    """What a database was after each of its writes: a replica may be at any of them. It is a hook of its calls."""

    def __init__(self, database: EmbeddedD1Database) -> None:
        self._database = database
        self._newest: object = None
        self._snapshots: list[bytes] = []
        self._copies: dict[int, EmbeddedD1Database] = {}
        self.of_bookmark: dict[str, int] = {}

    async def __call__(self, call: BindingCall, proceed: Proceed, /) -> object:
        self.newest()
        answer = await proceed()
        self.newest()
        return answer

    def newest(self) -> int:
        """The number of the version that the database is at."""
        connection = self._database._database.connection
        state = (connection.total_changes, connection.execute("PRAGMA schema_version").fetchone())
        if state != self._newest:
            self._newest = state
            self._snapshots.append(b"")
            with suppress(sqlite3.OperationalError):  # a database that nothing was ever written to
                self._snapshots[-1] = connection.serialize()
        return len(self._snapshots) - 1

    def copy(self, number: int) -> EmbeddedD1Database:
        """The database as it was at a version."""
        copy = self._copies.get(number)
        if copy is None:
            copy = self._copies[number] = EmbeddedD1Database(Store(clock=self._database._clock), "DB")
            if self._snapshots[number]:
                copy._database.connection.deserialize(self._snapshots[number])
        return copy


class _LateSession(EmbeddedD1Session):
    """A session whose reads a replica may answer: one that has all that the session has seen and written."""

    def __init__(
        self, database: EmbeddedD1Database, bookmark: str | None, versions: _Versions, at_primary: bool
    ) -> None:
        super().__init__(database, bookmark)
        self._versions = versions
        # The version before which it does not go back; None where its first statement asks the primary database.
        self._seen: int | None = None if at_primary else 0
        if bookmark is not None:
            self._seen = versions.of_bookmark.get(bookmark)

    async def answer(self, statement: EmbeddedD1PreparedStatement[Any]) -> Answer:
        """Run a statement of the session, on a replica where one answers."""
        replica = self.copy() if self._database.engine.plan(statement.sql).reading else None
        return await (super().answer(statement) if replica is None else replica.answer(statement))

    def copy(self) -> EmbeddedD1Database | None:
        """The replica that answers the next read; None for the primary database."""
        newest = self._versions.newest()
        seen = self._seen
        if seen is None or not (late := seam.running.draw("replica", newest - seen + 1)):
            return None
        self._moved(newest - late)
        return self._versions.copy(newest - late)

    def _moved(self, to: int | None = None) -> None:
        super()._moved()
        self._seen = self._versions.newest() if to is None else to
        assert self._bookmark is not None
        self._versions.of_bookmark[self._bookmark] = self._seen
