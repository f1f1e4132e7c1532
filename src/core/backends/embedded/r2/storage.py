"""The storage of a bucket's objects on one machine: SQLite rows, and files beside them.

Small bodies are in their row, large ones are files; a file is deleted once no row names it and nobody reads it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from functools import partial
from io import BufferedRandom
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from core.backends.embedded.disk import Files, StoreError, on_disk
from core.backends.embedded.r2.arguments import Preconditions, store_failure
from core.backends.embedded.r2.bucket import LARGE, Found, R2Storage, Source, StoredR2Bucket, covered
from core.backends.embedded.r2.rows import (
    SCHEMA,
    Described,
    Page,
    Part,
    Row,
    find_parts,
    insert,
    joined,
    read_page,
    select,
)
from core.backends.embedded.store import Database, Store, run_script
from core.backends.r2 import Chosen, Method, encode_key, refuse
from core.context import Clock

T = TypeVar("T")

IN_PROGRESS, ENDED = 0, 1

_KEPT: Final = 7 * 24 * 3600 * 1000
"""Milliseconds that an upload in parts is kept, as on the platform."""

_CHUNK: Final = 256 * 1024

_PUT_PIECE: Final = "INSERT INTO r2_pieces (owner, number, size, etag, md5, data, file) VALUES (?, ?, ?, ?, ?, ?, ?)"

Incoming: TypeAlias = bytes | Path
"""A body that was read completely: its bytes, or its staged file."""


Piece: TypeAlias = tuple[int, bytes | None, str | None]
"""Part of a body's bytes: how many, and the bytes themselves or the file that they are in."""


class EmbeddedR2Bucket(StoredR2Bucket):
    """The bucket `name` of `store`. Two objects of one name are one bucket."""

    def __init__(self, store: Store, name: str) -> None:
        self._own = BucketStorage(store, name)
        super().__init__(self._own)

    def store(self, key: str, data: bytes) -> None:
        """Store an object without metadata, at once, for the objects that a fake holds from the start."""
        etag = hashlib.md5(data, usedforsecurity=False).hexdigest()
        checksums = json.dumps({"md5": etag})
        raw, version = encode_key("put", key), secrets.token_hex(16)
        row = Row(raw, version, len(data), etag, self._own.now(), checksums, "{}", "{}", "Standard", None)
        self._own.write_at_once(row, data)


class BucketStorage(R2Storage[Incoming]):
    """The rows and bodies of the bucket `name` of `store`: an `R2Storage`."""

    def __init__(self, store: Store, name: str) -> None:
        self.clock: Clock = store.clock
        self._database: Database = store.database("r2", name)
        self._connection: sqlite3.Connection = self._database.connection
        self._files = store.files("r2", name)
        self.place: object = self._database.location
        self._database.insist(self._set_up)

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            run_script(connection, SCHEMA)
            if self._files is not None:
                # What a process that was killed has forgotten.
                self._files.sweep(connection.execute("SELECT file FROM r2_pieces WHERE file IS NOT NULL"))
                connection.execute("DELETE FROM r2_garbage")

    # ------------------------------------------------------------------ reading

    async def head(self, key: bytes) -> Row | None:
        return await self._wait("head", lambda: select(self._connection, key))

    async def find(self, key: bytes) -> Found | None:

        def look() -> tuple[Row, list[Piece]] | None:
            with self._database.transaction(write=False) as connection:
                row = select(connection, key)
                if row is None:
                    return None
                pieces = "SELECT size, data, file FROM r2_pieces WHERE owner = ? ORDER BY number"
                return row, connection.execute(pieces, (row.version,)).fetchall()

        found = await self._wait("get", look)
        if found is None:
            return None
        row, pieces = found

        async def read(offset: int, length: int) -> AsyncIterable[bytes]:
            reading = self._read(pieces, offset, length)
            # While that lives, this process does not delete the files.
            if self._files is not None and (names := [file for *_, file in pieces if file is not None]):
                self._files.hold(names, reading)
            return reading

        return Found(row, read)

    async def _read(self, pieces: Sequence[Piece], offset: int, length: int) -> AsyncIterator[bytes]:
        """`length` bytes of some pieces from `offset` on, in chunks."""
        for (_, data, file), start, end in covered(((piece, piece[0]) for piece in pieces), offset, length):
            if data is not None:
                yield data[start:end]
                continue
            assert self._files is not None
            assert file is not None
            path = self._files.folder / file
            while start < end:
                chunk = await _in_thread("get", path, _read_at, path, start, min(_CHUNK, end - start))
                if not chunk:
                    # Another process replaced the object while it was being read here.
                    refuse("get", 10001)
                start += len(chunk)
                yield chunk

    async def page(self, start: bytes, delimiter: bytes, after: bytes | None, count: int) -> Page:
        return await self._wait("list", lambda: read_page(self._database, start, delimiter, after, count))

    # ------------------------------------------------------------------ writing

    async def take_in(self, method: Method, key: bytes, source: Source) -> Incoming:
        if self._files is None or source.size <= LARGE:
            return b"".join([piece async for piece in source])
        return await _staged(self._files, source)

    def discard(self, taken: Incoming) -> None:
        if isinstance(taken, Path):
            taken.unlink(missing_ok=True)

    async def write(self, row: Row, taken: Incoming, conditions: Preconditions | None) -> bool:
        return await self._change("put", lambda: self.write_at_once(row, taken, conditions))

    def write_at_once(self, row: Row, taken: Incoming, conditions: Preconditions | None = None) -> bool:
        """`write`, where no other process has the database."""
        with self._database.transaction() as connection:
            if conditions is not None and not conditions.hold_for(select(connection, row.key)):
                return False
            insert(connection, row)
            self._insert_piece(row.version, Part(1, row.size, row.etag, bytes.fromhex(row.etag)), taken)
        return True

    def _insert_piece(self, owner: str, part: Part, taken: Incoming) -> None:
        """Store a body as a piece, inside a transaction."""
        data: object = taken
        file: str | None = None
        if isinstance(taken, Path):
            assert self._files is not None
            data, file = None, self._files.publish(taken)
        self._connection.execute(_PUT_PIECE, (owner, *part, data, file))

    async def remove(self, keys: Sequence[bytes]) -> None:

        def remove() -> None:
            with self._database.transaction() as connection:
                connection.executemany("DELETE FROM r2_objects WHERE key = ?", [(key,) for key in keys])

        await self._change("delete", remove)

    # ------------------------------------------------------------------ uploads in parts

    async def begin(self, upload_id: str, key: bytes, described: Described) -> None:
        now = self.now()
        values = (upload_id, key, IN_PROGRESS, *described, now)

        def write() -> None:
            with self._database.transaction() as connection:
                # One that nobody ends would keep its parts for ever.
                old = connection.execute(
                    "DELETE FROM r2_uploads WHERE began < ? RETURNING upload_id", (now - _KEPT,)
                ).fetchall()
                connection.executemany("DELETE FROM r2_pieces WHERE owner = ?", old)
                connection.execute("INSERT INTO r2_uploads VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

        await self._change("createMultipartUpload", write)

    async def write_part(self, upload_id: str, key: bytes, part: Part, taken: Incoming) -> bool:

        def write() -> bool:
            with self._database.transaction() as connection:
                upload = _upload(connection, upload_id, key)
                if upload is None or upload[0] != IN_PROGRESS:
                    return False
                connection.execute("DELETE FROM r2_pieces WHERE owner = ? AND number = ?", (upload_id, part.number))
                self._insert_piece(upload_id, part, taken)
            return True

        return await self._change("uploadPart", write)

    async def complete(self, upload_id: str, key: bytes, chosen: Chosen) -> Row:

        def write() -> Row:
            with self._database.transaction() as connection:
                return _complete(connection, key, upload_id, chosen, self.now())

        return await self._change("completeMultipartUpload", write)

    async def abort(self, upload_id: str, key: bytes) -> None:

        def write() -> None:
            with self._database.transaction() as connection:
                upload = _upload(connection, upload_id, key)
                if upload is None:
                    refuse("abortMultipartUpload", 10024)
                if upload[0] == IN_PROGRESS:
                    _end(connection, upload_id)

        await self._change("abortMultipartUpload", write)

    # ------------------------------------------------------------------ the steps of all

    async def _wait(self, method: Method, action: Callable[[], T]) -> T:
        """Do it as soon as no other process holds the database. Raises R2Error where that fails."""
        return await self._database.answer(action, partial(store_failure, method))

    async def _change(self, method: Method, action: Callable[[], T]) -> T:
        """`_wait`, and delete the files that no row names any more."""
        done = await self._wait(method, action)
        if self._files is not None:
            self._database.empty_garbage(self._files, "r2_garbage")
        return done


def _upload(connection: sqlite3.Connection, upload_id: str, key: bytes) -> tuple[int, Described] | None:
    """The state of an upload and what it is given, or None where there never was one of this id and key."""
    found = connection.execute(
        "SELECT state, http_metadata, custom_metadata, storage_class, ssec_key_md5 FROM r2_uploads"
        " WHERE upload_id = ? AND key = ?",
        (upload_id, key),
    ).fetchone()
    return None if found is None else (found[0], Described(*found[1:]))


def _complete(connection: sqlite3.Connection, key: bytes, upload_id: str, chosen: Chosen, uploaded: int) -> Row:
    """Make the object of its parts, inside a transaction. The order of the checks is the platform's."""
    upload = _upload(connection, upload_id, key)
    if upload is None or upload[0] != IN_PROGRESS:
        refuse("completeMultipartUpload", 10024)
    stored = connection.execute("SELECT number, size, etag, md5 FROM r2_pieces WHERE owner = ?", (upload_id,))
    # All of it at once: a statement that a refusal leaves in the middle keeps the connection in an old state.
    parts = find_parts([*map(Part._make, stored)], chosen)
    row = joined(key, parts, uploaded, upload[1])
    insert(connection, row)
    connection.executemany(
        "UPDATE r2_pieces SET owner = ? WHERE owner = ? AND number = ?",
        [(row.version, upload_id, part.number) for part in parts],
    )
    _end(connection, upload_id)
    return row


def _end(connection: sqlite3.Connection, upload_id: str) -> None:
    """Complete or abort an upload, inside a transaction. The parts that it still has are deleted."""
    connection.execute("DELETE FROM r2_pieces WHERE owner = ?", (upload_id,))
    connection.execute("UPDATE r2_uploads SET state = ? WHERE upload_id = ?", (ENDED, upload_id))


async def _staged(files: Files, source: Source) -> Path:
    staged = await _in_thread("put", files.folder, files.stage, ())
    try:
        with staged.open("r+b") as file:
            async for piece in source:
                await _in_thread("put", files.folder, file.write, piece)
            await _in_thread("put", files.folder, _flush, file)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return staged


async def _in_thread(method: Method, folder: Path, action: Callable[..., T], *args: object) -> T:
    """Read or write files in a thread. Raises R2Error where that fails."""
    try:
        with on_disk(folder):
            return await asyncio.to_thread(action, *args)
    except StoreError as error:
        raise store_failure(method, error) from error


def _read_at(path: Path, start: int, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)
    except FileNotFoundError:
        return b""


def _flush(file: BufferedRandom) -> None:
    file.flush()
    os.fsync(file.fileno())
