"""The embedded object bucket: the platform's semantics over SQLite rows and files.

What is refused, when and in which words follows the recordings in `tests/traces`, and where the platform's
documentation says otherwise, the documentation (`docs/reference/differences.md` lists it). Small bodies are in
their row, large ones are files; a multipart object stays in its parts, so that `complete` copies nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import secrets
import sqlite3
import weakref
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, TypeVar, cast, overload

import attrs

from core.backends.embedded.store import Files, Gate, Store, StoreBusyError
from core.bindings.r2 import (
    KnownLengthStream,
    R2Body,
    R2Checksums,
    R2Conditional,
    R2ConditionalDict,
    R2Hash,
    R2HTTPMetadata,
    R2HTTPMetadataDict,
    R2Include,
    R2Object,
    R2ObjectBody,
    R2Objects,
    R2Range,
    R2RangeDict,
    R2UploadedPart,
    R2UploadedPartDict,
    R2Value,
)
from core.errors import R2Error, R2TypeError, R2ValueError

if TYPE_CHECKING:
    from core.http import Headers

__all__ = ["EmbeddedR2Bucket", "EmbeddedR2MultipartUpload"]

T = TypeVar("T")

MAX_KEY: Final = 1024
MAX_METADATA: Final = 8192
MAX_LIST: Final = 1000
MAX_LIST_INCLUDE: Final = 100
MAX_OBJECT: Final = 5 * 1024**3 - 5 * 1024**2
MIN_PART: Final = 5 * 1024**2
MAX_PARTS: Final = 10_000

_LARGE: Final = 128 * 1024
_CHUNK: Final = 256 * 1024

_IN_PROGRESS, _COMPLETED, _ABORTED = 0, 1, 2

# An object's body is its pieces, in order: one, or the parts of its multipart upload. They belong to the object's
# version, or to the upload while it lasts. A piece that goes leaves the name of its file in r2_garbage, in the same
# transaction, so that neither a crash nor another process leaves a file that nobody would delete.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS r2_objects (
  key BLOB NOT NULL PRIMARY KEY,
  version TEXT NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  uploaded INTEGER NOT NULL,
  checksums TEXT NOT NULL,
  http_metadata TEXT NOT NULL,
  custom_metadata TEXT NOT NULL,
  storage_class TEXT NOT NULL,
  ssec_key_md5 TEXT
);
CREATE TABLE IF NOT EXISTS r2_uploads (
  upload_id TEXT NOT NULL PRIMARY KEY,
  key BLOB NOT NULL,
  state INTEGER NOT NULL,
  http_metadata TEXT NOT NULL,
  custom_metadata TEXT NOT NULL,
  storage_class TEXT NOT NULL,
  ssec_key_md5 TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS r2_pieces (
  owner TEXT NOT NULL,
  number INTEGER NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  md5 BLOB NOT NULL,
  data BLOB,
  file TEXT,
  PRIMARY KEY (owner, number)
);
CREATE TABLE IF NOT EXISTS r2_garbage (file TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS r2_object_replaced AFTER UPDATE ON r2_objects
BEGIN DELETE FROM r2_pieces WHERE owner = old.version; END;
CREATE TRIGGER IF NOT EXISTS r2_object_deleted AFTER DELETE ON r2_objects
BEGIN DELETE FROM r2_pieces WHERE owner = old.version; END;
CREATE TRIGGER IF NOT EXISTS r2_piece_deleted AFTER DELETE ON r2_pieces WHEN old.file IS NOT NULL
BEGIN INSERT OR IGNORE INTO r2_garbage VALUES (old.file); END;
"""

_COLUMNS: Final = (
    "key, version, size, etag, uploaded, checksums, http_metadata, custom_metadata, storage_class, ssec_key_md5"
)
_SELECT: Final = f"SELECT {_COLUMNS} FROM r2_objects WHERE key = ?"
_PUT: Final = f"""
INSERT INTO r2_objects ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
version = excluded.version, size = excluded.size, etag = excluded.etag, uploaded = excluded.uploaded,
checksums = excluded.checksums, http_metadata = excluded.http_metadata, custom_metadata = excluded.custom_metadata,
storage_class = excluded.storage_class, ssec_key_md5 = excluded.ssec_key_md5
"""
_PUT_PIECE: Final = "INSERT INTO r2_pieces (owner, number, size, etag, md5, data, file) VALUES (?, ?, ?, ?, ?, ?, ?)"

Method: TypeAlias = Literal[
    "get",
    "head",
    "put",
    "delete",
    "list",
    "createMultipartUpload",
    "uploadPart",
    "completeMultipartUpload",
    "abortMultipartUpload",
]
Rows: TypeAlias = "list[Row]"  # inside the bucket `list` is a method's name
Keys: TypeAlias = list[bytes]
Pieces: TypeAlias = "list[_Piece]"
Row: TypeAlias = tuple[bytes, str, int, str, int, str, str, str, str, str | None]
Conditions: TypeAlias = "R2Conditional | R2ConditionalDict | Headers"
Ranges: TypeAlias = "R2Range | R2RangeDict | Headers"
HTTPMetadata: TypeAlias = "R2HTTPMetadata | R2HTTPMetadataDict | Headers"

_TEXTS: Final[dict[int, str]] = {
    10001: "We encountered an internal error. Please try again.",
    100100: "Your proposed upload exceeds the maximum allowed object size.",
    10011: "Your proposed upload is smaller than the minimum allowed object size.",
    10012: "Your metadata headers exceed the maximum allowed metadata size.",
    10020: "The specified object name is not valid.",
    10022: "MaxKeys params must be positive integer <= 1000.",
    10024: "The specified multipart upload does not exist.",
    10025: "One or more of the specified parts could not be found.",
    10039: "The requested range is not satisfiable",
    10048: "There was a problem with the multipart upload.",
}


def _refuse(method: Method, code: int, text: str | None = None) -> NoReturn:
    error = R2Error(f"{method}: {_TEXTS[code] if text is None else text} ({code})")
    error.code = code
    raise error


@attrs.frozen
class _Piece:
    """Where some of a body's bytes are: in `data`, or in a file."""

    size: int
    data: bytes | None
    file: str | None


@attrs.frozen
class _Stored:
    """A value that was taken in: its bytes or its staged file, and its digests by algorithm."""

    size: int
    data: bytes | None
    staged: Path | None
    digests: Mapping[str, bytes]


class EmbeddedR2Bucket:
    """The bucket `name` of `store`. Two objects of one name are one bucket.

    `gate` sees every call first, and may refuse it: how a fake records calls and injects faults.
    """

    def __init__(self, store: Store, name: str, *, gate: Gate | None = None) -> None:
        self._clock = store.clock
        self._gate = gate
        self._database = store.database("r2", name)
        self._connection = self._database.connection
        self._files: Files | None = store.files("r2", name)
        # Files that a body in this process may still read, and those of them that are garbage already.
        self._held: Counter[str] = Counter()
        self._doomed: set[str] = set()
        self._database.insist(self._set_up)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._database.place}>"

    # ------------------------------------------------------------------ reading

    async def head(self, key: str) -> R2Object | None:
        """Return the object without its body. See `R2Bucket.head`."""
        if self._gate is not None:
            await self._gate("head", (key,), {})
        raw = _key("head", key)
        row = await self._wait("head", lambda: self._select(raw))
        return None if row is None else R2Object(**_fields(row), range=R2Range(0, row[2]))

    @overload
    async def get(
        self, key: str, *, only_if: None = None, range: Ranges | None = None, ssec_key: R2Hash | None = None
    ) -> R2ObjectBody | None: ...
    @overload
    async def get(
        self, key: str, *, only_if: Conditions, range: Ranges | None = None, ssec_key: R2Hash | None = None
    ) -> R2ObjectBody | R2Object | None: ...
    async def get(
        self,
        key: str,
        *,
        only_if: Conditions | None = None,
        range: Ranges | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2ObjectBody | R2Object | None:
        """Return the object with its body, or without when `only_if` fails. See `R2Bucket.get`."""
        if self._gate is not None:
            await self._gate("get", (key,), _given(only_if=only_if, range=range, ssec_key=ssec_key))
        conditions = None if only_if is None else _Conditions.of(only_if)
        span = None if range is None else _Span.of(range)
        _ssec(ssec_key)
        raw = _key("get", key)
        found = await self._wait("get", lambda: self._select_with_pieces(raw))
        if found is None:
            return None
        row, pieces = found
        size = row[2]
        if conditions is not None and not conditions.hold(row[3], row[4]):
            return R2Object(**_fields(row), range=R2Range(0, size))
        offset, length = (0, size) if span is None else span.within(size)
        body = R2Body(self._read(pieces, offset, length), length)
        return R2ObjectBody(**_fields(row), range=R2Range(offset, length), body=body)

    async def list(
        self,
        *,
        prefix: str | None = None,
        delimiter: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        start_after: str | None = None,
        include: Iterable[R2Include] | None = None,
    ) -> R2Objects:
        """Return one page of objects. See `R2Bucket.list`."""
        if self._gate is not None:
            options = _given(
                prefix=prefix, delimiter=delimiter, cursor=cursor, limit=limit, start_after=start_after, include=include
            )
            await self._gate("list", (), options)
        with_http, with_custom, included = _include(include)
        count = MAX_LIST if limit is None else _whole("list", limit)
        if not 1 <= count <= MAX_LIST:
            _refuse("list", 10022)
        if included:
            count = min(count, MAX_LIST_INCLUDE)
        after = None if start_after is None else _encode(start_after)
        if cursor is not None:
            continued = _decode_cursor(cursor)
            after = continued if after is None else max(after, continued)
        start = _encode(prefix or "")
        by = _encode(delimiter or "")

        def page() -> tuple[Rows, Keys, bytes | None]:
            return self._page(start, by, after, count)

        rows, prefixes, last = await self._wait("list", page)
        objects = [R2Object(**_fields(row, http=with_http, custom=with_custom)) for row in rows]
        return R2Objects(
            objects=objects,
            truncated=last is not None,
            cursor=None if last is None else b64encode(last).decode(),
            delimited_prefixes=[p.decode() for p in prefixes],
        )

    # ------------------------------------------------------------------ writing

    @overload
    async def put(
        self,
        key: str,
        value: R2Value,
        *,
        only_if: None = None,
        http_metadata: HTTPMetadata | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        md5: R2Hash | None = None,
        sha1: R2Hash | None = None,
        sha256: R2Hash | None = None,
        sha384: R2Hash | None = None,
        sha512: R2Hash | None = None,
        storage_class: str | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2Object: ...
    @overload
    async def put(
        self,
        key: str,
        value: R2Value,
        *,
        only_if: Conditions,
        http_metadata: HTTPMetadata | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        md5: R2Hash | None = None,
        sha1: R2Hash | None = None,
        sha256: R2Hash | None = None,
        sha384: R2Hash | None = None,
        sha512: R2Hash | None = None,
        storage_class: str | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2Object | None: ...
    async def put(
        self,
        key: str,
        value: R2Value,
        *,
        only_if: Conditions | None = None,
        http_metadata: HTTPMetadata | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        md5: R2Hash | None = None,
        sha1: R2Hash | None = None,
        sha256: R2Hash | None = None,
        sha384: R2Hash | None = None,
        sha512: R2Hash | None = None,
        storage_class: str | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2Object | None:
        """Store an object, or return None when `only_if` fails. See `R2Bucket.put`."""
        hashes = {"md5": md5, "sha1": sha1, "sha256": sha256, "sha384": sha384, "sha512": sha512}
        if self._gate is not None:
            options = _given(
                only_if=only_if,
                http_metadata=http_metadata,
                custom_metadata=custom_metadata,
                **hashes,
                storage_class=storage_class,
                ssec_key=ssec_key,
            )
            await self._gate("put", (key, value), options)
        conditions = None if only_if is None else _Conditions.of(only_if)
        custom = _custom_metadata(custom_metadata)
        http = _http_metadata(http_metadata)
        given = _given_hash(hashes)
        ssec_md5 = _ssec(ssec_key)
        source = _source("put", value)
        raw = _key("put", key)
        _check_size("put", source)
        _check_metadata("put", custom)
        stored = await self._take_in(source, ("md5",) if given is None else ("md5", given[0]))
        try:
            checksums = {"md5": stored.digests["md5"].hex()}
            if given is not None:
                algorithm, digest = given
                actual = stored.digests[algorithm]
                if actual != digest:
                    name = _ALGORITHMS[algorithm][0]
                    _refuse(
                        "put",
                        10037,
                        f"The {name} checksum you specified did not match what we received.\n"
                        f"You provided a {name} checksum with value: {digest.hex()}\nActual {name} was: {actual.hex()}",
                    )
                checksums[algorithm] = actual.hex()
            row: Row = (
                raw,
                secrets.token_hex(16),
                stored.size,
                checksums["md5"],
                self._now(),
                json.dumps(checksums),
                _dump_http(http),
                json.dumps(custom),
                storage_class or "Standard",
                ssec_md5,
            )

            def write() -> bool:
                with self._database.transaction() as connection:
                    if conditions is not None:
                        before = self._select(raw)
                        if not (
                            conditions.hold_for_nothing() if before is None else conditions.hold(before[3], before[4])
                        ):
                            return False
                    connection.execute(_PUT, row)
                    self._put_piece(row[1], 1, stored, row[3])
                return True

            if not await self._wait("put", write):
                return None
        finally:
            self._discard(stored)
        self._empty_garbage()
        return R2Object(**_fields(row))

    def store(self, key: str, data: bytes) -> None:
        """Store an object without metadata, at once: what a fake holds from the start."""
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        stored = _Stored(len(data), data, None, {"md5": digest})
        etag = digest.hex()
        checksums = json.dumps({"md5": etag})
        version = secrets.token_hex(16)
        row: Row = (_key("put", key), version, len(data), etag, self._now(), checksums, "{}", "{}", "Standard", None)
        with self._database.transaction() as connection:
            connection.execute(_PUT, row)
            self._put_piece(version, 1, stored, etag)

    async def delete(self, keys: str | Iterable[str]) -> None:
        """Delete objects. See `R2Bucket.delete`."""
        names = [keys] if isinstance(keys, str) else [*keys]
        if self._gate is not None:
            await self._gate("delete", (keys if isinstance(keys, str) else names,), {})
        raws = [(_key("delete", name),) for name in names]

        def remove() -> None:
            with self._database.transaction() as connection:
                connection.executemany("DELETE FROM r2_objects WHERE key = ?", raws)

        if raws:
            await self._wait("delete", remove)
            self._empty_garbage()

    # ------------------------------------------------------------------ multipart uploads

    async def create_multipart_upload(
        self,
        key: str,
        *,
        http_metadata: HTTPMetadata | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        storage_class: str | None = None,
        ssec_key: R2Hash | None = None,
    ) -> EmbeddedR2MultipartUpload:
        """Begin an upload. See `R2Bucket.create_multipart_upload`."""
        if self._gate is not None:
            options = _given(
                http_metadata=http_metadata,
                custom_metadata=custom_metadata,
                storage_class=storage_class,
                ssec_key=ssec_key,
            )
            await self._gate("create_multipart_upload", (key,), options)
        custom = _custom_metadata(custom_metadata)
        http = _http_metadata(http_metadata)
        ssec_md5 = _ssec(ssec_key)
        raw = _key("createMultipartUpload", key)
        _check_metadata("createMultipartUpload", custom)
        upload_id = secrets.token_urlsafe(128)
        row = (
            upload_id,
            raw,
            _IN_PROGRESS,
            _dump_http(http),
            json.dumps(custom),
            storage_class or "Standard",
            ssec_md5,
        )
        await self._wait(
            "createMultipartUpload",
            lambda: self._connection.execute("INSERT INTO r2_uploads VALUES (?, ?, ?, ?, ?, ?, ?)", row),
        )
        return EmbeddedR2MultipartUpload(self, key, upload_id)

    def resume_multipart_upload(self, key: str, upload_id: str) -> EmbeddedR2MultipartUpload:
        """Return an upload that was begun before. See `R2Bucket.resume_multipart_upload`."""
        return EmbeddedR2MultipartUpload(self, key, upload_id)

    async def upload_part(
        self, key: str, upload_id: str, part_number: int, value: R2Value, *, ssec_key: R2Hash | None = None
    ) -> R2UploadedPart:
        """What `EmbeddedR2MultipartUpload.upload_part` does."""
        if self._gate is not None:
            await self._gate("upload_part", (key, upload_id, part_number, value), _given(ssec_key=ssec_key))
        number = _part_number(part_number)
        if value is None:
            raise R2TypeError(_wrong_value("uploadPart", "R2MultipartUpload"))
        _ssec(ssec_key)
        source = _source("uploadPart", value)
        raw = _key("uploadPart", key)
        stored = await self._take_in(source, ("md5",))
        etag = secrets.token_urlsafe(24)

        def write() -> bool:
            with self._database.transaction() as connection:
                if self._state(upload_id, raw) != _IN_PROGRESS:
                    return False
                connection.execute("DELETE FROM r2_pieces WHERE owner = ? AND number = ?", (upload_id, number))
                self._put_piece(upload_id, number, stored, etag)
            return True

        try:
            if not await self._wait("uploadPart", write):
                _refuse("uploadPart", 10024)
        finally:
            self._discard(stored)
        self._empty_garbage()
        return R2UploadedPart(number, etag)

    async def complete_multipart_upload(
        self, key: str, upload_id: str, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]
    ) -> R2Object:
        """What `EmbeddedR2MultipartUpload.complete` does."""
        if self._gate is not None:
            await self._gate("complete", (key, upload_id, uploaded_parts), {})
        chosen: list[tuple[int, str]] = []
        for part in uploaded_parts:
            if isinstance(part, R2UploadedPart):
                chosen.append((_part_number(part.part_number), part.etag))
            else:
                chosen.append((_part_number(part["part_number"]), part["etag"]))
        raw = _key("completeMultipartUpload", key)

        def write() -> Row:
            with self._database.transaction():
                return self._complete(raw, upload_id, chosen)

        row = await self._wait("completeMultipartUpload", write)
        self._empty_garbage()
        return R2Object(**_fields(row))

    def _complete(self, raw: bytes, upload_id: str, chosen: Sequence[tuple[int, str]]) -> Row:
        """Make the object, inside a transaction. The order of the checks is the platform's."""
        connection = self._connection
        upload = connection.execute(
            "SELECT state, http_metadata, custom_metadata, storage_class, ssec_key_md5 FROM r2_uploads"
            " WHERE upload_id = ? AND key = ?",
            (upload_id, raw),
        ).fetchone()
        if upload is None or upload[0] != _IN_PROGRESS:
            _refuse("completeMultipartUpload", 10024)
        if len({number for number, _ in chosen}) != len(chosen):
            _refuse("completeMultipartUpload", 10001)
        there = {
            number: (size, etag, md5)
            for number, size, etag, md5 in connection.execute(
                "SELECT number, size, etag, md5 FROM r2_pieces WHERE owner = ?", (upload_id,)
            )
        }
        parts: list[tuple[int, int, bytes]] = []
        for number, etag in chosen:
            piece = there.get(number)
            if piece is None or piece[1] != etag:
                _refuse("completeMultipartUpload", 10025)
            parts.append((number, piece[0], piece[2]))
        if any(size < MIN_PART for _, size, _ in parts[:-1]):
            _refuse("completeMultipartUpload", 10011)
        parts.sort()
        sizes = [size for _, size, _ in parts]
        # All but the last of one size, and large enough in this order too; the last one not larger than they are.
        if any(size < MIN_PART or size != sizes[0] for size in sizes[:-1]) or sizes[-1:] > sizes[:1]:
            _refuse("completeMultipartUpload", 10048)
        digest = hashlib.md5(b"".join([md5 for _, _, md5 in parts]), usedforsecurity=False).hexdigest()
        etag = f"{digest}-{len(parts)}"
        row: Row = (
            raw,
            secrets.token_hex(16),
            sum(sizes),
            etag,
            self._now(),
            "{}",
            upload[1],
            upload[2],
            upload[3],
            upload[4],
        )
        connection.execute(_PUT, row)
        connection.executemany(
            "UPDATE r2_pieces SET owner = ? WHERE owner = ? AND number = ?",
            [(row[1], upload_id, number) for number, _, _ in parts],
        )
        connection.execute("DELETE FROM r2_pieces WHERE owner = ?", (upload_id,))
        connection.execute("UPDATE r2_uploads SET state = ? WHERE upload_id = ?", (_COMPLETED, upload_id))
        return row

    async def abort_multipart_upload(self, key: str, upload_id: str) -> None:
        """What `EmbeddedR2MultipartUpload.abort` does."""
        if self._gate is not None:
            await self._gate("abort", (key, upload_id), {})
        raw = _key("abortMultipartUpload", key)

        def write() -> None:
            with self._database.transaction() as connection:
                state = self._state(upload_id, raw)
                if state is None:
                    _refuse("abortMultipartUpload", 10024)
                if state == _IN_PROGRESS:
                    connection.execute("DELETE FROM r2_pieces WHERE owner = ?", (upload_id,))
                    connection.execute("UPDATE r2_uploads SET state = ? WHERE upload_id = ?", (_ABORTED, upload_id))

        await self._wait("abortMultipartUpload", write)
        self._empty_garbage()

    # ------------------------------------------------------------------ bodies

    async def _take_in(self, source: bytes | KnownLengthStream, algorithms: Sequence[str]) -> _Stored:
        """Read a value whole, with its digests: into memory, or into a file when it is large and there are files."""
        hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
        size = len(source) if isinstance(source, bytes) else source.length
        files = self._files
        staged = None
        chunks = _chunks(source)
        if files is None or size <= _LARGE:
            data = source if isinstance(source, bytes) else b"".join([chunk async for chunk in chunks])
            if len(data) <= _LARGE:
                for digest in hashes.values():
                    digest.update(data)
            else:
                await asyncio.to_thread(_update, hashes.values(), data)
            self._check_length(len(data), size)
            return _Stored(size, data, None, {name: digest.digest() for name, digest in hashes.items()})
        staged = await asyncio.to_thread(files.stage, ())
        try:
            seen = 0
            with staged.open("r+b") as file:

                def write(chunk: bytes) -> None:
                    for digest in hashes.values():
                        digest.update(chunk)
                    file.write(chunk)

                async for chunk in chunks:
                    seen += len(chunk)
                    await asyncio.to_thread(write, chunk)
                await asyncio.to_thread(_to_disk, file)
            self._check_length(seen, size)
        except BaseException:
            files.discard(staged)
            raise
        return _Stored(size, None, staged, {name: digest.digest() for name, digest in hashes.items()})

    def _check_length(self, seen: int, promised: int) -> None:
        if seen > promised:
            raise R2TypeError("Attempt to write too many bytes through a FixedLengthStream.")
        if seen < promised:
            raise R2TypeError("FixedLengthStream did not see all expected bytes before close().")

    def _discard(self, stored: _Stored) -> None:
        """Delete the staged file, if it did not become a piece's."""
        if stored.staged is not None and self._files is not None:
            self._files.discard(stored.staged)

    def _put_piece(self, owner: str, number: int, stored: _Stored, etag: str) -> None:
        """Store a value as a piece, inside a transaction."""
        file = None
        if stored.staged is not None:
            assert self._files is not None
            file = self._files.publish(stored.staged)
        piece = (owner, number, stored.size, etag, stored.digests["md5"], stored.data, file)
        self._connection.execute(_PUT_PIECE, piece)

    def _read(self, pieces: Sequence[_Piece], offset: int, length: int) -> _Reading:
        names = [piece.file for piece in pieces if piece.file is not None]
        reading = _Reading(self._files, pieces, offset, length)
        if names:
            self._held.update(names)
            weakref.finalize(reading, self._release, names).atexit = False
        return reading

    def _release(self, names: Sequence[str]) -> None:
        """A body is gone: delete the files that were garbage before."""
        self._held.subtract(names)
        free = [name for name in names if self._held[name] <= 0]
        for name in free:
            del self._held[name]
        doomed = self._doomed.intersection(free)
        self._doomed -= doomed
        if doomed and self._files is not None:
            self._files.remove(doomed)

    def _empty_garbage(self) -> None:
        """Delete the files that no row names any more, except those that a body may still be reading."""
        if self._files is None:
            return
        try:
            if self._connection.execute("SELECT 1 FROM r2_garbage LIMIT 1").fetchone() is None:
                return
            with self._database.transaction() as connection:
                names = {name for (name,) in connection.execute("SELECT file FROM r2_garbage")}
                kept = {name for name in names if self._held[name] > 0}
                self._doomed |= kept
                self._files.remove(names - kept)
                connection.execute("DELETE FROM r2_garbage")
        except sqlite3.OperationalError:
            # Another process is writing. What is garbage now is still garbage at the next put.
            return

    # ------------------------------------------------------------------ SQL

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            for statement in _statements(_SCHEMA):
                connection.execute(statement)
            if self._files is not None:
                self._files.sweep(
                    lambda: (
                        name for (name,) in connection.execute("SELECT file FROM r2_pieces WHERE file IS NOT NULL")
                    )
                )
                connection.execute("DELETE FROM r2_garbage")

    def _now(self) -> int:
        return math.floor(self._clock.time() * 1000)

    def _select(self, raw: bytes) -> Row | None:
        row: Row | None = self._connection.execute(_SELECT, (raw,)).fetchone()
        return row

    def _select_with_pieces(self, raw: bytes) -> tuple[Row, Pieces] | None:
        with self._database.transaction(write=False) as connection:
            row = self._select(raw)
            if row is None:
                return None
            pieces = connection.execute(
                "SELECT size, data, file FROM r2_pieces WHERE owner = ? ORDER BY number", (row[1],)
            ).fetchall()
        return row, [_Piece(*piece) for piece in pieces]

    def _state(self, upload_id: str, raw: bytes) -> int | None:
        found = self._connection.execute(
            "SELECT state FROM r2_uploads WHERE upload_id = ? AND key = ?", (upload_id, raw)
        ).fetchone()
        return None if found is None else int(found[0])

    def _page(self, start: bytes, delimiter: bytes, after: bytes | None, count: int) -> tuple[Rows, Keys, bytes | None]:
        """Objects and prefixes of one page, and the last key that they cover, when there is more."""
        rows: Rows = []
        prefixes: Keys = []
        last = after
        with self._database.transaction(write=False):
            while True:
                wanted = count - len(rows) - len(prefixes)
                found = self._keys_after(start, last, wanted + 1)
                for place, row in enumerate(found):
                    if place == wanted:
                        return rows, prefixes, last
                    key = row[0]
                    cut = key.find(delimiter, len(start)) if delimiter else -1
                    if cut >= 0:
                        prefixes.append(key[: cut + len(delimiter)])
                        # On behind all that begins so.
                        last = self._last_key_of(prefixes[-1])
                        break
                    rows.append(row)
                    last = key
                else:
                    return rows, prefixes, None

    def _keys_after(self, start: bytes, after: bytes | None, count: int) -> Rows:
        sql = f"SELECT {_COLUMNS} FROM r2_objects WHERE key >= ?"
        parameters: list[Any] = [start]
        if after is not None:
            sql += " AND key > ?"
            parameters.append(after)
        if (end := _after_prefix(start)) is not None:
            sql += " AND key < ?"
            parameters.append(end)
        return self._connection.execute(f"{sql} ORDER BY key LIMIT ?", [*parameters, count]).fetchall()

    def _last_key_of(self, prefix: bytes) -> bytes:
        end = _after_prefix(prefix)
        bounds = [prefix] if end is None else [prefix, end]
        upper = "" if end is None else " AND key < ?"
        (last,) = self._connection.execute(f"SELECT max(key) FROM r2_objects WHERE key >= ?{upper}", bounds).fetchone()
        return cast("bytes", last)

    async def _wait(self, method: Method, action: Callable[[], T]) -> T:
        """Do it as soon as other processes let us, and say in the platform's way when they do not."""
        try:
            return await self._database.patiently(action)
        except StoreBusyError as error:
            raise R2Error(f"{method}: {error} (10001)") from error
        except sqlite3.Error as error:
            raise R2Error(f"{method}: {error}: {self._database.place} (10001)") from error


class EmbeddedR2MultipartUpload:
    """An upload in parts, of one bucket. See `R2MultipartUpload`."""

    __slots__ = ("_bucket", "key", "upload_id")

    def __init__(self, bucket: EmbeddedR2Bucket, key: str, upload_id: str) -> None:
        self._bucket = bucket
        self.key: str = key
        self.upload_id: str = upload_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.key!r} in {self._bucket!r}>"

    async def upload_part(self, part_number: int, value: R2Value, *, ssec_key: R2Hash | None = None) -> R2UploadedPart:
        """Store one part. See `R2MultipartUpload.upload_part`."""
        return await self._bucket.upload_part(self.key, self.upload_id, part_number, value, ssec_key=ssec_key)

    async def complete(self, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]) -> R2Object:
        """Make the object of the parts. See `R2MultipartUpload.complete`."""
        return await self._bucket.complete_multipart_upload(self.key, self.upload_id, uploaded_parts)

    async def abort(self) -> None:
        """Drop the upload. See `R2MultipartUpload.abort`."""
        await self._bucket.abort_multipart_upload(self.key, self.upload_id)


class _Reading:
    """Some bytes of some pieces, in chunks. While it lives, this process does not delete their files."""

    def __init__(self, files: Files | None, pieces: Sequence[_Piece], offset: int, length: int) -> None:
        self._files = files
        self._pieces = pieces
        self._offset = offset
        self._length = length

    async def __aiter__(self) -> AsyncIterator[bytes]:
        skip, left = self._offset, self._length
        for piece in self._pieces:
            if skip >= piece.size:
                skip -= piece.size
                continue
            if left <= 0:
                return
            end = min(piece.size, skip + left)
            left -= end - skip
            if piece.data is not None:
                yield piece.data[skip:end]
            else:
                async for chunk in self._file(cast("str", piece.file), skip, end):
                    yield chunk
            skip = 0

    async def _file(self, name: str, start: int, end: int) -> AsyncIterator[bytes]:
        assert self._files is not None
        path = self._files.path(name)
        while start < end:
            chunk = await asyncio.to_thread(_read_at, path, start, min(_CHUNK, end - start))
            if not chunk:
                # Another process replaced the object while it was being read here.
                _refuse("get", 10001)
            start += len(chunk)
            yield chunk


def _read_at(path: Path, start: int, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)
    except FileNotFoundError:
        return b""


def _update(hashes: Iterable[Any], data: bytes) -> None:
    for digest in hashes:
        digest.update(data)


def _to_disk(file: Any) -> None:
    import os

    file.flush()
    os.fsync(file.fileno())


async def _chunks(source: bytes | KnownLengthStream) -> AsyncIterator[bytes]:
    if isinstance(source, bytes):
        for start in range(0, len(source), 8 * _CHUNK):
            yield source[start : start + 8 * _CHUNK]
        return
    async for chunk in source:
        yield bytes(chunk)


# ---------------------------------------------------------------------- what comes in


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _is_headers(value: object) -> bool:
    """Whether it is `http.Headers`, or anything else that reads like it, but not a plain dict of options."""
    return not isinstance(value, dict) and hasattr(value, "get_set_cookie")


_lone_surrogates = re.compile("[\ud800-\udfff]")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _lone_surrogates.sub("\ufffd", text).encode()


def _key(method: Method, key: str) -> bytes:
    if not isinstance(key, str):
        raise R2TypeError(f"{method}: a key must be a str, not {type(key).__name__}. Write str(key) if that is meant")
    raw = _encode(key)
    if len(raw) > MAX_KEY:
        _refuse(method, 10020)
    return raw


def _whole(method: Method, number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise R2TypeError(f"{method}: limit must be an int, not {number!r}")
    return number


def _part_number(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise R2TypeError(f"Part number must be an int, not {number!r}")
    if not 1 <= number <= MAX_PARTS:
        raise R2TypeError(f"Part number must be between 1 and {MAX_PARTS} (inclusive). Actual value was: {number}")
    return number


def _wrong_value(method: str, interface: str) -> str:
    return (
        f"Failed to execute '{method}' on '{interface}': parameter 2 is not of type "
        "'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'."
    )


def _source(method: Method, value: R2Value) -> bytes | KnownLengthStream:
    if value is None:
        return b""
    if isinstance(value, str):
        return _encode(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "__aiter__"):
        length = getattr(value, "length", None)
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise R2TypeError(
                "Provided readable stream must have a known length "
                "(request/response body or readable half of FixedLengthStream)"
            )
        return value
    raise R2TypeError(_wrong_value(method, "R2Bucket" if method == "put" else "R2MultipartUpload"))


def _check_size(method: Method, source: bytes | KnownLengthStream) -> None:
    if (len(source) if isinstance(source, bytes) else source.length) > MAX_OBJECT:
        _refuse(method, 100100)


def _custom_metadata(metadata: Mapping[Any, Any] | None) -> dict[str, str]:
    custom = dict(metadata or {})
    for name, value in custom.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise R2TypeError(f"custom_metadata[{name!r}] must be a text, not {value!r}. Write str(...) around it")
    return custom


def _check_metadata(method: Method, custom: Mapping[str, str]) -> None:
    if sum(_serialised_length(name) + _serialised_length(value) for name, value in custom.items()) > MAX_METADATA:
        _refuse(method, 10012)


def _serialised_length(text: str) -> int:
    """As the platform counts it: UTF-16 units, doubled for a text that latin-1 cannot carry."""
    if text.isascii():
        return len(text)
    units = len(text) + sum(character > "\uffff" for character in text)
    return units * 2 if max(text) > "\xff" else units


_HTTP_FIELDS: Final = ("content_type", "content_language", "content_disposition", "content_encoding", "cache_control")


def _http_metadata(metadata: HTTPMetadata | None) -> R2HTTPMetadata:
    if metadata is None:
        return R2HTTPMetadata()
    if isinstance(metadata, R2HTTPMetadata):
        return metadata
    if _is_headers(metadata):
        headers = cast("Headers", metadata)
        fields: dict[str, Any] = {name: headers.get(name.replace("_", "-")) for name in _HTTP_FIELDS}
        return R2HTTPMetadata(**fields, cache_expiry=_http_date(headers.get("expires")))
    unknown = set(metadata) - {*_HTTP_FIELDS, "cache_expiry"}
    if unknown:
        raise R2TypeError(
            f"http_metadata has no {', '.join(sorted(unknown))}: it has {', '.join(_HTTP_FIELDS)}, cache_expiry"
        )
    return R2HTTPMetadata(**cast("R2HTTPMetadataDict", metadata))


def _http_date(text: str | None) -> datetime | None:
    """An HTTP date. What is none is left out, as HTTP wants it."""
    if text is None:
        return None
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def _milliseconds(date: datetime) -> int:
    if date.tzinfo is None:
        raise R2TypeError(f"{date!r} has no time zone. Write datetime(..., tzinfo=timezone.utc)")
    return math.floor(date.timestamp() * 1000 + 0.0005)


def _date(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _dump_http(metadata: R2HTTPMetadata) -> str:
    fields = {name: value for name in _HTTP_FIELDS if (value := getattr(metadata, name)) is not None}
    if metadata.cache_expiry is not None:
        fields["cache_expiry"] = _milliseconds(metadata.cache_expiry)
    return json.dumps(fields)


def _load_http(text: str) -> R2HTTPMetadata:
    fields = json.loads(text)
    if "cache_expiry" in fields:
        fields["cache_expiry"] = _date(fields["cache_expiry"])
    return R2HTTPMetadata(**fields)


_ALGORITHMS: Final = {
    "md5": ("MD5", 16),
    "sha1": ("SHA-1", 20),
    "sha256": ("SHA-256", 32),
    "sha384": ("SHA-384", 48),
    "sha512": ("SHA-512", 64),
}


def _given_hash(hashes: Mapping[str, R2Hash | None]) -> tuple[str, bytes] | None:
    found: tuple[str, bytes] | None = None
    for algorithm, value in hashes.items():
        if value is None:
            continue
        if found is not None:
            raise R2TypeError("You cannot specify multiple hashing algorithms.")
        name, size = _ALGORITHMS[algorithm]
        if isinstance(value, (bytes, bytearray, memoryview)):
            digest = bytes(value)
            if len(digest) != size:
                raise R2TypeError(f"{name} is {size} bytes, not {len(digest)}")
        elif isinstance(value, str):
            if len(value) != 2 * size:
                raise R2TypeError(f"{name} is {2 * size} hex characters, not {len(value)}")
            if not re.fullmatch("[0-9a-fA-F]+", value):
                raise R2TypeError(f"Provided {name} wasn't a valid hex string")
            digest = bytes.fromhex(value)
        else:
            raise R2TypeError(f"{algorithm} must be hex digits or bytes, not {type(value).__name__}")
        found = (algorithm, digest)
    return found


def _ssec(key: R2Hash | None) -> str | None:
    """The MD5 of a customer's key, in hex. The embedded bucket keeps it, and encrypts nothing."""
    if key is None:
        return None
    if isinstance(key, str):
        if not re.fullmatch("[0-9a-f]+", key):
            raise R2Error("SSE-C Key has invalid format")
        if len(key) != 64:
            raise R2Error("SSE-C Key must be 32 bytes in length")
        key = bytes.fromhex(key)
    elif len(key) != 32:
        raise R2Error("SSE-C Key must be 32 bytes in length")
    return hashlib.md5(bytes(key), usedforsecurity=False).hexdigest()


def _include(include: Iterable[R2Include] | None) -> tuple[bool, bool, bool]:
    wanted = [] if include is None else [*include]
    http = custom = False
    for field in wanted:
        match field:
            case "httpMetadata" | "http_metadata":
                http = True
            case "customMetadata" | "custom_metadata":
                custom = True
            case _:
                raise R2ValueError(f"Unsupported include value {field}")
    return http, custom, bool(wanted)


# ---------------------------------------------------------------------- conditions

Etag: TypeAlias = tuple[Literal["strong", "weak", "wildcard"], str]


@attrs.frozen
class _Conditions:
    """Conditions of any spelling as the platform tests them (RFC 9110, section 13). Dates are in milliseconds."""

    match: Sequence[Etag] | None
    none_match: Sequence[Etag] | None
    before: int | None
    after: int | None
    in_seconds: bool

    @classmethod
    def of(cls, given: Conditions) -> _Conditions:
        if _is_headers(given):
            return cls._of_headers(cast("Headers", given))
        if not isinstance(given, R2Conditional):
            fields = {field.name for field in attrs.fields(R2Conditional)}
            unknown = set(given) - fields
            if unknown:
                raise R2TypeError(f"only_if has no {', '.join(sorted(unknown))}: it has {', '.join(sorted(fields))}")
            given = R2Conditional(**cast("R2ConditionalDict", given))
        return cls(
            _given_etag(given.etag_matches),
            _given_etag(given.etag_does_not_match),
            None if given.uploaded_before is None else _milliseconds(given.uploaded_before),
            None if given.uploaded_after is None else _milliseconds(given.uploaded_after),
            given.seconds_granularity,
        )

    @classmethod
    def _of_headers(cls, headers: Headers) -> _Conditions:
        after = _http_date(headers.get("if-modified-since"))
        before = _http_date(headers.get("if-unmodified-since"))
        return cls(
            _parse_etags("if-match", headers.get("if-match")),
            _parse_etags("if-none-match", headers.get("if-none-match")),
            None if before is None else _milliseconds(before),
            None if after is None else _milliseconds(after),
            in_seconds=True,
        )

    def hold_for_nothing(self) -> bool:
        """Whether they hold where there is no object."""
        return self.match is None and self.after is None

    def hold(self, etag: str, uploaded: int) -> bool:
        """Whether they hold for an object."""
        unit = 1000 if self.in_seconds else 1
        matches = self.match is None or any(
            kind == "wildcard" or (kind == "strong" and value == etag) for kind, value in self.match
        )
        differs = self.none_match is None or not any(
            kind == "wildcard" or value == etag for kind, value in self.none_match
        )
        after = self.after is None or self.after // unit < uploaded // unit or (self.none_match is not None and differs)
        before = self.before is None or uploaded // unit < self.before // unit or (self.match is not None and matches)
        return matches and differs and after and before


def _given_etag(etag: str | None) -> Sequence[Etag] | None:
    if etag is None:
        return None
    if not isinstance(etag, str):
        raise R2TypeError(f"An etag must be a str, not {type(etag).__name__}")
    if etag == "*":
        return (("wildcard", ""),)
    if etag.startswith('"') and etag.endswith('"'):
        raise R2TypeError(f"Conditional ETag should not be wrapped in quotes ({etag}).")
    return (("strong", etag),)


def _parse_etags(header: str, text: str | None) -> Sequence[Etag] | None:
    """The etags of an If-Match or If-None-Match header, with what the platform says of those that are none."""
    if text is None:
        return None
    etags: list[Etag] = []
    comma_needed = False
    while True:
        places = {character: text.find(character) % (len(text) + 1) for character in '*"W,'}
        star, quote, weak, comma = (places[character] for character in '*"W,')
        nowhere = len(text)
        if star == quote == nowhere:
            break
        if comma < min(star, quote, weak):
            text = text[comma + 1 :]
            comma_needed = False
            continue
        if comma_needed:
            first = min(star, quote, weak)
            if first == star:
                problem = "Encountered a wildcard character '*' instead."
            elif first == quote:
                problem = (
                    "Encountered a double quote character '\"' instead. "
                    "This would otherwise indicate the start of a new strong etag."
                )
            else:
                problem = (
                    "Encountered a weak quotation character 'W' instead. "
                    "This would otherwise indicate the start of a new weak etag."
                )
            raise R2Error(f"Comma was expected to separate etags. {problem}")
        if star < quote:
            return (("wildcard", ""),)
        end = text.find('"', quote + 1)
        if end < 0:
            raise R2Error("Unclosed double quote for Etag")
        value = text[quote + 1 : end]
        if weak < quote:
            if text[weak + 1 : weak + 2] != "/" or weak + 2 != quote:
                raise R2Error("Weak etags must start with W/ and their value must be quoted")
            etags.append(("weak", value))
        else:
            etags.append(("strong", value))
        text = text[end + 1 :]
        comma_needed = True
    if not etags:
        raise R2Error(f"Invalid ETag in {header} header")
    return etags


# ---------------------------------------------------------------------- ranges

_range_unit = re.compile(r" *bytes *=", re.IGNORECASE)
_one_range = re.compile(r" *([0-9]+)? *- *([0-9]+)? *")


@attrs.frozen
class _Span:
    """A range of any spelling, checked as far as that can be done without the object."""

    offset: int | None = None
    length: int | None = None
    suffix: int | None = None
    header: str | None = None

    @classmethod
    def of(cls, given: Ranges) -> _Span:
        if _is_headers(given):
            return cls(header=cast("Headers", given).get("range"))
        if not isinstance(given, R2Range):
            unknown = set(given) - {"offset", "length", "suffix"}
            if unknown:
                raise R2TypeError(f"range has no {', '.join(sorted(unknown))}: it has length, offset, suffix")
            given = R2Range(**cast("R2RangeDict", given))
        offset = _range_number("Invalid range. Starting offset", "Invalid range. Starting offset", given.offset)
        length = _range_number("Invalid range. Length", "Invalid range. Length", given.length)
        if given.suffix is None:
            return cls(offset, length)
        for name, value in (("offset", offset), ("length", length)):
            if value is not None:
                raise R2TypeError(f"Suffix is incompatible with {name}.")
        return cls(suffix=_range_number("Invalid suffix. Suffix", "Invalid range. Suffix", given.suffix))

    def within(self, size: int) -> tuple[int, int]:
        """Offset and length in an object of `size` bytes."""
        if self.header is not None:
            return _header_range(self.header, size)
        offset, length = self.offset, self.length
        if (self.offset, self.length, self.suffix) == (None, None, None):
            if size == 0:
                _refuse("get", 10039)
            return 0, size
        if self.suffix is not None:
            if self.suffix == 0:
                _refuse("get", 10039)
            length = min(self.suffix, size)
            offset = size - length
        offset = offset or 0
        if length is None:
            length = size - offset
        if offset >= size or length <= 0:
            _refuse("get", 10039)
        return offset, min(length, size - offset)


def _range_number(below: str, fraction: str, number: float | None) -> int | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise R2TypeError(f"{fraction} must be an int, not {number!r}")
    if not number >= 0:
        raise R2ValueError(f"{below} ({_number(number)}) must be greater than or equal to 0.")
    if math.isinf(number):
        return MAX_OBJECT
    if number != int(number):
        raise R2ValueError(f"{fraction} ({_number(number)}) must be an integer, not floating point.")
    return int(number)


def _number(number: float) -> str:
    return str(int(number)) if math.isfinite(number) and number == int(number) else str(number)


def _header_range(header: str, size: int) -> tuple[int, int]:
    """What a Range header asks for; the whole when it asks for several parts, or for none that there are."""
    whole = (0, size)
    unit = _range_unit.match(header)
    found = None if unit is None else _one_range.fullmatch(header[unit.end() :])
    if found is None:
        return whole
    first, last = found[1], found[2]
    if first is not None:
        start = int(first)
        end = size - 1 if last is None else min(int(last), size - 1)
        if start >= size or (last is not None and start > int(last)):
            return whole
        return start, end - start + 1
    if last is None or int(last) == 0 or int(last) >= size:
        return whole
    return size - int(last), int(last)


# ---------------------------------------------------------------------- rows


def _fields(row: Row, *, http: bool = True, custom: bool = True) -> dict[str, Any]:
    key, version, size, etag, uploaded, checksums, http_metadata, custom_metadata, storage_class, ssec_key_md5 = row
    return {
        "key": key.decode(),
        "version": version,
        "size": size,
        "etag": etag,
        "http_etag": f'"{etag}"',
        "uploaded": _date(uploaded),
        "checksums": R2Checksums(**{name: bytes.fromhex(value) for name, value in json.loads(checksums).items()}),
        "http_metadata": _load_http(http_metadata) if http else None,
        "custom_metadata": json.loads(custom_metadata) if custom else None,
        "storage_class": storage_class,
        "ssec_key_md5": ssec_key_md5,
    }


def _after_prefix(prefix: bytes) -> bytes | None:
    """The first key that comes after all that begin with `prefix`, if there can be one."""
    head = prefix.rstrip(b"\xff")
    return None if not head else head[:-1] + bytes([head[-1] + 1])


def _decode_cursor(cursor: str) -> bytes:
    """The key that a cursor stands for. An invented one is no error: what is no base64 in it is passed over."""
    letters = re.sub(r"[^A-Za-z0-9+/]", "", cursor.split("=", 1)[0].replace("-", "+").replace("_", "/"))
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    return _encode(b64decode(letters + "=" * (-len(letters) % 4)).decode("utf-8", "replace"))


def _statements(script: str) -> Iterable[str]:
    """The statements of a script, whole: a trigger has semicolons inside."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
