"""An object bucket: the calls that a handler may make, and the values it gives and takes.

Objects are bytes under a key, with HTTP metadata, custom metadata and checksums. This file knows
no storage. Errors are `R2Error` with the platform's `code` (`put: … (10012)`); arguments that can
never be right are R2TypeError and R2ValueError, as they are TypeError and RangeError there.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, overload, runtime_checkable

import attrs
from typing_extensions import TypeForm, Unpack

from core.bindings import as_type, binding_call
from core.errors import R2SyntaxError, R2TypeError
from core.values import frozen

if TYPE_CHECKING:
    from core.http import Headers

__all__ = [
    "FixedLengthStream",
    "KnownLengthStream",
    "R2Body",
    "R2Bucket",
    "R2Checksums",
    "R2Conditional",
    "R2ConditionalDict",
    "R2HTTPMetadata",
    "R2HTTPMetadataDict",
    "R2Hash",
    "R2Include",
    "R2MultipartUpload",
    "R2Object",
    "R2ObjectBody",
    "R2Objects",
    "R2Range",
    "R2RangeDict",
    "R2UploadedPart",
    "R2UploadedPartDict",
    "R2Value",
]

T = TypeVar("T")
_Bytes: TypeAlias = bytes  # inside R2ObjectBody the name is a method's

R2Hash: TypeAlias = str | bytes
"""A checksum as it is given: hex digits of any case, or the bytes themselves."""

R2Include: TypeAlias = Literal["http_metadata", "custom_metadata", "httpMetadata", "customMetadata"]
"""The metadata that `list` may include with every object; both spellings mean the same."""


@runtime_checkable
class KnownLengthStream(Protocol):
    """Chunks of bytes whose sum is known beforehand: the platform needs it to store a stream."""

    @property
    def length(self) -> int:
        """The number of bytes to come."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks, in order."""
        ...


R2Value: TypeAlias = str | bytes | bytearray | memoryview | KnownLengthStream | None
"""A value that may be stored. Text is stored as UTF-8; None stores an empty object, it does not delete."""


@frozen
class FixedLengthStream:
    """A stream together with its length, so that it can be stored without being held in memory.

        await bucket.put("upload", FixedLengthStream(req.stream(), int(req.header("Content-Length") or 0)))

    Reading it raises R2TypeError when `source` turns out to be longer or shorter than `length` bytes.
    """

    source: AsyncIterable[bytes]
    length: int

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self.source:
            seen += len(chunk)
            if seen > self.length:
                raise R2TypeError("Attempt to write too many bytes through a FixedLengthStream.")
            yield chunk
        if seen < self.length:
            raise R2TypeError("FixedLengthStream did not see all expected bytes before close().")


@frozen
class R2HTTPMetadata:
    """The headers that an object is to be served with. Nothing is guessed: a header that was not given is None."""

    content_type: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    content_encoding: str | None = None
    cache_control: str | None = None
    cache_expiry: datetime | None = None


class R2HTTPMetadataDict(TypedDict, total=False):
    """`R2HTTPMetadata` as a plain dict."""

    content_type: str
    content_language: str
    content_disposition: str
    content_encoding: str
    cache_control: str
    cache_expiry: datetime


@frozen
class R2Conditional:
    """Under which condition to read or write. All that is given must hold, but as in HTTP:

    an `etag_matches` that holds makes `uploaded_before` unimportant, and an `etag_does_not_match` that holds
    makes `uploaded_after` unimportant. Etags are given without quotes; `*` stands for any object, so that
    `R2Conditional(etag_does_not_match="*")` on `put` only creates. `seconds_granularity` compares dates in whole
    seconds, as HTTP headers do.
    """

    etag_matches: str | None = None
    etag_does_not_match: str | None = None
    uploaded_before: datetime | None = None
    uploaded_after: datetime | None = None
    seconds_granularity: bool = False


class R2ConditionalDict(TypedDict, total=False):
    """`R2Conditional` as a plain dict."""

    etag_matches: str
    etag_does_not_match: str
    uploaded_before: datetime
    uploaded_after: datetime
    seconds_granularity: bool


@frozen
class R2Range:
    """A part of an object in bytes: `offset`, `length` or both, or the last `suffix` bytes.

    What an object carries as its `range` always has both `offset` and `length`.
    """

    offset: int | None = None
    length: int | None = None
    suffix: int | None = None


class R2RangeDict(TypedDict, total=False):
    """`R2Range` as a plain dict."""

    offset: int
    length: int
    suffix: int


@frozen
class R2Checksums:
    """The checksums of an object: always the MD5, but of multipart objects, and those that `put` was given."""

    md5: bytes | None = None
    sha1: bytes | None = None
    sha256: bytes | None = None
    sha384: bytes | None = None
    sha512: bytes | None = None

    def to_json(self) -> dict[str, str]:
        """Those that are there, in lower-case hex digits."""
        return {name: value.hex() for name, value in attrs.asdict(self).items() if value is not None}


@frozen(kw_only=True)
class R2Object:
    """An object without its body: the result of `head`, `put` and `list`, and of `get` when its condition failed.

    `etag` is the MD5 in hex (of a multipart object: MD5 of the parts' MD5s, a dash, the number of parts),
    `http_etag` the same in double quotes, `version` another text at each put, `size` that of the whole object
    in bytes. `range` is the part that a `get` or `head` covers, else None. `http_metadata` and `custom_metadata` are
    None on objects of a `list` that did not include them.
    """

    key: str
    version: str
    size: int
    etag: str
    http_etag: str
    checksums: R2Checksums
    uploaded: datetime
    http_metadata: R2HTTPMetadata | None = None
    custom_metadata: dict[str, str] | None = None
    range: R2Range | None = None
    storage_class: str = "Standard"
    ssec_key_md5: str | None = None

    def write_http_metadata(self, headers: Headers) -> None:
        """Set the headers that the object is to be served with on `headers`; others stay.

        Raises R2TypeError for an object of a `list` that did not include the HTTP metadata.
        """
        metadata = self.http_metadata
        if metadata is None:
            raise R2TypeError(
                f"HTTP metadata unknown for key `{self.key}`. "
                "Did you forget to add 'httpMetadata' to `include` when listing?"
            )
        for name, value in attrs.asdict(metadata).items():
            if isinstance(value, str):
                headers[name.replace("_", "-")] = value
        if metadata.cache_expiry is not None:
            from core.http.dates import http_date

            headers["expires"] = http_date(metadata.cache_expiry.timestamp())


class R2Body:
    """The bytes of an object, as a stream of known length that can be read once.

    `async for chunk in body` gives the chunks. It may be handed to `put` as it is, and to `Response.stream`.
    """

    __slots__ = ("_source", "_used", "length")

    def __init__(self, source: AsyncIterable[bytes], length: int) -> None:
        self._source = source
        self._used = False
        self.length: int = length

    @property
    def used(self) -> bool:
        """True if reading has begun."""
        return self._used

    def __aiter__(self) -> AsyncIterator[bytes]:
        if self._used:
            raise R2TypeError(
                "Body has already been used. It can only be used once. Use tee() first if you need to read it twice."
            )
        self._used = True
        return aiter(self._source)


@frozen(kw_only=True)
class R2ObjectBody(R2Object):
    """An object with its body, which can be read once: as a whole, or as the stream `body`.

    Every way of reading raises R2TypeError (`Body has already been used. …`) the second time.
    """

    body: R2Body

    @property
    def body_used(self) -> bool:
        """True if the body was read, or its reading begun."""
        return self.body.used

    async def bytes(self) -> _Bytes:
        """The body."""
        return b"".join([chunk async for chunk in self.body])

    async def array_buffer(self) -> _Bytes:
        """The body; the platform's other name for `bytes`."""
        return await self.bytes()

    async def text(self) -> str:
        """The body as text. Invalid UTF-8 becomes U+FFFD, a byte order mark is dropped."""
        return (await self.bytes()).removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")

    @overload
    async def json(self, /) -> Any: ...
    @overload
    async def json(self, type_: TypeForm[T], /) -> T: ...
    async def json(self, type_: Any = None, /) -> Any:
        """The body as JSON, structured as `type_` when one is given.

        Raises R2SyntaxError for text that is not JSON (NaN and Infinity are not), and StructureError for JSON of
        another shape.
        """
        from core.http.json import JSONDecodeError, loads

        try:
            value = loads(await self.text())
        except JSONDecodeError as error:
            raise R2SyntaxError(str(error)) from error
        return as_type(value, type_)


@frozen(kw_only=True)
class R2Objects:
    """One page of a `list`, in the order of the keys' UTF-8 bytes.

    `cursor` is there only while `truncated`: give it to the next `list`. `delimited_prefixes` are the keys' common
    beginnings up to and with the delimiter, sorted, each once.
    """

    objects: list[R2Object]
    truncated: bool
    cursor: str | None = None
    delimited_prefixes: list[str] = attrs.field(factory=list[str])


@frozen
class R2UploadedPart:
    """A part of a multipart upload: its number, and an etag that only `complete` understands. Never compare etags."""

    part_number: int
    etag: str


class R2UploadedPartDict(TypedDict):
    """`R2UploadedPart` as a plain dict, as it may come back from a client."""

    part_number: int
    etag: str


@runtime_checkable
class R2MultipartUpload(Protocol):
    """An object that is uploaded in parts. It appears under its key only at `complete`."""

    @property
    def key(self) -> str:
        """The object's key."""
        ...

    @property
    def upload_id(self) -> str:
        """The name of the upload, for `resume_multipart_upload`."""
        ...

    @binding_call
    async def upload_part(self, part_number: int, value: R2Value, *, ssec_key: R2Hash | None = None) -> R2UploadedPart:
        """Store one part, in place of an earlier one with this number. Keep its result for `complete`.

        All parts but the last must be of one size, at least 5 MiB, and the last one not larger; that is checked
        by `complete`. Raises R2TypeError for a number outside 1 to 10000, R2Error 10024 when the upload does
        not exist or has ended.
        """
        raise AssertionError

    @binding_call
    async def complete(self, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]) -> R2Object:
        """Make the object of these parts, in the order of their numbers. Parts that are not named are dropped.

        Raises R2Error: 10024 when the upload does not exist or has ended, 10025 for a part that is not there or
        has another etag, 10011 for a part under 5 MiB that is not the last, 10048 for parts of different sizes.
        """
        raise AssertionError

    @binding_call
    async def abort(self) -> None:
        """Drop the upload and its parts. A second time, and after `complete`, nothing happens."""
        raise AssertionError


if TYPE_CHECKING:
    _Conditions: TypeAlias = R2Conditional | R2ConditionalDict | Headers
    _Ranges: TypeAlias = R2Range | R2RangeDict | Headers
    _HTTPMetadata: TypeAlias = R2HTTPMetadata | R2HTTPMetadataDict | Headers

    class GetOptions(TypedDict, total=False):
        """The options of `R2Bucket.get`, but for the condition."""

        range: _Ranges | None
        ssec_key: R2Hash | None

    class UploadOptions(TypedDict, total=False):
        """The options of `R2Bucket.create_multipart_upload`."""

        http_metadata: _HTTPMetadata | None
        custom_metadata: Mapping[str, str] | None
        storage_class: str | None
        ssec_key: R2Hash | None

    class PutOptions(UploadOptions, total=False):
        """The options of `R2Bucket.put`, but for the condition."""

        md5: R2Hash | None
        sha1: R2Hash | None
        sha256: R2Hash | None
        sha384: R2Hash | None
        sha512: R2Hash | None


@runtime_checkable
class R2Bucket(Protocol):
    """A bucket of objects.

    Keys are at most 1024 bytes of UTF-8 (R2Error 10020), case counts, nothing is normalised, and any text will
    do, the empty one included. Reads see every write that ended before them.
    """

    @binding_call
    async def head(self, key: str) -> R2Object | None:
        """The object under `key` without its body, or None."""
        raise AssertionError

    @overload
    async def get(self, key: str, *, only_if: None = None, **options: Unpack[GetOptions]) -> R2ObjectBody | None: ...
    @overload
    async def get(
        self, key: str, *, only_if: _Conditions, **options: Unpack[GetOptions]
    ) -> R2ObjectBody | R2Object | None: ...
    @binding_call
    async def get(
        self,
        key: str,
        *,
        only_if: _Conditions | None = None,
        range: _Ranges | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2ObjectBody | R2Object | None:
        """The object under `key`, or None. When `only_if` does not hold, the object without a body.

        `only_if` and `range` may be a request's headers, taken as HTTP says (`If-Match`, `If-None-Match`,
        `If-Modified-Since`, `If-Unmodified-Since`; `Range`). A range past the end is cut. A range that begins at
        or after the end, or is empty, raises R2Error 10039, but a `Range` header that cannot be met, is malformed
        or has several ranges is ignored, and the whole object comes.

        Raises R2TypeError for an etag in quotes and for `suffix` beside `offset` or `length`,
        R2ValueError for negative and fractional ranges.
        """
        raise AssertionError

    @overload
    async def put(
        self, key: str, value: R2Value, *, only_if: None = None, **options: Unpack[PutOptions]
    ) -> R2Object: ...
    @overload
    async def put(
        self, key: str, value: R2Value, *, only_if: _Conditions, **options: Unpack[PutOptions]
    ) -> R2Object | None: ...
    @binding_call
    async def put(
        self,
        key: str,
        value: R2Value,
        *,
        only_if: _Conditions | None = None,
        http_metadata: _HTTPMetadata | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        md5: R2Hash | None = None,
        sha1: R2Hash | None = None,
        sha256: R2Hash | None = None,
        sha384: R2Hash | None = None,
        sha512: R2Hash | None = None,
        storage_class: str | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2Object | None:
        """Store `value`, in place of all that was under `key`, its metadata included.

        When `only_if` does not hold, nothing is stored and None comes back; a missing object fails `etag_matches`
        and `uploaded_after`. One checksum may be given; when it is not that of the value, nothing is stored.
        A stream needs a known length: wrap it in FixedLengthStream.

        Custom metadata: names and values together at most 8192 (characters; doubled for a string with a character
        beyond latin-1), else R2Error 10012. Raises R2Error 10037 for a wrong checksum, 100100 for more than
        5 GiB less 5 MiB; R2TypeError for a malformed checksum, for two, for an etag in quotes, for a stream
        of unknown length and for values of any other type.
        """
        raise AssertionError

    @binding_call
    async def delete(self, keys: str | Iterable[str]) -> None:
        """Delete one object or many; missing ones are fine. Production takes at most 1000 keys a call."""
        raise AssertionError

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
        """One page of objects whose keys begin with `prefix`, in the order of the keys' UTF-8 bytes.

        `limit` is 1 to 1000, 1000 by default, else R2Error 10022. With a `delimiter`, keys that have it after the
        prefix are not listed but gathered in `delimited_prefixes`, each of which counts as one. Of `start_after`
        and `cursor` the later one counts. Metadata comes only with `include`; such a page may be shorter than
        `limit`, so go by `truncated`. Raises R2ValueError for an unknown `include`.
        """
        raise AssertionError

    @binding_call
    async def create_multipart_upload(
        self,
        key: str,
        *,
        http_metadata: _HTTPMetadata | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        storage_class: str | None = None,
        ssec_key: R2Hash | None = None,
    ) -> R2MultipartUpload:
        """Begin to upload an object in parts."""
        raise AssertionError

    def resume_multipart_upload(self, key: str, upload_id: str) -> R2MultipartUpload:
        """An upload that was begun before, perhaps in another request. Nothing is checked until it is used."""
        ...
