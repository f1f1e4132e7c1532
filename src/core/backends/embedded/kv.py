"""The embedded key-value namespace: the platform's semantics over one SQLite table, and files for large values.

The refusals and their words follow the recordings in `tests/traces`; the order of the
checks is the platform's too. Read your writes, at once: the delays of production are a fake's
business (`testing/kv.py`).
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from core.backends.embedded.disk import Files, StoreBusyError, StoreError
from core.backends.embedded.keys import after_prefix, decode_cursor, first_of_page
from core.backends.embedded.store import Store, run_script
from core.backends.kv import (
    KVEngine,
    Verb,
    check_number,
    check_page,
    dump_metadata,
    encode_key,
    key_of,
    keys_of,
    parse,
    parse_bulk,
    refuse,
    refuse_value,
)
from core.bindings.kv import KVKey, KVListResult, KVPutValue, KVType, KVValue
from core.errors import KVError, KVTypeError
from core.http.streams import encode

T = TypeVar("T")

MAX_KEY: Final = 512
MAX_VALUE: Final = 25 * 1024 * 1024
MAX_METADATA: Final = 1024
MAX_BULK_KEYS: Final = 100
MAX_LIST_KEYS: Final = 1000
MIN_TTL: Final = 60
MIN_CACHE_TTL: Final = 30
_CHUNK: Final = 64 * 1024

# Rows stay small, so that a list of keys does not wade through megabytes of values.
_LARGE: Final = 128 * 1024

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
_PURGE: Final = "DELETE FROM kv WHERE expiration <= ?"

Stored: TypeAlias = tuple[bytes | None, int | None, str | None, str | None]
"""A row: value (None when it is in a file), expiration, metadata as JSON, file."""

KeyRows: TypeAlias = list[tuple[bytes, int | None, str | None]]


class EmbeddedKVNamespace(KVEngine):
    """The namespace `name` of `store`. Two objects of one name are one namespace."""

    def __init__(self, store: Store, name: str) -> None:
        self._clock = store.clock
        self._database = store.database("kv", name)
        self._connection = self._database.connection
        self._files: Files | None = store.files("kv", name)
        self._writes = 0
        self._database.insist(self._set_up)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._database.location}>"

    # ------------------------------------------------------------------ reading

    async def _get(self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None) -> object:
        if not isinstance(key, str):
            found = await self._get_bulk(key, type, cache_ttl)
            return {name: None if entry is None else entry[0] for name, entry in found.items()}
        raw = key_of(key, "GET")
        if len(raw) > MAX_KEY:
            _check_length("GET", raw)
        if cache_ttl is not None:
            _check_cache_ttl("GET", cache_ttl)
        # Most reads end here: a small value, and nobody else at the database.
        try:
            stored = self._select(raw)
        except sqlite3.Error:
            stored = await self._wait("GET", lambda: self._select(raw))
        if stored is None:
            return None
        value = stored[0]
        if value is None:
            loaded = await self._load(raw, "GET")
            if loaded is None:
                return None
            value = loaded[0]
        return value.decode("utf-8", "replace") if type == "text" else _read_as(value, type)

    async def _get_with_metadata(
        self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None
    ) -> object:
        if not isinstance(key, str):
            found = await self._get_bulk(key, type, cache_ttl)
            return {name: None if entry is None else KVValue(*entry) for name, entry in found.items()}
        raw = key_of(key, "GET")
        _check_length("GET", raw)
        _check_cache_ttl("GET", cache_ttl)
        stored = await self._load(raw, "GET")
        if stored is None:
            return KVValue(None)
        value, metadata = stored
        return KVValue(_read_as(value, type), None if metadata is None else json.loads(metadata))

    async def _get_bulk(
        self, keys: Sequence[str], type: str, cache_ttl: int | None
    ) -> dict[str, tuple[object, object] | None]:
        keys = keys_of(keys)
        if type not in ("text", "json"):
            refuse("GET_BULK", 400, f'"{type}" is not a valid type. Use "json" or "text"')
        if len(keys) > MAX_BULK_KEYS:
            refuse("GET_BULK", 400, f"You can request a maximum of {MAX_BULK_KEYS} keys")
        if not keys:
            refuse("GET_BULK", 400, "You must request a minimum of 1 key")
        found: dict[str, tuple[object, object] | None] = {}
        size = 0
        for key in keys:
            if not key:
                refuse("GET_BULK", 400, "Key names must not be empty")
            if key in (".", ".."):
                refuse("GET_BULK", 400, f'Illegal key name "{key}". Please use a different name.')
            raw = encode_key(key, "GET_BULK")
            _check_length("GET_BULK", raw)
            _check_cache_ttl("GET_BULK", cache_ttl)
            stored = await self._load(raw, "GET_BULK")
            if stored is None:
                found[key] = None
                continue
            value, metadata = stored
            size += len(value)
            text = value.decode("utf-8", "replace")
            read = parse_bulk(text) if type == "json" else text
            found[key] = (read, None if metadata is None else json.loads(metadata))
        if size > MAX_VALUE:
            refuse("GET_BULK", 413, f"Total size of request exceeds the limit of {MAX_VALUE // 1024 // 1024}MB")
        return found

    async def _load(self, raw: bytes, verb: Verb) -> tuple[bytes, str | None] | None:
        """The value and the metadata under a key that is in order."""
        missing: str | None = None
        while True:
            stored = await self._wait(verb, lambda: self._select(raw))
            if stored is None:
                return None
            value, _, metadata, file = stored
            if file is None:
                return value or b"", metadata
            assert self._files is not None
            try:
                return await asyncio.to_thread(self._files.read, file), metadata
            except FileNotFoundError as error:
                # Replaced since, perhaps by another process: the row says by what.
                if file == missing:
                    raise KVError(
                        f"KV {verb} failed: 500 {self._files.folder / file}, the value of this key, is missing. Restore "
                        "the file from a copy, or put or delete the key"
                    ) from error
                missing = file
            except StoreError as error:
                raise _failed(verb, error) from error

    async def _list(
        self, *, prefix: str | None = None, limit: int | None = MAX_LIST_KEYS, cursor: str | None = None
    ) -> KVListResult:
        count = MAX_LIST_KEYS if limit is None else _to_int32("limit", limit)
        if count <= 0:
            count = MAX_LIST_KEYS
        if count > MAX_LIST_KEYS:
            wanted = f"Please specify an integer less than {MAX_LIST_KEYS}."
            refuse("GET", 400, f"Invalid key_count_limit of {count}. {wanted}")
        check_page(prefix, cursor)
        start = b"" if prefix is None else encode_key(prefix, "GET")
        _check_length("GET", start)
        after = b"" if cursor is None else decode_cursor(cursor)
        rows = await self._wait("GET", lambda: self._rows(start, after, count + 1))
        more = len(rows) > count
        keys = [
            KVKey(key.decode(), expiration, None if metadata is None else json.loads(metadata))
            for key, expiration, metadata in (rows[:count] if more else rows)
        ]
        return KVListResult(keys, not more, b64encode(rows[count - 1][0]).decode() if more else None)

    # ------------------------------------------------------------------ writing

    async def _delete(self, key: str) -> None:
        raw = key_of(key, "DELETE")
        _check_length("DELETE", raw)
        await self._wait("DELETE", lambda: self._write(raw, None))

    async def _put(self, key: str, value: KVPutValue, *, metadata: object = None, **expiring: float | None) -> None:
        raw = key_of(key, "PUT")
        stream = None
        if isinstance(value, str):
            data = encode(value)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
        elif hasattr(value, "__aiter__"):
            stream, data = value, b""
        else:
            refuse_value(value)
        at = {name: _to_int32(name, seconds) for name, seconds in expiring.items() if seconds is not None}
        text = None if metadata is None else dump_metadata(metadata)
        _check_length("PUT", raw)
        expires = self._expires(**at) if at else None
        if text is not None and (length := len(encode(text))) > MAX_METADATA:
            refuse("PUT", 413, f"Metadata length of {length} exceeds limit of {MAX_METADATA}.")
        length = len(data)
        if stream is not None:
            data, length = await _collect(stream)
        if length > MAX_VALUE:
            refuse("PUT", 413, f"Value length of {length} exceeds limit of {MAX_VALUE}.")
        if length > _LARGE and self._files is not None:
            await self._put_file(self._files, raw, data, expires, text)
            return
        stored = (data, expires, text, None)
        try:
            self._write(raw, stored)
        except sqlite3.Error:
            await self._wait("PUT", lambda: self._write(raw, stored))

    def _expires(self, *, expiration: int = 0, expiration_ttl: int | None = None) -> int:
        """Return the expiry of a key, in whole seconds; a TTL wins."""
        now, ttl = math.floor(self._clock.time()), expiration_ttl
        if ttl is not None and ttl < MIN_TTL:
            why = f"Expiration TTL must be at least {MIN_TTL}." if ttl > 0 else "Please specify integer greater than 0."
            refuse("PUT", 400, f"Invalid expiration_ttl of {ttl}. {why}")
        if ttl is None and expiration < now + MIN_TTL:
            why = f"Expiration times must be at least {MIN_TTL} seconds in the future."
            if expiration <= now:
                why = "Please specify integer greater than the current number of seconds since the UNIX epoch."
            refuse("PUT", 400, f"Invalid expiration of {expiration}. {why}")
        return expiration if ttl is None else now + ttl

    async def _put_file(self, files: Files, raw: bytes, data: bytes, expires: int | None, metadata: str | None) -> None:
        try:
            staged = await asyncio.to_thread(files.stage, (data,))
        except StoreError as error:
            raise _failed("PUT", error) from error

        def write() -> None:
            with self._database.transaction() as connection:
                connection.execute(_PUT, (raw, None, expires, metadata, files.publish(staged)))
            self._database.empty_garbage(files, "kv_garbage")

        try:
            await self._wait("PUT", write)
        finally:
            staged.unlink(missing_ok=True)

    # ------------------------------------------------------------------ the rows

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            run_script(connection, _SCHEMA)
            connection.execute(_PURGE, (self._clock.time(),))
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
        values = (first, after_prefix(start), self._clock.time(), count)
        return self._connection.execute(_PAGE.format(compared), values).fetchall()

    def _write(self, raw: bytes, stored: Stored | None) -> None:
        connection = self._connection
        before = connection.total_changes
        if stored is None:
            connection.execute("DELETE FROM kv WHERE key = ?", (raw,))
        elif stored[1:] == _BARE:
            connection.execute(_PUT_BARE, (raw, stored[0]))
        else:
            connection.execute(_PUT, (raw, *stored))
        self._writes += 1
        if self._writes >= _PURGE_EVERY:
            self._writes = 0
            connection.execute(_PURGE, (self._clock.time(),))
        # A change beyond the one row is a trigger's: a file has become garbage.
        if self._files is not None and connection.total_changes - before > 1:
            self._database.empty_garbage(self._files, "kv_garbage")

    async def _wait(self, verb: Verb, action: Callable[[], T]) -> T:
        """Do it as soon as no other process holds the database. Raises KVError where that fails."""
        return await self._database.answer(action, partial(_failed, verb))


def _failed(verb: Verb, error: StoreError) -> KVError:
    """The error for a call that the disk, or another process, got in the way of."""
    return KVError(f"KV {verb} failed: {503 if isinstance(error, StoreBusyError) else 500} {error}")


def _check_length(verb: Verb, raw: bytes) -> None:
    if len(raw) > MAX_KEY:
        refuse(verb, 414, f"UTF-8 encoded length of {len(raw)} exceeds key length limit of {MAX_KEY}.")


def _check_cache_ttl(verb: Verb, cache_ttl: int | None) -> None:
    if cache_ttl is not None and (seconds := _to_int32("cache_ttl", cache_ttl)) < MIN_CACHE_TTL:
        refuse(verb, 400, f"Invalid cache_ttl of {seconds}. Cache TTL must be at least {MIN_CACHE_TTL}.")


def _to_int32(name: str, value: float) -> int:
    """The platform's 32-bit integer: fractions are cut off, anything but a finite number is 0."""
    check_number(name, value)
    whole = math.trunc(value) if math.isfinite(value) else 0
    if not -(2**31) <= whole < 2**31:
        raise KVTypeError("Value out of range. Must be between -2147483648 and 2147483647 (inclusive).")
    return whole


def _read_as(value: bytes, type: str) -> object:
    match type:
        case "text":
            return value.decode("utf-8", "replace")
        case "json":
            return parse(value.decode("utf-8", "replace"))
        case "bytes" | "arrayBuffer":
            return value
        case "stream":
            return _stream(value)
        case _:
            raise KVTypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".')


async def _stream(value: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(value), _CHUNK):
        yield value[start : start + _CHUNK]


async def _collect(stream: Any) -> tuple[bytes, int]:
    """All of a stream, and its length. Bytes beyond the limit are counted, for the message, and not kept."""
    chunks: list[bytes] = []
    length = 0
    async for chunk in stream:
        given = chunk  # not narrowed by what follows
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise KVTypeError(f"A stream must give bytes, not {type(chunk).__name__}")
        chunks.append(bytes(given))
        length += len(chunks[-1])
        if length > MAX_VALUE:
            chunks.clear()
    return b"".join(chunks), length
