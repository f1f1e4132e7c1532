"""Uploads in parts: the states of one, and the checks that make an object of its parts."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from core.backends.embedded.r2.arguments import check_part_number, encode_key, source_of, wrong_value
from core.backends.embedded.r2.checksums import ssec_key_md5
from core.backends.embedded.r2.errors import refuse
from core.backends.embedded.r2.rows import Row, fields, insert
from core.backends.embedded.r2.storage import BucketStorage
from core.bindings.r2 import R2Hash, R2Object, R2UploadedPart, R2UploadedPartDict, R2Value
from core.calls import BoundHook, Hookable, binding_call
from core.errors import R2TypeError

__all__ = ["EmbeddedR2MultipartUpload", "IN_PROGRESS"]

MIN_PART: Final = 5 * 1024**2

IN_PROGRESS, COMPLETED, ABORTED = 0, 1, 2


class EmbeddedR2MultipartUpload(Hookable):
    """An upload in parts, of one bucket. See `R2MultipartUpload`."""

    __slots__ = ("_hook", "_storage", "key", "upload_id")

    def __init__(self, storage: BucketStorage, hook: BoundHook | None, key: str, upload_id: str) -> None:
        self._storage = storage
        self._hook = hook
        self.key: str = key
        self.upload_id: str = upload_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.key!r} in {self._storage.database.location}>"

    def _call_target(self) -> tuple[str, str]:
        return self.key, self.upload_id

    @binding_call
    async def upload_part(self, part_number: int, value: R2Value, *, ssec_key: R2Hash | None = None) -> R2UploadedPart:
        """Store one part. See `R2MultipartUpload.upload_part`."""
        number = check_part_number(part_number)
        if value is None:
            raise R2TypeError(wrong_value("uploadPart", "R2MultipartUpload"))
        ssec_key_md5(ssec_key)
        source = source_of("uploadPart", value)
        raw = encode_key("uploadPart", self.key)
        stored = await self._storage.bodies.take_in(source, ("md5",))
        etag = secrets.token_urlsafe(24)

        def write() -> bool:
            with self._storage.database.transaction() as connection:
                if _state_of(connection, self.upload_id, raw) != IN_PROGRESS:
                    return False
                connection.execute("DELETE FROM r2_pieces WHERE owner = ? AND number = ?", (self.upload_id, number))
                self._storage.bodies.insert_piece(self.upload_id, number, stored, etag)
            return True

        try:
            if not await self._storage.wait("uploadPart", write):
                refuse("uploadPart", 10024)
        finally:
            self._storage.bodies.discard(stored)
        self._storage.bodies.empty_garbage()
        return R2UploadedPart(number, etag)

    @binding_call
    async def complete(self, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]) -> R2Object:
        """Make the object of the parts. See `R2MultipartUpload.complete`."""
        chosen = _chosen_parts(uploaded_parts)
        raw = encode_key("completeMultipartUpload", self.key)

        def write() -> Row:
            with self._storage.database.transaction() as connection:
                return _complete(connection, raw, self.upload_id, chosen, self._storage.now())

        row = await self._storage.wait("completeMultipartUpload", write)
        self._storage.bodies.empty_garbage()
        return R2Object(**fields(row))

    @binding_call
    async def abort(self) -> None:
        """Drop the upload. See `R2MultipartUpload.abort`."""
        raw = encode_key("abortMultipartUpload", self.key)

        def write() -> None:
            with self._storage.database.transaction() as connection:
                state = _state_of(connection, self.upload_id, raw)
                if state is None:
                    refuse("abortMultipartUpload", 10024)
                if state == IN_PROGRESS:
                    _end(connection, self.upload_id, ABORTED)

        await self._storage.wait("abortMultipartUpload", write)
        self._storage.bodies.empty_garbage()


def _chosen_parts(parts: Iterable[R2UploadedPart | R2UploadedPartDict]) -> list[tuple[int, str]]:
    """Number and etag of every part that `complete` names. Raises R2TypeError for a number that no part has."""
    return [
        (check_part_number(part.part_number), part.etag)
        if isinstance(part, R2UploadedPart)
        else (check_part_number(part["part_number"]), part["etag"])
        for part in parts
    ]


def _state_of(connection: sqlite3.Connection, upload_id: str, key: bytes) -> int | None:
    """The state of an upload, or None where there never was one of this id and key."""
    found = connection.execute(
        "SELECT state FROM r2_uploads WHERE upload_id = ? AND key = ?", (upload_id, key)
    ).fetchone()
    return None if found is None else int(found[0])


def _complete(
    connection: sqlite3.Connection, key: bytes, upload_id: str, chosen: Sequence[tuple[int, str]], uploaded: int
) -> Row:
    """Make the object of its parts, inside a transaction. The order of the checks is the platform's."""
    upload = connection.execute(
        "SELECT state, http_metadata, custom_metadata, storage_class, ssec_key_md5 FROM r2_uploads"
        " WHERE upload_id = ? AND key = ?",
        (upload_id, key),
    ).fetchone()
    if upload is None or upload[0] != IN_PROGRESS:
        refuse("completeMultipartUpload", 10024)
    parts = _find_parts(connection, upload_id, chosen)
    digest = hashlib.md5(b"".join([part.md5 for part in parts]), usedforsecurity=False).hexdigest()
    etag = f"{digest}-{len(parts)}"
    row = Row(key, secrets.token_hex(16), sum(part.size for part in parts), etag, uploaded, "{}", *upload[1:])
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


class _Part(NamedTuple):
    number: int
    size: int
    etag: str
    md5: bytes


def _find_parts(connection: sqlite3.Connection, upload_id: str, chosen: Sequence[tuple[int, str]]) -> list[_Part]:
    """The parts that were chosen, in their order, if an object can be made of them."""
    if len({number for number, _ in chosen}) != len(chosen):
        refuse("completeMultipartUpload", 10001)
    uploaded = connection.execute("SELECT number, size, etag, md5 FROM r2_pieces WHERE owner = ?", (upload_id,))
    by_number = {part.number: part for part in map(_Part._make, uploaded)}
    parts: list[_Part] = []
    for number, etag in chosen:
        part = by_number.get(number)
        if part is None or part.etag != etag:
            refuse("completeMultipartUpload", 10025)
        parts.append(part)
    if any(part.size < MIN_PART for part in parts[:-1]):
        refuse("completeMultipartUpload", 10011)
    parts.sort()
    sizes = [part.size for part in parts]
    # All but the last of one size, and large enough in this order too; the last one not larger than they are.
    if any(size < MIN_PART or size != sizes[0] for size in sizes[:-1]) or sizes[-1:] > sizes[:1]:
        refuse("completeMultipartUpload", 10048)
    return parts
