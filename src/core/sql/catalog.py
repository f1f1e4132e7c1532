"""The tables that a database's migrations make.

They run in memory, statement by statement, under an authorizer that lets nothing out of the process; rows are not
written, since only the schema is asked for. A statement that fails is a problem with its file and line, and the tables
that it would have made or changed are not known.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from core.sql import functions
from core.sql.connection import ClosingConnection
from core.sql.location import locate
from core.sql.messages import did_you_mean
from core.sql.migrations import Migration, migration_files
from core.sql.rules import FUNCTIONS, LIMITS, MAX_SQL_BYTES, TRANSACTION_STATEMENTS, allows, refusal
from core.sql.statement import Storage
from core.statements.tokens import StatementText, Token, enclosed, quoted, text_of, tokens_of
from core.values import frozen

# The functions that a newer SQLite, or one built with more options, has and this machine's may lack: stand-ins, so that
# a statement that calls them can be compiled.
_STAND_INS: Final = functions.FUNCTIONS.keys() | {"bm25", "iif"}

SCHEMA_WORDS: Final = frozenset(["CREATE", "ALTER", "DROP", "REINDEX", "ANALYZE"])
"""The first words of statements about tables themselves."""
_STEPS_AT_MOST: Final = 20_000_000
"""Virtual machine steps that one statement of a migration may take: a second or two."""


@frozen
class MigrationProblem:
    """A statement that SQLite, or D1, does not take. `line` counts from 1. `tables` are the names, in lower case, of
    those that it would make or change; None for one that made its table, which then takes no row.
    """

    file: Path
    line: int
    message: str
    tables: frozenset[str] | None = frozenset()


def problem_text(problem: MigrationProblem, directory: Path) -> str:
    """A problem as it is told beside the database: the file from the configuration's directory on, and the line."""
    file = problem.file
    shown = file.relative_to(directory) if file.is_relative_to(directory) else file
    text = f"{shown.as_posix()}:{problem.line}: {problem.message}"
    if problem.tables is None:
        return text
    tables = ", ".join(problem.tables) if len(problem.tables) == 1 else "what it makes"
    return f"{text}. Until it is corrected, {tables} is not known"


@frozen
class TableColumn:
    """A column as its table declares it.

    `nullable` and `filled` are both False where it cannot be told whether it holds NULL. `key` says that it is the key
    of its rows, an integer that the database gives where nobody does; `generated` that nobody may give it; `checked`
    that a CHECK names it. `allowed` are the texts of a CHECK (name IN ('a', 'b')), all that it may hold beside NULL.
    """

    name: str
    declared: str
    nullable: bool
    has_default: bool
    strict: bool
    filled: bool = False
    key: bool = False
    generated: bool = False
    checked: bool = False
    allowed: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """True if an INSERT has to give it a value."""
        return self.filled and not (self.has_default or self.key or self.generated)

    @property
    def storage(self) -> frozenset[Storage]:
        """The storage classes of its values, where its declared type says so; else nothing."""
        return _storage_of(self.declared)


def affinity(declared: str) -> str:
    """Letters of storage by SQLite's rules (https://www.sqlite.org/datatype3.html#determination_of_column_affinity)."""
    upper = declared.upper()
    if "INT" in upper:
        return "i"
    if "CHAR" in upper or "CLOB" in upper or "TEXT" in upper:
        return "t"
    if "BLOB" in upper or not upper:
        return "b"
    return "r" if "REAL" in upper or "FLOA" in upper or "DOUB" in upper else "ir"


@lru_cache(256)
def _storage_of(declared: str) -> frozenset[Storage]:
    upper = declared.upper()
    letters = affinity(upper) if upper else ""
    if letters == "ir":  # of numeric columns people keep texts and numbers in ANY and DATE
        letters = "i" if "BOOL" in upper else "ir" if "DEC" in upper or "NUMERIC" in upper else ""
    return functions.storages(letters)


@frozen
class TableInfo:
    """A table or view.

    `foreign` has its foreign keys of one column: the column, the other table and its column, in lower case. `guarded`
    says that a trigger or a conflict clause may keep a row that would break a constraint from it.
    """

    name: str
    columns: tuple[TableColumn, ...]
    view: bool
    sql: str
    foreign: frozenset[tuple[str, str, str]] = frozenset()
    guarded: bool = False
    hidden: frozenset[str] = frozenset()
    """The columns that `*` leaves out, in lower case: those that a virtual table has for its own use."""

    @cached_property
    def named(self) -> Mapping[str, TableColumn]:
        """The columns by their names in lower case."""
        return {column.name.lower(): column for column in self.columns}

    def column(self, name: str) -> TableColumn | None:
        """The column of that name, in any case."""
        return self.named.get(name.lower())


@frozen
class Migrated:
    """The database that the migrations make: the tables by their names in lower case, and a connection to be asked.

    `unmade` are the names of tables, in lower case, whose migration failed, or needs a feature that this machine's
    SQLite lacks: of statements that name one, only errors that SQLite reports without knowing a table count. `trusted`
    is False where no migrations could be read, and the same holds for every statement.
    """

    connection: sqlite3.Connection
    lock: threading.RLock
    tables: Mapping[str, TableInfo]
    functions: frozenset[str]
    problems: tuple[MigrationProblem, ...]
    unmade: frozenset[str]
    trusted: bool

    @contextmanager
    def unguarded(self) -> Generator[None]:
        """Questions on the tools' own behalf, which need more than D1 allows."""
        self.connection.set_authorizer(None)
        try:
            yield
        finally:
            self.connection.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """Answer SQLite, which asks for each thing that a statement would do: the same as D1."""
    if action in _HARMLESS:
        return sqlite3.SQLITE_OK
    loads = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_OK if allows(action, first, second, database) and not loads else sqlite3.SQLITE_DENY


# Nearly every question is whether a row may be read or written, of tables that were made under the rules.
_HARMLESS: Final = frozenset(
    {sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
)


def migrate(folder: Path) -> Migrated:
    """Run the migrations of a folder in memory. It never raises for their contents."""
    connection = ClosingConnection(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)
    names = add_functions(connection)
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    # What is compiled here has a word more before it; the length of the given statement is judged by itself.
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 2 * MAX_SQL_BYTES)
    connection.set_authorizer(_authorize)
    problems: list[MigrationProblem] = []
    unmade: set[str] = set()
    references: dict[str, tuple[Path, int]] = {}
    readable = 0
    files = migration_files(folder)
    for file in files:
        try:
            text = file.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(MigrationProblem(file, 1, f"cannot be read: {error}"))
            continue
        readable += 1
        for line, statement in Migration(file.name, file, text).statements:
            failure = _run(connection, statement)
            if any(token.word in ("REFERENCES", "RENAME") for token in statement.tokens):
                references |= dict.fromkeys(_named_in(statement), (file, line))
            if failure is not None:
                message, offset = failure
                named = _named_in(statement)
                unmade |= named
                if not message.startswith("no such module"):  # which D1 has
                    at = text.count("\n", 0, statement.start + offset) + 1 if offset is not None else line
                    problems.append(MigrationProblem(file, at, message, named))
    connection.set_authorizer(None)
    tables = dict(_describe(connection))
    for name, message in _refused_rows(connection, tables) if references else ():
        if name in references and unmade.isdisjoint(_names_of(tokens_of(message))):
            problems.append(MigrationProblem(*references[name], message, None))
    connection.set_authorizer(_authorize)
    for name, table in tables.items():
        if table.view and not unmade.isdisjoint(_names_of(tokens_of(table.sql))):
            unmade.add(name)
    trusted = 0 < readable == len(files)
    lock = threading.RLock()
    return Migrated(connection, lock, tables, names, tuple(problems), frozenset(unmade), trusted)


def _names_of(tokens: Iterable[Token]) -> frozenset[str]:
    return frozenset(token.name.lower() for token in tokens if token.name is not None)


def _named_in(statement: StatementText) -> frozenset[str]:
    """The tables that a failed statement may make or change: those behind its first TABLE, VIEW or ON, and TO."""
    tokens = statement.tokens
    found: list[Token] = []
    for word in (("TABLE", "VIEW", "ON"), ("TO",)):
        at = next((at for at, token in enumerate(tokens, 1) if token.word in word), len(tokens))
        rest = [token for token in tokens[at : at + 6] if token.word not in ("IF", "NOT", "EXISTS")]
        found += rest[2:3] if len(rest) > 2 and rest[1].text == "." else rest[:1]
    return _names_of(found)


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
    connection.set_progress_handler(lambda: True, _STEPS_AT_MOST)
    try:
        connection.execute(text if first in SCHEMA_WORDS or first == "EXPLAIN" else f"EXPLAIN {text}")
    except sqlite3.Error as error:
        message = str(error)
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


def _refused_rows(connection: sqlite3.Connection, tables: Mapping[str, TableInfo]) -> Iterator[tuple[str, str]]:
    """The tables that take no row at all: SQLite looks for what a foreign key refers to only when it writes."""
    connection.execute("PRAGMA foreign_keys = ON")
    for name, table in tables.items():
        try:
            if not table.view:
                connection.execute(f"EXPLAIN INSERT INTO {quoted(table.name)} DEFAULT VALUES")
        except sqlite3.Error as error:
            message, way = str(error).replace("no such table: main.", "no such table: "), ""
            if message.startswith("no such table: "):
                way = did_you_mean(message.rpartition(": ")[2], tables).strip() or "Create it"
            elif message.startswith("foreign key mismatch"):
                way = "Refer to its primary key, or to a UNIQUE column"
            if way:
                yield name, f"{message}, so no row can be written into {table.name}. {way}"
    connection.execute("PRAGMA foreign_keys = OFF")


def add_functions(connection: sqlite3.Connection) -> frozenset[str]:
    """Add the stand-ins, and return the names of all functions that there are."""
    rows = connection.execute("SELECT DISTINCT name FROM pragma_function_list")
    known = frozenset(str(row[0]) for row in rows)
    for name in _STAND_INS - known:
        connection.create_function(name, -1, lambda *_: None)
    for name in functions.AGGREGATES.keys() - known:
        connection.create_aggregate(name, -1, _StandIn)
    return (known | _STAND_INS | functions.AGGREGATES.keys()) & FUNCTIONS


class _StandIn:
    """An aggregate that is never run, as the functions are not: statements that use them are only compiled."""

    def step(self, *_: object) -> None: ...

    def finalize(self) -> int:
        return 0


def _describe(connection: sqlite3.Connection) -> Iterator[tuple[str, TableInfo]]:
    rows = connection.execute(
        "SELECT m.name, l.type, m.sql, l.wr, l.strict FROM sqlite_master m JOIN pragma_table_list l ON l.name = m.name "
        "WHERE l.schema = 'main' AND m.type IN ('table', 'view') ORDER BY m.rowid"
    ).fetchall()
    triggers = connection.execute(
        "SELECT lower(tbl_name) FROM sqlite_master WHERE type = 'trigger' AND upper(sql) LIKE '%BEFORE%'"
    ).fetchall()
    triggered = {str(row[0]) for row in triggers}
    for name, kind, sql, keyed, strict in rows:
        try:
            columns = connection.execute("SELECT * FROM pragma_table_xinfo(?)", (name,)).fetchall()
        except sqlite3.Error:
            # A view over something that is no longer there. whoever selects from it gets SQLite's error.
            columns = []
        text = str(sql or "")
        tokens = tokens_of(text) if "CHECK" in text.upper() else []
        checks = [one for at, token in enumerate(tokens, 1) if token.word == "CHECK" for one in enclosed(tokens, at)]
        full = any(token.word == "NOT" and after.word == "NULL" for token, after in pairwise(checks))
        checked = {(token.name or "").lower() for token in checks}
        allowed = _allowed_by(tokens)
        plain = kind in ("table", "shadow")
        keys = sum(row[5] > 0 for row in columns)
        described = tuple(
            TableColumn(
                str(column),
                str(declared or ""),
                plain and not not_null and not key and hidden == 0 and not full,
                default is not None and default.upper() != "NULL",
                bool(strict),
                plain and bool(not_null or (key and (keyed or strict or _is_rowid(declared, keys, text)))),
                plain and bool(key) and not keyed and _is_rowid(declared, keys, text),
                hidden != 0,
                str(column).lower() in checked,
                allowed.get(str(column).lower(), ()) if affinity(str(declared or "")) == "t" else (),
            )
            for _, column, declared, not_null, default, key, hidden in columns
        )
        unlisted = frozenset(str(column).lower() for _, column, *_, hidden in columns if hidden == 1)
        foreign = _foreign_keys(connection, str(name))
        guarded = bool(_CONFLICT.search(text)) or str(name).lower() in triggered
        yield (str(name).lower(), TableInfo(str(name), described, kind == "view", text, foreign, guarded, unlisted))


def _allowed_by(tokens: Sequence[Token]) -> Mapping[str, tuple[str, ...]]:
    """The texts that a CHECK of nothing but `name IN ('a', 'b')` allows, by the column; none where texts may be equal
    that are written otherwise.
    """
    found: dict[str, tuple[str, ...]] = {}
    for at, token in enumerate(tokens):
        check = enclosed(tokens, at + 1) if token.word == "CHECK" else tokens[:0]
        inside = enclosed(check, 2)
        texts = [one.text for one in inside[::2] if one.kind == "string" and one.text[0] == "'"]
        alone = [one.word for one in check[1:2]] == ["IN"] and len(check) == len(inside) + 4
        if alone and len(texts) == len(inside[::2]) and all(one.text == "," for one in inside[1::2]):
            found[(check[0].name or "").lower()] = tuple(text_of(one) for one in texts)
    return {} if any(token.word == "COLLATE" for token in tokens) else found


_CONFLICT: Final = re.compile(r"\bON\s+CONFLICT\b", re.IGNORECASE)


def _is_rowid(declared: object, keys: int, sql: str) -> bool:
    """True if a column of the primary key is the rowid: an only INTEGER, and not the odd `INTEGER PRIMARY KEY DESC`."""
    return keys == 1 and str(declared or "").upper() == "INTEGER" and " DESC" not in sql.upper()


def _foreign_keys(connection: sqlite3.Connection, name: str) -> frozenset[tuple[str, str, str]]:
    """The foreign keys of one column: column, table and its column."""
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
