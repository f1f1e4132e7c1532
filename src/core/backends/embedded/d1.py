"""The embedded SQL database: the platform's semantics over one SQLite database of its own.

SQLite does the work. Decided here is what the platform puts around it: what is refused, how values go in and
come out, where a transaction begins and ends, and the words of every error. Recordings of all of it are in
`tests/traces`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import sqlite3
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, TypeVar, cast, overload

from core.backends.embedded.sql import MAX_PARAMETER, Piece, locate, split
from core.backends.embedded.store import Database, Gate, Store, StoreBusyError, is_busy
from core.bindings.d1 import D1ExecResult, D1Meta, D1Result, D1Row, D1Value
from core.context import Clock, system_clock
from core.errors import D1Error, D1TypeError

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["EmbeddedD1Database", "EmbeddedD1PreparedStatement", "EmbeddedD1Session", "Engine", "Refused"]

T = TypeVar("T")

SERVED_BY: Final = "core.embedded"
MAX_SQL: Final = 100_000
MAX_SAFE_INTEGER: Final = 2**53 - 1

# https://developers.cloudflare.com/d1/platform/limits/ and the recordings, where those say more.
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 2_000_000,
    # One more for the blank that a statement of ours never begins with (_Step).
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_SQL + 1,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 5,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 32,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

# These begin and end their own transaction in SQLite. Everything else runs inside one of ours, so that a PRAGMA
# or VACUUM does what it does inside the platform's.
_ALONE: Final = frozenset({"SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"})
_READING: Final = frozenset({"SELECT", "VALUES", "EXPLAIN"})
_KEPT_PLANS: Final = 1000
# How many rows may change until size_after is looked up again; a change of the schema is looked up at once.
_MEASURE_EVERY: Final = 100

_SPACE: Final = " \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_TRIM: Final = "".join(chr(code) for code in range(0x2000, 0x200B)) + _SPACE.replace("\u2000-\u200a", "")
_COMMENT_LINE: Final = re.compile(rf"(?:^|(?<=[\r\u2028\u2029]))[{_SPACE}]+--[^\n\r\u2028\u2029]*", re.MULTILINE)
_NO_TRANSACTION: Final = (
    "To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs "
    "instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. The JavaScript API is safer because it will "
    "automatically roll back on exceptions, and because it interacts correctly with Durable Objects' automatic "
    "atomic write coalescing."
)
_NOTHING: Final = "No SQL statements detected."
_NO_STATEMENT: Final = "SQL code did not contain a statement."
_WRONG_COUNT: Final = "Wrong number of parameter bindings for SQL query."
_ONLY_LAST: Final = (
    "When executing multiple SQL statements in a single call, only the last statement can have parameters."
)

Answer: TypeAlias = "tuple[list[str], list[tuple[Any, ...]], _Numbers]"
Query: TypeAlias = tuple[str, tuple[Any, ...]]


class Refused(Exception):
    """A statement was refused, with the platform's message, before or instead of by SQLite."""


class _Step:
    """One statement of a text, ready to run."""

    __slots__ = ("checked", "empty", "keys", "order", "piece", "plain", "sql")

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.empty = not piece.words
        self.sql = piece.text
        # Python's sqlite3 takes a sequence for plain question marks alone, from 3.14 on at the latest, and a dict where
        # every parameter has a name or a number. What mixes them is run with question marks, each given its value.
        self.order: list[int] | None = None
        self.keys: list[str] | None = None
        if any(token.text != "?" for token in piece.parameters) and not _beyond(piece):
            sql, order = _plain(piece)
            keys = {place: token.text[1:] for place, token in zip(order, piece.parameters, strict=True)}
            if "" in keys.values() or len(keys) <= max(order) or len(set(keys.values())) < len(keys):
                self.sql, self.order = sql, order
            else:
                self.keys = [keys[place] for place in range(len(keys))]
        self.plain = self.order is None and self.keys is None
        # None of our own statements begins with a blank, so that the sqlite3 module never takes one of ours, which the
        # authorizer let pass ("COMMIT"), for the application's: it keeps what it prepared, by the exact text.
        self.sql = f" {self.sql}"
        # The state of the schema that its names in double quotes were checked against.
        self.checked = -1 if self.empty or piece.has_double_quotes else sys.maxsize

    def bindings(self, values: tuple[Any, ...]) -> Any:
        """`values` as the sqlite3 module wants them."""
        if self.keys is not None:
            if len(values) != len(self.keys):
                raise Refused(_WRONG_COUNT)
            return dict(zip(self.keys, values, strict=True))
        if self.order is None:
            return values
        if len(values) != max(self.order) + 1:
            raise Refused(_WRONG_COUNT)
        return tuple([values[place] for place in self.order])


class _Plan:
    """What is known of a text of SQL before it runs."""

    __slots__ = ("alone", "blank", "reading", "steps", "too_long")

    def __init__(self, sql: str) -> None:
        self.blank = not _COMMENT_LINE.sub("", sql).strip(_TRIM)
        self.too_long = len(sql) * 4 > MAX_SQL and len(sql.encode("utf-8", "replace")) > MAX_SQL
        pieces = [] if self.blank or self.too_long else split(sql)
        self.steps = [_Step(piece) for piece in pieces]
        keywords = {piece.keyword for piece in pieces}
        words = {token.text.upper() for piece in pieces for token in piece.words}
        self.reading = bool(pieces) and keywords <= _READING
        # OR FAIL keeps what it did before it failed, and a row that cannot be decoded is read twice: both need
        # a transaction to take the rest back.
        self.alone = len(pieces) == 1 and keywords <= _ALONE and not words & {"FAIL", "RETURNING"}


class EmbeddedD1PreparedStatement:
    """A statement of an embedded database. See `D1PreparedStatement`."""

    __slots__ = ("_database", "_session", "sql", "values")

    def __init__(
        self,
        database: EmbeddedD1Database,
        sql: str,
        values: tuple[Any, ...] = (),
        session: EmbeddedD1Session | None = None,
    ) -> None:
        self._database = database
        self._session = session
        self.sql: str = sql
        self.values: tuple[Any, ...] = values

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sql!r} {self.values!r}>"

    def bind(self, *values: D1Value) -> EmbeddedD1PreparedStatement:
        """Return a new statement with `values`. See `D1PreparedStatement.bind`."""
        bound: list[Any] = []
        value: Any
        for value in values:
            # The most usual kinds first: this runs before every query.
            kind = value.__class__
            if kind is str or value is None:
                bound.append(value)
            elif kind is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                bound.append(float(value))
            else:
                bound.append(_bindable(value))
        return EmbeddedD1PreparedStatement(self._database, self.sql, tuple(bound), self._session)

    @overload
    async def first(self, /) -> D1Row | None: ...
    @overload
    async def first(self, column: str, /) -> Any: ...
    @overload
    async def first(self, type_: TypeForm[T], /) -> T | None: ...
    async def first(self, what: Any = None, /) -> Any:
        """Return the first row, its column, or the row as a `T`. See `D1PreparedStatement.first`."""
        columns, rows, _ = await self._database._answer(self, "first", () if what is None else (what,))
        if not rows:
            return None
        row = dict(zip(columns, rows[0], strict=True))
        if what is None:
            return row
        if isinstance(what, str):
            if what not in row:
                message = f"D1_COLUMN_NOTFOUND: Column not found ({what})"
                raise _error("", message, cause="Column not found")
            return row[what]
        from core.structure import structure_row

        return structure_row(row, what)

    @overload
    async def all(self, /) -> D1Result[D1Row]: ...
    @overload
    async def all(self, type_: TypeForm[T], /) -> D1Result[T]: ...
    async def all(self, type_: Any = None, /) -> Any:
        """Return every row. See `D1PreparedStatement.all`."""
        answer = await self._database._answer(self, "all", () if type_ is None else (type_,))
        result = _result(answer)
        if type_ is None:
            return result
        from core.structure import structure_rows

        return D1Result(structure_rows(result.results, type_), result.meta)

    async def run(self) -> D1Result[D1Row]:
        """Run the statement. See `D1PreparedStatement.run`."""
        database = self._database
        if database._gate is not None:
            return _result(await database._answer(self, "run", ()))
        # As `_answer` has it, without a coroutine more: most writes are runs, and most end here.
        try:
            answer = database.engine.single(self.sql, self.values)
        except (Refused, sqlite3.Error) as error:
            answer = await database._failed(self, error)
        if self._session is not None:
            self._session._moved()
        return _result(answer)

    async def raw(self, column_names: bool = False) -> list[list[Any]]:
        """Return every row as a list of its values. See `D1PreparedStatement.raw`."""
        columns, rows, _ = await self._database._answer(self, "raw", (column_names,) if column_names else ())
        lists = [list(row) for row in rows]
        return [columns, *lists] if column_names else lists


class EmbeddedD1Session:
    """A session of an embedded database, which has one copy and is never behind. See `D1DatabaseSession`."""

    __slots__ = ("_bookmark", "_database")

    def __init__(self, database: EmbeddedD1Database, bookmark: str | None) -> None:
        self._database = database
        self._bookmark = bookmark

    def prepare(self, sql: str, /) -> EmbeddedD1PreparedStatement:
        """Return a statement of this session."""
        return EmbeddedD1PreparedStatement(self._database, _text(sql), session=self)

    async def batch(self, statements: Sequence[Any], /) -> list[D1Result[D1Row]]:
        """Run statements in one transaction. See `D1Database.batch`."""
        results = await self._database.batch(statements)
        self._moved()
        return results

    def get_bookmark(self) -> str | None:
        """Return where the session is, or None before anything ran."""
        return self._bookmark

    def _moved(self) -> None:
        self._bookmark = self._database._next_bookmark()


class EmbeddedD1Database:
    """The database `name` of `store`. Two objects of one name are one database.

    `gate` sees every call first, and may refuse it: how a fake records calls and injects faults.
    """

    def __init__(self, store: Store, name: str, *, gate: Gate | None = None) -> None:
        self._gate = gate
        self._clock = store.clock
        self._database: Database = store.database("d1", name)
        self.engine: Engine = engine_of(self._database, store.clock)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._database.place}>"

    def prepare(self, sql: str, /) -> EmbeddedD1PreparedStatement:
        """Return a statement for `sql`. See `D1Database.prepare`."""
        return EmbeddedD1PreparedStatement(self, sql if sql.__class__ is str else _text(sql))

    async def batch(self, statements: Sequence[Any], /) -> list[D1Result[D1Row]]:
        """Run statements in one transaction. See `D1Database.batch`."""
        queries = [(statement.sql, statement.values) for statement in _statements(statements)]
        if self._gate is not None:
            await self._gate("batch", (queries,), {})
        answers = await self._perform(lambda: self.engine.transaction(queries))
        return [_result(answer) for answer in answers]

    async def exec(self, sql: str, /) -> D1ExecResult:
        """Run a text line by line. See `D1Database.exec`."""
        lines = _text(sql).strip(_TRIM).split("\n")
        if self._gate is not None:
            await self._gate("exec", (sql,), {})
        prefix = f"D1_EXEC_ERROR: Error in line 1: {lines[0]}: "
        answers = await self._perform(lambda: self.engine.transaction([(line, ()) for line in lines]), prefix)
        return D1ExecResult(len(answers), sum(numbers[0] for _, _, numbers in answers))

    def with_session(self, constraint_or_bookmark: str | None = None, /) -> EmbeddedD1Session:
        """Return a session. See `D1Database.with_session`."""
        start = "" if constraint_or_bookmark is None else _text(constraint_or_bookmark).strip(_TRIM)
        return EmbeddedD1Session(self, None if start in ("", "first-primary", "first-unconstrained") else start)

    async def dump(self) -> bytes:
        """Fail, as on the platform, where this is gone; it is not part of `D1Database`."""
        raise _error("", "D1_DUMP_ERROR: Status + 404", cause="Status 404")

    async def _answer(self, statement: EmbeddedD1PreparedStatement, method: str, args: tuple[Any, ...]) -> Answer:
        """The answer to one statement."""
        sql, values = statement.sql, statement.values
        if self._gate is not None:
            await self._gate(method, (sql, *values), {"args": args} if args else {})
        try:
            answer = self.engine.single(sql, values)
        except (Refused, sqlite3.Error) as error:
            answer = await self._failed(statement, error)
        if statement._session is not None:
            statement._session._moved()
        return answer

    async def _failed(self, statement: EmbeddedD1PreparedStatement, error: Refused | sqlite3.Error) -> Answer:
        """The answer to a statement that failed once, where only another process stood in its way."""
        if isinstance(error, Refused):
            raise _error("D1_ERROR: ", str(error)) from None
        if not is_busy(error):
            raise _error("D1_ERROR: ", self.engine.explain(error)) from error
        return await self._perform(lambda: self.engine.single(statement.sql, statement.values))

    async def _perform(self, action: Callable[[], T], prefix: str = "D1_ERROR: ") -> T:
        """Do it as soon as other processes let us; every failure becomes the platform's."""
        try:
            return await self._database.patiently(action)
        except StoreBusyError as busy:
            raise _error(prefix, f"database is locked: SQLITE_BUSY. {busy}") from busy
        except Refused as refused:
            raise _error(prefix, str(refused)) from None
        except sqlite3.Error as error:
            raise _error(prefix, self.engine.explain(error)) from error

    def _next_bookmark(self) -> str:
        return self.engine.next_bookmark()


# ---------------------------------------------------------------------- running

_Numbers: TypeAlias = tuple[float, int, int, bool, int, int, int]
"""Of the meta: duration, changes, last_row_id, changed_db, size_after, rows_read, rows_written."""

_DECODING: Final = "Could not decode to UTF-8"


def engine_of(database: Database, clock: Clock) -> Engine:
    """The engine of a connection: its settings are the connection's, whoever asks."""
    if database.engine is None:
        database.engine = Engine(database, clock)
    engine: Engine = database.engine
    return engine


class Engine:
    """Statements on one connection, each inside what the platform allows."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self._clock = clock
        self._now = clock.monotonic
        self._connection = connection = database.connection
        self._plans: dict[str, _Plan] = {}
        # Counts the changes of the schema that this connection made.
        self._schema = 0
        self._step: _Step | None = None
        self._last_row_id = 0
        self._bookmark = 0
        self._unmeasured = 0
        self._denied_transaction = False
        # Whether what SQLite prepares is ours. It is not while a statement of the application runs, and only then.
        self._trusted = True
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        connection.execute("PRAGMA foreign_keys = ON")
        # Names in double quotes are names, never strings. Python 3.11 cannot tell SQLite so; see _check_quotes.
        self._lenient_quotes = not hasattr(connection, "setconfig")
        if not self._lenient_quotes:
            _harden(connection)
        if clock is not system_clock:
            _follow(connection, clock)
        self._page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
        self._size = self._measure()
        connection.set_authorizer(self._authorize)

    def next_bookmark(self) -> str:
        """A text that is later than every one before it, in the form that the platform's bookmarks have."""
        self._bookmark += 1
        return f"{int(self._clock.time()):08x}-{self._bookmark:08x}-{self._size:08x}-{self._last_row_id:032x}"

    def single(self, sql: str, values: tuple[Any, ...]) -> Answer:
        """Run one text, in a transaction of its own."""
        plan = self._plans.get(sql)
        if plan is None:
            plan = self._plan(sql)
        if not plan.alone:
            return self.transaction([(sql, values)])[0]
        try:
            return self._run(plan.steps[0], values, plan.reading)
        except sqlite3.OperationalError as error:
            if not str(error).startswith(_DECODING):
                raise
            with self._replacing_text():
                return self._run(plan.steps[0], values, plan.reading)

    def transaction(self, queries: Sequence[Query]) -> list[Answer]:
        """Run texts in one transaction. Blank ones are left out; none at all is refused."""
        plans = [
            (plan, values) for plan, values in ((self._plan(sql), values) for sql, values in queries) if not plan.blank
        ]
        if not plans:
            raise Refused(_NOTHING)
        write = not all(plan.reading for plan, _ in plans)
        try:
            with self.database.transaction(write=write):
                return [self._query(plan, values) for plan, values in plans]
        except sqlite3.OperationalError as error:
            if not str(error).startswith(_DECODING):
                raise
            # Everything was taken back, so that it can be done again.
            with self._replacing_text(), self.database.transaction(write=write):
                return [self._query(plan, values) for plan, values in plans]
        finally:
            if write:
                self._schema += 1

    def inside(self, sql: str, values: tuple[Any, ...]) -> Answer:
        """Run one text inside a transaction of the caller's."""
        try:
            return self._query(self._plan(sql), values)
        finally:
            self._schema += 1

    def execute(self, piece: Piece) -> None:
        """Run one statement of the application's inside a transaction of the caller's, for a migration."""
        if len(piece.text.encode("utf-8", "replace")) > MAX_SQL:
            raise Refused("statement too long: SQLITE_TOOBIG")
        self._schema += 1
        self._trusted = False
        try:
            self._execute(_Step(piece), ()).close()
        finally:
            self._trusted = True

    def _plan(self, sql: str) -> _Plan:
        plan = self._plans.get(sql)
        if plan is None:
            if len(self._plans) >= _KEPT_PLANS:
                self._plans.pop(next(iter(self._plans)))
            plan = self._plans[sql] = _Plan(sql)
        return plan

    def _query(self, plan: _Plan, values: tuple[Any, ...]) -> Answer:
        """Run one text inside the transaction there is."""
        if plan.too_long:
            self._step = None
            raise Refused("statement too long: SQLITE_TOOBIG")
        if not plan.steps:
            raise Refused(_NOTHING)
        if plan.alone or (plan.reading and len(plan.steps) == 1):
            return self._run(plan.steps[0], values, plan.reading)
        connection = self._connection
        version, changes = self._schema_version(), connection.total_changes
        for step in plan.steps[:-1]:
            if step.piece.parameters:
                raise Refused(_ONLY_LAST)
            # One step only, as the platform takes it: its rows are nobody's.
            self._trusted = False
            try:
                self._execute(step, ()).close()
            finally:
                self._trusted = True
        changes = connection.total_changes - changes
        columns, rows, numbers = self._run(plan.steps[-1], values, plan.reading)
        if not plan.reading:
            size, self._size = self._size, self._measure()
            changed = numbers[3] or changes != 0 or size != self._size or version != self._schema_version()
            changes += numbers[1]
            numbers = (numbers[0], changes, numbers[2], changed, self._size, numbers[5], changes)
        return columns, rows, numbers

    def _run(self, step: _Step, values: tuple[Any, ...], reading: bool) -> Answer:
        """Run one statement. This is what every query waits for, so it calls little and looks up nothing twice."""
        connection = self._connection
        now = self._now
        started = now()
        before = connection.total_changes
        cursor: sqlite3.Cursor | None = None
        self._trusted = False
        try:
            if step.plain and step.checked >= self._schema:
                # As `_execute` has it, without the call.
                self._step = step
                try:
                    cursor = connection.execute(step.sql, values)
                except UnicodeEncodeError:
                    cursor = self._execute(step, values)
            else:
                cursor = self._execute(step, values)
            described = cursor.description
            if described is None:
                columns, rows = [], []
            else:
                columns = [column[0] for column in described]
                rows = [_outgoing(row) for row in cursor.fetchall()]
        except BaseException:
            self._trusted = True
            # A statement that still stands in the middle of its rows would keep the transaction from its end.
            if cursor is not None:
                cursor.close()
            # One that failed may have moved it all the same.
            self._last_row_id = connection.execute("SELECT last_insert_rowid()").fetchone()[0]
            raise
        self._trusted = True
        last_row_id = cursor.lastrowid or 0
        changes = 0
        changed = False
        if not reading:
            changes = connection.total_changes - before
            changed = changes != 0 or last_row_id != self._last_row_id
            self._unmeasured += changes
            if self._unmeasured >= _MEASURE_EVERY:
                self._size = self._measure()
        self._last_row_id = last_row_id
        return columns, rows, ((now() - started) * 1000, changes, last_row_id, changed, self._size, len(rows), changes)

    def _execute(self, step: _Step, values: tuple[Any, ...]) -> sqlite3.Cursor:
        self._step = step
        if step.checked < self._schema:
            if step.empty:
                raise Refused(_NO_STATEMENT)
            if self._lenient_quotes:
                self._check_quotes(step)
        try:
            return self._connection.execute(step.sql, values if step.plain else step.bindings(values))
        except UnicodeEncodeError:
            # Half a surrogate pair has no UTF-8; the platform writes U+FFFD for it.
            whole = tuple([_SURROGATES.sub("\ufffd", v) if isinstance(v, str) else v for v in values])
            return self._connection.execute(_SURROGATES.sub("\ufffd", step.sql), step.bindings(whole))

    def _check_quotes(self, step: _Step) -> None:
        """Refuse a name in double quotes that names nothing, which SQLite would take for a string.

        In backquotes it is never a string, so SQLite's own answer to that spelling tells. It is only asked for
        the plan: nothing runs.
        """
        sql = _backquoted(step.piece)
        # The number makes it a text that was not prepared before: SQLite explains again what it once explained.
        prefix = f"{'' if step.piece.keyword == 'EXPLAIN' else 'EXPLAIN'} /* {self._schema} */ "
        try:
            self._connection.execute(prefix + sql, [None] * step.piece.parameter_count).close()
        except sqlite3.Error as error:
            if str(error).startswith("no such column"):
                raise
        # Any other mistake is told by the statement itself, in the words for its own spelling.
        step.checked = self._schema

    @contextmanager
    def _replacing_text(self) -> Generator[None]:
        """Read text that is no UTF-8 with U+FFFD in it. Every other text is read faster without."""
        self._connection.text_factory = _replaced
        try:
            yield
        finally:
            self._connection.text_factory = str

    def _schema_version(self) -> int:
        version: int = self._connection.execute("PRAGMA schema_version").fetchone()[0]
        return version

    def _measure(self) -> int:
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
                _WRONG_COUNT if message.startswith(("Incorrect number of bindings", "You did not supply")) else message
            )
        if self._denied_transaction:
            self._denied_transaction = False
            return _NO_TRANSACTION
        name = _CODES.get(code & 0xFF, "SQLITE_ERROR")
        token = None if self._step is None else locate(self._step.piece, message)
        if token is not None and self._step is not None:
            if message.startswith("no such column: ") and token.text[0] == '"' and message[16:] == token.name:
                message = f'no such column: "{token.name}" - should this be a string literal in single-quotes?'
            message += f" at offset {len(self._step.piece.text[: token.start].encode('utf-8', 'replace'))}"
        extended = f" (extended: {error.sqlite_errorname})" if code > 0xFF else ""
        return f"{message}: {name}{extended}"

    # ------------------------------------------------------------------ what is allowed

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, _: str | None
    ) -> int:
        if self._trusted or self._allows(action, first, second, database):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def _allows(self, action: int, first: str | None, second: str | None, database: str | None) -> bool:
        if action in (sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_DETACH):
            # These two give the name of the database first.
            first, second, database = second, None, first
        if database == "temp":
            return action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE) and _is_free(first)
        if database not in (None, "main"):
            return False
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE | sqlite3.SQLITE_ANALYZE:
                return True
            case sqlite3.SQLITE_FUNCTION:
                return (second or "").lower() in FUNCTIONS
            case sqlite3.SQLITE_PRAGMA:
                return _allows_pragma(first or "", second)
            case sqlite3.SQLITE_CREATE_VTABLE | sqlite3.SQLITE_DROP_VTABLE:
                return (second or "").lower() in ("fts5", "fts5vocab")
            case sqlite3.SQLITE_TRANSACTION | sqlite3.SQLITE_SAVEPOINT:
                self._denied_transaction = True
                return False
            case _:
                return action in _ON_NAMES and _is_free(first) and (action not in _ON_TWO_NAMES or _is_free(second))


# ---------------------------------------------------------------------- what is allowed, in lists

_ON_TWO_NAMES: Final = frozenset(
    {
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_DROP_TRIGGER,
    }
)
_ON_NAMES: Final = _ON_TWO_NAMES | {
    sqlite3.SQLITE_ALTER_TABLE,
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_DROP_TABLE,
    sqlite3.SQLITE_DROP_VIEW,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_REINDEX,
    sqlite3.SQLITE_UPDATE,
}
FUNCTIONS: Final = frozenset(
    [
        "abs",
        "changes",
        "char",
        "coalesce",
        "concat",
        "concat_ws",
        "format",
        "glob",
        "hex",
        "ifnull",
        "iif",
        "instr",
        "last_insert_rowid",
        "length",
        "like",
        "likelihood",
        "likely",
        "load_extension",
        "lower",
        "ltrim",
        "max_scalar",
        "min_scalar",
        "nullif",
        "octet_length",
        "printf",
        "quote",
        "random",
        "randomblob",
        "replace",
        "round",
        "rtrim",
        "sign",
        "soundex",
        "substr",
        "substring",
        "total_changes",
        "trim",
        "typeof",
        "unhex",
        "unicode",
        "unlikely",
        "upper",
        "zeroblob",
        "date",
        "time",
        "datetime",
        "julianday",
        "unixepoch",
        "strftime",
        "timediff",
        "current_date",
        "current_time",
        "current_timestamp",
        "avg",
        "count",
        "group_concat",
        "max",
        "min",
        "string_agg",
        "sum",
        "total",
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "first_value",
        "last_value",
        "nth_value",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "ceil",
        "ceiling",
        "cos",
        "cosh",
        "degrees",
        "exp",
        "floor",
        "ln",
        "log",
        "log10",
        "log2",
        "mod",
        "pi",
        "pow",
        "power",
        "radians",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
        "json",
        "json_array",
        "json_array_length",
        "json_error_position",
        "json_extract",
        "->",
        "->>",
        "json_insert",
        "json_object",
        "json_patch",
        "json_pretty",
        "json_remove",
        "json_replace",
        "json_set",
        "json_type",
        "json_valid",
        "json_quote",
        "json_group_array",
        "json_group_object",
        "json_each",
        "json_tree",
        "jsonb",
        "jsonb_array",
        "jsonb_extract",
        "jsonb_insert",
        "jsonb_object",
        "jsonb_patch",
        "jsonb_remove",
        "jsonb_replace",
        "jsonb_set",
        "jsonb_group_array",
        "jsonb_group_object",
        "match",
        "highlight",
        "bm25",
        "snippet",
        "sqlite_rename_column",
        "sqlite_rename_table",
        "sqlite_rename_test",
        "sqlite_drop_column",
        "sqlite_rename_quotefix",
    ]
)
"""What SQL may call. Functions that tell how SQLite was built are not among them."""

_BOOLEANS: Final = ("true", "false", "yes", "no", "on", "off", "1", "0")
_BOOLEAN_PRAGMAS: Final = frozenset(
    [
        "case_sensitive_like",
        "foreign_keys",
        "defer_foreign_keys",
        "ignore_check_constraints",
        "legacy_alter_table",
        "recursive_triggers",
        "reverse_unordered_selects",
    ]
)
_NAME_PRAGMAS: Final = frozenset(
    "table_info table_xinfo foreign_key_list index_info index_list index_xinfo".split()  # noqa: SIM905 - as above
)


def _is_free(name: str | None) -> bool:
    return name is not None and not name.lower().startswith("_cf_")


def _allows_pragma(pragma: str, argument: str | None) -> bool:
    if pragma == "table_list":
        return True
    if pragma == "data_version":
        return argument is None
    if pragma in _BOOLEAN_PRAGMAS:
        return argument is None or argument.strip("'\"").lower().startswith(_BOOLEANS)
    if pragma in _NAME_PRAGMAS:
        return _is_free(argument)
    if pragma in ("foreign_key_check", "quick_check"):
        return argument is None or _is_free(argument)
    if pragma == "optimize":
        return argument is None or re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)", argument) is not None
    return False


_CODES: Final[Mapping[int, str]] = {
    code: f"SQLITE_{name}"
    for code, name in enumerate(
        [
            "ERROR",
            "INTERNAL",
            "PERM",
            "ABORT",
            "BUSY",
            "LOCKED",
            "NOMEM",
            "READONLY",
            "INTERRUPT",
            "IOERR",
            "CORRUPT",
            "NOTFOUND",
            "FULL",
            "CANTOPEN",
            "PROTOCOL",
            "EMPTY",
            "SCHEMA",
            "TOOBIG",
            "CONSTRAINT",
            "MISMATCH",
            "MISUSE",
            "NOLFS",
            "AUTH",
            "FORMAT",
            "RANGE",
            "NOTADB",
        ],
        start=1,
    )
}


def _harden(connection: sqlite3.Connection) -> None:
    """Tell SQLite what Python 3.12 can tell it: double quotes are for names, and its own tables are not to be edited."""
    settings = cast("Any", sqlite3)
    for name, value in (
        ("SQLITE_DBCONFIG_DQS_DML", False),
        ("SQLITE_DBCONFIG_DQS_DDL", False),
        ("SQLITE_DBCONFIG_DEFENSIVE", True),
    ):
        cast("Any", connection).setconfig(getattr(settings, name), value)


class _Scratch(sqlite3.Connection):
    """A connection that closes with its last user; Python 3.13 warns of one that is only forgotten."""

    def __del__(self) -> None:
        self.close()


def _follow(connection: sqlite3.Connection, clock: Clock) -> None:
    """Let SQL's own dates come from a test's clock: `CURRENT_TIMESTAMP`, `datetime('now')` and their like."""
    # Closed with the connection that calls it: that holds the functions below, and they hold this.
    machine = _Scratch(":memory:", check_same_thread=False)

    def now() -> str:
        moment = dt.datetime.fromtimestamp(clock.time(), dt.UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"

    def function(name: str, least: int) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            given = list(args) + ["now"] * (least - len(args))
            given = [now() if isinstance(value, str) and value.lower() == "now" else value for value in given]
            marks = ", ".join("?" * len(given))
            try:
                return machine.execute(f"SELECT {name}({marks})", given).fetchone()[0]
            except sqlite3.Error:
                return None

        return call

    for name, least in (("date", 1), ("time", 1), ("datetime", 1), ("julianday", 1), ("unixepoch", 1), ("strftime", 2)):
        connection.create_function(name, -1, function(name, least), deterministic=True)
    for name, source in (("current_date", "date"), ("current_time", "time"), ("current_timestamp", "datetime")):
        connection.create_function(name, 0, function(source, 1), deterministic=True)


# ---------------------------------------------------------------------- values

_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def _error(prefix: str, message: str, *, cause: str | None = None) -> D1Error:
    error = D1Error(prefix + message)
    # The message without the code that begins it; of an exec, what follows the code.
    if cause is None:
        cause = prefix.partition(": ")[2] + message
    error.cause_message = cause
    return error


def _text(sql: object) -> str:
    if isinstance(sql, str):
        return sql
    raise D1TypeError(f"SQL must be a str, not {type(sql).__name__}")


def _is_list(given: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _statements(given: object) -> Sequence[EmbeddedD1PreparedStatement]:
    if not _is_list(given):
        raise D1TypeError(f"batch() takes a list of statements, not {type(given).__name__}")
    for statement in given:
        if not isinstance(statement, EmbeddedD1PreparedStatement):
            raise D1TypeError(f"batch() takes statements, as prepare() gives them, not {type(statement).__name__}")
    return given


def _replaced(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _bindable(value: Any) -> Any:
    """A value as SQLite is given it: every number is a REAL, a list of bytes is a blob."""
    match value:
        case None | str():
            return value
        case bool() | float():
            return float(value) if math.isfinite(value) else None
        case int():
            if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                raise _type_error("bigint", str(value))
            return float(value)
        case bytes():
            return value
        case bytearray() | memoryview():
            return bytes(cast("bytes", value))
        case list() | tuple():
            numbers = cast("Sequence[Any]", value)
            if all(type(number) in (int, float) and 0 <= number < 256 for number in numbers):
                return bytes([int(number) for number in numbers])
        case _:
            pass
    raise _type_error("function" if callable(cast("object", value)) else "object", _js_text(value))


def _type_error(kind: str, text: str) -> D1TypeError:
    message = f"Type '{kind}' not supported for value '{text}'"
    error = D1TypeError(f"D1_TYPE_ERROR: {message}")
    error.cause_message = message
    return error


def _js_text(value: Any) -> str:
    """What JavaScript makes of a value in a message."""
    match value:
        case Mapping():
            return "[object Object]"
        case list() | tuple():
            return ",".join("" if item is None else _js_text(item) for item in cast("Sequence[Any]", value))
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _outgoing(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row as the platform's numbers would give it. Most have nothing to change."""
    for value in row:
        kind = value.__class__
        if kind is float or (kind is int and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER):
            return tuple([_number(value) for value in row])
    return row


def _number(value: Any) -> Any:
    kind = value.__class__
    if kind is float:
        if value.is_integer():
            # A number has no kind there: 3.0 is written 3, until it is too long to be written out.
            return int(value) if abs(value) < 1e21 else value
        return value if math.isfinite(value) else None
    if kind is int and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return int(float(value))
    return value


def _result(answer: Answer) -> D1Result[D1Row]:
    columns, rows, numbers = answer
    result: D1Result[D1Row] = _new(D1Result)
    # No comprehension where there is nothing: most writes end here. The meta is made when somebody asks for it.
    results = [dict(zip(columns, row, strict=True)) for row in rows] if rows else []
    _put(result, "__dict__", {"results": results, "success": True, "_meta": (_meta_of, numbers)})
    return result


def _meta_of(numbers: _Numbers) -> D1Meta:
    return D1Meta(SERVED_BY, *numbers, None, True)


_new: Final[Callable[[Any], Any]] = object.__new__
_put: Final = object.__setattr__


def _beyond(piece: Piece) -> bool:
    """Whether a parameter has a number that SQLite refuses, in words of its own."""
    numbers = [int(token.text[1:]) for token in piece.parameters if token.text[0] == "?" and token.text != "?"]
    return any(not 1 <= number <= MAX_PARAMETER for number in numbers)


def _plain(piece: Piece) -> tuple[str, list[int]]:
    """A statement with `?` for every parameter, and for each the place of its value.

    Numbers are places themselves; a name has that of its first appearance. Blanks keep the text as long as it was,
    so that the offsets in SQLite's messages stay right.
    """
    given: dict[str, int] = {}
    highest = 0
    order: list[int] = []
    parts: list[str] = []
    end = 0
    for token in piece.parameters:
        if token.text == "?":
            number = highest + 1
        elif token.text[0] == "?":
            number = int(token.text[1:])
        else:
            number = given.setdefault(token.text, highest + 1)
        highest = max(highest, number)
        order.append(number - 1)
        parts += (piece.text[end : token.start], "?".ljust(len(token.text)))
        end = token.start + len(token.text)
    return "".join(parts) + piece.text[end:], order


def _backquoted(piece: Piece) -> str:
    """A statement with its double quotes as backquotes."""
    parts: list[str] = []
    end = 0
    for token in piece.words:
        if token.kind == "quoted" and token.text[0] == '"':
            parts += (piece.text[end : token.start], "`", token.name.replace("`", "``"), "`")
            end = token.start + len(token.text)
    return "".join(parts) + piece.text[end:]
