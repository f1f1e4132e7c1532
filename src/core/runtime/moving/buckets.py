"""The objects of R2 in a backup, written into the buckets of a cluster.

The backups of workerd and of CPython have the same files here. An object keeps all that can be seen of it: key, bytes,
etag, checksums, version, date, metadata, storage class, and the digest of a key that it was stored with. It is written
as a node writes it, its bytes in pieces and then its entry, under the condition that there is none: it is there whole
or not at all, and one that is there in the same version stays.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import attrs

from core.backends.embedded.r2.arguments import Preconditions
from core.backends.embedded.r2.bucket import Source
from core.backends.embedded.r2.rows import COLUMNS, Row, select
from core.backends.embedded.store import Store
from core.backends.s3.objects import SharedObjects
from core.backends.s3.r2 import SharedBucketStorage
from core.bindings.r2 import FixedLengthStream
from core.errors import BindingError, DeveloperError
from core.runtime.moving.objects import asked, opened
from core.runtime.plan import Plan

# Each holds two pieces of 4 MiB at most.
_SIDE_BY_SIDE: Final = 8
_CHUNK: Final = 256 * 1024
_PAGE: Final = 1000
_IN_PROGRESS: Final = 0
_ABSENT: Final = Preconditions(None, (("wildcard", ""),), None, None, in_seconds=False)


def find_buckets(state: Path, plan: Plan, skip: Collection[str] = ()) -> Sequence[BucketCopy]:
    """The buckets of `plan` that are in the unpacked backup `state`, but for those of `skip`."""
    store = Store(state)
    found: list[BucketCopy] = []
    for name, binding in asked(plan.r2, skip).items():
        path, files = store.file("r2", name), store.files("r2", name)
        assert path is not None
        assert files is not None
        if path.is_file():
            found.append(BucketCopy(binding, name, path, files.folder))
    return found


@attrs.define
class BucketCopy:
    """A bucket in a backup: the binding that names it to people, its name, its database and the folder of its files."""

    binding: str
    name: str
    path: Path
    files: Path
    _storage: SharedBucketStorage = attrs.field(init=False)
    _connection: sqlite3.Connection = attrs.field(init=False)
    _done: int = attrs.field(init=False, default=0)
    _problems: list[str] = attrs.field(init=False, factory=list[str])

    def left(self) -> Iterator[str]:
        """Sentences about what is not moved."""
        with closing(opened(self.path)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM r2_uploads WHERE state = ?", (_IN_PROGRESS,)).fetchone()
        if count:
            yield f"{self.binding}: uploads in parts that were under way ({count:,}) are not moved: begin them again"

    async def move(self, shared: SharedObjects, say: Callable[[str], None]) -> None:
        """Write the objects into the cluster that has the bucket `shared`, and say the numbers that were counted there.

        Raises DeveloperError where the cluster has others, or one cannot be written; those begun are finished.
        """
        self._storage, self._done, self._problems = SharedBucketStorage(shared, self.name), 0, []
        with closing(opened(self.path)) as self._connection:
            try:
                count, size = await self._move()
            except asyncio.CancelledError:
                say(f"interrupted: {self._progress}")
                raise
            except BindingError as error:
                raise DeveloperError(f"{self.binding}: {error.__cause__ or error}. {self._progress}") from error
            finally:
                await self._storage.close()
        say(f"{self.binding}: {count:,} objects, {size:,} bytes")

    @property
    def _progress(self) -> str:
        return (
            f"{self._done:,} of {self._expected()[0]:,} objects of {self.binding} are in the cluster. Run the command "
            "again to go on: those stay as they are"
        )

    async def _move(self) -> tuple[int, int]:
        """Write all objects: how many there are in the cluster then, and their bytes."""
        begun = False
        async for row in self._there():
            self._same(row, select(self._connection, row.key))
            begun = True
        rows = map(Row._make, self._connection.execute(f"SELECT {COLUMNS} FROM r2_objects ORDER BY key"))
        await asyncio.gather(*(self._write(rows, begun) for _ in range(_SIDE_BY_SIDE)))
        if self._problems:
            raise DeveloperError("\n".join([*self._problems, self._progress]))
        count = size = 0
        async for row in self._there():
            count, size = count + 1, size + row.size
        if (count, size) != (was := self._expected()):
            raise DeveloperError(
                f"{self.binding}: {count:,} objects with {size:,} bytes are there, and the backup has {was[0]:,} with "
                f"{was[1]:,}. Move a backup before the first node starts"
            )
        return count, size

    def _expected(self) -> tuple[int, int]:
        found: tuple[int, int] = self._connection.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM r2_objects"
        ).fetchone()
        return found

    async def _there(self) -> AsyncIterator[Row]:
        """The objects that the cluster has."""
        after: bytes | None = None
        while True:
            page = await self._storage.page(b"", b"", after, _PAGE)
            for row in page.rows:
                yield row
            after = page.last
            if after is None:
                return

    def _same(self, there: Row, ours: Row | None) -> None:
        if there != ours:
            raise DeveloperError(
                f"{self.binding} ({there.key.decode()}): the cluster has something else there already. "
                "Move a backup before the first node starts, or into another prefix of the bucket"
            )

    async def _write(self, rows: Iterator[Row], begun: bool) -> None:
        """Write objects of `rows`, which others take from as well, until there are none or one cannot be written."""
        for row in rows:
            if self._problems:
                return
            try:
                if not begun or await self._storage.head(row.key) is None:
                    await self._put(row)
                self._done += 1
            except (BindingError, DeveloperError, OSError) as error:
                self._problems.append(f"{self.binding} ({row.key.decode()}): {error.__cause__ or error}")

    async def _put(self, row: Row) -> None:
        taken = await self._storage.take_in("put", row.key, Source(FixedLengthStream(self._chunks(row), row.size)))
        try:
            if not await self._storage.write(row, taken, _ABSENT):
                self._same(row, None)
        finally:
            self._storage.discard(taken)

    async def _chunks(self, row: Row) -> AsyncIterator[bytes]:
        """The bytes of an object, of all parts that it was uploaded in."""
        for data, name in self._connection.execute(
            "SELECT data, file FROM r2_pieces WHERE owner = ? ORDER BY number", (row.version,)
        ):
            if name is None:
                yield data
                continue
            with (self.files / name).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
