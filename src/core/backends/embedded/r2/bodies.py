"""The bytes of objects: read from a value into memory or a file, and given back in chunks."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from io import BufferedRandom
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

import attrs

from core.backends.embedded.disk import StoreError, on_disk
from core.backends.embedded.files import Files
from core.backends.embedded.r2.arguments import Method, length_of, refuse, store_failure
from core.backends.embedded.r2.bucket import TakenIn
from core.bindings.r2 import FixedLengthStream, KnownLengthStream

T = TypeVar("T")


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


_LARGE: Final = 128 * 1024

_CHUNK: Final = 256 * 1024


@attrs.frozen
class Piece:
    """Part of a body's bytes: in `data`, or in a file."""

    size: int
    data: bytes | None
    file: str | None


@attrs.define
class Incoming(TakenIn):
    """A body that was read completely: its bytes, or its staged file."""

    data: bytes | None = None
    staged: Path | None = None


async def take_in(files: Files | None, source: bytes | KnownLengthStream, algorithms: Sequence[str]) -> Incoming:
    """Read a value completely, with its digests: into memory, or into a file when it is large and there are files.

    Raises R2TypeError for a stream that is longer or shorter than it promised.
    """
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
    size = length_of(source)
    data = staged = None
    if files is None or size <= _LARGE:
        data = await _read_to_memory(source, hashes.values())
    else:
        staged = await _read_to_file(files, source, hashes.values())
    return Incoming(size, {name: digest.digest() for name, digest in hashes.items()}, data, staged)


def covered(pieces: Iterable[tuple[T, int]], offset: int, length: int) -> Iterator[tuple[T, int, int]]:
    """Each piece, of those with their sizes, that has some of `length` bytes from `offset` on: where in it they begin,
    and where they end.
    """
    begins = 0
    for piece, size in pieces:
        first, last = max(offset, begins), min(offset + length, begins + size)
        if first < last:
            yield piece, first - begins, last - begins
        begins += size


class PieceReader:
    """Some bytes of some pieces, in chunks. While it lives, this process does not delete their files."""

    def __init__(self, files: Files | None, pieces: Sequence[Piece], offset: int, length: int) -> None:
        self._files = files
        self._pieces = pieces
        self._offset = offset
        self._length = length

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece, start, end in covered(((each, each.size) for each in self._pieces), self._offset, self._length):
            if piece.data is not None:
                yield piece.data[start:end]
            else:
                async for chunk in self._file(cast("str", piece.file), start, end):
                    yield chunk

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


async def _read_to_memory(source: bytes | KnownLengthStream, hashes: Iterable[_Digest]) -> bytes:
    data = source if isinstance(source, bytes) else b"".join([chunk async for chunk in chunks_of(source)])
    if len(data) <= _LARGE:
        _update(hashes, data)
    else:
        await asyncio.to_thread(_update, hashes, data)
    return data


async def _read_to_file(files: Files, source: bytes | KnownLengthStream, hashes: Iterable[_Digest]) -> Path:
    staged = await _in_thread("put", files.folder, files.stage, ())
    try:
        with staged.open("r+b") as file:

            def write(chunk: bytes) -> None:
                _update(hashes, chunk)
                file.write(chunk)

            async for chunk in chunks_of(source):
                await _in_thread("put", files.folder, write, chunk)
            await _in_thread("put", files.folder, _flush, file)
    except BaseException:
        files.discard(staged)
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


def _update(hashes: Iterable[_Digest], data: bytes) -> None:
    for digest in hashes:
        digest.update(data)


def _flush(file: BufferedRandom) -> None:
    file.flush()
    os.fsync(file.fileno())


async def chunks_of(source: bytes | KnownLengthStream) -> AsyncIterator[bytes]:
    """The bytes of a body in pieces. Raises R2TypeError for a stream that is longer or shorter than it promised."""
    if isinstance(source, bytes):
        for start in range(0, len(source), 8 * _CHUNK):
            yield source[start : start + 8 * _CHUNK]
        return
    async for chunk in FixedLengthStream(source, source.length):
        yield bytes(chunk)
