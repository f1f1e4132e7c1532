"""The embedded key-value namespace: the platform's semantics over one SQLite table.

What is refused, when and in which words follows the recordings in `tests/traces`; the order of the
checks is the platform's too. Read your writes, at once: what is slower in production is a fake's
business (`testing/kv.py`).
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, TypeGuard, TypeVar, cast, overload

from core.backends.embedded.disk import StoreBusyError, StoreError
from core.backends.embedded.files import Files
from core.backends.embedded.keys import after_prefix, decode_cursor
from core.backends.embedded.store import Store, run_script
from core.bindings.kv import KVKey, KVListResult, KVPutValue, KVType, KVValue
from core.bindings.numbers import refuse_large_numbers
from core.calls import Hookable, binding_call
from core.errors import KVError, KVSyntaxError, KVTypeError
from core.http.json import check_nesting, loads
from core.http.streams import encode

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import TypeForm

__all__ = ["EmbeddedKVNamespace"]

T = TypeVar("T")

MAX_KEY: Final = 512
MAX_VALUE: Final = 25 * 1024 * 1024
MAX_METADATA: Final = 1024
MAX_BULK_KEYS: Final = 100
MAX_LIST_KEYS: Final = 1000
MIN_TTL: Final = 60
MIN_CACHE_TTL: Final = 30

# Rows stay small, so that a list of keys does not wade through megabytes of values.
_LARGE: Final = 128 * 1024
_CHUNK: Final = 64 * 1024
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
_DELETE: Final = "DELETE FROM kv WHERE key = ?"

Verb: TypeAlias = Literal["GET", "PUT", "DELETE", "GET_BULK"]
Stored: TypeAlias = tuple[bytes | None, int | None, str | None, str | None]
"""A row: value (None when it is in a file), expiration, metadata as JSON, file."""

KeyRows: TypeAlias = list[tuple[bytes, int | None, str | None]]


class EmbeddedKVNamespace(Hookable):
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

    @overload
    async def get(  # type: ignore[overload-overlap]  # a str is a Sequence[str] too: it is taken as one key
        self, key: str, type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> str | None: ...
    @overload
    async def get(self, key: str, type: Literal["json"], *, cache_ttl: int | None = None) -> Any: ...
    @overload
    async def get(self, key: str, type: Literal["bytes"], *, cache_ttl: int | None = None) -> bytes | None: ...
    @overload
    async def get(
        self, key: str, type: Literal["stream"], *, cache_ttl: int | None = None
    ) -> AsyncIterator[bytes] | None: ...
    @overload
    async def get(
        self, key: Sequence[str], type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> dict[str, str | None]: ...
    @overload
    async def get(
        self, key: Sequence[str], type: Literal["json"], *, cache_ttl: int | None = None
    ) -> dict[str, Any]: ...
    @binding_call
    async def get(self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None) -> Any:
        """Return the value under `key`, or None; of several keys, a dict of them. See `KVNamespace.get`."""
        if not isinstance(key, str):
            found = await self._get_bulk(key, type, cache_ttl)
            return {name: None if entry is None else entry[0] for name, entry in found.items()}
        raw = _key(key, "GET")
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

    @binding_call
    async def get_json(self, key: str, type_: TypeForm[T], /, *, cache_ttl: int | None = None) -> T | None:
        """Return the JSON value under `key` as a `T`, or None. See `KVNamespace.get_json`."""
        stored = await self._get(key, cache_ttl)
        value = None if stored is None else _read_as(stored[0], "json")
        if value is None:
            return None
        from core.structure import structure

        return structure(value, type_)

    @overload
    async def get_with_metadata(  # type: ignore[overload-overlap]  # as in get
        self, key: str, type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> KVValue[str | None]: ...
    @overload
    async def get_with_metadata(  # type: ignore[overload-overlap]  # as in get
        self, key: str, type: Literal["json"], *, cache_ttl: int | None = None
    ) -> KVValue[Any]: ...
    @overload
    async def get_with_metadata(
        self, key: str, type: Literal["bytes"], *, cache_ttl: int | None = None
    ) -> KVValue[bytes | None]: ...
    @overload
    async def get_with_metadata(
        self, key: str, type: Literal["stream"], *, cache_ttl: int | None = None
    ) -> KVValue[AsyncIterator[bytes] | None]: ...
    @overload
    async def get_with_metadata(
        self, key: Sequence[str], type: Literal["text"] = "text", *, cache_ttl: int | None = None
    ) -> dict[str, KVValue[str] | None]: ...
    @overload
    async def get_with_metadata(
        self, key: Sequence[str], type: Literal["json"], *, cache_ttl: int | None = None
    ) -> dict[str, KVValue[Any] | None]: ...
    @binding_call
    async def get_with_metadata(
        self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None
    ) -> Any:
        """Return value and metadata; of several keys, a dict of them. See `KVNamespace.get_with_metadata`."""
        if not isinstance(key, str):
            found = await self._get_bulk(key, type, cache_ttl)
            return {name: None if entry is None else KVValue(*entry) for name, entry in found.items()}
        stored = await self._get(key, cache_ttl)
        if stored is None:
            return KVValue(None)
        value, metadata = stored
        return KVValue(_read_as(value, type), None if metadata is None else json.loads(metadata))

    @binding_call
    async def list(
        self, *, prefix: str | None = None, limit: int | None = MAX_LIST_KEYS, cursor: str | None = None
    ) -> KVListResult:
        """Return one page of keys. See `KVNamespace.list`."""
        count = MAX_LIST_KEYS if limit is None else _int32("limit", limit)
        if count <= 0:
            count = MAX_LIST_KEYS
        if count > MAX_LIST_KEYS:
            _refuse(
                "GET", 400, f"Invalid key_count_limit of {count}. Please specify an integer less than {MAX_LIST_KEYS}."
            )
        start = b"" if prefix is None else _encode_key(prefix, "GET")
        _check_length("GET", start)
        after = b"" if cursor is None else _read_cursor(cursor)
        try:
            rows = self._list(start, after, count + 1)
        except sqlite3.Error:
            rows = await self._wait("GET", lambda: self._list(start, after, count + 1))
        more = len(rows) > count
        keys = [
            KVKey(key.decode(), expiration, None if metadata is None else json.loads(metadata))
            for key, expiration, metadata in (rows[:count] if more else rows)
        ]
        return KVListResult(keys, not more, b64encode(rows[count - 1][0]).decode() if more else None)

    # ------------------------------------------------------------------ writing

    @binding_call
    async def put(
        self,
        key: str,
        value: KVPutValue,
        *,
        expiration: float | None = None,
        expiration_ttl: float | None = None,
        metadata: Any = None,
    ) -> None:
        """Store `value` under `key`. See `KVNamespace.put`."""
        await self._put(key, value, expiration, expiration_ttl, metadata)

    @binding_call
    async def put_json(
        self,
        key: str,
        value: Any,
        *,
        expiration: float | None = None,
        expiration_ttl: float | None = None,
        metadata: Any = None,
    ) -> None:
        """Store `value` as compact JSON. See `KVNamespace.put_json`."""
        from core.http.json import dumps

        try:
            text = dumps(value)
        except (TypeError, ValueError) as error:
            raise KVTypeError(f"KV put_json() cannot write this value as JSON: {error}") from error
        await self._put(key, text, expiration, expiration_ttl, metadata)

    @binding_call
    async def delete(self, key: str) -> None:
        """Remove `key`. See `KVNamespace.delete`."""
        raw = _key(key, "DELETE")
        _check_length("DELETE", raw)
        try:
            self._write(raw, None)
        except sqlite3.Error:
            await self._wait("DELETE", lambda: self._write(raw, None))

    # ------------------------------------------------------------------ the steps of both

    async def _get(self, key: str, cache_ttl: int | None) -> tuple[bytes, str | None] | None:
        raw = _key(key, "GET")
        if len(raw) > MAX_KEY:
            _check_length("GET", raw)
        if cache_ttl is not None:
            _check_cache_ttl("GET", cache_ttl)
        return await self._load(raw, "GET")

    async def _load(self, raw: bytes, verb: Verb) -> tuple[bytes, str | None] | None:
        """The value and the metadata under a key that is in order."""
        missing: str | None = None
        while True:
            try:
                stored = self._select(raw)
            except sqlite3.Error:
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
                        f"KV {verb} failed: 500 {self._files.path(file)}, the value of this key, is missing. Restore "
                        "the file from a copy, or put or delete the key"
                    ) from error
                missing = file
            except StoreError as error:
                raise _failed(verb, error) from error

    async def _get_bulk(
        self, keys: Sequence[str], type: str, cache_ttl: int | None
    ) -> dict[str, tuple[Any, Any] | None]:
        if not isinstance(keys, (list, tuple)):
            keys = _sequence(keys)
        if type not in ("text", "json"):
            _refuse("GET_BULK", 400, f'"{type}" is not a valid type. Use "json" or "text"')
        if len(keys) > MAX_BULK_KEYS:
            _refuse("GET_BULK", 400, f"You can request a maximum of {MAX_BULK_KEYS} keys")
        if not keys:
            _refuse("GET_BULK", 400, "You must request a minimum of 1 key")
        found: dict[str, tuple[Any, Any] | None] = {}
        size = 0
        for key in keys:
            if not isinstance(key, str):
                _wrong_key(key)
            if not key:
                _refuse("GET_BULK", 400, "Key names must not be empty")
            if key in (".", ".."):
                _refuse("GET_BULK", 400, f'Illegal key name "{key}". Please use a different name.')
            raw = _encode_key(key, "GET_BULK")
            _check_length("GET_BULK", raw)
            if cache_ttl is not None:
                _check_cache_ttl("GET_BULK", cache_ttl)
            stored = await self._load(raw, "GET_BULK")
            if stored is None:
                found[key] = None
                continue
            value, metadata = stored
            size += len(value)
            read: Any = _text(value)
            if type == "json":
                try:
                    read = _parse(read)
                except KVSyntaxError as error:
                    message = "At least one of the requested keys corresponds to a non-json value"
                    raise KVError(f"KV GET_BULK failed: 400 {message}") from error
            found[key] = (read, None if metadata is None else json.loads(metadata))
        if size > MAX_VALUE:
            _refuse("GET_BULK", 413, f"Total size of request exceeds the limit of {MAX_VALUE // 1024 // 1024}MB")
        return found

    async def _put(
        self, key: str, value: KVPutValue, expiration: float | None, expiration_ttl: float | None, metadata: Any
    ) -> None:
        raw = _key(key, "PUT")
        stream = None
        if isinstance(value, str):
            data = encode(value)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
        elif hasattr(value, "__aiter__"):
            stream, data = value, b""
        else:
            raise KVTypeError(
                "KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values."
            )
        if expiration is not None:
            expiration = _int32("expiration", expiration)
        if expiration_ttl is not None:
            expiration_ttl = _int32("expiration_ttl", expiration_ttl)
        text = None if metadata is None else _dump_metadata(metadata)
        if len(raw) > MAX_KEY:
            _check_length("PUT", raw)
        expires = None
        if expiration is not None or expiration_ttl is not None:
            expires = self._expires(expiration, expiration_ttl)
        if text is not None and (length := len(encode(text))) > MAX_METADATA:
            _refuse("PUT", 413, f"Metadata length of {length} exceeds limit of {MAX_METADATA}.")
        length = len(data)
        if stream is not None:
            data, length = await _collect(stream)
        if length > MAX_VALUE:
            _refuse("PUT", 413, f"Value length of {length} exceeds limit of {MAX_VALUE}.")
        if length > _LARGE and self._files is not None:
            await self._put_file(self._files, raw, data, expires, text)
            return
        stored = (data, expires, text, None)
        try:
            self._write(raw, stored)
        except sqlite3.Error:
            await self._wait("PUT", lambda: self._write(raw, stored))

    async def _put_file(self, files: Files, raw: bytes, data: bytes, expires: int | None, metadata: str | None) -> None:
        try:
            staged: Path = await asyncio.to_thread(files.stage, (data,))
        except StoreError as error:
            raise _failed("PUT", error) from error

        def publish() -> None:
            with self._database.transaction():
                self._write(raw, (None, expires, metadata, staged.stem), publish=staged)
            self._empty_garbage()

        try:
            await self._wait("PUT", publish)
        finally:
            files.discard(staged)

    def _expires(self, expiration: float | None, ttl: float | None) -> int:
        """Return the expiry of a key, in whole seconds; `ttl` wins. Both have been made 32-bit integers."""
        now = math.floor(self._clock.time())
        if ttl is not None:
            if ttl <= 0:
                _refuse("PUT", 400, f"Invalid expiration_ttl of {ttl}. Please specify integer greater than 0.")
            if ttl < MIN_TTL:
                _refuse("PUT", 400, f"Invalid expiration_ttl of {ttl}. Expiration TTL must be at least {MIN_TTL}.")
            return now + int(ttl)
        assert expiration is not None
        if expiration <= now:
            _refuse(
                "PUT",
                400,
                f"Invalid expiration of {expiration}. Please specify integer greater than the current number of seconds"
                " since the UNIX epoch.",
            )
        if expiration < now + MIN_TTL:
            _refuse(
                "PUT",
                400,
                f"Invalid expiration of {expiration}. Expiration times must be at least {MIN_TTL} seconds in the"
                " future.",
            )
        return int(expiration)

    # ------------------------------------------------------------------ SQL

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            run_script(connection, _SCHEMA)
            connection.execute("DELETE FROM kv WHERE expiration <= ?", (self._clock.time(),))
            if self._files is not None:
                self._files.sweep(
                    lambda: (name for (name,) in connection.execute("SELECT file FROM kv WHERE file IS NOT NULL"))
                )
                connection.execute("DELETE FROM kv_garbage")

    def _select(self, raw: bytes) -> Stored | None:
        stored: Stored | None = self._connection.execute(_SELECT, (raw,)).fetchone()
        if stored is not None and stored[1] is not None and self._clock.time() >= stored[1]:
            return None
        return stored

    def _list(self, start: bytes, after: bytes, count: int) -> KeyRows:
        sql = "SELECT key, expiration, metadata FROM kv WHERE key >= ? AND key > ?"
        parameters: list[Any] = [start, after]
        if (end := after_prefix(start)) is not None:
            sql += " AND key < ?"
            parameters.append(end)
        sql += " AND (expiration IS NULL OR expiration > ?) ORDER BY key LIMIT ?"
        parameters += (self._clock.time(), count)
        return self._connection.execute(sql, parameters).fetchall()

    def _write(self, raw: bytes, stored: Stored | None, *, publish: Path | None = None) -> None:
        """Store a row, or remove it. `publish` is the file that the row names, inside a transaction of the caller."""
        connection = self._connection
        before = connection.total_changes
        if stored is None:
            connection.execute(_DELETE, (raw,))
        else:
            if publish is not None:
                assert self._files is not None
                self._files.publish(publish)
            if stored[1:] == _BARE:
                connection.execute(_PUT_BARE, (raw, stored[0]))
            else:
                connection.execute(_PUT, (raw, *stored))
        if publish is not None:
            return
        self._writes += 1
        if self._writes >= _PURGE_EVERY:
            self._writes = 0
            connection.execute("DELETE FROM kv WHERE expiration <= ?", (self._clock.time(),))
        # A change beyond the one row is a trigger's: a file has become garbage.
        if self._files is not None and connection.total_changes - before > 1:
            self._empty_garbage()

    def _empty_garbage(self) -> None:
        assert self._files is not None
        try:
            with self._database.transaction() as connection:
                names = [name for (name,) in connection.execute("SELECT file FROM kv_garbage")]
                self._files.remove(names)
                connection.execute("DELETE FROM kv_garbage")
        except sqlite3.OperationalError:
            # Another process is writing. What is garbage now is still garbage at the next put.
            return

    async def _wait(self, verb: Verb, action: Callable[[], T]) -> T:
        """Do it as soon as no other process holds the database. Raises KVError where that fails."""
        try:
            return await self._database.patiently(action)
        except StoreError as error:
            raise _failed(verb, error) from error
        except sqlite3.Error as error:
            raise KVError(f"KV {verb} failed: 500 {error} ({self._database.location})") from error


# ---------------------------------------------------------------------- checks


def _refuse(verb: Verb, status: int, message: str) -> NoReturn:
    raise KVError(f"KV {verb} failed: {status} {message}")


def _failed(verb: Verb, error: StoreError) -> KVError:
    return KVError(f"KV {verb} failed: {503 if isinstance(error, StoreBusyError) else 500} {error}")


def _wrong_key(key: object) -> NoReturn:
    raise KVTypeError(f"A key must be a str, not {type(key).__name__}. Write str(key) if that is what you mean")


def _is_list(keys: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(keys, Sequence) and not isinstance(keys, (bytes, bytearray, memoryview))


def _sequence(keys: object) -> Sequence[Any]:
    if not _is_list(keys):
        _wrong_key(keys)
    return keys


def _key(key: str, verb: Verb) -> bytes:
    if not isinstance(key, str):
        _wrong_key(key)
    if len(key) < 3:
        if not key:
            raise KVTypeError("Key name cannot be empty.")
        if key in (".", ".."):
            raise KVTypeError(f'"{key}" is not allowed as a key name.')
    return _encode_key(key, verb)


def _encode_key(key: str, verb: Verb) -> bytes:
    """A key as UTF-8. Half a surrogate pair has none: U+FFFD for it would make one key of several."""
    try:
        return key.encode()
    except UnicodeEncodeError:
        _refuse(verb, 400, "Could not URL-decode key name")


def _check_length(verb: Verb, raw: bytes) -> None:
    if len(raw) > MAX_KEY:
        _refuse(verb, 414, f"UTF-8 encoded length of {len(raw)} exceeds key length limit of {MAX_KEY}.")


def _check_cache_ttl(verb: Verb, cache_ttl: int) -> None:
    seconds = _int32("cache_ttl", cache_ttl)
    if seconds < MIN_CACHE_TTL:
        _refuse(verb, 400, f"Invalid cache_ttl of {seconds}. Cache TTL must be at least {MIN_CACHE_TTL}.")


def _int32(name: str, value: float) -> int:
    """The platform's 32-bit integer: fractions are cut off, what is not a finite number is 0."""
    if not isinstance(value, (int, float)):
        raise KVTypeError(f"{name} must be a number, not {value!r}")
    if not math.isfinite(value):
        return 0
    whole = math.trunc(value)
    if not -(2**31) <= whole < 2**31:
        raise KVTypeError("Value out of range. Must be between -2147483648 and 2147483647 (inclusive).")
    return whole


# ---------------------------------------------------------------------- values


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _read_as(value: bytes, type: str) -> Any:
    match type:
        case "text":
            return value.decode("utf-8", "replace")
        case "json":
            return _parse(_text(value))
        case "bytes" | "arrayBuffer":
            return value
        case "stream":
            return _stream(value)
        case _:
            raise KVTypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".')


async def _stream(value: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(value), _CHUNK):
        yield value[start : start + _CHUNK]


def _parse(text: str) -> Any:
    try:
        return loads(text)
    except ValueError as error:
        raise KVSyntaxError(f"The value is not JSON: {error}") from error


def _dump_metadata(metadata: Any) -> str:
    try:
        check_nesting(metadata)
        text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        refuse_large_numbers(text)
        return text
    except (TypeError, ValueError) as error:
        raise KVTypeError(f"Metadata must be JSON: {error}") from error


async def _collect(stream: Any) -> tuple[bytes, int]:
    """All of a stream, and its length. What is beyond the limit is counted, for the message, and not kept."""
    chunks: list[bytes] = []
    length = 0
    async for chunk in stream:
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise KVTypeError(f"A stream must give bytes, not {type(chunk).__name__}")
        length += len(chunk) if not isinstance(chunk, memoryview) else chunk.nbytes
        if length <= MAX_VALUE:
            chunks.append(bytes(cast("bytes", chunk)))
        else:
            chunks.clear()
    return b"".join(chunks), length


def _read_cursor(cursor: str) -> bytes:
    if not isinstance(cursor, str):
        raise KVTypeError(f"A cursor must be a str, not {type(cursor).__name__}. Pass the last page's cursor")
    return decode_cursor(cursor)
