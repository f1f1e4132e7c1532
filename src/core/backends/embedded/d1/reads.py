"""The rows that a statement reads: those that its plan visits, table by table, and those that it sorts.

SQLite counts nothing that Python's sqlite3 shows. So the statement runs once more, beside the database, over views of its
tables whose condition counts: SQLite takes such a view apart, so that the plan is the same and every row it visits is counted.
Nothing is written there. The counts are those that the platform gives back in `rows_read`, but for the entry behind the last
one of an index range, and for rows that SQLite keeps for itself: those that a GROUP BY, a UNION or a RETURNING holds, the values
of table-valued functions and recursions, and the look-ups of foreign keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from core.backends.embedded.d1.plans import Step, with_names
from core.backends.embedded.sql_dates import Dates
from core.backends.embedded.store import Database
from core.context import Clock, system_clock
from core.sql.tokens import Token, quoted, tokens_of

__all__ = ["RowsRead"]

_COUNTER: Final = "_cf_read"
_ROWIDS: Final = frozenset(["rowid", "oid", "_rowid_"])
_FUNCTIONS: Final = ("json_", "pragma_")
_FUNCTIONS_IN_VIEWS: Final = "SELECT 1 FROM sqlite_master WHERE type = 'view' AND (instr(lower(sql), 'json_') OR instr(lower(sql), 'pragma_')) LIMIT 1"
_ENDS: Final = frozenset(["RETURNING", "ORDER", "LIMIT"])


class RowsRead:
    """Counts beside one database: in a copy of one in memory, on a second connection to one on disk."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._beside: sqlite3.Connection | None = None
        self._copied: tuple[int, int] | None = None
        self._tables: dict[str, bool] = {}
        # Whether a table-valued function was used: SQLite keeps it with the schema of the copy, and crashes on the next one.
        self._spent = False
        self._read = 0
        self.total: int = 0
        """The rows that all statements so far have read."""

    def __del__(self) -> None:
        self.close()

    def count(self, step: Step, values: Sequence[Any], schema: int) -> int | None:
        """The rows that a statement is going to read; None where that cannot be found out. `schema` changes with the schema."""
        query = _reading(step)
        if query is None and step.piece.keyword == "EXPLAIN":
            return 0
        named = {f"v{number}": value for number, value in enumerate(values, 1)}
        try:
            beside = self._connection(schema)
            visited = self._views(beside, step.piece.tokens)
            if query is None:
                return self._looked_up(beside, step.piece.tokens)
            text, whole = query
            self._read = 0
            rows = sum(1 for _ in beside.execute(text, named))
            read = self._read
            if any("USE TEMP B-TREE FOR" in row[3] and "ORDER BY" in row[3] for row in _plan(beside, text, named)):
                read += rows if whole == text else sum(1 for _ in beside.execute(whole, named))
        except sqlite3.Error:
            return None
        return max(read, 1) if visited and text != _NOTHING else read

    def close(self) -> None:
        """Close the connection beside the database."""
        if self._beside is not None:
            self._beside.close()
            self._beside = None

    def _connection(self, schema: int) -> sqlite3.Connection:
        path = self._database.path
        state = (schema, 0 if path is not None else self._database.connection.total_changes)
        if self._copied == state and self._beside is not None:
            return self._beside
        if self._beside is None or self._copied is None or self._copied[0] != schema or self._spent:
            self.close()
            self._beside = sqlite3.connect(path if path is not None else ":memory:", isolation_level=None, timeout=0.1)
            self._beside.text_factory = bytes
            self._beside.create_function(_COUNTER, 1, self._count)
            if self._clock is not system_clock:
                Dates(self._beside, self._clock)
            self._tables = {}
            self._spent = self._database.connection.execute(_FUNCTIONS_IN_VIEWS).fetchone() is not None
        if path is None:
            # Other than a backup, it neither waits for a transaction that is under way nor leaves its rows out.
            with suppress(sqlite3.OperationalError):  # a database that nothing was ever written to
                self._beside.deserialize(self._database.connection.serialize())
        self._copied = state
        return self._beside

    def _count(self, key: object) -> int:
        self._read += key is not None  # None in the place of a row that an outer join does not find
        return 1

    def _views(self, beside: sqlite3.Connection, tokens: Sequence[Token]) -> bool:
        """Put a counting view over each table that a statement names; return True if it names one."""
        names = {token.name.lower() for token in tokens if token.name is not None}
        visited = False
        for name in names:
            self._spent = self._spent or name.startswith(_FUNCTIONS)
            if name not in self._tables:
                self._tables[name] = self._view(beside, name, names)
            visited = visited or self._tables[name]
        return visited

    def _looked_up(self, beside: sqlite3.Connection, tokens: Sequence[Token]) -> int | None:
        """The rows of an INSERT that bring their own key: each is looked up, so that none is there twice."""
        words = [token.word for token in tokens]
        if "INTO" not in words or "VALUES" not in words:
            return 0 if "DEFAULT" in words else None
        into, values = words.index("INTO"), words.index("VALUES")
        names = [(token.name or "").lower() for token in tokens[into + 1 : values]]
        columns = beside.execute(f"PRAGMA main.table_info({quoted(names[0])})").fetchall()
        keys = [column for column in columns if column[5]]
        if len(keys) != 1 or keys[0][2].upper() != b"INTEGER":
            return 0
        if len(names) > 1 and keys[0][1].decode().lower() not in names:
            return 0
        depth = rows = 0
        for token in tokens[values + 1 :]:
            if depth == 0 and token.text not in ("(", ")", ","):
                break
            rows += depth == 0 and token.text == "("
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        return rows

    def _view(self, beside: sqlite3.Connection, name: str, names: set[str]) -> bool:
        found = beside.execute("SELECT type, sql FROM main.sqlite_master WHERE lower(name) = ?", (name,)).fetchone()
        if found is None or found[0] != b"table" or found[1] is None or found[1].upper().startswith(b"CREATE VIRTUAL"):
            return False
        columns = beside.execute(f"PRAGMA main.table_info({quoted(name)})").fetchall()
        key = next((quoted(c[1].decode()) for c in columns if c[5]), "rowid") if _without_rowid(found[1]) else "rowid"
        rowid = next((column + ", " for column in sorted(names & _ROWIDS)), "")
        beside.execute(
            f"CREATE TEMP VIEW {quoted(name)} AS SELECT {rowid}* FROM main.{quoted(name)} WHERE {_COUNTER}({key})"
        )
        return True


def _places(tokens: Sequence[Token]) -> dict[str, int]:
    """The places of the words of a statement that are in no parentheses: of each the first."""
    depth = 0
    at: dict[str, int] = {}
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.word:
            at.setdefault(token.word, token.start)
    return at


def _without_rowid(sql: bytes) -> bool:
    return b"WITHOUT" in sql.upper().rpartition(b")")[2]


def _plan(beside: sqlite3.Connection, text: str, values: dict[str, Any]) -> list[tuple[Any, Any, Any, str]]:
    return [(*row[:3], row[3].decode()) for row in beside.execute(f"EXPLAIN QUERY PLAN {text}", values)]


def _reading(step: Step) -> tuple[str, str] | None:
    """The part of a statement that reads, as a query, and the same without its LIMIT; None where nothing of it reads."""
    text = with_names(step.piece)
    tokens = tokens_of(text)
    at = _places(tokens)
    end = tokens[-1].end if tokens else 0
    verb = next((word for word in at if word in _VERBS), None)
    if step.piece.keyword == "EXPLAIN" or verb is None:
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
