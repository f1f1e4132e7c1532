"""A database as the statements that make it again, each with the values to run it with.

Statements bind what JavaScript has no value for in another form, and make it in SQL: whole numbers are text there,
which is cast, since a number that workerd binds is a REAL. Nothing is known here of what the tables mean.
"""

from __future__ import annotations

import base64
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from core.errors import DeveloperError

__all__ = ["Statement", "counts_of", "insert", "read_text", "statements_of"]

Row: TypeAlias = Sequence[Any]

# The bytes of values after which the rows read so far become statements.
_TOGETHER: Final = 256 * 1024
_OWN: Final = "name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


@attrs.frozen
class Statement:
    """A statement and the rows of values that it runs with. A transaction may end behind it, if it is an `end`."""

    sql: str
    rows: Sequence[Row] = ((),)
    end: bool = True
    size: int = 0


class _Bytes(bytes):
    """Text that is not UTF-8."""


def read_text(data: bytes) -> str | _Bytes:
    """The `text_factory` of a connection whose rows go into statements."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _Bytes(data)


def counts_of(connection: sqlite3.Connection) -> Mapping[str, int]:
    """The number of rows of each of a database's own tables."""
    return {
        name: connection.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]
        for name, *_ in _tables(connection)
    }


def statements_of(connection: sqlite3.Connection) -> Iterator[Statement]:
    """The statements that make a database: tables, rows in the order of foreign keys, then all that reacts to rows.

    Raises DeveloperError for a table whose rows cannot be read back.
    """
    tables = _tables(connection)
    schema = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    yield from (Statement(schema[name]) for name, *_ in tables)
    for group in _in_order(connection, [name for name, *_ in tables]):
        for name in group:
            for statement in _rows_of(connection, name, schema[name]):
                # Those that refer to each other are checked at the end of one transaction.
                yield statement if len(group) == 1 else attrs.evolve(statement, end=False)
        yield Statement("SELECT 1")
    if "sqlite_sequence" in schema:
        yield Statement("DELETE FROM sqlite_sequence")
        sequences = connection.execute("SELECT name, seq FROM sqlite_sequence")
        yield from insert("sqlite_sequence", ("name", "seq"), sequences)
    for (sql,) in connection.execute(
        "SELECT sql FROM sqlite_master WHERE type IN ('index', 'view', 'trigger') AND sql IS NOT NULL ORDER BY rowid"
    ):
        yield Statement(sql)


def insert(table: str, columns: Sequence[str], rows: Iterable[Row]) -> Iterator[Statement]:
    """The statements that insert rows. A transaction may end where all rows until then are inserted."""
    head = f"INSERT INTO {_quoted(table)} ({', '.join(map(_quoted, columns))}) VALUES "
    together: dict[str, list[Row]] = {}
    size = 0
    for row in rows:
        encoded = [_encoded(value) for value in row]
        values = [value for _, found in encoded for value in found]
        together.setdefault(f"{head}({', '.join(place for place, _ in encoded)})", []).append(values)
        size += sum(len(value) if isinstance(value, (str, bytes)) else 8 for value in row)
        if size > _TOGETHER:
            yield from _inserting(together, size)
            together, size = {}, 0
    yield from _inserting(together, size)


def _inserting(together: Mapping[str, Sequence[Row]], size: int) -> Iterator[Statement]:
    for at, (sql, rows) in enumerate(together.items(), 1):
        yield Statement(sql, rows, end=at == len(together), size=size // len(together))


def _encoded(value: Any) -> tuple[str, Sequence[Any]]:
    """A value's place in a statement, and what is bound there."""
    match value:
        case int():
            return "CAST(? AS INTEGER)", [str(value)]
        case float() if math.isinf(value):
            return "9e999" if value > 0 else "-9e999", []
        case b"":
            return "x''" if type(value) is bytes else "''", []
        case bytes():
            place = "?" if type(value) is bytes else "CAST(? AS TEXT)"
            return place, [{"b": base64.b64encode(value).decode()}]
        case _:
            return "?", [value]


def _tables(connection: sqlite3.Connection) -> Sequence[tuple[str, str, int]]:
    """Name, type, and whether it is without rowids, of the tables that are neither SQLite's nor the runtime's."""
    return connection.execute(
        f"SELECT t.name, t.type, t.wr FROM pragma_table_list t JOIN sqlite_master m ON m.name = t.name "
        f"WHERE t.schema = 'main' AND t.type IN ('table', 'virtual') AND t.{_OWN.replace('AND name', 'AND t.name')} "
        "ORDER BY m.rowid"
    ).fetchall()


def _parents(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[2].lower() for row in connection.execute(f"PRAGMA foreign_key_list({_quoted(table)})")}


def _in_order(connection: sqlite3.Connection, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The tables, each behind those that it refers to; those that do so in a circle together."""
    written = {name.lower(): name for name in names}
    left: dict[str, set[str]] = {name: _parents(connection, name) & set(written) for name in written}
    while left:
        group = min((_closure(name, left) for name in left), key=len)
        yield [written[name] for name in sorted(group)]
        left = {name: parents - group for name, parents in left.items() if name not in group}


def _closure(name: str, parents: Mapping[str, set[str]]) -> set[str]:
    """A table, and those without which it cannot be."""
    found: set[str] = set()
    following = {name}
    while following:
        found |= following
        following = {parent for one in following for parent in parents[one]} - found
    return found


def _rows_of(connection: sqlite3.Connection, table: str, sql: str) -> Iterator[Statement]:
    columns = [
        (row[1], row[2], row[5])
        for row in connection.execute(f"PRAGMA table_xinfo({_quoted(table)})")
        if row[6] == 0  # neither hidden nor generated
    ]
    given = [name for name, *_ in columns]
    names = [*given]
    ((kind, without_rowid),) = connection.execute(
        "SELECT type, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (table,)
    )
    keys = [type.upper() for _, type, key in columns if key]
    if kind == "virtual":
        keeps_rowid = "fts5" in sql.lower()
        if keeps_rowid and _without_content(sql):
            raise DeveloperError(f"the full-text table {table} has no content of its own, so it cannot be read back")
    else:
        keeps_rowid = not without_rowid and keys != ["INTEGER"]
    if keeps_rowid and "rowid" not in [name.lower() for name in names]:
        names.insert(0, "rowid")
    found = connection.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}")
    if table.lower() not in _parents(connection, table):
        yield from insert(table, names, found)
        return
    circles: Iterable[Row] = found
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in map(str.lower, given)), None)
    if rowid is not None and not without_rowid:
        left: list[int] = []
        yield from insert(table, names, _parents_first(connection, table, names, rowid, left))
        circles = _read(connection, table, names, rowid, left)
    # Their rows are checked at the end of one transaction.
    yield from (attrs.evolve(statement, end=False) for statement in insert(table, names, circles))


def _parents_first(
    connection: sqlite3.Connection, table: str, names: Sequence[str], rowid: str, left: list[int]
) -> Iterator[Row]:
    """The rows of a table that refers to itself, each behind those that it refers to.

    Rows mostly come so by themselves. One that does not waits, by its rowid alone. In `left` are those at the end that
    wait for each other.
    """
    joins = list(_joins_to_itself(connection, table))
    parents = ", ".join(f"p{at}.{rowid}" for at in range(len(joins)))
    tables = "".join(f" LEFT JOIN {_quoted(table)} p{at} ON {condition}" for at, condition in enumerate(joins))
    columns = ", ".join(f"c.{_quoted(name)}" for name in names)
    waiting: dict[int, list[int]] = {}
    missing: dict[int, int] = {}
    for this, *rest in connection.execute(
        f"SELECT c.{rowid}, {parents}, {columns} FROM {_quoted(table)} c{tables} ORDER BY c.{rowid}"
    ):
        needed = {
            parent for parent in rest[: len(joins)] if parent is not None and (parent > this or parent in missing)
        }
        for parent in needed:
            waiting.setdefault(parent, []).append(this)
        if needed:
            missing[this] = len(needed)
            continue
        yield rest[len(joins) :]
        written = [this]
        while written:
            for child in waiting.pop(written.pop(), ()):
                missing[child] -= 1
                if missing[child] == 0:
                    del missing[child]
                    yield from _read(connection, table, names, rowid, [child])
                    written.append(child)
    left += missing


def _joins_to_itself(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """For each foreign key of a table to itself, the condition under which its row `p<number>` is one of row `c`."""
    keys: dict[int, list[tuple[str, str | None]]] = {}
    for number, _, parent, own, other, *_ in connection.execute(f"PRAGMA foreign_key_list({_quoted(table)})"):
        if parent.lower() == table.lower():
            keys.setdefault(number, []).append((own, other))
    primary = [
        name
        for _, name in sorted(
            (row[5], row[1]) for row in connection.execute(f"PRAGMA table_info({_quoted(table)})") if row[5]
        )
    ]
    for at, pairs in enumerate(keys.values()):
        yield " AND ".join(
            f"p{at}.{_quoted(other or primary[number])} = c.{_quoted(own)}" for number, (own, other) in enumerate(pairs)
        )


def _read(
    connection: sqlite3.Connection, table: str, names: Sequence[str], rowid: str, rows: Iterable[int]
) -> Iterator[Row]:
    for row in rows:
        yield from connection.execute(
            f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)} WHERE {rowid} = ?", (row,)
        )


def _without_content(sql: str) -> bool:
    plain = "".join(sql.lower().split()).replace('"', "'")
    return "content=''" in plain


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
