"""The rows that a statement reads: those that its plan visits, table by table, and those that it sorts.

SQLite counts nothing that Python's sqlite3 shows. So the statement runs once more, beside the database, over views of
its tables whose condition counts: SQLite takes such a view apart, so that the plan is the same and every row it visits
is counted. Nothing is written there. The counts are those that the platform gives back in `rows_read`, but for the
entry behind the last one of an index range, and for rows that SQLite keeps for itself: those that a GROUP BY, a UNION
or a RETURNING holds, the values of table-valued functions and recursions, and the look-ups of foreign keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from itertools import takewhile
from typing import Final

import attrs

from core.backends.embedded.d1.plans import Statement, with_names
from core.backends.embedded.sql_dates import Dates
from core.backends.embedded.store import Database
from core.context import Clock, system_clock
from core.sql.connection import ClosingConnection
from core.statements.tokens import Token, outside, quoted, tokens_of

_COUNTER: Final = "_cf_read"
_ROWIDS: Final = frozenset(["rowid", "oid", "_rowid_"])
_FUNCTIONS: Final = ("json_", "pragma_")
_FUNCTIONS_IN_VIEWS: Final = "SELECT 1 FROM sqlite_master WHERE type = 'view' AND (instr(lower(sql), 'json_') OR instr(lower(sql), 'pragma_')) LIMIT 1"
_ENDS: Final = frozenset(["RETURNING", "ORDER", "LIMIT"])


@attrs.define
class Counted:
    """The rows that the statements of one call have read.

    Not `exact` where those that were given back had to do for one.
    """

    statements: int = 0
    rows: int = 0
    exact: bool = True

    def add(self, other: Counted) -> None:
        self.statements += other.statements
        self.rows += other.rows
        self.exact = self.exact and other.exact


counted: ContextVar[Counted | None] = ContextVar("core_d1_counted", default=None)
"""Counts for whoever made the call: two tasks that run at once each have their own."""


class RowsRead:
    """Counts beside one database: in a copy of one in memory, on a second connection to one on disk.

    That connection only reads, and waits for nobody. It does not see what a transaction has written: what follows in
    the transaction is not counted. After `most` rows of one statement counting is given up.
    """

    def __init__(self, database: Database, clock: Clock, *, most: int | None = None) -> None:
        self._database = database
        self._clock = clock
        self._most = most
        self._open: _Beside | None = None
        self._copied: tuple[int, ...] = ()
        self._began = 0
        self.total: int = 0
        """The rows that all statements so far have read."""
        database.beside = self

    def begin(self) -> None:
        """Take the rows there are now for those that the second connection sees: a transaction begins."""
        self._began = self._database.connection.total_changes

    def count(self, statement: Statement, values: Sequence[object], schema: int) -> int | None:
        """The rows that a statement is going to read; None where that cannot be found out.

        `schema` changes with the schema.
        """
        query, names = _reading_of(statement)
        if query is None and statement.piece.keyword == "EXPLAIN":
            return 0
        named = {f"v{number}": value for number, value in enumerate(values, 1)}
        try:
            if query is None:
                return _looked_up(self._database.connection, statement.piece.tokens)
            beside = self._beside(schema)
            if beside is None:
                return None
            visited = beside.views(names)
            text, whole = query
            connection = beside.connection
            self._database.engine.keep_time(connection)
            beside.visited.rows = 0
            rows = sum(1 for _ in connection.execute(text, named))
            read = beside.visited.rows
            plan = connection.execute(f"EXPLAIN QUERY PLAN {text}", named)
            if any(b"USE TEMP B-TREE FOR" in row[3] and b"ORDER BY" in row[3] for row in plan.fetchall()):
                read += rows if whole == text else sum(1 for _ in connection.execute(whole, named))
        except (sqlite3.Error, UnicodeEncodeError):
            return None
        return max(read, 1) if visited and text != _NOTHING else read

    def note(self, statement: Statement, read: int | None, returned: int) -> int:
        """Add up the rows of a statement that ran, and return them: those `returned` where they were not counted."""
        rows = returned if read is None else read
        self.total += rows
        call = counted.get()
        if call is not None:
            call.add(Counted(1, rows, read is not None))
        if statement.piece.keyword in ("ANALYZE", "PRAGMA"):
            # The other connection would go on with the statistics that it has loaded.
            self.close()
        return rows

    def close(self) -> None:
        if self._open is not None:
            self._open.connection.close()
            self._open = None

    def _beside(self, schema: int) -> _Beside | None:
        """The connection to count on; None where another one does not see the rows of the transaction."""
        main, path, beside = self._database.connection, self._database.path, self._open
        (version,) = main.execute("PRAGMA schema_version").fetchone()
        if path is not None:
            if beside is None or beside.version != version:
                self.close()
                # An address of the form file: opens it for reading alone.
                beside = self._open = _Beside(f"{path.resolve().as_uri()}?mode=ro", self)
            sees = not main.in_transaction or (main.total_changes == self._began and beside.version == version)
            return beside if sees else None
        state = (schema, version, main.total_changes)
        if beside is None or self._copied != state:
            if beside is None or beside.spent or self._copied[:2] != state[:2]:
                self.close()
                beside = self._open = _Beside(":memory:", self)
            # Other than a backup, it neither waits for a transaction that is under way nor leaves its rows out.
            with suppress(sqlite3.OperationalError):  # a database that nothing was ever written to
                beside.take(main.serialize())
            self._copied = state
        return beside


class _Visited:
    """Counts rows. An object of its own: a connection holds its functions where no garbage collector looks."""

    def __init__(self, most: int | None) -> None:
        self.rows = 0
        self._most = most

    def __call__(self, key: object) -> int:
        self.rows += key is not None  # None in the place of a row that an outer join does not find
        if self._most is not None and self.rows > self._most:
            raise OverflowError  # ends the statement, as an error of SQLite's
        return 1


class _Beside:
    """A connection with counting views over the tables of its database."""

    def __init__(self, place: str, counts: RowsRead) -> None:
        self.connection = ClosingConnection(place, uri=True, isolation_level=None, timeout=0, check_same_thread=False)
        self.visited = _Visited(counts._most)
        self.connection.create_function(_COUNTER, 1, self.visited)
        if counts._clock is not system_clock:
            Dates(self.connection, counts._clock)
        self.connection.text_factory = bytes
        self._tables: dict[str, frozenset[str] | None] = {}
        (self.version,) = self.connection.execute("PRAGMA schema_version").fetchone()
        # Whether a table-valued function was used: SQLite keeps it with the copy's schema, and crashes on the next.
        self.spent: bool = counts._database.connection.execute(_FUNCTIONS_IN_VIEWS).fetchone() is not None

    def take(self, copied: bytes) -> None:
        """Read from now on the copy."""
        whole = bytearray(copied)
        # In memory there is no write-ahead log: https://www.sqlite.org/fileformat.html#file_format_version_numbers
        whole[18:20] = b"\1\1"
        self.connection.deserialize(whole)

    def views(self, names: frozenset[str]) -> bool:
        """Put a counting view over each table among the names of a statement; return True if there is one."""
        rowids = _ROWIDS & names
        visited = False
        for name in names:
            if name.startswith(_FUNCTIONS):
                self.spent = True
            if name not in self._tables or self._tables[name] not in (None, rowids):
                kind, text = _described(self.connection, name)
                self._tables[name] = rowids if kind else None
                if kind == "table":
                    _put_view(self.connection, name, text, rowids)
                elif kind == "view":
                    # As a view of the second connection's own, it is over the views that count.
                    own = tokens_of(text)
                    self.connection.execute(f"CREATE TEMP VIEW IF NOT EXISTS {text[own[2].start :]}")
                    self.views(_names(own[3:]))
            if self._tables[name] is not None:
                visited = True
        return visited


def _names(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset([token.name.lower() for token in tokens if token.name is not None])


def _looked_up(connection: sqlite3.Connection, tokens: Sequence[Token]) -> int | None:
    """The rows of an INSERT that bring their own key: each is looked up, so that none is there twice."""
    words = [token.word for token in tokens]
    if "INTO" not in words or "VALUES" not in words:
        return 0 if "DEFAULT" in words else None
    into, values = words.index("INTO"), words.index("VALUES")
    names = [(token.name or "").lower() for token in tokens[into + 1 : values]]
    columns = connection.execute(f"PRAGMA main.table_info({quoted(names[0])})").fetchall()
    keys = [column for column in columns if column[5]]
    if len(keys) != 1 or keys[0][2].upper() != "INTEGER":
        return 0
    if len(names) > 1 and keys[0][1].lower() not in names:
        return 0
    between = takewhile(lambda text: text in (")", ","), (token.text for _, token in outside(tokens[values + 1 :])))
    return [*between].count(")")


def _described(beside: sqlite3.Connection, name: str) -> tuple[str, str]:
    """The kind of a table or view, and the text that made it; both empty for a name of neither, or of another kind."""
    found = beside.execute("SELECT type, sql FROM main.sqlite_master WHERE lower(name) = ?", (name,)).fetchone()
    kind, text = ("", "") if found is None else (found[0].decode(), (found[1] or b"").decode())
    return (kind, text) if kind in ("table", "view") and not text.upper().startswith("CREATE VIRTUAL") else ("", "")


def _put_view(beside: sqlite3.Connection, name: str, text: str, rowids: frozenset[str]) -> None:
    columns = beside.execute(f"PRAGMA main.table_info({quoted(name)})").fetchall()
    without_rowid = "WITHOUT" in text.upper().rpartition(")")[2]
    key = next((quoted(c[1].decode()) for c in columns if c[5]), "rowid") if without_rowid else "rowid"
    rowid = next((column + ", " for column in sorted(rowids)), "")
    beside.execute(f"DROP VIEW IF EXISTS temp.{quoted(name)}")
    beside.execute(
        f"CREATE TEMP VIEW {quoted(name)} AS SELECT {rowid}* FROM main.{quoted(name)} WHERE {_COUNTER}({key})"
    )


def _places(tokens: Sequence[Token]) -> dict[str, int]:
    """The places of the words of a statement that are in no parentheses: of each the first."""
    at: dict[str, int] = {}
    for _, token in outside(tokens):
        if token.word:
            at.setdefault(token.word, token.start)
    return at


@lru_cache(maxsize=1000)
def _reading_of(statement: Statement) -> tuple[tuple[str, str] | None, frozenset[str]]:
    """The part that reads, and all names: of a statement that runs again and again they are the same."""
    return _reading(statement), _names(statement.piece.tokens)


def _reading(statement: Statement) -> tuple[str, str] | None:
    """The part of a statement that reads, as a query, and the same without its LIMIT; None where nothing reads."""
    text = with_names(statement.piece)
    tokens = tokens_of(text)
    at = _places(tokens)
    end = tokens[-1].end if tokens else 0
    verb = next((word for word in at if word in _VERBS), None)
    if statement.piece.keyword == "EXPLAIN" or verb is None:
        return None
    if verb in ("SELECT", "VALUES"):
        return text[:end], text[: at.get("LIMIT", end)]
    common = text[: at[verb]]
    stop = min((at[word] for word in _ENDS if word in at and at[word] > at[verb]), default=end)
    if verb in ("INSERT", "REPLACE"):
        stop = min(stop, at.get("ON", end)) if "SELECT" in at else stop
        query = f"{common}{text[at['SELECT'] : stop]}" if at.get("SELECT", -1) > at[verb] else None
        return (query, query) if query is not None else None
    where = text[at["WHERE"] : stop] if "WHERE" in at else ""
    if verb == "DELETE":
        if not where and stop == end:
            return _NOTHING, _NOTHING  # the table is emptied, and no row of it read
        query = f"{common}SELECT 1 {text[at['FROM'] : at.get('WHERE', stop)]} {where}"
    else:
        target = next(t for t in tokens if t.start > at["UPDATE"] and t.name is not None and t.word not in _CONFLICT)
        more = text[at["FROM"] + 4 : at.get("WHERE", stop)] if at.get("FROM", -1) > at["SET"] else ""
        query = f"{common}SELECT 1 FROM {text[target.start : at['SET']]}{', ' + more if more else ''} {where}"
    return query, query


_NOTHING: Final = "SELECT 1 WHERE 0"
_VERBS: Final = frozenset(["SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"])
_CONFLICT: Final = frozenset(["OR", "ROLLBACK", "ABORT", "REPLACE", "FAIL", "IGNORE"])
