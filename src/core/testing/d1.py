"""`FakeD1Database`: the embedded database in memory, with its migrations applied, a call log and faults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from core.backends.embedded.d1 import EmbeddedD1Database, EmbeddedD1PreparedStatement
from core.backends.embedded.d1.reads import RowsRead
from core.backends.embedded.migrations import apply_at_once
from core.backends.embedded.store import Store
from core.bindings.d1 import D1PreparedStatement
from core.calls import BindingCall, add_hook
from core.context import Clock, system_clock
from core.sql.migrations import read_migrations
from core.testing.calls import Call
from core.testing.faults import Faults, Faulty

__all__ = ["FakeD1Database"]


if TYPE_CHECKING:

    class _Engine(EmbeddedD1Database):
        def prepare(self, sql: str, /) -> D1PreparedStatement:  # type: ignore[override]  # with the types of its Protocol
            ...

else:
    _Engine = EmbeddedD1Database


class FakeD1Database(Faulty, _Engine):
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
        self,
        *,
        migrations: str | os.PathLike[str] | None = None,
        clock: Clock = system_clock,
        latency: float = 0.0,
    ) -> None:
        self.clock: Clock = clock
        self.faults: Faults = Faults(clock, latency=latency, record=_recorded)
        super().__init__(Store(clock=clock), "DB")
        self._reads = self.engine.reads = RowsRead(self.engine.database, clock)
        add_hook(self, self.faults, name="DB", kind="d1")
        if migrations is not None:
            apply_at_once(self, read_migrations(migrations))

    @property
    def rows_read(self) -> int:
        """The rows that all statements have read so far. Migrations do not count."""
        return self._reads.total


def _recorded(call: BindingCall) -> Call:
    """A statement's call has its text and values as arguments, and its own arguments, where it has any, as an
    option.
    """
    if call.method == "batch" and call.args and isinstance(call.args[0], (list, tuple)):
        given = cast("Sequence[object]", call.args[0])
        return Call("batch", ([(s.sql, s.values) if isinstance(s, EmbeddedD1PreparedStatement) else s for s in given],))
    if not call.target:
        return Call(call.method, call.args)
    args = tuple(value for value in (*call.args, *call.options.values()) if value is not None and value is not False)
    return Call(call.method, call.target, {"args": args} if args else {})
