"""The bytes of objects: read from a value into memory or a file, and given back in chunks."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from io import BufferedRandom
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import attrs

from core.backends.embedded.disk import StoreError, on_disk
from core.backends.embedded.files import Files
from core.backends.embedded.r2.arguments import store_failure
from core.backends.r2 import Method, refuse
from core.bindings.r2 import FixedLengthStream, KnownLengthStream

T = TypeVar("T")


LARGE: Final = 128 * 1024
"""A body of more bytes is in a file, and hashed in a thread."""

_CHUNK: Final = 256 * 1024


@attrs.frozen
class Piece:
    """Part of a body's bytes: in `data`, or in a file."""

    size: int
    data: bytes | None
    file: str | None


class Source:
    """A body to be stored, of `size` bytes, which come in pieces. Once all of them were read it has their digests.

    Reading raises R2TypeError for a stream that is longer or shorter than it promised.
    """

    def __init__(self, value: bytes | KnownLengthStream, algorithms: Iterable[str] = ()) -> None:
        self._value = value
        self.size: int = len(value) if isinstance(value, bytes) else value.length
        self._hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in _pieces(self._value):
            if len(piece) <= LARGE:
                self._update(piece)
            else:
                await asyncio.to_thread(self._update, piece)
            yield piece

    def _update(self, piece: bytes) -> None:
        for digest in self._hashes.values():
            digest.update(piece)

    def digest(self, algorithm: str) -> bytes:
        return self._hashes[algorithm].digest()


Incoming: TypeAlias = bytes | Path
"""A body that was read completely: its bytes, or its staged file."""


def covered(pieces: Iterable[tuple[T, int]], offset: int, length: int) -> Iterator[tuple[T, int, int]]:
    """Each of some pieces, with their sizes, that has bytes of `length` from `offset` on: their begin and end in it."""
    begins = 0
    for piece, size in pieces:
        first, last = max(offset, begins), min(offset + length, begins + size)
        if first < last:
            yield piece, first - begins, last - begins
        begins += size


async def read_pieces(files: Files | None, pieces: Sequence[Piece], offset: int, length: int) -> AsyncIterator[bytes]:
    """`length` bytes of some pieces from `offset` on, in chunks."""
    for piece, start, end in covered(((each, each.size) for each in pieces), offset, length):
        if piece.data is not None:
            yield piece.data[start:end]
            continue
        assert files is not None
        assert piece.file is not None
        path = files.folder / piece.file
        while start < end:
            chunk = await _in_thread("get", path, _read_at, path, start, min(_CHUNK, end - start))
            if not chunk:
                # Another process replaced the object while it was being read here.
                refuse("get", 10001)
            start += len(chunk)
            yield chunk


async def read_to_file(files: Files, source: Source) -> Path:
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


async def _pieces(value: bytes | KnownLengthStream) -> AsyncIterator[bytes]:
    if isinstance(value, bytes):
        for start in range(0, len(value), 8 * _CHUNK):
            yield value[start : start + 8 * _CHUNK]
        return
    async for chunk in FixedLengthStream(value, value.length):
        yield bytes(chunk)
