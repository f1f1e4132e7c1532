"""The embedded object bucket: the platform's semantics over SQLite rows and files.

The refusals, their order and their words follow the recordings in `tests/traces`, and where the platform's
documentation says otherwise, the documentation (`docs/reference/differences.md` lists it). Small bodies are in
their row, large ones are files; a multipart object stays in its parts, so that `complete` copies nothing.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from core.backends.embedded.r2.arguments import check_size, encode_key, source_of
from core.backends.embedded.r2.bodies import Incoming, Piece
from core.backends.embedded.r2.checksums import check_digest, given_checksum, ssec_key_md5
from core.backends.embedded.r2.conditions import Conditions, Preconditions
from core.backends.embedded.r2.listing import first_after, page_size, read_include, read_page
from core.backends.embedded.r2.metadata import (
    HTTPMetadata,
    check_custom_metadata,
    check_metadata_size,
    dump_http_metadata,
    to_http_metadata,
)
from core.backends.embedded.r2.multipart import IN_PROGRESS, EmbeddedR2MultipartUpload
from core.backends.embedded.r2.ranges import ByteRange, Ranges
from core.backends.embedded.r2.rows import Row, fields, insert, select
from core.backends.embedded.r2.storage import BucketStorage
from core.backends.embedded.store import Store
from core.bindings.r2 import (
    R2Body,
    R2Hash,
    R2Include,
    R2Object,
    R2ObjectBody,
    R2Objects,
    R2Range,
    R2Value,
)
from core.calls import Hookable, binding_call
from core.http.streams import encode

__all__ = ["EmbeddedR2Bucket"]


class EmbeddedR2Bucket(Hookable):
    """The bucket `name` of `store`. Two objects of one name are one bucket."""

    def __init__(self, store: Store, name: str) -> None:
        self._storage = BucketStorage(store, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._storage.database.location}>"

    # ------------------------------------------------------------------ reading

    @binding_call
    async def head(self, key: str) -> R2Object | None:
        """Return the object without its body. See `R2Bucket.head`."""
        raw = encode_key("head", key)
        row = await self._storage.wait("head", lambda: select(self._storage.connection, raw))
        return None if row is None else R2Object(**fields(row), range=R2Range(0, row.size))

    @overload
    async def get(
        self, key: str, *, only_if: None = None, range: Ranges | None = None, ssec_key: R2Hash | None = None
    ) -> R2ObjectBody | None: ...
    @overload
    async def get(
        self, key: str, *, only_if: Conditions, range: Ranges | None = None, ssec_key: R2Hash | None = None
    ) -> R2ObjectBody | R2Object | None: ...
    @binding_call
    async def get(
        self,
        key: str,
        *,
        only_if: Conditions | None = None,
        range: Ranges | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2ObjectBody | R2Object | None:
        """Return the object with its body, or without when `only_if` fails. See `R2Bucket.get`."""
        conditions = None if only_if is None else Preconditions.of(only_if)
        span = None if range is None else ByteRange.of(range)
        ssec_key_md5(ssec_key)
        raw = encode_key("get", key)
        found = await self._storage.wait("get", lambda: self._find(raw))
        if found is None:
            return None
        row, pieces = found
        if conditions is not None and not conditions.hold(row.etag, row.uploaded):
            return R2Object(**fields(row), range=R2Range(0, row.size))
        offset, length = (0, row.size) if span is None else span.within(row.size)
        body = R2Body(self._storage.bodies.read(pieces, offset, length), length)
        return R2ObjectBody(**fields(row), range=R2Range(offset, length), body=body)

    @binding_call
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
        with_http, with_custom, included = read_include(include)
        count = page_size(limit, with_metadata=included)
        after = first_after(start_after, cursor)
        start, by = encode(prefix or ""), encode(delimiter or "")
        page = await self._storage.wait("list", lambda: read_page(self._storage.database, start, by, after, count))
        return R2Objects(
            objects=[R2Object(**fields(row, http=with_http, custom=with_custom)) for row in page.rows],
            truncated=page.last is not None,
            cursor=None if page.last is None else b64encode(page.last).decode(),
            delimited_prefixes=[found.decode() for found in page.prefixes],
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
    @binding_call
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
        conditions = None if only_if is None else Preconditions.of(only_if)
        custom = check_custom_metadata(custom_metadata)
        http = to_http_metadata(http_metadata)
        given = given_checksum(hashes)
        ssec_md5 = ssec_key_md5(ssec_key)
        source = source_of("put", value)
        raw = encode_key("put", key)
        check_size("put", source)
        check_metadata_size("put", custom)
        stored = await self._storage.bodies.take_in(source, ("md5",) if given is None else ("md5", given[0]))
        try:
            checksums = {"md5": stored.digests["md5"].hex()}
            if given is not None:
                algorithm, digest = given
                check_digest(algorithm, digest, stored.digests[algorithm])
                checksums[algorithm] = digest.hex()
            row = Row(
                key=raw,
                version=secrets.token_hex(16),
                size=stored.size,
                etag=checksums["md5"],
                uploaded=self._storage.now(),
                checksums=json.dumps(checksums),
                http_metadata=dump_http_metadata(http),
                custom_metadata=json.dumps(custom),
                storage_class=storage_class or "Standard",
                ssec_key_md5=ssec_md5,
            )
            if not await self._storage.wait("put", lambda: self._write(row, stored, conditions)):
                return None
        finally:
            self._storage.bodies.discard(stored)
        self._storage.bodies.empty_garbage()
        return R2Object(**fields(row))

    def _write(self, row: Row, stored: Incoming, conditions: Preconditions | None = None) -> bool:
        """Store an object, if the conditions hold for the one before."""
        with self._storage.database.transaction() as connection:
            if conditions is not None:
                before = select(connection, row.key)
                if not (
                    conditions.hold_without_object()
                    if before is None
                    else conditions.hold(before.etag, before.uploaded)
                ):
                    return False
            insert(connection, row)
            self._storage.bodies.insert_piece(row.version, 1, stored, row.etag)
        return True

    def store(self, key: str, data: bytes) -> None:
        """Store an object without metadata, at once, for the objects that a fake holds from the start."""
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        etag = digest.hex()
        checksums = json.dumps({"md5": etag})
        raw, version = encode_key("put", key), secrets.token_hex(16)
        row = Row(raw, version, len(data), etag, self._storage.now(), checksums, "{}", "{}", "Standard", None)
        self._write(row, Incoming(len(data), data, None, {"md5": digest}))

    @binding_call
    async def delete(self, keys: str | Iterable[str]) -> None:
        """Delete objects. See `R2Bucket.delete`."""
        names = [keys] if isinstance(keys, str) else [*keys]
        raws = [(encode_key("delete", name),) for name in names]

        def remove() -> None:
            with self._storage.database.transaction() as connection:
                connection.executemany("DELETE FROM r2_objects WHERE key = ?", raws)

        if raws:
            await self._storage.wait("delete", remove)
            self._storage.bodies.empty_garbage()

    # ------------------------------------------------------------------ multipart uploads

    @binding_call
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
        custom = check_custom_metadata(custom_metadata)
        http = to_http_metadata(http_metadata)
        ssec_md5 = ssec_key_md5(ssec_key)
        raw = encode_key("createMultipartUpload", key)
        check_metadata_size("createMultipartUpload", custom)
        upload_id = secrets.token_urlsafe(128)
        row = (
            upload_id,
            raw,
            IN_PROGRESS,
            dump_http_metadata(http),
            json.dumps(custom),
            storage_class or "Standard",
            ssec_md5,
        )
        await self._storage.wait(
            "createMultipartUpload",
            lambda: self._storage.connection.execute("INSERT INTO r2_uploads VALUES (?, ?, ?, ?, ?, ?, ?)", row),
        )
        return EmbeddedR2MultipartUpload(self._storage, self._hook, key, upload_id)

    def resume_multipart_upload(self, key: str, upload_id: str) -> EmbeddedR2MultipartUpload:
        """Return an upload that was begun before. See `R2Bucket.resume_multipart_upload`."""
        return EmbeddedR2MultipartUpload(self._storage, self._hook, key, upload_id)

    def _find(self, raw: bytes) -> tuple[Row, Sequence[Piece]] | None:
        with self._storage.database.transaction(write=False):
            row = select(self._storage.connection, raw)
            return None if row is None else (row, self._storage.bodies.pieces(row.version))
