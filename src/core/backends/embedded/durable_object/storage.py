"""The storage of one object, as its class sees it: keys, values and the alarm, transactions, and SQL."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from copy import copy
from datetime import datetime
from typing import Any, Final, Generic, NoReturn, cast

from typing_extensions import TypeForm, TypeVar

from core.backends.embedded.d1 import Refused, drop_all
from core.backends.embedded.durable_object.arguments import (
    MAX_PAIRS,
    encode_key,
    encode_value,
    several,
    to_milliseconds,
)
from core.backends.embedded.durable_object.records import Living, ObjectRecords
from core.bindings.calls import Hookable
from core.bindings.durable_object import (
    DurableObjectStorage,
    DurableObjectTransaction,
    SqlStorage,
    SqlStorageCursor,
    SqlStorageValue,
    StorageOperations,
    SyncKvStorage,
    sql_binding,
)
from core.errors import DurableObjectError, DurableObjectTypeError, DurableObjectValueError, UnsupportedBindingError
from core.validation.rows import row_reader

T = TypeVar("T")
R = TypeVar("R", default=dict[str, SqlStorageValue])

_MISSING: Final[Any] = object()


class Operations(Hookable, StorageOperations):
    """Operations shared by storage and a transaction. How a write is confirmed and a read cached is all one here."""

    _storage: ObjectRecords
    _check: Callable[[str], Awaitable[None]]
    """Raises if nothing can be done here any more; waits while another's transaction is open."""

    async def _get(self, keys: Any, /, **_: object) -> object:
        await self._check("get()")
        if isinstance(keys, str):
            return self._storage.read(encode_key(keys))
        raws = sorted({encode_key(key) for key in several(keys)})
        values = [(raw, self._storage.read(raw, _MISSING)) for raw in raws]
        return {raw.decode(): value for raw, value in values if value is not _MISSING}

    async def _list(self, *, allow_concurrency: bool = False, no_cache: bool = False, **keys: Any) -> dict[str, object]:
        await self._check("list()")
        return dict(self._storage.scan(**keys))

    async def _put(self, key: Any, value: Any = ..., /, **_: object) -> None:
        await self._check("put()")
        if isinstance(key, str):
            if value is ...:
                raise DurableObjectTypeError("put() called with undefined value.")
            self._storage.write([(encode_key(key), encode_value(value))])
            return
        given = key  # not narrowed by what follows
        if not isinstance(key, Mapping) or value is not ...:
            raise DurableObjectTypeError(
                "put() may only be called with a single key-value pair and optional options as put(key, value, options) "
                "or with multiple key-value pairs and optional options as put(entries, options)"
            )
        entries: Mapping[object, object] = given
        if len(entries) > MAX_PAIRS:
            raise DurableObjectValueError(
                f"Maximum number of key value pairs is {MAX_PAIRS}. {len(entries)} pairs were provided."
            )
        self._storage.write([(encode_key(name), encode_value(item)) for name, item in entries.items()])

    async def _delete(self, keys: Any, /, **_: Any) -> object:
        await self._check("delete()")
        if isinstance(keys, str):
            return self._storage.remove([encode_key(keys)]) > 0
        return self._storage.remove([encode_key(key) for key in several(keys)])

    async def _get_alarm(self, **_: object) -> int | None:
        await self._check("getAlarm()")
        row = self._storage.read_alarm()
        return None if row is None or row.mark == self._storage.firing else row.time

    async def _set_alarm(self, scheduled_time: datetime | float, **_: object) -> None:
        await self._check("setAlarm()")
        self._storage.write_alarm(to_milliseconds(scheduled_time))

    async def _delete_alarm(self, **_: object) -> None:
        await self._check("deleteAlarm()")
        self._storage.change("DELETE FROM _cf_ALARM", ())


class Transaction(Operations, DurableObjectTransaction):
    def __init__(self, storage: ObjectRecords) -> None:
        self._storage = storage
        self._ended = False
        self.rolled_back: bool = False

    async def _check(self, operation: str) -> None:
        self._refuse_late(operation)

    def _refuse_late(self, operation: str) -> None:
        if self.rolled_back:
            raise DurableObjectError(f"Cannot {operation} on rolled back transaction")
        if self._ended:
            raise DurableObjectError(
                f"Cannot call {operation} on transaction that has already committed: "
                "did you move `txn` outside of the closure?"
            )

    def rollback(self) -> None:
        if not self.rolled_back:
            self._refuse_late("rollback()")
            self.rolled_back = True

    def end(self, *, rolled_back: bool) -> None:
        """Refuse whatever comes after the closure."""
        self._ended = True
        self.rolled_back = rolled_back


class SyncKv(SyncKvStorage):
    def __init__(self, storage: ObjectRecords) -> None:
        self._storage = storage

    def get(self, key: str, /) -> object:
        return self._storage.read(encode_key(key))

    def list(self, **keys: Any) -> Iterator[tuple[str, object]]:
        return self._storage.scan(**keys)

    def put(self, key: str, value: object, /) -> None:
        self._storage.write([(encode_key(key), encode_value(value))])

    def delete(self, key: str, /) -> bool:
        return self._storage.remove([encode_key(key)]) > 0


class Cursor(Generic[R]):
    def __init__(self, columns: list[str], rows: list[Any], written: int) -> None:
        self.column_names = columns
        self.rows_read: int = len(rows)
        self.rows_written = written
        self._rows = iter(rows)
        self._read: Callable[[Any], Any] = lambda row: dict(zip(columns, row, strict=True))

    def as_(self, type_: TypeForm[T], /) -> SqlStorageCursor[T]:
        typed: Any = copy(self)
        typed._read = row_reader(type_, tuple(self.column_names))
        return cast("Cursor[T]", typed)

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        row: R = self._read(next(self._rows))
        return row

    def to_array(self) -> list[R]:
        return [*self]

    def one(self) -> R:
        rows = self.to_array()
        if len(rows) != 1:
            got = "no" if not rows else "multiple"
            raise DurableObjectError(f"Expected exactly one result from SQL query, but got {got} results.")
        return rows[0]

    def raw(self) -> Iterator[list[SqlStorageValue]]:
        return ([*row] for row in self._rows)


class Sql(SqlStorage):
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
        return Cursor([*columns], rows, numbers[1])


async def _refuse_bookmarks(self: object, *_: object) -> NoReturn:
    raise UnsupportedBindingError(
        "Bookmarks (point-in-time recovery) of Durable Objects are not embedded: only the platform has them"
    )


class ObjectStorage(ObjectRecords, Operations, DurableObjectStorage):
    """The storage of one object. See `DurableObjectStorage`."""

    def __init__(self, living: Living) -> None:
        super().__init__(living)
        self._storage = self

    @property
    def sql(self) -> Sql:
        return Sql(self)

    @property
    def kv(self) -> SyncKv:
        return SyncKv(self)

    async def _delete_all(self, **_: object) -> None:
        await self._object.turn()
        if self._transactions:
            raise DurableObjectError("Cannot call deleteAll() within a transaction")
        self.commit()
        self.writing()
        try:
            connection = self._database.connection
            connection.execute("PRAGMA defer_foreign_keys = ON")
            drop_all(connection)
            connection.execute("DELETE FROM _cf_KV")
            connection.execute("DELETE FROM _cf_ALARM")
        except sqlite3.Error as error:
            raise self.lost(error) from error
        self.commit()
        # Where it cannot be forgotten, it is looked for in vain.
        with contextlib.suppress(sqlite3.Error):
            self._object.objects.alarms.note(self._object.id, None)

    async def transaction(self, closure: Callable[[DurableObjectTransaction], Awaitable[T]], /) -> T:
        async def run() -> T:
            with self._savepoint() as transaction:
                return await closure(transaction)

        return await self._object.exclusively(run)

    def transaction_sync(self, closure: Callable[[], T], /) -> T:
        with self._savepoint():
            return closure()

    @contextlib.contextmanager
    def _savepoint(self) -> Generator[Transaction]:
        savepoint, transaction, undo = self.begin(), Transaction(self), True
        try:
            yield transaction
            undo = transaction.rolled_back
        finally:
            transaction.end(rolled_back=undo)
            self.end(savepoint, undo=undo)

    async def sync(self) -> None:
        self.commit()

    get_current_bookmark: Callable[..., Any] = _refuse_bookmarks
    get_bookmark_for_time: Callable[..., Any] = _refuse_bookmarks
    on_next_session_restore_bookmark: Callable[..., Any] = _refuse_bookmarks

    async def _check(self, operation: str) -> None:
        await self._object.turn()
