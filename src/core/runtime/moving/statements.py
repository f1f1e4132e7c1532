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
from core.runtime.moving.circles import Change, Table, components, in_order, size_of
from core.statements.tokens import quoted

Row: TypeAlias = Sequence[Any]
# The text before, between and behind the values of a statement.
Form: TypeAlias = Sequence[str]

# The bytes of values after which the rows read so far become statements.
_TOGETHER: Final = 256 * 1024
# Those of rows that need each other, in one transaction. 30 MB were written so, and 80 MB were not.
_LARGEST: Final = 24 * 1024 * 1024
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
        name: connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0]
        for name, *_ in _tables(connection)
    }


def statements_of(
    connection: sqlite3.Connection, *, together: int = _TOGETHER, largest: int = _LARGEST
) -> Iterator[Statement]:
    """The statements that make a database: tables, rows in the order of foreign keys, then all that reacts to rows.

    After `together` bytes of values, rows become statements. `largest` is how many a transaction takes. Raises
    DeveloperError for a table whose rows cannot be read back, or whose rows need each other and are more than that.
    """
    tables = _tables(connection)
    schema = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    yield from (Statement(schema[name]) for name, *_ in tables)
    for group in _in_order(connection, [name for name, *_ in tables]):
        yield from _rows_of(connection, group, schema, together, largest)
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
    form = _inserting(table, columns)
    return _batched(((form, row, True) for row in rows), _TOGETHER)


def _inserting(table: str, columns: Sequence[str]) -> Form:
    between = [", "] * (len(columns) - 1)
    return (f"INSERT INTO {quoted(table)} ({', '.join(map(quoted, columns))}) VALUES (", *between, ")")


def _changing(change: Change, inserting: Form) -> tuple[Form, Row, bool]:
    """A row of tables that refer to each other, with the form of its statement."""
    if change.set is None:
        return inserting, change.values, change.end
    first, *more = [f"{quoted(name)} = " for name in change.set]
    where, *rest = [f"{name} = " for name in change.table.expressions()]
    form = (
        f"UPDATE {quoted(change.table.name)} SET {first}",
        *(f", {text}" for text in more),
        f" WHERE {where}",
        *(f" AND {text}" for text in rest),
        "",
    )
    return form, [*change.values, *change.key], change.end


def _batched(changes: Iterable[tuple[Form, Row, bool]], most: int) -> Iterator[Statement]:
    """Statements of those forms, each with many rows. An UPDATE comes behind the INSERTs before it."""
    together: dict[str, list[Row]] = {}
    # The bytes that are in `together`, and those before them that no end has followed.
    size = before = 0
    kind = ""
    for form, row, end in changes:
        # A change of kind comes behind an end.
        if together and form[0][:6] != kind:
            yield from _made(together, size, end=True)
            together, size, before = {}, 0, 0
        kind = form[0][:6]
        encoded = [_encoded(value) for value in row]
        values = [value for _, found in encoded for value in found]
        sql = "".join(text for pair in zip(form, (place for place, _ in encoded), strict=False) for text in pair)
        together.setdefault(f"{sql}{form[-1]}", []).append(values)
        size += size_of(row)
        if size > most or (end and before + size > most):
            yield from _made(together, size, end=end)
            together, size, before = {}, 0, 0 if end else before + size
    yield from _made(together, size, end=True)


def _made(together: Mapping[str, Sequence[Row]], size: int, *, end: bool) -> Iterator[Statement]:
    for at, (sql, rows) in enumerate(together.items(), 1):
        yield Statement(sql, rows, end=end and at == len(together), size=size // len(together))


def _encoded(value: object) -> tuple[str, Sequence[object]]:
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
    return {row[2].lower() for row in connection.execute(f"PRAGMA foreign_key_list({quoted(table)})")}


def _in_order(connection: sqlite3.Connection, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The tables, each behind those that it refers to; those that do so in a circle together."""
    known = {name.lower(): name for name in reversed(names)}
    children: dict[str, list[str]] = {name: [] for name in known}
    for name in known:
        for parent in _parents(connection, name) & set(known):
            children[parent].append(name)
    for group in components(known, children):
        yield [known[name] for name in sorted(group)]


def _rows_of(
    connection: sqlite3.Connection, group: Sequence[str], schema: Mapping[str, str], together: int, largest: int
) -> Iterator[Statement]:
    """The rows of a table, or of those that refer to each other."""
    tables = [_table(connection, name, schema[name]) for name in group]
    if len(group) > 1 or group[0].lower() in _parents(connection, group[0]):
        forms = {table.name: _inserting(table.name, table.columns) for table in tables}
        changes = in_order(connection, tables, largest)
        yield from _batched((_changing(change, forms[change.table.name]) for change in changes), together)
        return
    (table,) = tables
    found = connection.execute(f"SELECT {', '.join(map(quoted, table.columns))} FROM {quoted(table.name)}")
    yield from insert(table.name, table.columns, found)


def _table(connection: sqlite3.Connection, table: str, sql: str) -> Table:
    columns = [
        (row[1], row[2], row[5])
        for row in connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
        if row[6] == 0  # neither hidden nor generated
    ]
    names = [name for name, *_ in columns]
    ((kind, without_rowid),) = connection.execute(
        "SELECT type, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (table,)
    )
    if without_rowid:
        key, collations = zip(
            *connection.execute(
                "SELECT x.name, x.coll FROM pragma_index_list(?1) l, pragma_index_xinfo(l.name) x "
                "WHERE l.origin = 'pk' AND x.key",
                (table,),
            ),
            strict=True,
        )
        return Table(table, names, key, collations)
    taken = {*map(str.lower, names)}
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), None)
    keys = [type.upper() for _, type, key in columns if key]
    if kind == "virtual":
        keeps_rowid = "fts5" in sql.lower()
        if keeps_rowid and "content=''" in "".join(sql.lower().split()).replace('"', "'"):
            raise DeveloperError(f"the full-text table {table} has no content of its own, so it cannot be read back")
    else:
        keeps_rowid = keys != ["INTEGER"]
    if keeps_rowid and rowid is not None:
        names.insert(0, rowid)
    return Table(table, names, [rowid] if rowid is not None else [], [None])
