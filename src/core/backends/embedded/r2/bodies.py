"""The bytes of objects: read from a value, kept in rows or files, and given back in chunks.

Small bodies are in their row, large ones are files; a file is deleted once no row names it and nobody reads it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from io import BufferedRandom
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

import attrs

from core.backends.embedded.disk import StoreError, on_disk
from core.backends.embedded.files import Files
from core.backends.embedded.r2.arguments import Method, refuse, store_failure
from core.backends.embedded.store import Database
from core.bindings.r2 import KnownLengthStream
from core.errors import R2TypeError

T = TypeVar("T")


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


_LARGE: Final = 128 * 1024

_CHUNK: Final = 256 * 1024

_PUT_PIECE: Final = "INSERT INTO r2_pieces (owner, number, size, etag, md5, data, file) VALUES (?, ?, ?, ?, ?, ?, ?)"


@attrs.frozen
class Piece:
    """Part of a body's bytes: in `data`, or in a file."""

    size: int
    data: bytes | None
    file: str | None


@attrs.frozen
class Incoming:
    """A value that was taken in: its bytes or its staged file, and its digests by algorithm."""

    size: int
    data: bytes | None
    staged: Path | None
    digests: Mapping[str, bytes]


class Bodies:
    """The bodies of one bucket's objects: pieces in its database, and the files beside it."""

    def __init__(self, database: Database, files: Files | None) -> None:
        self._database = database
        self._connection = database.connection
        self._files = files
        # Files that a body in this process may still read, and those of them that are garbage already.
        self._held: Counter[str] = Counter()
        self._doomed: set[str] = set()

    async def take_in(self, source: bytes | KnownLengthStream, algorithms: Sequence[str]) -> Incoming:
        """Read a value completely, with its digests: into memory, or into a file when it is large and there are files.

        Raises R2TypeError for a stream that is longer or shorter than it promised.
        """
        hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
        size = len(source) if isinstance(source, bytes) else source.length
        if self._files is None or size <= _LARGE:
            data, staged = await _read_to_memory(source, size, hashes.values()), None
        else:
            data, staged = None, await _read_to_file(self._files, source, size, hashes.values())
        return Incoming(size, data, staged, {name: digest.digest() for name, digest in hashes.items()})

    def discard(self, stored: Incoming) -> None:
        """Delete the staged file, if it did not become a piece's."""
        if stored.staged is not None and self._files is not None:
            self._files.discard(stored.staged)

    def insert_piece(self, owner: str, number: int, stored: Incoming, etag: str) -> None:
        """Store a value as a piece, inside a transaction."""
        file = None
        if stored.staged is not None:
            assert self._files is not None
            file = self._files.publish(stored.staged)
        piece = (owner, number, stored.size, etag, stored.digests["md5"], stored.data, file)
        self._connection.execute(_PUT_PIECE, piece)

    def pieces(self, owner: str) -> list[Piece]:
        """The pieces of an object's version, in order."""
        return [
            Piece(*piece)
            for piece in self._connection.execute(
                "SELECT size, data, file FROM r2_pieces WHERE owner = ? ORDER BY number", (owner,)
            )
        ]

    def read(self, pieces: Sequence[Piece], offset: int, length: int) -> PieceReader:
        """`length` bytes of a body, in chunks. Their files stay until the reader is gone."""
        names = [piece.file for piece in pieces if piece.file is not None]
        reading = PieceReader(self._files, pieces, offset, length)
        if names:
            self._held.update(names)
            weakref.finalize(reading, self._release, names).atexit = False
        return reading

    def _release(self, names: Sequence[str]) -> None:
        """A reader is gone: delete the files that were garbage before."""
        self._held.subtract(names)
        free = [name for name in names if self._held[name] <= 0]
        for name in free:
            del self._held[name]
        doomed = self._doomed.intersection(free)
        self._doomed -= doomed
        if doomed and self._files is not None:
            self._files.remove(doomed)

    def empty_garbage(self) -> None:
        """Delete the files that no row names any more, except those that a reader may still need."""
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
            # Another process is writing. Garbage of now is still garbage at the next put.
            return

    def sweep(self) -> None:
        """Delete the files that a process which was killed has forgotten. Call it inside a transaction."""
        if self._files is not None:
            named = "SELECT file FROM r2_pieces WHERE file IS NOT NULL"
            self._files.sweep(lambda: (name for (name,) in self._connection.execute(named)))
            self._connection.execute("DELETE FROM r2_garbage")


class PieceReader:
    """Some bytes of some pieces, in chunks. While it lives, this process does not delete their files."""

    def __init__(self, files: Files | None, pieces: Sequence[Piece], offset: int, length: int) -> None:
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
            chunk = await _in_thread("get", path, _read_at, path, start, min(_CHUNK, end - start))
            if not chunk:
                # Another process replaced the object while it was being read here.
                refuse("get", 10001)
            start += len(chunk)
            yield chunk


async def _read_to_memory(source: bytes | KnownLengthStream, size: int, hashes: Iterable[_Digest]) -> bytes:
    data = source if isinstance(source, bytes) else b"".join([bytes(chunk) async for chunk in source])
    if len(data) <= _LARGE:
        _update(hashes, data)
    else:
        await asyncio.to_thread(_update, hashes, data)
    check_length(len(data), size)
    return data


async def _read_to_file(files: Files, source: bytes | KnownLengthStream, size: int, hashes: Iterable[_Digest]) -> Path:
    staged = await _in_thread("put", files.folder, files.stage, ())
    try:
        seen = 0
        with staged.open("r+b") as file:

            def write(chunk: bytes) -> None:
                _update(hashes, chunk)
                file.write(chunk)

            async for chunk in chunks_of(source):
                seen += len(chunk)
                await _in_thread("put", files.folder, write, chunk)
            await _in_thread("put", files.folder, _flush, file)
        check_length(seen, size)
    except BaseException:
        files.discard(staged)
        raise
    return staged


def check_length(seen: int, promised: int) -> None:
    """Raise R2TypeError unless a stream had as many bytes as it said."""
    if seen > promised:
        raise R2TypeError("Attempt to write too many bytes through a FixedLengthStream.")
    if seen < promised:
        raise R2TypeError("FixedLengthStream did not see all expected bytes before close().")


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


def _update(hashes: Iterable[_Digest], data: bytes) -> None:
    for digest in hashes:
        digest.update(data)


def _flush(file: BufferedRandom) -> None:
    file.flush()
    os.fsync(file.fileno())


async def chunks_of(source: bytes | KnownLengthStream) -> AsyncIterator[bytes]:
    """The bytes of a body in pieces."""
    if isinstance(source, bytes):
        for start in range(0, len(source), 8 * _CHUNK):
            yield source[start : start + 8 * _CHUNK]
        return
    async for chunk in source:
        yield bytes(chunk)
