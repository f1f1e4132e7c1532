"""The storage without waiting: keys and values (`storage.kv`), and the object's own SQL (`storage.sql`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from core.backends.embedded.d1 import Refused
from core.backends.embedded.durable_object.arguments import encode_key, encode_value
from core.backends.embedded.durable_object.records import ObjectRecords
from core.bindings.durable_object import SqlStorage, SqlStorageValue, SyncKvStorage, sql_binding
from core.errors import DurableObjectError


class SyncKv(SyncKvStorage):
    """The keys and values, without waiting. See `SyncKvStorage`."""

    def __init__(self, storage: ObjectRecords) -> None:
        self._storage = storage

    def get(self, key: str, /) -> Any:
        return self._storage.read(encode_key(key))

    def list(self, **keys: Any) -> Iterator[tuple[str, Any]]:
        return self._storage.scan(**keys)

    def put(self, key: str, value: Any, /) -> None:
        self._storage.write([(encode_key(key), encode_value(value))])

    def delete(self, key: str, /) -> bool:
        return self._storage.remove([encode_key(key)]) > 0


class Cursor:
    """The rows of one `exec`. See `SqlStorageCursor`."""

    def __init__(self, columns: list[str], rows: list[Any], written: int) -> None:
        self.column_names = columns
        self.rows_read: int = len(rows)
        self.rows_written = written
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[dict[str, SqlStorageValue]]:
        return self

    def __next__(self) -> dict[str, SqlStorageValue]:
        return dict(zip(self.column_names, next(self._rows), strict=True))

    def to_array(self) -> list[dict[str, SqlStorageValue]]:
        return [*self]

    def one(self) -> dict[str, SqlStorageValue]:
        rows = self.to_array()
        if len(rows) != 1:
            got = "no" if not rows else "multiple"
            raise DurableObjectError(f"Expected exactly one result from SQL query, but got {got} results.")
        return rows[0]

    def raw(self) -> Iterator[list[SqlStorageValue]]:
        return ([*row] for row in self._rows)


class Sql(SqlStorage):
    """The object's own SQL database. See `SqlStorage`."""

    def __init__(self, storage: ObjectRecords) -> None:
        self._storage = storage

    @property
    def database_size(self) -> int:
        (pages,), (size,) = (self._storage.rows(f"PRAGMA page_{name}")[0] for name in ("count", "size"))
        return int(pages) * int(size)

    def exec(self, query: str, /, *bindings: SqlStorageValue) -> Cursor:
        values = tuple([sql_binding(value) for value in bindings])
        self._storage.writing()
        # A statement that fails undoes itself; those before it, in the same text too, stay done.
        try:
            columns, rows, numbers = self._storage.engine.inside(query, values)
        except Refused as error:
            raise DurableObjectError(str(error)) from error
        except sqlite3.Error as error:
            raise self._storage.failed(error) from error
        return Cursor(columns, rows, numbers[1])
