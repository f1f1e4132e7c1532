"""The storage of one object, as its class sees it: transactions, and the ways to keys and values, the alarm and SQL."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NoReturn, TypeVar

from core.backends.embedded.durable_object.living import Living
from core.backends.embedded.durable_object.operations import Operations, Transaction
from core.backends.embedded.durable_object.records import ObjectRecords
from core.backends.embedded.durable_object.sync import Sql, SyncKv
from core.bindings.durable_object import DurableObjectStorage, DurableObjectTransaction
from core.errors import DurableObjectError, UnsupportedBindingError

T = TypeVar("T")


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

    async def delete_all(self, *, allow_concurrency: bool = False, allow_unconfirmed: bool = False) -> None:
        await self._object.turn()
        if self._transactions:
            raise DurableObjectError("Cannot call deleteAll() within a transaction")
        self.commit()
        self.writing()
        try:
            _delete_everything(self._database.connection)
        except sqlite3.Error as error:
            raise self.lost(error) from error
        self.commit()
        # Where it cannot be forgotten, it is looked for in vain.
        with contextlib.suppress(sqlite3.Error):
            self._object.objects.alarms.note(self._object.id, None)

    async def transaction(self, closure: Callable[[DurableObjectTransaction], Awaitable[T]], /) -> T:
        return await self._object.exclusively(lambda: self._transaction(closure))

    async def _transaction(self, closure: Callable[[DurableObjectTransaction], Awaitable[T]]) -> T:
        savepoint = self.begin()
        transaction = Transaction(self)
        try:
            result = await closure(transaction)
        except BaseException:
            transaction.end(rolled_back=True)
            self._end(savepoint, undo=True)
            raise
        rolled_back = transaction.rolled_back
        transaction.end(rolled_back=rolled_back)
        self._end(savepoint, undo=rolled_back)
        return result

    def transaction_sync(self, closure: Callable[[], T], /) -> T:
        savepoint = self.begin()
        try:
            result = closure()
        except BaseException:
            self._end(savepoint, undo=True)
            raise
        self._end(savepoint, undo=False)
        return result

    def _end(self, savepoint: str, *, undo: bool) -> None:
        # A reset has undone everything, and planned the alarm.
        if undo and self._object.broken is not None:
            return
        self.end(savepoint, undo=undo)
        self.plan_alarm()

    async def sync(self) -> None:
        self.commit()

    async def get_current_bookmark(self) -> str:
        """Not embedded. See `DurableObjectStorage.get_current_bookmark`."""
        return _refuse_bookmarks()

    async def get_bookmark_for_time(self, timestamp: datetime | float, /) -> str:
        """Not embedded. See `DurableObjectStorage.get_bookmark_for_time`."""
        return _refuse_bookmarks()

    async def on_next_session_restore_bookmark(self, bookmark: str, /) -> str:
        """Not embedded. See `DurableObjectStorage.on_next_session_restore_bookmark`."""
        return _refuse_bookmarks()

    async def _check(self, operation: str) -> None:
        await self._object.turn()


def _delete_everything(connection: sqlite3.Connection) -> None:
    """Delete everything that an object has stored, the application's tables too."""
    connection.execute("PRAGMA defer_foreign_keys = ON")
    for kind, name in connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger', 'table')"
        " AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        # A virtual table takes its shadows with it, so it goes before them.
        " ORDER BY type = 'table', sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall():
        quoted = name.replace('"', '""')
        connection.execute(f'DROP {kind} IF EXISTS "{quoted}"')
    connection.execute("DELETE FROM _cf_KV")
    connection.execute("DELETE FROM _cf_ALARM")


def _refuse_bookmarks() -> NoReturn:
    raise UnsupportedBindingError(
        "Bookmarks (point-in-time recovery) of Durable Objects are not embedded: only the platform has them"
    )
