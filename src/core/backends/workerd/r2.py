"""The runtime's own object buckets, spoken to through their JavaScript objects.

Bodies cross as they are read; a stream is stored through a pipe that says its length beforehand,
as the platform wants it. The codes of errors are read from the ends of their messages.

One file, since every function here is one side of a value that another one sends or reads.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from core.backends.workerd.conversion import (
    bridge,
    bytes_of,
    call_js,
    chunks_of,
    date_of,
    fixed_length,
    from_js,
    is_null,
    js_bytes,
    js_date,
    none_of,
    translated,
    unwrap,
)
from core.bindings.r2 import (
    R2Body,
    R2Checksums,
    R2Conditional,
    R2HTTPMetadata,
    R2Object,
    R2ObjectBody,
    R2Objects,
    R2Range,
    R2UploadedPart,
)
from core.calls import BoundHook, Hookable, binding_call
from core.errors import BindingError, R2Error, R2TypeError, R2ValueError
from core.http import Headers

__all__ = ["WorkerdR2Bucket", "WorkerdR2MultipartUpload"]

_HASHES: Final = ("md5", "sha1", "sha256", "sha384", "sha512")


class WorkerdR2Bucket(Hookable):
    """`R2Bucket` over the object that the runtime has under the binding's name."""

    def __init__(self, bucket: Any) -> None:
        self._bucket = unwrap(bucket)

    @binding_call
    async def head(self, key: str) -> R2Object | None:
        """The object under `key` without its body, or None."""
        found = await call_js(_error, self._bucket.head, _key(key))
        return None if is_null(found) else _object(found)

    @binding_call
    async def get(self, key: str, *, only_if: Any = None, range: Any = None, ssec_key: Any = None) -> Any:
        """The object under `key`, or None. See `R2Bucket.get`."""
        given: dict[str, Any] = {}
        if only_if is not None:
            given["onlyIf"] = _condition(only_if)
        if range is not None:
            given["range"] = _range(range)
        if ssec_key is not None:
            given["ssecKey"] = _hash(ssec_key)
        found = await call_js(_error, self._bucket.get, _key(key), **given)
        if is_null(found):
            return None
        # An object whose condition failed comes without a body.
        return _object_body(found) if hasattr(found, "body") and not is_null(found.body) else _object(found)

    @binding_call
    async def put(
        self,
        key: str,
        value: Any,
        *,
        only_if: Any = None,
        http_metadata: Any = None,
        custom_metadata: Mapping[str, str] | None = None,
        md5: Any = None,
        sha1: Any = None,
        sha256: Any = None,
        sha384: Any = None,
        sha512: Any = None,
        storage_class: str | None = None,
        ssec_key: Any = None,
    ) -> Any:
        """Store `value`. See `R2Bucket.put`."""
        given = _metadata(http_metadata, custom_metadata, storage_class, ssec_key)
        if only_if is not None:
            given["onlyIf"] = _condition(only_if)
        for name, checksum in zip(_HASHES, (md5, sha1, sha256, sha384, sha512), strict=True):
            if checksum is not None:
                given[name] = _hash(checksum)

        async def store(outgoing: Any) -> Any:
            return await call_js(_error, self._bucket.put, _key(key), outgoing, **given)

        stored = await _with_value(value, store)
        return None if is_null(stored) else _object(stored)

    @binding_call
    async def delete(self, keys: str | Iterable[str]) -> None:
        """Delete one object or many."""
        outgoing = _key(keys) if isinstance(keys, str) else bridge().to_js([_key(key) for key in keys])
        await call_js(_error, self._bucket.delete, outgoing)

    @binding_call
    async def list(
        self,
        *,
        prefix: str | None = None,
        delimiter: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        start_after: str | None = None,
        include: Iterable[str] | None = None,
    ) -> R2Objects:
        """One page of objects. See `R2Bucket.list`."""
        if limit is not None and not 1 <= limit <= 1000:
            # A negative number would cross as a large one.
            raise _error("Error", "list: MaxKeys params must be positive integer <= 1000. (10022)")
        named = {
            "prefix": prefix,
            "delimiter": delimiter,
            "cursor": cursor,
            "limit": limit,
            "startAfter": start_after,
        }
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        if include is not None:
            given["include"] = bridge().to_js([_INCLUDE.get(name, name) for name in include])
        page = await call_js(_error, self._bucket.list, **given)
        wanted = set(() if include is None else (_INCLUDE.get(name, name) for name in include))
        return R2Objects(
            objects=[_object(found, included=wanted) for found in page.objects],
            truncated=bool(page.truncated),
            cursor=none_of(getattr(page, "cursor", None)),
            delimited_prefixes=from_js(page.delimitedPrefixes),
        )

    @binding_call
    async def create_multipart_upload(
        self,
        key: str,
        *,
        http_metadata: Any = None,
        custom_metadata: Mapping[str, str] | None = None,
        storage_class: str | None = None,
        ssec_key: Any = None,
    ) -> WorkerdR2MultipartUpload:
        """Begin to upload an object in parts."""
        given = _metadata(http_metadata, custom_metadata, storage_class, ssec_key)
        upload = await call_js(_error, self._bucket.createMultipartUpload, _key(key), **given)
        return WorkerdR2MultipartUpload(upload, self._hook)

    def resume_multipart_upload(self, key: str, upload_id: str) -> WorkerdR2MultipartUpload:
        """An upload that was begun before."""
        try:
            return WorkerdR2MultipartUpload(self._bucket.resumeMultipartUpload(_key(key), upload_id), self._hook)
        except bridge().JsException as error:
            raise translated(error, _error) from None


class WorkerdR2MultipartUpload(Hookable):
    """`R2MultipartUpload` over the runtime's."""

    __slots__ = ("_hook", "_upload")

    def __init__(self, upload: Any, hook: BoundHook | None) -> None:
        self._upload = unwrap(upload)
        self._hook = hook

    def _call_target(self) -> tuple[Any, ...]:
        return self.key, self.upload_id

    @property
    def key(self) -> str:
        """The object's key."""
        return str(self._upload.key)

    @property
    def upload_id(self) -> str:
        """The name of the upload."""
        return str(self._upload.uploadId)

    @binding_call
    async def upload_part(self, part_number: int, value: Any, *, ssec_key: Any = None) -> R2UploadedPart:
        """Store one part."""
        given = {} if ssec_key is None else {"ssecKey": _hash(ssec_key)}

        async def store(outgoing: Any) -> Any:
            return await call_js(_error, self._upload.uploadPart, part_number, outgoing, **given)

        part = await _with_value(value, store)
        return R2UploadedPart(int(part.partNumber), str(part.etag))

    @binding_call
    async def complete(self, uploaded_parts: Sequence[R2UploadedPart | Mapping[str, Any]]) -> R2Object:
        """Make the object of these parts."""
        across = bridge()
        parts = [
            {"partNumber": part["part_number"], "etag": part["etag"]}
            if isinstance(part, Mapping)
            else {"partNumber": part.part_number, "etag": part.etag}
            for part in uploaded_parts
        ]
        outgoing = across.to_js(parts, dict_converter=across.from_entries)
        return _object(await call_js(_error, self._upload.complete, outgoing))

    @binding_call
    async def abort(self) -> None:
        """Drop the upload and its parts."""
        await call_js(_error, self._upload.abort)


# Values out -----------------------------------------------------------------------------------------------------------

_INCLUDE: Final = {"http_metadata": "httpMetadata", "custom_metadata": "customMetadata"}


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise R2TypeError(f"A key must be a str, not {type(key).__name__}. Write str(key) if that is what you mean")
    if not key.isascii():
        try:
            key.encode()
        except UnicodeEncodeError:
            # JavaScript would make U+FFFD of half a surrogate pair, and one object of several.
            raise R2Error("The specified object name is not valid. (10020)") from None
    return key


async def _with_value(value: Any, store: Any) -> Any:
    """Call `store` with the JavaScript form of the value to be stored."""
    if value is None:
        return await store(bridge().jsnull)
    if isinstance(value, str):
        return await store(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return await store(js_bytes(cast("bytes | bytearray | memoryview", value)))
    if hasattr(value, "__aiter__"):
        length = getattr(value, "length", None)
        if length is None:
            raise R2TypeError(
                "Provided readable stream must have a known length (request/response body or readable half of "
                "FixedLengthStream)"
            )
        return await fixed_length(value, length, store)
    raise R2TypeError(
        f"An object cannot be made of {type(value).__name__}. Give str, bytes, None, or a stream in a FixedLengthStream"
    )


def _hash(value: Any) -> Any:
    return value if isinstance(value, str) else js_bytes(value)


def _js(value: Mapping[str, Any]) -> Any:
    across = bridge()
    return across.to_js(
        {
            name: js_date(item) if isinstance(item, datetime) else item
            for name, item in value.items()
            if item is not None
        },
        dict_converter=across.from_entries,
    )


def _js_headers(headers: Headers) -> Any:
    across = bridge()
    return across.js.Headers.new(across.to_js(headers.raw()))


def _condition(value: Any) -> Any:
    if isinstance(value, Headers):
        return _js_headers(value)
    given = R2Conditional(**cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
    return _js(
        {
            "etagMatches": given.etag_matches,
            "etagDoesNotMatch": given.etag_does_not_match,
            "uploadedBefore": given.uploaded_before,
            "uploadedAfter": given.uploaded_after,
            "secondsGranularity": given.seconds_granularity or None,
        }
    )


def _range(value: Any) -> Any:
    if isinstance(value, Headers):
        return _js_headers(value)
    given = R2Range(**cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
    return _js({"offset": given.offset, "length": given.length, "suffix": given.suffix})


def _metadata(
    http_metadata: Any, custom_metadata: Mapping[str, str] | None, storage_class: str | None, ssec_key: Any
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if isinstance(http_metadata, Headers):
        given["httpMetadata"] = _js_headers(http_metadata)
    elif http_metadata is not None:
        stated = http_metadata
        if isinstance(http_metadata, Mapping):
            stated = R2HTTPMetadata(**cast("Mapping[str, Any]", http_metadata))
        given["httpMetadata"] = _js(
            {
                "contentType": stated.content_type,
                "contentLanguage": stated.content_language,
                "contentDisposition": stated.content_disposition,
                "contentEncoding": stated.content_encoding,
                "cacheControl": stated.cache_control,
                "cacheExpiry": stated.cache_expiry,
            }
        )
    if custom_metadata is not None:
        given["customMetadata"] = _js(dict(custom_metadata))
    if storage_class is not None:
        given["storageClass"] = storage_class
    if ssec_key is not None:
        given["ssecKey"] = _hash(ssec_key)
    return given


# Values in ------------------------------------------------------------------------------------------------------------


def _object(found: Any, included: set[str] | None = None) -> R2Object:
    return R2Object(**_parts(found, included))


def _object_body(found: Any) -> R2ObjectBody:
    parts = _parts(found, None)
    covered = parts["range"]
    length = covered.length if covered is not None and covered.length is not None else parts["size"]
    return R2ObjectBody(**parts, body=R2Body(_Chunks(found), length))


class _Chunks:
    """The chunks of an object's body, fetched across when they are asked for."""

    __slots__ = ("_found",)

    def __init__(self, found: Any) -> None:
        self._found = found

    def __aiter__(self) -> AsyncIterator[bytes]:
        return chunks_of(self._found.body)


def _parts(found: Any, included: set[str] | None) -> dict[str, Any]:
    found = unwrap(found)
    http = found.httpMetadata if included is None or "httpMetadata" in included else None
    custom = found.customMetadata if included is None or "customMetadata" in included else None
    return {
        "key": str(found.key),
        "version": str(found.version),
        "size": int(found.size),
        "etag": str(found.etag),
        "http_etag": str(found.httpEtag),
        "checksums": _checksums(found.checksums),
        "uploaded": date_of(found.uploaded),
        "http_metadata": None if is_null(http) else _http_metadata(http),
        "custom_metadata": None if is_null(custom) else from_js(custom),
        "range": _covered(getattr(found, "range", None)),
        "storage_class": none_of(getattr(found, "storageClass", None)) or "Standard",
        "ssec_key_md5": _ssec(getattr(found, "ssecKeyMd5", None)),
    }


def _ssec(value: Any) -> str | None:
    if is_null(value):
        return None
    return value if isinstance(value, str) else bytes_of(value).hex()


def _checksums(found: Any) -> R2Checksums:
    given: dict[str, bytes] = {}
    for name in _HASHES:
        value = getattr(found, name, None)
        if not is_null(value):
            given[name] = bytes_of(value)
    return R2Checksums(**given)


def _http_metadata(found: Any) -> R2HTTPMetadata:
    expiry = getattr(found, "cacheExpiry", None)
    return R2HTTPMetadata(
        content_type=none_of(getattr(found, "contentType", None)),
        content_language=none_of(getattr(found, "contentLanguage", None)),
        content_disposition=none_of(getattr(found, "contentDisposition", None)),
        content_encoding=none_of(getattr(found, "contentEncoding", None)),
        cache_control=none_of(getattr(found, "cacheControl", None)),
        cache_expiry=None if is_null(expiry) else date_of(expiry),
    )


def _covered(found: Any) -> R2Range | None:
    if is_null(found):
        return None
    offset, length = none_of(getattr(found, "offset", None)), none_of(getattr(found, "length", None))
    return R2Range(
        offset=0 if offset is None else int(offset),
        length=None if length is None else int(length),
        suffix=none_of(getattr(found, "suffix", None)),
    )


_CODE: Final = re.compile(r"\((\d+)\)$")


def _error(name: str, message: str) -> BindingError:
    match name:
        case "TypeError":
            return R2TypeError(message)
        case "RangeError":
            return R2ValueError(message)
        case _:
            pass
    error = R2Error(message)
    code = _CODE.search(message)
    if code is not None:
        error.code = int(code.group(1))
    return error
