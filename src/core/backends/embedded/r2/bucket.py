"""An object bucket: the platform's semantics over a storage of its objects, and the steps it asks of that storage.

The refusals, their order and their words follow the recordings in `tests/traces`, and where the platform's
documentation says otherwise, the documentation (`docs/reference/differences.md` lists it). Small bodies are in
their row, large ones beside it; a multipart object stays in its parts, so that `complete` copies nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import secrets
from base64 import b64encode
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from core.backends.embedded.r2.arguments import (
    MAX_OBJECT,
    Conditions,
    Preconditions,
    check_digest,
    check_metadata_size,
    dump_http_metadata,
    first_after,
    given_checksum,
    page_size,
    read_include,
    span_of,
    ssec_key_md5,
    to_http_metadata,
)
from core.backends.embedded.r2.rows import Described, Page, Part, Row, fields
from core.backends.r2 import (
    Chosen,
    Method,
    check_custom_metadata,
    check_part_number,
    chosen_parts,
    encode_key,
    refuse,
    source_of,
)
from core.bindings.calls import BoundHook, Hookable
from core.bindings.r2 import (
    FixedLengthStream,
    KnownLengthStream,
    R2Body,
    R2Bucket,
    R2Hash,
    R2Include,
    R2MultipartUpload,
    R2Object,
    R2ObjectBody,
    R2Objects,
    R2Range,
    R2UploadedPart,
    R2UploadedPartDict,
    R2Value,
)
from core.context import Clock
from core.http.streams import encode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from core.bindings.r2 import GetOptions, PutOptions, UploadOptions


T = TypeVar("T")

LARGE: Final = 128 * 1024
"""A body of more bytes is in a file, and hashed in a thread."""

_CHUNK: Final = 2 * 1024 * 1024


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


async def _pieces(value: bytes | KnownLengthStream) -> AsyncIterator[bytes]:
    if isinstance(value, bytes):
        for start in range(0, len(value), _CHUNK):
            yield value[start : start + _CHUNK]
        return
    async for chunk in FixedLengthStream(value, value.length):
        yield bytes(chunk)


def covered(pieces: Iterable[tuple[T, int]], offset: int, length: int) -> Iterator[tuple[T, int, int]]:
    """Each of some pieces, with their sizes, that has bytes of `length` from `offset` on: their begin and end in it."""
    begins = 0
    for piece, size in pieces:
        first, last = max(offset, begins), min(offset + length, begins + size)
        if first < last:
            yield piece, first - begins, last - begins
        begins += size


class Found(NamedTuple):
    """An object, and the way to `length` bytes of its body from `offset` on."""

    row: Row
    read: Callable[[int, int], Awaitable[AsyncIterable[bytes]]]


S = TypeVar("S")
"""A body that was read completely, and that no object has yet."""


class R2Storage(Protocol[S]):
    """The steps of a bucket's calls that depend on where its objects are. Each raises R2Error where it fails.

    `find` gives the way to the body too, `page` at most `count` keys and prefixes that begin with `start` and come
    after `after`. `take_in` reads a body completely, and raises R2TypeError as the source does; `discard` deletes one
    that no object or part has got. `write` stores an object if the conditions hold for the one before, and `write_part`
    a part in place of the one before if its upload is in progress.
    """

    clock: Clock
    place: object

    def now(self) -> int:
        """Milliseconds since 1970."""
        return math.floor(self.clock.time() * 1000)

    async def head(self, key: bytes) -> Row | None: ...
    async def find(self, key: bytes) -> Found | None: ...
    async def page(self, start: bytes, delimiter: bytes, after: bytes | None, count: int) -> Page: ...
    async def take_in(self, method: Method, key: bytes, source: Source) -> S: ...
    def discard(self, taken: S) -> None: ...
    async def write(self, row: Row, taken: S, conditions: Preconditions | None) -> bool: ...
    async def remove(self, keys: Sequence[bytes]) -> None: ...
    async def begin(self, upload_id: str, key: bytes, described: Described) -> None: ...
    async def write_part(self, upload_id: str, key: bytes, part: Part, taken: S) -> bool: ...
    async def complete(self, upload_id: str, key: bytes, chosen: Chosen) -> Row: ...
    async def abort(self, upload_id: str, key: bytes) -> None: ...


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
        within = None if wanted is None else span_of(wanted)
        ssec_key_md5(given.get("ssec_key"))
        found = await self._storage.find(encode_key("get", key))
        if found is None:
            return None
        row = found.row
        if conditions is not None and not conditions.hold_for(row):
            return R2Object(**fields(row), range=R2Range(0, row.size))
        offset, length = (0, row.size) if within is None else within(row.size)
        body = R2Body(await found.read(offset, length), length)
        return R2ObjectBody(**fields(row), range=R2Range(offset, length), body=body)

    async def _list(self, *, include: Iterable[R2Include] | None = None, **given: Any) -> R2Objects:
        with_http, with_custom = read_include(include)
        count = page_size(given.get("limit"), with_metadata=with_http or with_custom)
        after = first_after(given.get("start_after"), given.get("cursor"))
        begin, delimiter = (encode(given.get(name) or "") for name in ("prefix", "delimiter"))
        page = await self._storage.page(begin, delimiter, after, count)
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
        custom, described = _described(given)
        checksum = given_checksum(given)
        source = Source(source_of("put", value), ("md5",) if checksum is None else ("md5", checksum[0]))
        raw = encode_key("put", key)
        if source.size > MAX_OBJECT:
            refuse("put", 100100)
        check_metadata_size("put", custom)
        taken = await self._storage.take_in("put", raw, source)
        try:
            checksums = {"md5": source.digest("md5").hex()}
            if checksum is not None:
                algorithm, digest = checksum
                check_digest(algorithm, digest, source.digest(algorithm))
                checksums[algorithm] = digest.hex()
            version, now = secrets.token_hex(16), self._storage.now()
            row = Row(raw, version, source.size, checksums["md5"], now, json.dumps(checksums), *described)
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
        custom, described = _described(given)
        raw = encode_key("createMultipartUpload", key)
        check_metadata_size("createMultipartUpload", custom)
        upload_id = secrets.token_urlsafe(128)
        await self._storage.begin(upload_id, raw, described)
        return EmbeddedR2MultipartUpload(self._storage, self._hook, key, upload_id)

    def resume_multipart_upload(self, key: str, upload_id: str) -> EmbeddedR2MultipartUpload:
        return EmbeddedR2MultipartUpload(self._storage, self._hook, key, upload_id)


def _described(given: PutOptions | UploadOptions) -> tuple[dict[str, str], Described]:
    """The custom metadata of a put or an upload, and all that the object is given beside its bytes."""
    custom = check_custom_metadata(given.get("custom_metadata"))
    http = dump_http_metadata(to_http_metadata(given.get("http_metadata")))
    storage_class = given.get("storage_class") or "Standard"
    return custom, Described(http, json.dumps(custom), storage_class, ssec_key_md5(given.get("ssec_key")))


class EmbeddedR2MultipartUpload(Hookable, R2MultipartUpload):
    """An upload in parts, of one bucket. See `R2MultipartUpload`."""

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
        ssec_key_md5(ssec_key)
        source = Source(source_of("uploadPart", value), ("md5",))
        raw = encode_key("uploadPart", self.key)
        taken = await self._storage.take_in("uploadPart", raw, source)
        part = Part(number, source.size, secrets.token_urlsafe(24), source.digest("md5"))
        try:
            if not await self._storage.write_part(self.upload_id, raw, part, taken):
                refuse("uploadPart", 10024)
        finally:
            self._storage.discard(taken)
        return R2UploadedPart(number, part.etag)

    async def _complete(self, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]) -> R2Object:
        chosen = chosen_parts(uploaded_parts)
        raw = encode_key("completeMultipartUpload", self.key)
        return R2Object(**fields(await self._storage.complete(self.upload_id, raw, chosen)))

    async def _abort(self) -> None:
        await self._storage.abort(self.upload_id, encode_key("abortMultipartUpload", self.key))
