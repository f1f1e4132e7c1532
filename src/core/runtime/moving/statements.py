"""A database as the statements that make it again, each with the values to run it with.

They run without a check of foreign keys, so tables and rows may come before those that they refer to. Statements bind
what JavaScript has no value for in another form, and make it in SQL: whole numbers are text there, which is cast, since
a number that workerd binds is a REAL. Nothing is known here of what the tables mean.

And Python values in the form in which workerd stores JavaScript's, which V8 calls its serialization format:
https://github.com/v8/v8/blob/main/src/objects/value-serializer.cc
"""

from __future__ import annotations

import base64
import math
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from itertools import chain
from typing import Any, Final, TypeAlias

import attrs

from core.bindings.numbers import MAX_SAFE_INTEGER
from core.errors import DeveloperError
from core.statements.tokens import quoted

Row: TypeAlias = Sequence[Any]

# The bytes of values after which the rows read so far become statements.
_TOGETHER: Final = 256 * 1024


@attrs.frozen
class Statement:
    """A statement and the rows of values that it runs with, of about `size` bytes."""

    sql: str
    rows: Sequence[Row] = ((),)
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


def statements_of(connection: sqlite3.Connection) -> Iterator[Statement]:
    """The statements that make a database: tables, rows, what reacts to rows. Raises DeveloperError."""
    tables = _tables(connection)
    schema = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    yield from (Statement(schema[name]) for name, *_ in tables)
    for name, kind, without_rowid in tables:
        columns = _columns(connection, name, kind, without_rowid, schema[name])
        rows = connection.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(name)}")
        yield from insert(name, columns, rows)
    if "sqlite_sequence" in schema:
        yield Statement("DELETE FROM sqlite_sequence")
        sequences = connection.execute("SELECT name, seq FROM sqlite_sequence")
        yield from insert("sqlite_sequence", ("name", "seq"), sequences)
    for (sql,) in connection.execute(
        "SELECT sql FROM sqlite_master WHERE type IN ('index', 'view', 'trigger') AND sql IS NOT NULL ORDER BY rowid"
    ):
        yield Statement(sql)


def insert(table: str, columns: Sequence[str], rows: Iterable[Row]) -> Iterator[Statement]:
    """The statements that insert rows, each with many of them."""
    into = f"INSERT INTO {quoted(table)} ({', '.join(map(quoted, columns))}) VALUES"
    together: dict[str, list[Row]] = {}
    size = 0
    for row in rows:
        encoded = [_encoded(value) for value in row]
        sql = f"{into} ({', '.join(place for place, _ in encoded)})"
        together.setdefault(sql, []).append([value for _, bound in encoded for value in bound])
        size += sum(len(value) if isinstance(value, (str, bytes)) else 8 for value in row)
        if size > _TOGETHER:
            yield from _made(together, size)
            together, size = {}, 0
    yield from _made(together, size)


def _made(together: Mapping[str, Sequence[Row]], size: int) -> Iterator[Statement]:
    for sql, rows in together.items():
        yield Statement(sql, rows, size // len(together))


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
        "SELECT t.name, t.type, t.wr FROM pragma_table_list t JOIN sqlite_master m ON m.name = t.name "
        "WHERE t.schema = 'main' AND t.type IN ('table', 'virtual') AND t.name NOT LIKE '\\_cf\\_%' ESCAPE '\\' "
        "AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.rowid"
    ).fetchall()


def _columns(connection: sqlite3.Connection, table: str, kind: str, without_rowid: int, sql: str) -> Sequence[str]:
    """The columns of a table that are written: with its rowid, where that is no column of its own."""
    columns = [
        (row[1], row[2], row[5])
        for row in connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
        if row[6] == 0  # neither hidden nor generated
    ]
    names = [name for name, *_ in columns]
    taken = {*map(str.lower, names)}
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), None)
    if kind == "virtual":
        keeps_rowid = "fts5" in sql.lower()
        if keeps_rowid and "content=''" in "".join(sql.lower().split()).replace('"', "'"):
            raise DeveloperError(f"the full-text table {table} has no content of its own, so it cannot be read back")
    else:
        keeps_rowid = not without_rowid and [type.upper() for _, type, key in columns if key] != ["INTEGER"]
    return [rowid, *names] if keeps_rowid and rowid is not None else names


# Values ---------------------------------------------------------------------------------------------------------------

_HEAD: Final = b"\xff\x0f"
_SMALL: Final = 2**30


def dump(value: object) -> bytes:
    """The bytes of a value that `core.backends.embedded.clone` can hold."""
    out = bytearray(_HEAD)
    _write(value, out)
    return bytes(out)


def _write(value: Any, out: bytearray) -> None:
    whole = value  # not narrowed by what follows
    match value:
        case None:
            out += b"0"
        case bool():
            out += b"T" if value else b"F"
        case int() if -_SMALL <= value < _SMALL:
            out += b"I" + _varint((value << 1) ^ (value >> 31))
        case int() if abs(value) > MAX_SAFE_INTEGER:
            length = (abs(value).bit_length() + 63) // 64 * 8
            out += b"Z" + _varint(length << 1 | (value < 0)) + abs(value).to_bytes(length, "little")
        case int() | float():
            out += b"N" + struct.pack("<d", value)
        case str() if all(char <= "\xff" for char in value):
            out += b'"' + _varint(len(value)) + value.encode("latin-1")
        case str():
            units = value.encode("utf-16-le", "surrogatepass")
            out += b"c" + _varint(len(units)) + units
        case bytes():
            out += b"B" + _varint(len(value)) + value + b"VB" + _varint(0) + _varint(len(value)) + _varint(0)
        case datetime():
            out += b"D" + struct.pack("<d", value.timestamp() * 1000)
        case Mapping():
            # An object, or a Map where a key is not a text.
            plain = all(isinstance(key, str) for key in whole)
            out += b"o" if plain else b";"
            for part in chain.from_iterable(whole.items()):
                _write(part, out)
            out += b"{" + _varint(len(whole)) if plain else b":" + _varint(2 * len(whole))
        case _:
            count, is_set = _varint(len(whole)), isinstance(whole, AbstractSet)
            out += b"'" if is_set else b"A" + count
            for item in whole:
                _write(item, out)
            out += b"," + count if is_set else b"$" + _varint(0) + count


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)
