"""The embedded key-value namespace: the platform's semantics over one SQLite table.

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
from collections.abc import Sequence
from typing import Any, Final

from core.backends.embedded.disk import StoreError
from core.backends.embedded.keys import decode_cursor
from core.backends.embedded.kv.arguments import (
    MAX_KEY,
    MAX_VALUE,
    check_cache_ttl,
    check_length,
    collect,
    failed,
    read_as,
    text_of,
    to_int32,
)
from core.backends.embedded.kv.rows import KVRows
from core.backends.kv import (
    KVEngine,
    Verb,
    check_page,
    dump_metadata,
    encode_key,
    key_of,
    keys_of,
    parse_bulk,
    refuse,
    refuse_value,
)
from core.bindings.kv import KVKey, KVListResult, KVPutValue, KVType, KVValue
from core.errors import KVError
from core.http.streams import encode

MAX_METADATA: Final = 1024
MAX_BULK_KEYS: Final = 100
MAX_LIST_KEYS: Final = 1000
MIN_TTL: Final = 60

# Rows stay small, so that a list of keys does not wade through megabytes of values.
_LARGE: Final = 128 * 1024


class EmbeddedKVNamespace(KVRows, KVEngine):
    """The namespace `name` of `store`. Two objects of one name are one namespace."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._database.location}>"

    # ------------------------------------------------------------------ reading

    async def _get(self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None) -> object:
        if not isinstance(key, str):
            found = await self._get_bulk(key, type, cache_ttl)
            return {name: None if entry is None else entry[0] for name, entry in found.items()}
        raw = key_of(key, "GET")
        if len(raw) > MAX_KEY:
            check_length("GET", raw)
        if cache_ttl is not None:
            check_cache_ttl("GET", cache_ttl)
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
        return value.decode("utf-8", "replace") if type == "text" else read_as(value, type)

    async def _get_with_metadata(
        self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None
    ) -> object:
        if not isinstance(key, str):
            found = await self._get_bulk(key, type, cache_ttl)
            return {name: None if entry is None else KVValue(*entry) for name, entry in found.items()}
        raw = key_of(key, "GET")
        check_length("GET", raw)
        check_cache_ttl("GET", cache_ttl)
        stored = await self._load(raw, "GET")
        if stored is None:
            return KVValue(None)
        value, metadata = stored
        return KVValue(read_as(value, type), None if metadata is None else json.loads(metadata))

    async def _list(
        self, *, prefix: str | None = None, limit: int | None = MAX_LIST_KEYS, cursor: str | None = None
    ) -> KVListResult:
        count = MAX_LIST_KEYS if limit is None else to_int32("limit", limit)
        if count <= 0:
            count = MAX_LIST_KEYS
        if count > MAX_LIST_KEYS:
            refuse(
                "GET", 400, f"Invalid key_count_limit of {count}. Please specify an integer less than {MAX_LIST_KEYS}."
            )
        check_page(prefix, cursor)
        start = b"" if prefix is None else encode_key(prefix, "GET")
        check_length("GET", start)
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
        check_length("DELETE", raw)
        await self._wait("DELETE", lambda: self._write(raw, None))

    # ------------------------------------------------------------------ the steps of both

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
                raise failed(verb, error) from error

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
            check_length("GET_BULK", raw)
            check_cache_ttl("GET_BULK", cache_ttl)
            stored = await self._load(raw, "GET_BULK")
            if stored is None:
                found[key] = None
                continue
            value, metadata = stored
            size += len(value)
            read: Any = text_of(value)
            if type == "json":
                read = parse_bulk(read)
            found[key] = (read, None if metadata is None else json.loads(metadata))
        if size > MAX_VALUE:
            refuse("GET_BULK", 413, f"Total size of request exceeds the limit of {MAX_VALUE // 1024 // 1024}MB")
        return found

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
        at = {name: to_int32(name, seconds) for name, seconds in expiring.items() if seconds is not None}
        text = None if metadata is None else dump_metadata(metadata)
        check_length("PUT", raw)
        expires = self._expires(**at) if at else None
        if text is not None and (length := len(encode(text))) > MAX_METADATA:
            refuse("PUT", 413, f"Metadata length of {length} exceeds limit of {MAX_METADATA}.")
        length = len(data)
        if stream is not None:
            data, length = await collect(stream)
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
        if ttl is not None:
            if ttl <= 0:
                refuse("PUT", 400, f"Invalid expiration_ttl of {ttl}. Please specify integer greater than 0.")
            if ttl < MIN_TTL:
                refuse("PUT", 400, f"Invalid expiration_ttl of {ttl}. Expiration TTL must be at least {MIN_TTL}.")
            return now + ttl
        if expiration <= now:
            refuse(
                "PUT",
                400,
                f"Invalid expiration of {expiration}. Please specify integer greater than the current number of seconds"
                " since the UNIX epoch.",
            )
        if expiration < now + MIN_TTL:
            refuse(
                "PUT",
                400,
                f"Invalid expiration of {expiration}. Expiration times must be at least {MIN_TTL} seconds in the"
                " future.",
            )
        return expiration
