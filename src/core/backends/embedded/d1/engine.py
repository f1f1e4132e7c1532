"""Statements on one connection: the platform's layer around SQLite.

SQLite does the work. Decided here is where a transaction begins and ends, the measurements of a statement, and the
words of every error; the refusals are in `core.sql.rules`. Recordings of all of it are in `tests/traces`. A
Durable Object's SQL runs here too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from core.backends.embedded.d1.plans import Plan, Statement
from core.backends.embedded.d1.values import (
    AT_ONCE,
    Refused,
    from_sqlite,
    further_rows,
    name_of,
)
from core.backends.embedded.sql_dates import Dates
from core.backends.embedded.store import Database
from core.context import Clock, system_clock
from core.http.streams import well_formed
from core.sql.location import locate
from core.sql.rules import (
    LIMITS,
    MAX_SQL_BYTES,
    NO_EMPTY_STATEMENT,
    NO_STATEMENT,
    NO_TRANSACTION,
    NOT_AUTHORIZED,
    ONLY_LAST_HAS_PARAMETERS,
    TOO_LONG,
    WRONG_COUNT,
    absent_tables,
    allows,
    is_transaction,
    refused_default,
    renames_to_reserved,
)
from core.statements.tokens import StatementText, quoted

if TYPE_CHECKING:
    from core.backends.embedded.d1.reads import RowsRead

_KEPT_PLANS: Final = 1000
_CHANGES: Final = ("CREATE", "ALTER")
# How many rows may change until size_after is looked up again; a change of the schema is looked up at once.
_MEASURE_EVERY: Final = 100
# SQLite's own, between two looks at the time; most statements take none.
_STEPS: Final = 1_000_000

Answer: TypeAlias = "tuple[tuple[str, ...], list[tuple[Any, ...]], Numbers]"
Query: TypeAlias = tuple[str, tuple[Any, ...]]
Numbers: TypeAlias = tuple[float, int, int, bool, int, int, int]
"""Of the meta: duration, changes, last_row_id, changed_db, size_after, rows_read, rows_written."""

T = TypeVar("T")


def engine_of(database: Database, clock: Clock, *, of_object: bool = False) -> Engine:
    """The engine of a connection: its settings are the connection's, whoever asks."""
    if database.engine is None:
        # Its first reads may meet another process that sets the file up, or is the last to close it.
        database.engine = database.insist(lambda: Engine(database, clock, of_object=of_object))
    engine: Engine = database.engine
    return engine


class Engine:
    """Statements on one connection, each inside the platform's limits."""

    def __init__(self, database: Database, clock: Clock, *, of_object: bool = False) -> None:
        self.database = database
        self._infinite = of_object
        self._owner = "Durable Object" if of_object else "D1 DB"
        if of_object:
            # What runs inside a transaction of the object's is not run a second time.
            database.connection.text_factory = _decode
        self._clock = clock
        self._now = clock.monotonic
        self._connection = connection = database.connection
        self._plans: dict[str, Plan] = {}
        # Counts what may have changed the schema, or changed rows and taken it back.
        self._schema = 0
        self._statement: Statement | None = None
        self._last_row_id = 0
        self._bookmark = 0
        # Counts the rows that are read; without it they are taken to be those that are given back.
        self.reads: RowsRead | None = None
        self._unmeasured = 0
        self._denied_transaction = False
        # True if a statement that SQLite prepares is ours. It is not while a statement of the application runs, and
        # only then.
        self._trusted = True
        self.seconds: float = 30.0
        """The longest that a statement may run, as on the platform: nothing else of the process runs meanwhile."""
        self.megabytes: int = 128 if of_object else 50
        """The most that a result may be: https://developers.cloudflare.com/d1/platform/limits/; an object's memory."""
        self._since: float | None = None
        self.keep_time()
        for limit, value in LIMITS.items():
            connection.setlimit(limit, value)
        connection.execute("PRAGMA foreign_keys = ON")
        if hasattr(connection, "setconfig"):
            _harden(connection)
        self._dates = None if clock is system_clock else Dates(connection, clock)
        self._page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
        self._size = self._measure()
        connection.set_authorizer(self._authorize)

    def keep_time(self, connection: sqlite3.Connection | None = None) -> None:
        """Have a statement ended that takes too long from now on, on a connection beside this one too."""
        self._since = None
        (connection or self._connection).set_progress_handler(self._is_too_long, _STEPS)

    def _is_too_long(self) -> bool:
        now = monotonic()
        if self._since is None:
            self._since = now
        return now - self._since > self.seconds

    def next_bookmark(self) -> str:
        """A string that is later than every one before it, in the form that the platform's bookmarks have."""
        self._bookmark += 1
        return f"{int(self._clock.time()):08x}-{self._bookmark:08x}-{self._size:08x}-{self._last_row_id:032x}"

    def single(self, sql: str, values: tuple[object, ...]) -> Answer:
        """Run one text, in a transaction of its own."""
        plan = self._plans.get(sql) or self.plan(sql)
        if not (plan.reading and plan.alone):
            # A statement that writes may fail in the middle: ON CONFLICT FAIL and RAISE(FAIL) keep its rows so far.
            return self.transaction([(sql, values)])[0]
        try:
            return self._run(plan.statements[0], values, True)
        except sqlite3.OperationalError as error:
            return self._again(error, partial(self._run, plan.statements[0], values, True))

    def transaction(self, queries: Sequence[Query]) -> list[Answer]:
        """Run texts in one transaction. Blank ones are left out; none at all is refused."""
        plans = [
            (plan, values) for plan, values in ((self.plan(sql), values) for sql, values in queries) if not plan.blank
        ]
        if not plans:
            raise Refused(NO_STATEMENT)
        write = not all(plan.reading for plan, _ in plans)

        def run() -> list[Answer]:
            with self.database.transaction(write=write):
                if self.reads is not None:
                    self.reads.begin()
                return [self._query(plan, values) for plan, values in plans]

        try:
            return run()
        except sqlite3.OperationalError as error:
            # Everything was taken back, so that it can be done again.
            return self._again(error, run)
        finally:
            # What is taken back of several statements leaves no other mark.
            self._schema += len(plans) > 1 or not plans[0][0].alone

    def inside(self, sql: str, values: tuple[object, ...]) -> Answer:
        """Run one text inside a transaction of the caller's. The work before a statement that fails stays done."""
        return self._query(self.plan(sql), values)

    def execute(self, piece: StatementText) -> None:
        """Run one statement of the application's inside a transaction of the caller's, for a migration."""
        if len(piece.text.encode("utf-8", "replace")) > MAX_SQL_BYTES:
            raise Refused(TOO_LONG)
        self._schema += 1
        statement = Statement(piece)
        self._start(statement)
        self._judge_dates(statement)

    @contextmanager
    def _judged(self, statement: Statement) -> Generator[None]:
        """Undo what a test's clock may not tell the time in: a change of the schema, or rows."""
        dates = self._dates
        if dates is None or not (dates.suspects or statement.piece.keyword in _CHANGES):
            yield
            return
        dates.asked = False
        self._connection.execute("SAVEPOINT _cf_schema")
        try:
            yield
            self._judge_dates(statement)
        except BaseException:
            self._connection.execute("ROLLBACK TO _cf_schema")
            raise
        finally:
            self._connection.execute("RELEASE _cf_schema")

    def clear(self) -> None:
        """Drop everything there is, in one transaction: another process that has the database open goes on with it."""
        connection = self._connection
        connection.execute("PRAGMA foreign_keys = OFF")
        try:
            with self.database.transaction():
                drop_all(connection)
        finally:
            connection.execute("PRAGMA foreign_keys = ON")
            self._schema += 1
            self._size = self._measure()

    def _judge_dates(self, statement: Statement) -> None:
        """After a change of the schema or of rows: where may a test's clock not tell the time?"""
        dates = self._dates
        if dates is None:
            return
        refusal = dates.judge() if statement.piece.keyword in _CHANGES else dates.found() if dates.asked else None
        if refusal is not None:
            raise Refused(f"{refusal}: SQLITE_ERROR")

    def plan(self, sql: str) -> Plan:
        """Facts about a text: those of the last texts are kept."""
        plan = self._plans.get(sql)
        if plan is None:
            if len(self._plans) >= _KEPT_PLANS:
                self._plans.pop(next(iter(self._plans)))
            plan = self._plans[sql] = Plan(sql)
        return plan

    def _query(self, plan: Plan, values: tuple[object, ...]) -> Answer:
        """Run one text inside the transaction there is."""
        if plan.too_long:
            self._statement = None
            raise Refused(TOO_LONG)
        if not plan.statements:
            raise Refused(NO_EMPTY_STATEMENT)
        if plan.alone:
            if plan.reading or self._dates is None:
                return self._run(plan.statements[0], values, plan.reading)
            with self._judged(plan.statements[0]):
                return self._run(plan.statements[0], values, False)
        connection = self._connection
        version, changes = self._schema_version(), connection.total_changes
        for statement in plan.statements[:-1]:
            if statement.piece.parameters:
                raise Refused(ONLY_LAST_HAS_PARAMETERS)
            with self._judged(statement):
                self._start(statement)
        changes = connection.total_changes - changes
        with self._judged(plan.statements[-1]):
            columns, rows, numbers = self._run(plan.statements[-1], values, plan.reading)
        if not plan.reading:
            size, self._size = self._size, self._measure()
            changed = numbers[3] or changes != 0 or size != self._size or version != self._schema_version()
            changes += numbers[1]
            numbers = (numbers[0], changes, numbers[2], changed, self._size, numbers[5], changes)
        return columns, rows, numbers

    def _run(self, statement: Statement, values: tuple[object, ...], reading: bool) -> Answer:
        """Run one statement. Every query waits for it, so it calls little and looks up nothing twice."""
        connection = self._connection
        now = self._now
        # Nothing changes for one that reads: it is counted once it has come to its end.
        counted = None if self.reads is None or reading else self.reads.count(statement, values, self._schema)
        started = now()
        before = 0 if reading else connection.total_changes
        cursor: sqlite3.Cursor | None = None
        self._since = None
        self._trusted = False
        try:
            if statement.plain and statement.unchecked:
                # As `_execute` has it, without the call.
                self._statement = statement
                try:
                    cursor = connection.execute(statement.sql, values)
                except UnicodeEncodeError:
                    cursor = self._execute(statement, values)
            else:
                cursor = self._execute(statement, values)
            described = cursor.description
            columns: tuple[str, ...]
            if described is None:
                columns, rows = (), []
            else:
                columns = tuple([column[0] for column in described])
                if statement.written:
                    columns = statement.as_written(columns)
                infinite = self._infinite
                rows = from_sqlite(cursor.fetchmany(AT_ONCE), infinite)
                if len(rows) == AT_ONCE:
                    for part in further_rows(cursor, rows, self.megabytes, self._owner):
                        rows += from_sqlite(part, infinite)
        except BaseException:
            self._trusted = True
            # A statement that is still in the middle of its rows would keep the transaction from its end.
            if cursor is not None:
                cursor.close()
            # One that failed may have moved it all the same.
            self._last_row_id = connection.execute("SELECT last_insert_rowid()").fetchone()[0]
            raise
        self._trusted = True
        duration = (now() - started) * 1000
        last_row_id = cursor.lastrowid or 0
        read = len(rows)
        if self.reads is not None:
            counted = self.reads.count(statement, values, self._schema) if reading else counted
            read = self.reads.note(statement, counted, read)
        if reading:
            self._last_row_id = last_row_id
            return columns, rows, (duration, 0, last_row_id, False, self._size, read, 0)
        changes = connection.total_changes - before
        changed = changes != 0 or last_row_id != self._last_row_id
        self._last_row_id = last_row_id
        self._unmeasured += changes
        if self._unmeasured >= _MEASURE_EVERY:
            self._size = self._measure()
        return columns, rows, (duration, changes, last_row_id, changed, self._size, read, changes)

    def _start(self, statement: Statement) -> None:
        """Take one step of a statement, as the platform does where its rows are nobody's."""
        self._since = None
        self._trusted = False
        try:
            self._execute(statement, ()).close()
        finally:
            self._trusted = True

    def _execute(self, statement: Statement, values: tuple[object, ...]) -> sqlite3.Cursor:
        self._statement = statement
        if not statement.unchecked:
            if not statement.piece.tokens:
                raise Refused(NO_EMPTY_STATEMENT)
            if renames_to_reserved(statement.piece):
                raise Refused(NOT_AUTHORIZED)
            self._check_absent(statement)
        try:
            return self._connection.execute(statement.sql, values if statement.plain else statement.bindings(values))
        except UnicodeEncodeError:
            # Half a surrogate pair has no UTF-8; the platform writes U+FFFD for it.
            whole = tuple([well_formed(v) if isinstance(v, str) else v for v in values])
            return self._connection.execute(well_formed(statement.sql), statement.bindings(whole))

    def _check_absent(self, statement: Statement) -> None:
        """Refuse tables that this SQLite may bring along and the platform's does not, unless somebody made one."""
        default = refused_default(statement.piece)
        if default is not None:
            raise Refused(f"not authorized to use function: {default.name}: SQLITE_ERROR")
        for token in absent_tables(statement.piece) if statement.piece.keyword != "WITH" else ():
            self._trusted = True
            made = self._connection.execute("SELECT 1 FROM sqlite_master WHERE lower(name) = lower(?)", (token.name,))
            found = made.fetchone()
            self._trusted = False
            if found is None:
                raise Refused(f"no such table: {token.name}: SQLITE_ERROR")

    def _again(self, error: sqlite3.OperationalError, run: Callable[[], T]) -> T:
        """Run a second time what met text that is not UTF-8, and read it with U+FFFD from now on, which takes longer.

        Raises any other error.
        """
        if not str(error).startswith("Could not decode to UTF-8"):
            raise error
        self._connection.text_factory = _decode
        return run()

    def _schema_version(self) -> int:
        version: int = self._connection.execute("PRAGMA schema_version").fetchone()[0]
        return version

    def _measure(self) -> int:
        """The bytes of the database."""
        self._unmeasured = 0
        pages: int = self._connection.execute("PRAGMA page_count").fetchone()[0]
        return pages * self._page_size

    # ------------------------------------------------------------------ the words of an error

    def explain(self, error: sqlite3.Error) -> str:
        """SQLite's message as the platform gives it, with the place and the code."""
        message = str(error)
        # Errors of the sqlite3 module itself have no code of SQLite's.
        code: int | None = getattr(error, "sqlite_errorcode", None)
        if code is None:
            return (
                WRONG_COUNT if message.startswith(("Incorrect number of bindings", "You did not supply")) else message
            )
        if self._denied_transaction:
            self._denied_transaction = False
            return NO_TRANSACTION
        if self._dates is not None and self._dates.denied is not None:
            message, self._dates.denied = self._dates.denied, None
            return f"{message}: SQLITE_ERROR"
        token = None if self._statement is None else locate(self._statement.piece, message)
        if token is not None and self._statement is not None:
            message += f" at offset {len(self._statement.piece.text[: token.start].encode('utf-8', 'replace'))}"
        extended = name_of(error)
        if extended == "SQLITE_INTERRUPT":
            message += (
                f" after {self.seconds:g} s, the most that a statement may take: one that has no end needs a LIMIT"
            )
        # SQLITE_CONSTRAINT of SQLITE_CONSTRAINT_UNIQUE.
        name = "_".join(extended.split("_")[:2])
        return f"{message}: {name}" if name == extended else f"{message}: {name} (extended: {extended})"

    # ------------------------------------------------------------------ statements that are allowed

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, _: str | None
    ) -> int:
        if self._trusted or allows(action, first, second, database):
            if self._dates is not None and action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE):
                return self._dates.allow(first or "")
            return sqlite3.SQLITE_OK
        self._denied_transaction = self._denied_transaction or is_transaction(action)
        return sqlite3.SQLITE_DENY


def _harden(connection: sqlite3.Connection) -> None:
    """Set the options of SQLite that Python 3.12 can set, as the platform has them: a name in double quotes that names
    nothing is a string, and SQLite's own tables are not to be edited.
    """
    settings: Any = sqlite3
    whole: Any = connection
    for name in ("DQS_DML", "DQS_DDL", "DEFENSIVE"):
        whole.setconfig(getattr(settings, f"SQLITE_DBCONFIG_{name}"), True)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def drop_all(connection: sqlite3.Connection) -> None:
    """Drop everything but the platform's own tables, inside a transaction."""
    for kind, name in connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger', 'table')"
        " AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        # A virtual table takes its shadows with it, so it goes before them.
        " ORDER BY type = 'table', sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall():
        connection.execute(f"DROP {kind} IF EXISTS {quoted(name)}")
