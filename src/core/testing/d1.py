"""`FakeD1Database`: the embedded database in memory, with its migrations applied, a call log and faults."""

from __future__ import annotations

import os

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.migrations import apply_at_once, read
from core.backends.embedded.store import Store
from core.context import Clock, system_clock
from core.testing.faults import Faults, Faulty

__all__ = ["FakeD1Database"]


class FakeD1Database(Faulty, EmbeddedD1Database):
    """A `D1Database` in memory for tests, with the semantics of the embedded one.

        db = FakeD1Database(migrations="migrations")
        db.fail_next(D1Error("D1_ERROR: Network connection lost."))

    `migrations`: a folder of `*.sql` files to apply, in order. `clock`: what `CURRENT_TIMESTAMP` and `datetime('now')`
    follow. `latency`: seconds on the clock that every call takes.

    Recorded are the calls that reach the database: `Call("first", (sql, *values))`, `Call("batch", (queries,))` with
    `(sql, values)` for each statement, `Call("exec", (sql,))`.

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
        self.faults: Faults = Faults(clock, latency=latency)
        super().__init__(Store(clock=clock), "DB", gate=self.faults)
        if migrations is not None:
            apply_at_once(self, read(migrations))
