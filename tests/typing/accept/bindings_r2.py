"""An object bucket, every method of it, with the type of every result."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, assert_type

import attrs

from core.bindings.r2 import (
    FixedLengthStream,
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
from core.http import Headers


@attrs.frozen
class Point:
    x: int


async def chunks() -> AsyncIterator[bytes]:
    yield b""


async def reads(bucket: R2Bucket, headers: Headers) -> None:
    assert_type(await bucket.head("k"), R2Object | None)
    assert_type(await bucket.get("k"), R2ObjectBody | None)
    assert_type(await bucket.get("k", range=R2Range(offset=1, length=2)), R2ObjectBody | None)
    assert_type(await bucket.get("k", range={"suffix": 3}, ssec_key=b""), R2ObjectBody | None)
    assert_type(await bucket.get("k", range=headers), R2ObjectBody | None)
    assert_type(await bucket.get("k", only_if=R2Conditional(etag_matches="x")), R2ObjectBody | R2Object | None)
    assert_type(await bucket.get("k", only_if={"etag_does_not_match": "*"}), R2ObjectBody | R2Object | None)
    assert_type(await bucket.get("k", only_if=headers, range=headers), R2ObjectBody | R2Object | None)


async def an_object(found: R2ObjectBody, headers: Headers) -> None:
    assert_type(found.key, str)
    assert_type(found.version, str)
    assert_type(found.size, int)
    assert_type(found.etag, str)
    assert_type(found.http_etag, str)
    assert_type(found.checksums, R2Checksums)
    assert_type(found.checksums.md5, bytes | None)
    assert_type(found.checksums.sha512, bytes | None)
    assert_type(found.checksums.to_json(), dict[str, str])
    assert_type(found.uploaded, datetime)
    assert_type(found.http_metadata, R2HTTPMetadata | None)
    assert_type(found.custom_metadata, dict[str, str] | None)
    assert_type(found.range, R2Range | None)
    assert_type(found.storage_class, str)
    assert_type(found.ssec_key_md5, str | None)
    assert_type(found.body, R2Body)
    assert_type(found.body_used, bool)
    assert_type(await found.bytes(), bytes)
    assert_type(await found.array_buffer(), bytes)
    assert_type(await found.text(), str)
    assert_type(await found.json(), Any)
    assert_type(await found.json(Point), Point)
    assert_type(await found.json(list[Point]), list[Point])
    found.write_http_metadata(headers)
    async for chunk in found.body:
        assert_type(chunk, bytes)


async def metadata(http: R2HTTPMetadata) -> None:
    assert_type(http.content_type, str | None)
    assert_type(http.content_language, str | None)
    assert_type(http.content_disposition, str | None)
    assert_type(http.content_encoding, str | None)
    assert_type(http.cache_control, str | None)
    assert_type(http.cache_expiry, datetime | None)


async def writes(bucket: R2Bucket, found: R2ObjectBody, headers: Headers) -> None:
    assert_type(await bucket.put("k", "v"), R2Object)
    assert_type(await bucket.put("k", b"v", md5="", http_metadata={"content_type": "a/b"}), R2Object)
    assert_type(await bucket.put("k", bytearray(), sha1=b"", http_metadata=R2HTTPMetadata()), R2Object)
    assert_type(await bucket.put("k", memoryview(b""), sha256="", http_metadata=headers), R2Object)
    assert_type(await bucket.put("k", None, sha384="", custom_metadata={"a": "b"}), R2Object)
    assert_type(await bucket.put("k", found.body, sha512="", storage_class="InfrequentAccess"), R2Object)
    assert_type(await bucket.put("k", FixedLengthStream(chunks(), 0)), R2Object)
    assert_type(await bucket.put("k", "v", only_if={"uploaded_before": found.uploaded}), R2Object | None)
    assert_type(await bucket.put("k", "v", only_if=headers), R2Object | None)
    await bucket.delete("k")
    await bucket.delete(["a", "b"])
    await bucket.delete(key for key in "ab")


async def lists(bucket: R2Bucket) -> None:
    page = await bucket.list(prefix="a", delimiter="/", limit=5, start_after="b", include=["http_metadata"])
    assert_type(page, R2Objects)
    assert_type(page.objects, list[R2Object])
    assert_type(page.truncated, bool)
    assert_type(page.cursor, str | None)
    assert_type(page.delimited_prefixes, list[str])
    assert_type(await bucket.list(cursor=page.cursor, include=("customMetadata",)), R2Objects)


async def uploads(bucket: R2Bucket) -> None:
    upload = await bucket.create_multipart_upload("k", custom_metadata={}, storage_class="Standard")
    assert_type(upload, R2MultipartUpload)
    assert_type(bucket.resume_multipart_upload("k", upload.upload_id), R2MultipartUpload)
    assert_type(upload.key, str)
    part = await upload.upload_part(1, b"")
    assert_type(part, R2UploadedPart)
    assert_type(part.part_number, int)
    assert_type(part.etag, str)
    assert_type(await upload.complete([part, {"part_number": 2, "etag": "e"}]), R2Object)
    await upload.abort()
