"""The rows of one KV namespace: the table, its files, and the fate of a file whose row is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, TypeVar

from core.backends.embedded.disk import StoreError
from core.backends.embedded.files import Files
from core.backends.embedded.keys import after_prefix, first_of_page
from core.backends.embedded.kv.arguments import failed
from core.backends.embedded.store import Store, run_script
from core.backends.kv import Verb

T = TypeVar("T")

_PURGE_EVERY: Final = 1000
"""Writes, after which expired rows are deleted. Nobody sees them before that either."""

# A row that is replaced or deleted names its file in kv_garbage, in the same transaction, so that
# neither a crash nor another process leaves a file that nobody would delete.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS kv (
  key BLOB NOT NULL PRIMARY KEY,
  value BLOB,
  expiration INTEGER,
  metadata TEXT,
  file TEXT
);
CREATE INDEX IF NOT EXISTS kv_expiration ON kv (expiration) WHERE expiration IS NOT NULL;
CREATE INDEX IF NOT EXISTS kv_file ON kv (file) WHERE file IS NOT NULL;
CREATE TABLE IF NOT EXISTS kv_garbage (file TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS kv_replaced AFTER UPDATE ON kv WHEN old.file IS NOT NULL
BEGIN INSERT OR IGNORE INTO kv_garbage VALUES (old.file); END;
CREATE TRIGGER IF NOT EXISTS kv_deleted AFTER DELETE ON kv WHEN old.file IS NOT NULL
BEGIN INSERT OR IGNORE INTO kv_garbage VALUES (old.file); END;
"""

_SELECT: Final = "SELECT value, expiration, metadata, file FROM kv WHERE key = ?"
_PUT: Final = (
    "INSERT INTO kv (key, value, expiration, metadata, file) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
    " value = excluded.value, expiration = excluded.expiration, metadata = excluded.metadata, file = excluded.file"
)
# Most values have nothing beside them, and five values take longer to bind than two.
_PUT_BARE: Final = (
    "INSERT INTO kv (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET"
    " value = excluded.value, expiration = NULL, metadata = NULL, file = NULL"
)
_BARE: Final = (None, None, None)
_PAGE: Final = (
    "SELECT key, expiration, metadata FROM kv WHERE key {} ? AND key < ?"
    " AND (expiration IS NULL OR expiration > ?) ORDER BY key LIMIT ?"
)
_DELETE: Final = "DELETE FROM kv WHERE key = ?"

Stored: TypeAlias = tuple[bytes | None, int | None, str | None, str | None]
"""A row: value (None when it is in a file), expiration, metadata as JSON, file."""

KeyRows: TypeAlias = list[tuple[bytes, int | None, str | None]]


class KVRows:
    """The rows of the namespace `name` of `store`."""

    def __init__(self, store: Store, name: str) -> None:
        self._clock = store.clock
        self._database = store.database("kv", name)
        self._connection = self._database.connection
        self._files: Files | None = store.files("kv", name)
        self._writes = 0
        self._database.insist(self._set_up)

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            run_script(connection, _SCHEMA)
            connection.execute("DELETE FROM kv WHERE expiration <= ?", (self._clock.time(),))
            if self._files is not None:
                self._files.sweep(connection.execute("SELECT file FROM kv WHERE file IS NOT NULL"))
                connection.execute("DELETE FROM kv_garbage")

    def _select(self, raw: bytes) -> Stored | None:
        stored: Stored | None = self._connection.execute(_SELECT, (raw,)).fetchone()
        if stored is not None and stored[1] is not None and self._clock.time() >= stored[1]:
            return None
        return stored

    def _rows(self, start: bytes, after: bytes, count: int) -> KeyRows:
        compared, first = first_of_page(start, after)
        return self._connection.execute(
            _PAGE.format(compared), (first, after_prefix(start), self._clock.time(), count)
        ).fetchall()

    def _write(self, raw: bytes, stored: Stored | None) -> None:
        connection = self._connection
        before = connection.total_changes
        if stored is None:
            connection.execute(_DELETE, (raw,))
        elif stored[1:] == _BARE:
            connection.execute(_PUT_BARE, (raw, stored[0]))
        else:
            connection.execute(_PUT, (raw, *stored))
        self._writes += 1
        if self._writes >= _PURGE_EVERY:
            self._writes = 0
            connection.execute("DELETE FROM kv WHERE expiration <= ?", (self._clock.time(),))
        # A change beyond the one row is a trigger's: a file has become garbage.
        if self._files is not None and connection.total_changes - before > 1:
            self._database.empty_garbage(self._files, "kv_garbage")

    async def _put_file(self, files: Files, raw: bytes, data: bytes, expires: int | None, metadata: str | None) -> None:
        try:
            staged = await asyncio.to_thread(files.stage, (data,))
        except StoreError as error:
            raise failed("PUT", error) from error

        def write() -> None:
            with self._database.transaction() as connection:
                connection.execute(_PUT, (raw, None, expires, metadata, files.publish(staged)))
            self._database.empty_garbage(files, "kv_garbage")

        try:
            await self._wait("PUT", write)
        finally:
            staged.unlink(missing_ok=True)

    async def _wait(self, verb: Verb, action: Callable[[], T]) -> T:
        """Do it as soon as no other process holds the database. Raises KVError where that fails."""
        return await self._database.answer(action, partial(failed, verb))
