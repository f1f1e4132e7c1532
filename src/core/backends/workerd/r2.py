"""The runtime's own object buckets, spoken to through their JavaScript objects.

Bodies cross as they are read; a stream is stored through a pipe that says its length beforehand,
as the platform wants it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, Literal

import attrs

from core.backends.r2 import Method, check_custom_metadata, chosen_parts, encode_key, record, refuse, source_of
from core.backends.workerd.conversion import (
    attribute,
    bridge,
    bytes_of,
    date_of,
    fixed_length,
    from_js,
    js_name,
    of_fields,
)
from core.backends.workerd.engine import JsEngine, JsMethod, js_attribute, js_call
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
    R2UploadedPartDict,
)
from core.errors import R2Error
from core.http import HeadersView

_HASHES: Final = ("md5", "sha1", "sha256", "sha384", "sha512")


class WorkerdR2Bucket(JsEngine, R2Bucket):
    _errors = R2Error

    async def _head(self, key: str) -> R2Object | None:
        return _object(await self._call("head", _key("head", key)))

    async def _get(self, key: str, *, only_if: object = None, range: object = None, ssec_key: object = None) -> object:
        wanted = _stated(R2Range, range, "range")
        given = {"only_if": _stated(R2Conditional, only_if, "only_if"), "range": wanted, "ssec_key": ssec_key}
        found = await self._call("get", _key("get", key), **given)
        # An object whose condition failed comes without a body.
        return _object(found) if found is None or attribute(found, "body") is None else _object_body(found)

    async def _put(self, key: str, value: object, *, only_if: object = None, **given: object) -> object:
        metadata = _metadata(only_if=_stated(R2Conditional, only_if, "only_if"), **given)
        return _object(await _with_value("put", value, partial(self._call, "put", _key("put", key), **metadata)))

    async def _delete(self, keys: str | Iterable[str]) -> None:
        names = [keys] if isinstance(keys, str) else [*keys]
        await self._call("delete", [_key("delete", name) for name in names])

    async def _list(
        self, *, limit: int | None = None, include: Iterable[str] | None = None, **given: object
    ) -> R2Objects:
        if limit is not None and not 1 <= limit <= 1000:
            # A negative number would cross as a large one.
            refuse("list", 10022)
        wanted = None if include is None else [js_name(name) for name in include]
        page = await self._call("list", limit=limit, include=wanted, **given)
        return R2Objects(
            objects=[R2Object(**_parts(found, wanted or ())) for found in page.objects],
            truncated=bool(page.truncated),
            cursor=attribute(page, "cursor"),
            delimited_prefixes=from_js(page.delimitedPrefixes),
        )

    async def _create_multipart_upload(self, key: str, **given: object) -> WorkerdR2MultipartUpload:
        upload = await self._call("createMultipartUpload", _key("createMultipartUpload", key), **_metadata(**given))
        return WorkerdR2MultipartUpload(upload, self._hook)

    def resume_multipart_upload(self, key: str, upload_id: str) -> WorkerdR2MultipartUpload:
        upload = self._now("resumeMultipartUpload", _key("uploadPart", key), upload_id)
        return WorkerdR2MultipartUpload(upload, self._hook)


class WorkerdR2MultipartUpload(JsEngine, R2MultipartUpload):
    _errors = R2Error
    key: JsMethod = js_attribute("key", str)
    upload_id: JsMethod = js_attribute("uploadId", str)
    _abort = js_call(R2MultipartUpload.abort)

    def _call_target(self) -> tuple[object, ...]:
        return self.key, self.upload_id

    async def _upload_part(self, part_number: int, value: object, *, ssec_key: object = None) -> R2UploadedPart:
        part = await _with_value("uploadPart", value, partial(self._call, "uploadPart", part_number, ssec_key=ssec_key))
        return R2UploadedPart(int(part.partNumber), str(part.etag))

    async def _complete(self, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]) -> R2Object | None:
        parts = [{"partNumber": number, "etag": etag} for number, etag in chosen_parts(uploaded_parts)]
        return _object(await self._call("complete", parts))


# Values out -----------------------------------------------------------------------------------------------------------


async def _with_value(method: Literal["put", "uploadPart"], value: Any, store: Any) -> Any:
    """Call `store` with the value to be stored; of a stream, with JavaScript's."""
    source = source_of(method, value)
    return await (store(source) if isinstance(source, bytes) else fixed_length(source, source.length, store))


def _key(method: Method, key: str) -> str:
    encode_key(method, key)
    return key


def _stated(cls: type[attrs.AttrsInstance], value: Any, option: str) -> object:
    """Conditions, a range or metadata for JavaScript: given as headers, as an instance of `cls`, or as its fields."""
    if isinstance(value, HeadersView):
        across = bridge()
        return across.js.Headers.new(across.to_js(value.raw()))
    return None if value is None else record(cls, value, option)


def _metadata(*, http_metadata: object = None, custom_metadata: Any = None, **others: object) -> dict[str, object]:
    custom = check_custom_metadata(custom_metadata)
    http = _stated(R2HTTPMetadata, http_metadata, "http_metadata")
    return {"http_metadata": http, "custom_metadata": custom, **others}


# Values in ------------------------------------------------------------------------------------------------------------


def _object(found: object) -> R2Object | None:
    return None if found is None else R2Object(**_parts(found))


def _object_body(found: object) -> R2ObjectBody:
    parts = _parts(found)
    covered = parts["range"]
    length = covered.length if covered is not None and covered.length is not None else parts["size"]
    return R2ObjectBody(**parts, body=R2Body(JsBody(found), length))


def _parts(found: Any, included: Collection[str] = ("httpMetadata", "customMetadata")) -> dict[str, Any]:
    covered = attribute(found, "range")
    sums = {name: attribute(found.checksums, name) for name in _HASHES}
    ssec = attribute(found, "ssecKeyMd5")
    http, custom = [attribute(found, name) if name in included else None for name in ("httpMetadata", "customMetadata")]
    return {
        "key": str(found.key),
        "version": str(found.version),
        "size": int(found.size),
        "etag": str(found.etag),
        "http_etag": str(found.httpEtag),
        "checksums": R2Checksums(**{name: bytes_of(value) for name, value in sums.items() if value is not None}),
        "uploaded": date_of(found.uploaded),
        "http_metadata": None if http is None else of_fields(R2HTTPMetadata, from_js(http)),
        "custom_metadata": from_js(custom),
        "range": None if covered is None else of_fields(R2Range, {"offset": 0, **from_js(covered)}),
        "storage_class": attribute(found, "storageClass") or "Standard",
        "ssec_key_md5": ssec if ssec is None or isinstance(ssec, str) else bytes_of(ssec).hex(),
    }
