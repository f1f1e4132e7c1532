"""The storage of a bucket's objects: the steps that a bucket asks of it, and the storage of one machine.

A bucket checks arguments and conditions; a storage keeps rows and bodies. This one has SQLite rows, and files beside
them.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from core.backends.embedded.disk import StoreError
from core.backends.embedded.r2.arguments import Method, refuse, store_failure
from core.backends.embedded.r2.bodies import Bodies, Incoming
from core.backends.embedded.r2.conditions import Preconditions
from core.backends.embedded.r2.listing import Page, read_page
from core.backends.embedded.r2.rows import SCHEMA, Chosen, Described, Part, Row, find_parts, insert, joined, select
from core.backends.embedded.store import Database, Store, run_script
from core.bindings.r2 import KnownLengthStream
from core.errors import R2Error

T = TypeVar("T")

IN_PROGRESS, COMPLETED, ABORTED = 0, 1, 2


class TakenIn(Protocol):
    """A body that was read completely, and that no object has yet."""

    @property
    def size(self) -> int:
        """Its length in bytes."""
        ...

    @property
    def digests(self) -> Mapping[str, bytes]:
        """Its digests, by algorithm."""
        ...


class Found(NamedTuple):
    """An object, and the way to `length` bytes of its body from `offset` on."""

    row: Row
    read: Callable[[int, int], Awaitable[AsyncIterable[bytes]]]


S = TypeVar("S", bound=TakenIn)


class R2Storage(Protocol[S]):
    """The steps of a bucket's calls that depend on where its objects are. Each raises R2Error where it fails."""

    place: object

    def now(self) -> int:
        """Milliseconds since 1970."""
        ...

    async def head(self, key: bytes) -> Row | None:
        """The row of a key."""
        ...

    async def find(self, key: bytes) -> Found | None:
        """The row of a key, and its body."""
        ...

    async def page(self, start: bytes, delimiter: bytes, after: bytes | None, count: int) -> Page:
        """The page of at most `count` keys and prefixes that begin with `start` and come after `after`."""
        ...

    async def take_in(
        self, method: Method, key: bytes, source: bytes | KnownLengthStream, algorithms: Sequence[str]
    ) -> S:
        """Read a body completely. Raises R2TypeError for a stream that is longer or shorter than it promised."""
        ...

    def discard(self, taken: S) -> None:
        """Delete a body that no object or part has got."""
        ...

    async def write(self, row: Row, taken: S, conditions: Preconditions | None) -> bool:
        """Store an object, if the conditions hold for the one before."""
        ...

    async def remove(self, keys: Sequence[bytes]) -> None:
        """Delete objects."""
        ...

    async def begin(self, upload_id: str, key: bytes, described: Described) -> None:
        """Begin an upload in parts."""
        ...

    async def write_part(self, upload_id: str, key: bytes, number: int, taken: S, etag: str) -> bool:
        """Store a part in place of the one before, if its upload is in progress."""
        ...

    async def complete(self, upload_id: str, key: bytes, chosen: Chosen) -> Row:
        """Make the object of its parts."""
        ...

    async def abort(self, upload_id: str, key: bytes) -> None:
        """Drop an upload."""
        ...


class BucketStorage(R2Storage[Incoming]):
    """The rows and bodies of the bucket `name` of `store`: an `R2Storage`."""

    def __init__(self, store: Store, name: str) -> None:
        self._clock = store.clock
        self._database: Database = store.database("r2", name)
        self._connection: sqlite3.Connection = self._database.connection
        self._bodies: Bodies = Bodies(self._database, store.files("r2", name))
        self.place: object = self._database.location
        self._database.insist(self._set_up)

    def now(self) -> int:
        return math.floor(self._clock.time() * 1000)

    async def head(self, key: bytes) -> Row | None:
        return await self._wait("head", lambda: select(self._connection, key))

    async def find(self, key: bytes) -> Found | None:

        def look() -> tuple[Row, Any] | None:
            with self._database.transaction(write=False):
                row = select(self._connection, key)
                return None if row is None else (row, self._bodies.pieces(row.version))

        found = await self._wait("get", look)
        if found is None:
            return None
        row, pieces = found

        async def read(offset: int, length: int) -> AsyncIterable[bytes]:
            return self._bodies.read(pieces, offset, length)

        return Found(row, read)

    async def page(self, start: bytes, delimiter: bytes, after: bytes | None, count: int) -> Page:
        return await self._wait("list", lambda: read_page(self._database, start, delimiter, after, count))

    async def take_in(
        self, method: Method, key: bytes, source: bytes | KnownLengthStream, algorithms: Sequence[str]
    ) -> Incoming:
        return await self._bodies.take_in(source, algorithms)

    def discard(self, taken: Incoming) -> None:
        self._bodies.discard(taken)

    async def write(self, row: Row, taken: Incoming, conditions: Preconditions | None) -> bool:
        if not await self._wait("put", lambda: self.write_at_once(row, taken, conditions)):
            return False
        self._bodies.empty_garbage()
        return True

    def write_at_once(self, row: Row, taken: Incoming, conditions: Preconditions | None = None) -> bool:
        """`write`, where no other process has the database."""
        with self._database.transaction() as connection:
            if conditions is not None and not conditions.hold_for(select(connection, row.key)):
                return False
            insert(connection, row)
            self._bodies.insert_piece(row.version, 1, taken, row.etag)
        return True

    async def remove(self, keys: Sequence[bytes]) -> None:

        def remove() -> None:
            with self._database.transaction() as connection:
                connection.executemany("DELETE FROM r2_objects WHERE key = ?", [(key,) for key in keys])

        await self._wait("delete", remove)
        self._bodies.empty_garbage()

    async def begin(self, upload_id: str, key: bytes, described: Described) -> None:
        values = (upload_id, key, IN_PROGRESS, *described)
        await self._wait(
            "createMultipartUpload",
            lambda: self._connection.execute("INSERT INTO r2_uploads VALUES (?, ?, ?, ?, ?, ?, ?)", values),
        )

    async def write_part(self, upload_id: str, key: bytes, number: int, taken: Incoming, etag: str) -> bool:

        def write() -> bool:
            with self._database.transaction() as connection:
                if _state_of(connection, upload_id, key) != IN_PROGRESS:
                    return False
                connection.execute("DELETE FROM r2_pieces WHERE owner = ? AND number = ?", (upload_id, number))
                self._bodies.insert_piece(upload_id, number, taken, etag)
            return True

        if not await self._wait("uploadPart", write):
            return False
        self._bodies.empty_garbage()
        return True

    async def complete(self, upload_id: str, key: bytes, chosen: Chosen) -> Row:

        def write() -> Row:
            with self._database.transaction() as connection:
                return _complete(connection, key, upload_id, chosen, self.now())

        row = await self._wait("completeMultipartUpload", write)
        self._bodies.empty_garbage()
        return row

    async def abort(self, upload_id: str, key: bytes) -> None:

        def write() -> None:
            with self._database.transaction() as connection:
                state = _state_of(connection, upload_id, key)
                if state is None:
                    refuse("abortMultipartUpload", 10024)
                if state == IN_PROGRESS:
                    _end(connection, upload_id, ABORTED)

        await self._wait("abortMultipartUpload", write)
        self._bodies.empty_garbage()

    async def _wait(self, method: Method, action: Callable[[], T]) -> T:
        """Do it as soon as no other process holds the database. Raises R2Error where that fails."""
        try:
            return await self._database.patiently(action)
        except StoreError as error:
            raise store_failure(method, error) from error
        except sqlite3.Error as error:
            raise R2Error(f"{method}: {error}: {self.place} (10001)") from error

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            run_script(connection, SCHEMA)
            self._bodies.sweep()


def _state_of(connection: sqlite3.Connection, upload_id: str, key: bytes) -> int | None:
    """The state of an upload, or None where there never was one of this id and key."""
    found = connection.execute(
        "SELECT state FROM r2_uploads WHERE upload_id = ? AND key = ?", (upload_id, key)
    ).fetchone()
    return None if found is None else int(found[0])


def _complete(connection: sqlite3.Connection, key: bytes, upload_id: str, chosen: Chosen, uploaded: int) -> Row:
    """Make the object of its parts, inside a transaction. The order of the checks is the platform's."""
    upload = connection.execute(
        "SELECT state, http_metadata, custom_metadata, storage_class, ssec_key_md5 FROM r2_uploads"
        " WHERE upload_id = ? AND key = ?",
        (upload_id, key),
    ).fetchone()
    if upload is None or upload[0] != IN_PROGRESS:
        refuse("completeMultipartUpload", 10024)
    stored = connection.execute("SELECT number, size, etag, md5 FROM r2_pieces WHERE owner = ?", (upload_id,))
    parts = find_parts(map(Part._make, stored), chosen)
    row = joined(key, parts, uploaded, Described(*upload[1:]))
    insert(connection, row)
    connection.executemany(
        "UPDATE r2_pieces SET owner = ? WHERE owner = ? AND number = ?",
        [(row.version, upload_id, part.number) for part in parts],
    )
    _end(connection, upload_id, COMPLETED)
    return row


def _end(connection: sqlite3.Connection, upload_id: str, state: int) -> None:
    """Complete or abort an upload, inside a transaction. The parts that it still has are deleted."""
    connection.execute("DELETE FROM r2_pieces WHERE owner = ?", (upload_id,))
    connection.execute("UPDATE r2_uploads SET state = ? WHERE upload_id = ?", (state, upload_id))
