"""An object bucket: the platform's semantics over a storage of rows and bodies, of which the embedded one is SQLite's.

The refusals, their order and their words follow the recordings in `tests/traces`, and where the platform's
documentation says otherwise, the documentation (`docs/reference/differences.md` lists it). Small bodies are in
their row, large ones beside it; a multipart object stays in its parts, so that `complete` copies nothing.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from core.backends.embedded.r2.arguments import (
    check_custom_metadata,
    check_digest,
    check_metadata_size,
    check_part_number,
    check_size,
    dump_http_metadata,
    encode_key,
    given_checksum,
    refuse,
    source_of,
    ssec_key_md5,
    to_http_metadata,
    wrong_value,
)
from core.backends.embedded.r2.bodies import Incoming
from core.backends.embedded.r2.conditions import ByteRange, Conditions, Preconditions
from core.backends.embedded.r2.listing import first_after, page_size, read_include
from core.backends.embedded.r2.rows import Described, Row, chosen_parts, fields
from core.backends.embedded.r2.storage import BucketStorage, R2Storage
from core.backends.embedded.store import Store
from core.bindings.calls import BoundHook, Hookable
from core.bindings.r2 import (
    R2Body,
    R2Bucket,
    R2Hash,
    R2MultipartUpload,
    R2Object,
    R2ObjectBody,
    R2Objects,
    R2Range,
    R2UploadedPart,
    R2UploadedPartDict,
    R2Value,
)
from core.errors import R2TypeError
from core.http.streams import encode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from core.bindings.r2 import GetOptions, ListOptions, PutOptions, UploadOptions


class StoredR2Bucket(Hookable, R2Bucket):
    """A bucket over a storage of its objects."""

    def __init__(self, storage: R2Storage[Any]) -> None:
        self._storage: R2Storage[Any] = storage

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._storage.place}>"

    # ------------------------------------------------------------------ reading

    async def _head(self, key: str) -> R2Object | None:
        row = await self._storage.head(encode_key("head", key))
        return None if row is None else R2Object(**fields(row), range=R2Range(0, row.size))

    async def _get(
        self, key: str, *, only_if: Conditions | None = None, **given: Unpack[GetOptions]
    ) -> R2ObjectBody | R2Object | None:
        conditions = None if only_if is None else Preconditions.of(only_if)
        wanted = given.get("range")
        span = None if wanted is None else ByteRange.of(wanted)
        ssec_key_md5(given.get("ssec_key"))
        found = await self._storage.find(encode_key("get", key))
        if found is None:
            return None
        row = found.row
        if conditions is not None and not conditions.hold_for(row):
            return R2Object(**fields(row), range=R2Range(0, row.size))
        offset, length = (0, row.size) if span is None else span.within(row.size)
        body = R2Body(await found.read(offset, length), length)
        return R2ObjectBody(**fields(row), range=R2Range(offset, length), body=body)

    async def _list(self, **given: Unpack[ListOptions]) -> R2Objects:
        with_http, with_custom, included = read_include(given.get("include"))
        count = page_size(given.get("limit"), with_metadata=included)
        after = first_after(given.get("start_after"), given.get("cursor"))
        start, by = encode(given.get("prefix") or ""), encode(given.get("delimiter") or "")
        page = await self._storage.page(start, by, after, count)
        return R2Objects(
            objects=[R2Object(**fields(row, http=with_http, custom=with_custom)) for row in page.rows],
            truncated=page.last is not None,
            cursor=None if page.last is None else b64encode(page.last).decode(),
            delimited_prefixes=[found.decode() for found in page.prefixes],
        )

    # ------------------------------------------------------------------ writing

    async def _put(
        self, key: str, value: R2Value, *, only_if: Conditions | None = None, **given: Unpack[PutOptions]
    ) -> R2Object | None:
        conditions = None if only_if is None else Preconditions.of(only_if)
        custom = check_custom_metadata(given.get("custom_metadata"))
        http = to_http_metadata(given.get("http_metadata"))
        checksum = given_checksum(given)
        ssec_md5 = ssec_key_md5(given.get("ssec_key"))
        source = source_of("put", value)
        raw = encode_key("put", key)
        check_size("put", source)
        check_metadata_size("put", custom)
        taken = await self._storage.take_in("put", raw, source, ("md5",) if checksum is None else ("md5", checksum[0]))
        try:
            checksums = {"md5": taken.digests["md5"].hex()}
            if checksum is not None:
                algorithm, digest = checksum
                check_digest(algorithm, digest, taken.digests[algorithm])
                checksums[algorithm] = digest.hex()
            row = Row(
                key=raw,
                version=secrets.token_hex(16),
                size=taken.size,
                etag=checksums["md5"],
                uploaded=self._storage.now(),
                checksums=json.dumps(checksums),
                http_metadata=dump_http_metadata(http),
                custom_metadata=json.dumps(custom),
                storage_class=given.get("storage_class") or "Standard",
                ssec_key_md5=ssec_md5,
            )
            if not await self._storage.write(row, taken, conditions):
                return None
        finally:
            self._storage.discard(taken)
        return R2Object(**fields(row))

    async def _delete(self, keys: str | Iterable[str]) -> None:
        names = [keys] if isinstance(keys, str) else [*keys]
        raws = [encode_key("delete", name) for name in names]
        if raws:
            await self._storage.remove(raws)

    # ------------------------------------------------------------------ multipart uploads

    async def _create_multipart_upload(self, key: str, **given: Unpack[UploadOptions]) -> EmbeddedR2MultipartUpload:
        custom = check_custom_metadata(given.get("custom_metadata"))
        http = to_http_metadata(given.get("http_metadata"))
        ssec_md5 = ssec_key_md5(given.get("ssec_key"))
        raw = encode_key("createMultipartUpload", key)
        check_metadata_size("createMultipartUpload", custom)
        upload_id = secrets.token_urlsafe(128)
        kept = given.get("storage_class") or "Standard"
        described = Described(dump_http_metadata(http), json.dumps(custom), kept, ssec_md5)
        await self._storage.begin(upload_id, raw, described)
        return EmbeddedR2MultipartUpload(self._storage, self._hook, key, upload_id)

    def resume_multipart_upload(self, key: str, upload_id: str) -> EmbeddedR2MultipartUpload:
        return EmbeddedR2MultipartUpload(self._storage, self._hook, key, upload_id)


class EmbeddedR2Bucket(StoredR2Bucket):
    """The bucket `name` of `store`. Two objects of one name are one bucket."""

    def __init__(self, store: Store, name: str) -> None:
        self._own = BucketStorage(store, name)
        super().__init__(self._own)

    def store(self, key: str, data: bytes) -> None:
        """Store an object without metadata, at once, for the objects that a fake holds from the start."""
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        etag = digest.hex()
        checksums = json.dumps({"md5": etag})
        raw, version = encode_key("put", key), secrets.token_hex(16)
        row = Row(raw, version, len(data), etag, self._own.now(), checksums, "{}", "{}", "Standard", None)
        self._own.write_at_once(row, Incoming(len(data), data, None, {"md5": digest}))


class EmbeddedR2MultipartUpload(Hookable, R2MultipartUpload):
    """An upload in parts, of one bucket. See `R2MultipartUpload`."""

    __slots__ = ("_hook", "_key", "_storage", "_upload_id")

    def __init__(self, storage: R2Storage[Any], hook: BoundHook | None, key: str, upload_id: str) -> None:
        self._storage = storage
        self._hook = hook
        self._key = key
        self._upload_id = upload_id

    @property
    def key(self) -> str:
        return self._key

    @property
    def upload_id(self) -> str:
        return self._upload_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.key!r} in {self._storage.place}>"

    def _call_target(self) -> tuple[str, str]:
        return self.key, self.upload_id

    async def _upload_part(self, part_number: int, value: R2Value, *, ssec_key: R2Hash | None = None) -> R2UploadedPart:
        number = check_part_number(part_number)
        if value is None:
            raise R2TypeError(wrong_value("uploadPart", "R2MultipartUpload"))
        ssec_key_md5(ssec_key)
        source = source_of("uploadPart", value)
        raw = encode_key("uploadPart", self.key)
        taken = await self._storage.take_in("uploadPart", raw, source, ("md5",))
        etag = secrets.token_urlsafe(24)
        try:
            if not await self._storage.write_part(self.upload_id, raw, number, taken, etag):
                refuse("uploadPart", 10024)
        finally:
            self._storage.discard(taken)
        return R2UploadedPart(number, etag)

    async def _complete(self, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]) -> R2Object:
        chosen = chosen_parts(uploaded_parts)
        raw = encode_key("completeMultipartUpload", self.key)
        return R2Object(**fields(await self._storage.complete(self.upload_id, raw, chosen)))

    async def _abort(self) -> None:
        await self._storage.abort(self.upload_id, encode_key("abortMultipartUpload", self.key))
