"""The runtime's own object buckets, spoken to through their JavaScript objects.

Bodies cross as they are read; a stream is stored through a pipe that says its length beforehand,
as the platform wants it. The codes of errors are read from the ends of their messages.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from core.backends.r2 import check_custom_metadata
from core.backends.workerd.conversion import (
    attribute,
    bridge,
    bytes_of,
    call_js,
    call_now,
    date_of,
    fixed_length,
    from_js,
    is_null,
    js_bytes,
    js_fields,
    js_name,
    js_value,
    of_fields,
    options,
    translator,
)
from core.backends.workerd.engine import JsEngine
from core.backends.workerd.fetch import JsBody
from core.bindings.r2 import (
    R2Body,
    R2Bucket,
    R2Checksums,
    R2Conditional,
    R2HTTPMetadata,
    R2MultipartUpload,
    R2Object,
    R2ObjectBody,
    R2Objects,
    R2Range,
    R2UploadedPart,
)
from core.errors import BindingError, R2Error, R2TypeError, R2ValueError
from core.http import Headers
from core.http.streams import well_formed

_HASHES: Final = ("md5", "sha1", "sha256", "sha384", "sha512")


class WorkerdR2Bucket(JsEngine, R2Bucket):
    async def _head(self, key: str) -> R2Object | None:
        found = await call_js(_error, self._js.head, _key(key))
        return None if is_null(found) else _object(found)

    async def _get(self, key: str, *, only_if: object = None, range: object = None, ssec_key: object = None) -> object:
        given = options(only_if=_stated(R2Conditional, only_if), range=_stated(R2Range, range), ssec_key=ssec_key)
        found = await call_js(_error, self._js.get, _key(key), **given)
        if is_null(found):
            return None
        # An object whose condition failed comes without a body.
        return _object_body(found) if hasattr(found, "body") and not is_null(found.body) else _object(found)

    async def _put(self, key: str, value: object, *, only_if: object = None, **given: object) -> object:
        told = _metadata(only_if=_stated(R2Conditional, only_if), **given)

        async def store(outgoing: object) -> object:
            return await call_js(_error, self._js.put, _key(key), outgoing, **told)

        stored = await _with_value(value, store)
        return None if is_null(stored) else _object(stored)

    async def _delete(self, keys: str | Iterable[str]) -> None:
        outgoing = _key(keys) if isinstance(keys, str) else bridge().to_js([_key(key) for key in keys])
        await call_js(_error, self._js.delete, outgoing)

    async def _list(
        self, *, limit: int | None = None, include: Iterable[str] | None = None, **given: object
    ) -> R2Objects:
        if limit is not None and not 1 <= limit <= 1000:
            # A negative number would cross as a large one.
            raise _error("Error", "list: MaxKeys params must be positive integer <= 1000. (10022)")
        wanted = None if include is None else [js_name(name) for name in include]
        page = await call_js(_error, self._js.list, **options(limit=limit, include=wanted, **given))
        return R2Objects(
            objects=[_object(found, included=wanted or ()) for found in page.objects],
            truncated=bool(page.truncated),
            cursor=attribute(page, "cursor"),
            delimited_prefixes=from_js(page.delimitedPrefixes),
        )

    async def _create_multipart_upload(self, key: str, **given: object) -> WorkerdR2MultipartUpload:
        upload = await call_js(_error, self._js.createMultipartUpload, _key(key), **_metadata(**given))
        return WorkerdR2MultipartUpload(upload, self._hook)

    def resume_multipart_upload(self, key: str, upload_id: str) -> WorkerdR2MultipartUpload:
        upload = call_now(_error, self._js.resumeMultipartUpload, _key(key), upload_id)
        return WorkerdR2MultipartUpload(upload, self._hook)


class WorkerdR2MultipartUpload(JsEngine, R2MultipartUpload):
    def _call_target(self) -> tuple[object, ...]:
        return self.key, self.upload_id

    @property
    def key(self) -> str:
        return str(self._js.key)

    @property
    def upload_id(self) -> str:
        return str(self._js.uploadId)

    async def _upload_part(self, part_number: int, value: object, *, ssec_key: object = None) -> R2UploadedPart:
        given = options(ssec_key=ssec_key)

        async def store(outgoing: object) -> object:
            return await call_js(_error, self._js.uploadPart, part_number, outgoing, **given)

        part = await _with_value(value, store)
        return R2UploadedPart(int(part.partNumber), str(part.etag))

    async def _complete(self, uploaded_parts: Sequence[R2UploadedPart | Mapping[str, object]]) -> R2Object:
        parts = [
            {"partNumber": part["part_number"], "etag": part["etag"]}
            if isinstance(part, Mapping)
            else {"partNumber": part.part_number, "etag": part.etag}
            for part in uploaded_parts
        ]
        return _object(await call_js(_error, self._js.complete, js_value(parts)))

    async def _abort(self) -> None:
        await call_js(_error, self._js.abort)


# Values out -----------------------------------------------------------------------------------------------------------


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise R2TypeError(f"A key must be a str, not {type(key).__name__}. Write str(key) if that is what you mean")
    if well_formed(key) != key:
        # JavaScript would make U+FFFD of half a surrogate pair, and one object of several.
        raise R2Error("The specified object name is not valid. (10020)")
    return key


async def _with_value(value: Any, store: Any) -> Any:
    """Call `store` with the JavaScript form of the value to be stored."""
    given = value  # not narrowed by what follows
    if value is None:
        return await store(bridge().jsnull)
    if isinstance(value, str):
        return await store(well_formed(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return await store(js_bytes(given))
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


def _stated(cls: Any, value: Any) -> object:
    """Conditions, a range or metadata for JavaScript: given as headers, as an instance of `cls`, or as its fields."""
    if value is None:
        return None
    across = bridge()
    if isinstance(value, Headers):
        return across.js.Headers.new(across.to_js(value.raw()))
    return js_fields(cls(**value) if isinstance(value, Mapping) else value)


def _metadata(*, http_metadata: object = None, custom_metadata: Any = None, **others: object) -> dict[str, object]:
    custom = check_custom_metadata(custom_metadata)
    return options(http_metadata=_stated(R2HTTPMetadata, http_metadata), custom_metadata=custom, **others)


# Values in ------------------------------------------------------------------------------------------------------------


def _object(found: object, included: Collection[str] | None = None) -> R2Object:
    return R2Object(**_parts(found, included))


def _object_body(found: object) -> R2ObjectBody:
    parts = _parts(found, None)
    covered = parts["range"]
    length = covered.length if covered is not None and covered.length is not None else parts["size"]
    return R2ObjectBody(**parts, body=R2Body(JsBody(found), length))


def _parts(found: Any, included: Collection[str] | None) -> dict[str, Any]:
    covered = attribute(found, "range")
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
        "http_metadata": None if is_null(http) else of_fields(R2HTTPMetadata, from_js(http)),
        "custom_metadata": None if is_null(custom) else from_js(custom),
        "range": None if covered is None else of_fields(R2Range, {"offset": 0, **from_js(covered)}),
        "storage_class": attribute(found, "storageClass") or "Standard",
        "ssec_key_md5": _ssec(attribute(found, "ssecKeyMd5")),
    }


def _ssec(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else bytes_of(value).hex()


def _checksums(found: object) -> R2Checksums:
    given = {name: attribute(found, name) for name in _HASHES}
    return R2Checksums(**{name: bytes_of(value) for name, value in given.items() if value is not None})


_classed = translator(R2Error, TypeError=R2TypeError, RangeError=R2ValueError)
_CODE: Final = re.compile(r"\((\d+)\)$")


def _error(name: str, message: str) -> BindingError:
    error = _classed(name, message)
    code = _CODE.search(message)
    if type(error) is R2Error and code is not None:
        error.code = int(code.group(1))
    return error
