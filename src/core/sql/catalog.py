"""The tables that a database's migrations make.

They run in memory, statement by statement, under an authorizer that lets nothing out of the process; rows are not
written, since only the schema is asked for. A statement that fails is a problem with its file and line, and makes the
schema one that cannot be relied on.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from core.sql.location import locate
from core.sql.migrations import migration_files
from core.sql.rules import FUNCTIONS, LIMITS, MAX_SQL_BYTES, TRANSACTION_STATEMENTS, allows, refusal
from core.sql.tokens import StatementText, statements_of, words
from core.values import frozen

__all__ = [
    "Migrated",
    "MigrationProblem",
    "TableColumn",
    "TableInfo",
    "add_functions",
    "migrate",
    "problem_text",
]

# The functions that a newer SQLite, or one built with more options, has and this machine's may lack: stand-ins, so that
# a statement that calls them can be compiled.
_FUNCTIONS: Final = words(
    "concat concat_ws octet_length timediff jsonb jsonb_array jsonb_extract jsonb_insert jsonb_object jsonb_patch "
    "jsonb_remove jsonb_replace jsonb_set iif unixepoch format unhex acos acosh asin asinh atan atan2 atanh ceil cos "
    "cosh degrees exp floor ln log log2 mod pi pow radians sin sinh sqrt tan tanh trunc sign bm25 highlight snippet"
)
_AGGREGATES: Final = words("string_agg jsonb_group_array jsonb_group_object")

_STEPS_AT_MOST: Final = 20_000_000
"""Virtual machine steps that one statement of a migration may take: a second or two."""


@frozen
class MigrationProblem:
    """A statement that SQLite, or D1, does not take. `line` counts from 1."""

    file: Path
    line: int
    message: str


def problem_text(problem: MigrationProblem, directory: Path) -> str:
    """A problem as it is told beside the database: the file from the configuration's directory on, and the line."""
    file = problem.file
    shown = file.relative_to(directory) if file.is_relative_to(directory) else file
    return f"{shown.as_posix()}:{problem.line}: {problem.message}. Until it is corrected, no table counts as known"


@frozen
class TableColumn:
    """A column as its table declares it.

    `nullable` and `filled` are both False where it cannot be told whether it holds NULL. `key` says that it is the key
    of its rows, an integer that the database gives where nobody does; `generated` that nobody may give it.
    """

    name: str
    declared: str
    nullable: bool
    has_default: bool
    strict: bool
    filled: bool = False
    key: bool = False
    generated: bool = False

    @property
    def required(self) -> bool:
        """True if an INSERT has to give it a value."""
        return self.filled and not (self.has_default or self.key or self.generated)


def _places(table: TableInfo) -> Mapping[str, int]:
    return {column.name.lower(): at for at, column in enumerate(table.columns)}


@frozen
class TableInfo:
    """A table or view. Where it was created is told by `file` and `line`, as far as it is known.

    `foreign` has its foreign keys of one column: the column, the other table and its column, in lower case. `guarded`
    says that a trigger or a conflict clause may keep a row that would break a constraint from it.
    """

    name: str
    columns: tuple[TableColumn, ...]
    view: bool
    sql: str
    file: Path | None = None
    line: int = 0
    foreign: frozenset[tuple[str, str, str]] = frozenset()
    guarded: bool = False
    hidden: frozenset[str] = frozenset()
    """The columns that `*` leaves out, in lower case: those that a virtual table has for its own use."""
    places: Mapping[str, int] = attrs.field(
        default=attrs.Factory(_places, takes_self=True), init=False, eq=False, repr=False
    )
    """The position of each column, by its name in lower case."""

    def column(self, name: str) -> TableColumn | None:
        """The column of that name, in any case."""
        at = self.places.get(name.lower())
        return None if at is None else self.columns[at]


@frozen
class Migrated:
    """The database that the migrations make: the tables by their names in lower case, and a connection to be asked.

    `trusted` is False where a migration failed, or needs a feature that this machine's SQLite lacks: then only errors
    that SQLite reports without knowing a table count. `empty` says that there are no migrations at all, and the same
    holds.
    """

    folder: Path
    files: tuple[Path, ...]
    connection: sqlite3.Connection
    lock: threading.RLock
    gate: Gate
    tables: Mapping[str, TableInfo]
    functions: frozenset[str]
    problems: tuple[MigrationProblem, ...]
    trusted: bool


class Gate:
    """The authorizer. Open inside `with`, for questions on the tools' own behalf; else it allows the same as D1."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: bool = False

    def __enter__(self) -> None:
        self.open = True

    def __exit__(self, *_: object) -> None:
        self.open = False

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        """Answer SQLite, which asks for each thing that a statement would do."""
        if action in _HARMLESS:
            return _OK
        if self.open:
            return sqlite3.SQLITE_DENY if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH) else _OK
        if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
            return sqlite3.SQLITE_DENY
        return _OK if allows(action, first, second, database) else sqlite3.SQLITE_DENY


_OK: Final = sqlite3.SQLITE_OK
# Nearly every question is whether a row may be read or written, of tables that were made under the rules.
_HARMLESS: Final = frozenset(
    {sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
)


def migrate(folder: Path) -> Migrated:
    """Run the migrations of a folder in memory. It never raises for their contents."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)
    functions = add_functions(connection)
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    # What is compiled here has a word more before it; the length of the given statement is judged by itself.
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 2 * MAX_SQL_BYTES)
    gate = Gate()
    connection.set_authorizer(gate.__call__)  # a bound method is called faster than an object
    problems: list[MigrationProblem] = []
    places: dict[str, tuple[Path, int]] = {}
    foreign = False
    files = migration_files(folder)
    for file in files:
        try:
            text = file.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(MigrationProblem(file, 1, f"cannot be read: {error}"))
            continue
        for statement in statements_of(text):
            if not statement.tokens:
                continue
            line = text.count("\n", 0, statement.start + statement.tokens[0].start) + 1
            try:
                failure = _run(connection, statement)
            except _Foreign:
                foreign = True
                continue
            if failure is not None:
                message, offset = failure
                at = text.count("\n", 0, statement.start + offset) + 1 if offset is not None else line
                problems.append(MigrationProblem(file, at, message))
            for name in _tables_now(connection, gate) - places.keys():
                places[name] = (file, line)
    with gate:
        tables = dict(_describe(connection, places))
    trusted = bool(files) and not problems and not foreign
    return Migrated(
        folder, tuple(files), connection, threading.RLock(), gate, tables, functions, tuple(problems), trusted
    )


class _Foreign(Exception):
    """A statement that needs a module which this machine's SQLite has not."""


def _run(connection: sqlite3.Connection, statement: StatementText) -> tuple[str, int | None] | None:
    """Run one statement if it makes the schema, else only compile it.

    Returns what SQLite says against it, and where.
    """
    first = statement.keyword
    start = statement.tokens[0].start
    text = statement.text[start:]
    refused = refusal(statement)
    if refused is not None:
        why = ": it runs every migration in a transaction of its own" if first in TRANSACTION_STATEMENTS else ""
        return f"{refused}{why}. Leave the statement out", start
    if first == "PRAGMA":
        return None
    if len(statement.text) * 4 > MAX_SQL_BYTES and (size := len(statement.text.encode())) > MAX_SQL_BYTES:
        return f"the statement has {size} bytes. D1 takes {MAX_SQL_BYTES} at most", start
    makes_schema = first in ("CREATE", "ALTER", "DROP", "REINDEX", "ANALYZE")
    steps = _Steps()
    connection.set_progress_handler(steps, 1_000_000)
    try:
        connection.execute(text if makes_schema or first == "EXPLAIN" else f"EXPLAIN {text}")
    except sqlite3.Error as error:
        message = str(error)
        if message.startswith("no such module"):
            raise _Foreign from None
        if "Incorrect number of bindings" in message:
            return "a migration takes no parameters. Write the value", statement.tokens[0].start
        if message == "interrupted":
            message = "takes too long to run"
        if message == "not authorized":
            message = "D1 does not authorize this"
        return message, (locate(statement, message) or statement.tokens[0]).start
    except (ValueError, sqlite3.Warning) as error:  # a NUL in the text
        return str(error), None
    finally:
        connection.set_progress_handler(None, 0)
    return None


class _Steps:
    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _STEPS_AT_MOST // 1_000_000

    def __call__(self) -> int:
        self._left -= 1
        return 1 if self._left < 0 else 0


def add_functions(connection: sqlite3.Connection) -> frozenset[str]:
    """Add the stand-ins, and return the names of all functions that there are."""
    rows = connection.execute("SELECT DISTINCT name FROM pragma_function_list")
    known = frozenset(str(row[0]) for row in rows)
    for name in _FUNCTIONS - known:
        connection.create_function(name, -1, _stand_in)
    for name in _AGGREGATES - known:
        connection.create_aggregate(name, -1, _StandIn)
    return (known | _FUNCTIONS | _AGGREGATES) & FUNCTIONS


class _StandIn:
    """An aggregate that is never run: statements that use it are only compiled."""

    def step(self, *_: object) -> None:
        """Take a row."""

    def finalize(self) -> int:
        """Give something."""
        return 0


def _stand_in(*_: object) -> None:
    """Is never called: statements that use it are compiled and not run."""


def _tables_now(connection: sqlite3.Connection, gate: Gate) -> set[str]:
    with gate:
        rows = connection.execute("SELECT lower(name) FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    return {str(row[0]) for row in rows}


def _describe(
    connection: sqlite3.Connection, places: Mapping[str, tuple[Path, int]]
) -> Iterator[tuple[str, TableInfo]]:
    rows = connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"
    ).fetchall()
    triggers = connection.execute(
        "SELECT lower(tbl_name) FROM sqlite_master WHERE type = 'trigger' AND upper(sql) LIKE '%BEFORE%'"
    ).fetchall()
    triggered = {str(row[0]) for row in triggers}
    for name, kind, sql in rows:
        file, line = places.get(str(name).lower(), (None, 0))
        try:
            columns = connection.execute("SELECT * FROM pragma_table_xinfo(?)", (name,)).fetchall()
        except sqlite3.Error:
            # A view over something that is no longer there. whoever selects from it gets SQLite's error.
            columns = []
        text = str(sql or "")
        strict = _is_strict(text)
        virtual = text[:30].upper().split()[:2] == ["CREATE", "VIRTUAL"]
        checked = "CHECK" in text.upper() and "NOT NULL" in _checks(text)
        plain = kind == "table" and not virtual
        keyed = "WITHOUTROWID" in "".join(text.rpartition(")")[2].upper().replace(",", " ").split())
        keys = sum(row[5] > 0 for row in columns)
        described = tuple(
            TableColumn(
                str(column),
                str(declared or ""),
                plain and not not_null and not key and hidden == 0 and not checked,
                default is not None,
                strict,
                plain and bool(not_null or (key and (keyed or strict or _is_rowid(declared, keys, text)))),
                plain and bool(key) and not keyed and _is_rowid(declared, keys, text),
                hidden != 0,
            )
            for _, column, declared, not_null, default, key, hidden in columns
        )
        unlisted = frozenset(str(column).lower() for _, column, *_, hidden in columns if hidden == 1)
        foreign = _foreign_keys(connection, str(name), kind == "view")
        guarded = bool(_CONFLICT.search(text)) or str(name).lower() in triggered
        yield (
            str(name).lower(),
            TableInfo(str(name), described, kind == "view", text, file, line, foreign, guarded, unlisted),
        )


_CONFLICT: Final = re.compile(r"\bON\s+CONFLICT\b", re.IGNORECASE)


def _is_rowid(declared: object, keys: int, sql: str) -> bool:
    """True if a column of the primary key is the rowid: the only one, an INTEGER, and not the oddity `INTEGER PRIMARY
    KEY DESC`.
    """
    return keys == 1 and str(declared or "").upper() == "INTEGER" and " DESC" not in sql.upper()


def _foreign_keys(connection: sqlite3.Connection, name: str, view: bool) -> frozenset[tuple[str, str, str]]:
    """The foreign keys of one column: column, table and its column."""
    if view:
        return frozenset()
    rows = connection.execute('SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?)', (name,)).fetchall()
    several = [row[0] for row in rows]
    found: set[tuple[str, str, str]] = set()
    for number, table, column, to in rows:
        if several.count(number) > 1:
            continue
        if to is None:
            keys = connection.execute("SELECT name FROM pragma_table_info(?) WHERE pk > 0", (table,)).fetchall()
            to = keys[0][0] if len(keys) == 1 else ""
        found.add((str(column).lower(), str(table).lower(), str(to).lower()))
    return frozenset(found)


def _is_strict(sql: str) -> bool:
    return "STRICT" in sql.rpartition(")")[2].upper().replace(",", " ").split()


def _checks(sql: str) -> str:
    """Return the SQL after the first CHECK of a table: where NOT NULL in it constrains values."""
    upper = " ".join(sql.upper().split())
    parts = upper.split("CHECK", 1)[1:]
    inside: list[str] = []
    for part in parts:
        depth = 0
        for character in part:
            depth += {"(": 1, ")": -1}.get(character, 0)
            inside.append(character if depth > 0 else " ")
    return "".join(inside)
