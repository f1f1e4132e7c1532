"""The promises of every object bucket. The wording of the errors is the platform's."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

import attrs
from tests.contracts.contract import Contract, MovingClock, refused

from core.bindings.r2 import (
    FixedLengthStream,
    R2Bucket,
    R2Conditional,
    R2HTTPMetadata,
    R2Object,
    R2ObjectBody,
    R2Range,
    R2UploadedPart,
)
from core.errors import R2Error, R2SyntaxError, R2TypeError, R2ValueError
from core.http import Headers
from core.validation.mistakes import StructureError

T = TypeVar("T")

PART = 5 * 1024 * 1024


async def clean(bucket: R2Bucket) -> None:
    """Delete every object."""
    await bucket.delete("")
    while True:
        page = await bucket.list()
        if not page.objects:
            return
        await bucket.delete([found.key for found in page.objects])


contract: Contract[R2Bucket] = Contract("r2", clean)


@attrs.frozen
class Point:
    """A value that the JSON cases read."""

    x: int
    y: float


async def keys(bucket: R2Bucket, **options: Any) -> list[str]:
    """The keys of one page."""
    return [found.key for found in (await bucket.list(**options)).objects]


async def text(bucket: R2Bucket, key: str, **options: Any) -> str | None:
    """An object's text, or None."""
    found: Any = await bucket.get(key, **options)
    return None if found is None else cast("str", await found.text())


async def there(call: Awaitable[T | None], tried: object = None) -> T:
    """The object that a call answers with, which has to be there; else `tried` is in the error."""
    found = await call
    assert found is not None, tried
    return found


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    """A stream."""
    for chunk in chunks:
        yield chunk


def has_body(found: R2Object | None) -> bool:
    """Return True if a `get` came with a body."""
    return isinstance(found, R2ObjectBody)


# ---------------------------------------------------------------------- values


@contract.case()
async def half_a_surrogate_pair_is_no_key(bucket: R2Bucket) -> None:
    for key in ("a\ud800", "a\udfff"):
        for call in (bucket.put(key, "1"), bucket.get(key), bucket.head(key), bucket.delete(key)):
            await refused(call, R2Error)
    assert (await bucket.list()).objects == []


@contract.case()
async def half_a_surrogate_pair_in_a_value_is_replaced(bucket: R2Bucket) -> None:
    await bucket.put("k", "a\ud800é", custom_metadata={"\udfff": "b\ud800"})
    found = await there(bucket.get("k"))
    assert await found.bytes() == "a\ufffdé".encode()
    assert found.custom_metadata == {"\ufffd": "b\ufffd"}


_NO_COMMA = "Comma was expected to separate etags. Encountered a"
_WEAK = "Weak etags must start with W/ and their value must be quoted"


@contract.case()
async def the_etags_of_a_header_are_read_one_after_the_other(bucket: R2Bucket) -> None:
    stored = await there(bucket.put("k", "hello"))
    own = stored.http_etag
    for text in (
        "*",
        '"a", *',
        '*, "a"',
        '* "a"',
        f"{own} x",
        f'"x", {own}',
        f'"x",,{own}',
        f'"x"\t,{own}',
        f"{own}, y",
    ):
        found = await bucket.get("k", only_if=Headers({"If-Match": text}))
        assert has_body(found), text
    for text in ('"a" x', '"a"x', '"a", x, "b"', f'"x" y {own}', f"W/{own}"):
        found = await there(bucket.get("k", only_if=Headers({"If-Match": text})), text)
        assert not has_body(found), text
    for text, message in (
        ("W", _WEAK),
        ("W/", _WEAK),
        ("W/abc", _WEAK),
        ("W,", _WEAK),
        ("W *", _WEAK),
        ('W "a"', _WEAK),
        ('"a", W', _WEAK),
        ('W/"a', "Unclosed double quote for Etag"),
        ("w", "Invalid ETag in if-match header"),
        (",", "Invalid ETag in if-match header"),
        ('x"a"', "Invalid ETag in if-match header"),
        ('aW/"b"', "Invalid ETag in if-match header"),
        ('"a" W', f"{_NO_COMMA} weak quotation character 'W' instead."),
        ('W/"a" *', f"{_NO_COMMA} wildcard character '*' instead."),
        (f'"x"{own}', f"{_NO_COMMA} double quote character '\"' instead."),
    ):
        error = await refused(bucket.get("k", only_if=Headers({"If-Match": text})), R2Error)
        assert message in str(error), text
        assert error.status == 400, text


@contract.case()
async def an_object_reads_as_text_bytes_json_and_stream(bucket: R2Bucket) -> None:
    await bucket.put("k", '{"x":1,"y":2.5}')
    raw = b'{"x":1,"y":2.5}'
    found = await there(bucket.get("k"))
    assert await found.text() == raw.decode()
    found = await there(bucket.get("k"))
    assert await found.bytes() == raw
    found = await there(bucket.get("k"))
    assert await found.array_buffer() == raw
    found = await there(bucket.get("k"))
    assert await found.json() == {"x": 1, "y": 2.5}
    found = await there(bucket.get("k"))
    assert await found.json(Point) == Point(1, 2.5)
    found = await there(bucket.get("k"))
    assert found.body.length == len(raw)
    assert b"".join([bytes(chunk) async for chunk in found.body]) == raw


@contract.case()
async def a_missing_object_is_none(bucket: R2Bucket) -> None:
    assert await bucket.get("nope") is None
    assert await bucket.head("nope") is None
    assert await bucket.get("nope", only_if=R2Conditional(etag_does_not_match="*")) is None


@contract.case()
async def what_was_put_is_described(bucket: R2Bucket) -> None:
    put = await bucket.put("k", "hello")
    assert (put.key, put.size, put.range) == ("k", 5, None)
    assert put.etag == hashlib.md5(b"hello", usedforsecurity=False).hexdigest()
    assert put.http_etag == f'"{put.etag}"'
    assert put.checksums.to_json() == {"md5": put.etag}
    assert put.checksums.md5 == bytes.fromhex(put.etag)
    assert put.http_metadata == R2HTTPMetadata()
    assert not put.custom_metadata
    assert put.uploaded.tzinfo is not None
    head = await there(bucket.head("k"))
    assert not has_body(head)
    assert (head.version, head.range) == (put.version, R2Range(0, 5))
    found = await there(bucket.get("k"))
    assert (found.version, found.range) == (put.version, R2Range(0, 5))


@contract.case()
async def every_put_has_a_version_of_its_own(bucket: R2Bucket) -> None:
    assert (await bucket.put("k", "same")).version != (await bucket.put("k", "same")).version


@contract.case()
async def empty_values_are_values(bucket: R2Bucket) -> None:
    for key, value in (("text", ""), ("bytes", b""), ("none", None)):
        assert (await bucket.put(key, value)).size == 0
        assert await text(bucket, key) == ""


@contract.case()
async def none_makes_an_empty_object_and_does_not_delete(bucket: R2Bucket) -> None:
    await bucket.put("k", "x")
    await bucket.put("k", None)
    assert await text(bucket, "k") == ""


@contract.case()
async def bytes_of_every_kind_are_taken(bucket: R2Bucket) -> None:
    for value in (b"\x00\xff\n", bytearray(b"\x00\xff\n"), memoryview(b"\x00\xff\n")):
        await bucket.put("k", value)
        found = await there(bucket.get("k"))
        assert await found.bytes() == b"\x00\xff\n"


@contract.case()
async def other_values_are_refused(bucket: R2Bucket) -> None:
    for value in (5, True, {"a": 1}, ["a"]):
        await refused(bucket.put("k", cast("str", value)), R2TypeError)
    assert await bucket.head("k") is None


@contract.case()
async def a_stream_of_known_length_is_stored(bucket: R2Bucket) -> None:
    await bucket.put("k", FixedLengthStream(pieces(b"ab", b"", b"cde"), 5))
    assert await text(bucket, "k") == "abcde"


@contract.case()
async def a_stream_of_unknown_length_is_refused(bucket: R2Bucket) -> None:
    message = (
        "Provided readable stream must have a known length "
        "(request/response body or readable half of FixedLengthStream)"
    )
    await refused(bucket.put("k", cast("str", pieces(b"ab"))), R2TypeError, message)
    assert await bucket.head("k") is None


@contract.case()
async def a_stream_that_is_longer_or_shorter_than_it_says_stores_nothing(bucket: R2Bucket) -> None:
    await bucket.put("k", "old")
    await refused(bucket.put("k", FixedLengthStream(pieces(b"abc"), 2)), R2TypeError)
    await refused(bucket.put("k", FixedLengthStream(pieces(b"abc"), 4)), R2TypeError)
    assert await text(bucket, "k") == "old"


@contract.case()
async def a_large_body_is_refused_as_a_small_one_is(bucket: R2Bucket) -> None:
    for large in (bytes(1_000_000), FixedLengthStream(pieces(*[bytes(100_000)] * 10), 1_000_000)):
        assert (await refused(bucket.put("k" * 1025, large), R2Error)).code == 10020


@contract.case()
async def a_body_can_be_put_under_another_key(bucket: R2Bucket) -> None:
    await bucket.put("a", "copy me")
    found = await there(bucket.get("a"))
    await bucket.put("b", found.body)
    assert await text(bucket, "b") == "copy me"


@contract.case()
async def a_body_is_read_once(bucket: R2Bucket) -> None:
    await bucket.put("k", "once")
    found = await there(bucket.get("k"))
    assert not found.body_used
    body = found.body
    await found.text()
    assert body.used
    message = "Body has already been used. It can only be used once. Use tee() first if you need to read it twice."
    await refused(found.text(), R2TypeError, message)
    await refused(found.bytes(), R2TypeError, message)
    await refused(found.json(), R2TypeError, message)


@contract.case()
async def a_body_stays_readable_when_its_object_is_replaced_or_deleted(bucket: R2Bucket) -> None:
    for size in (10, 300_000):
        await bucket.put("k", b"a" * size)
        first = await bucket.get("k")
        second = await bucket.get("k")
        await bucket.put("k", b"b" * size)
        assert first is not None
        assert await first.bytes() == b"a" * size
        await bucket.delete("k")
        assert second is not None
        assert await second.bytes() == b"a" * size


@contract.case()
async def text_drops_a_byte_order_mark_and_replaces_what_is_no_utf_8(bucket: R2Bucket) -> None:
    await bucket.put("bom", b"\xef\xbb\xbfhi")
    assert await text(bucket, "bom") == "hi"
    await bucket.put("bad", b"a\xffb")
    assert await text(bucket, "bad") == "a\ufffdb"


@contract.case()
async def json_is_strict(bucket: R2Bucket) -> None:
    for bad in ("", "{bad", "NaN", "[1,]", "{} x"):
        await bucket.put("k", bad)
        found = await there(bucket.get("k"))
        await refused(found.json(), R2SyntaxError)
    await bucket.put("k", '{"x": "1", "y": 2}')
    found = await there(bucket.get("k"))
    await refused(found.json(Point), StructureError)


# ---------------------------------------------------------------------- keys


@contract.case()
async def keys_are_taken_as_they_are(bucket: R2Bucket) -> None:
    odd = ["K", "k", "é", "e\u0301", "a b", "a%20b", "a/../b", ".", "..", "a\nb", "?#", "日本", "😀", "a\x00b"]
    for key in odd:
        await bucket.put(key, key)
    for key in odd:
        assert await text(bucket, key) == key
    assert await keys(bucket) == sorted(odd, key=lambda key: key.encode())


@contract.case()
async def the_longest_key_has_1024_bytes(bucket: R2Bucket) -> None:
    for longest in ("k" * 1024, "é" * 512):
        await bucket.put(longest, "v")
        assert await text(bucket, longest) == "v"
        await bucket.delete(longest)
    for too_long in ("k" * 1025, "é" * 512 + "k"):
        text_ = "The specified object name is not valid. (10020)"
        error = await refused(bucket.put(too_long, "v"), R2Error, f"put: {text_}")
        assert error.code == 10020
        await refused(bucket.get(too_long), R2Error, f"get: {text_}")
        await refused(bucket.head(too_long), R2Error, f"head: {text_}")
        await refused(bucket.delete(["fine", too_long]), R2Error, f"delete: {text_}")
        await refused(bucket.create_multipart_upload(too_long), R2Error, f"createMultipartUpload: {text_}")


@contract.case()
async def delete_takes_a_key_or_many_and_missing_ones_are_fine(bucket: R2Bucket) -> None:
    for key in "abcd":
        await bucket.put(key, key)
    await bucket.delete("nope")
    await bucket.delete("a")
    await bucket.delete([])
    await bucket.delete(["b", "b", "nope"])
    await bucket.delete(key for key in "c")
    assert await keys(bucket) == ["d"]


@contract.case(paired=True)
async def two_buckets_are_apart(bucket: R2Bucket, other: R2Bucket) -> None:
    await bucket.put("k", "here")
    assert await other.head("k") is None


# ---------------------------------------------------------------------- metadata


@contract.case()
async def metadata_is_kept_and_replaced_whole(bucket: R2Bucket) -> None:
    expiry = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    http = R2HTTPMetadata("text/html", "en", "inline", "gzip", "no-store", expiry)
    put = await bucket.put("k", "v", http_metadata=http, custom_metadata={"a": "1", "B c": "é😀"})
    assert (put.http_metadata, put.custom_metadata) == (http, {"a": "1", "B c": "é😀"})
    head = await there(bucket.head("k"))
    assert (head.http_metadata, head.custom_metadata) == (http, {"a": "1", "B c": "é😀"})
    await bucket.put("k", "v", http_metadata={"content_type": "a/b"})
    head = await there(bucket.head("k"))
    assert head.http_metadata == R2HTTPMetadata("a/b")
    assert head.custom_metadata == {}


@contract.case()
async def custom_metadata_is_text(bucket: R2Bucket) -> None:
    told = "custom_metadata['a'] must be a str, not 1. Write str(...) around it"
    given: Any = {"a": 1}
    await refused(bucket.put("k", "v", custom_metadata=given), R2TypeError, told)
    await refused(bucket.create_multipart_upload("k", custom_metadata=given), R2TypeError, told)
    assert await bucket.head("k") is None


@contract.case()
async def http_metadata_may_come_from_headers_and_go_onto_headers(bucket: R2Bucket) -> None:
    sent = Headers({"Content-Type": "a/b", "Cache-Control": "max-age=5", "Expires": "Wed, 02 Jan 2030 03:04:05 GMT"})
    await bucket.put("k", "v", http_metadata=sent)
    head = await there(bucket.head("k"))
    headers = Headers({"content-type": "old/old", "x-keep": "1"})
    head.write_http_metadata(headers)
    assert headers["content-type"] == "a/b"
    assert headers["cache-control"] == "max-age=5"
    assert headers["expires"] == "Wed, 02 Jan 2030 03:04:05 GMT"
    assert headers["x-keep"] == "1"


@contract.case()
async def custom_metadata_has_8192_characters_and_twice_as_few_beyond_latin_1(bucket: R2Bucket) -> None:
    message = "put: Your metadata headers exceed the maximum allowed metadata size. (10012)"
    await bucket.put("k", "v", custom_metadata={"a": "x" * 8191})
    await refused(bucket.put("k", "new", custom_metadata={"a": "x" * 8192}), R2Error, message)
    assert await text(bucket, "k") == "v"
    await bucket.put("k", "v", custom_metadata={"a": "日" * 4095})
    await refused(bucket.put("k", "v", custom_metadata={"a": "日" * 4096}), R2Error, message)


# ---------------------------------------------------------------------- checksums


@contract.case()
async def a_right_checksum_is_kept(bucket: R2Bucket) -> None:
    for name in ("md5", "sha1", "sha256", "sha384", "sha512"):
        digest = hashlib.new(name, b"hello", usedforsecurity=False)
        given: tuple[Any, ...] = (digest.hexdigest(), digest.hexdigest().upper(), digest.digest())
        for checksum in given:
            options: dict[str, Any] = {name: checksum}
            put: Any = await bucket.put("k", "hello", **options)
            assert getattr(put.checksums, name) == digest.digest()
            head = await there(bucket.head("k"))
            assert head.checksums.to_json()[name] == digest.hexdigest()


@contract.case()
async def a_wrong_checksum_stores_nothing(bucket: R2Bucket) -> None:
    await bucket.put("k", "old")
    wrong, actual = "0" * 32, hashlib.md5(b"new", usedforsecurity=False).hexdigest()
    message = (
        "put: The MD5 checksum you specified did not match what we received.\n"
        f"You provided a MD5 checksum with value: {wrong}\nActual MD5 was: {actual} (10037)"
    )
    error = await refused(bucket.put("k", "new", md5=wrong), R2Error, message)
    assert error.code == 10037
    await refused(bucket.put("k", "new", sha256="0" * 64), R2Error)
    assert await text(bucket, "k") == "old"


@contract.case()
async def a_malformed_checksum_is_refused(bucket: R2Bucket) -> None:
    await refused(bucket.put("k", "v", md5="abc"), R2TypeError, "MD5 is 32 hex characters, not 3")
    await refused(bucket.put("k", "v", sha1=b"abc"), R2TypeError, "SHA-1 is 20 bytes, not 3")
    await refused(bucket.put("k", "v", sha256="z" * 64), R2TypeError, "Provided SHA-256 wasn't a valid hex string")
    two = bucket.put("k", "v", md5="0" * 32, sha1="0" * 40)
    await refused(two, R2TypeError, "You cannot specify multiple hashing algorithms.")


# ---------------------------------------------------------------------- conditions


@contract.case()
async def a_get_whose_condition_fails_comes_without_a_body(bucket: R2Bucket) -> None:
    etag = (await bucket.put("k", "hello")).etag
    for condition, holds in (
        (R2Conditional(etag_matches=etag), True),
        (R2Conditional(etag_matches="x"), False),
        (R2Conditional(etag_matches="*"), True),
        (R2Conditional(etag_does_not_match=etag), False),
        (R2Conditional(etag_does_not_match="x"), True),
        (R2Conditional(etag_does_not_match="*"), False),
        (R2Conditional(), True),
    ):
        found = await there(bucket.get("k", only_if=condition), condition)
        assert has_body(found) is holds, condition
    found = await there(bucket.get("k", only_if={"etag_matches": "x"}, range={"offset": 1}))
    assert found.range == R2Range(0, 5)


@contract.case(timed=True)
async def conditions_on_time_compare_with_the_upload(bucket: R2Bucket, clock: MovingClock) -> None:
    put = await bucket.put("k", "hello")
    before, after = put.uploaded - timedelta(seconds=10), put.uploaded + timedelta(seconds=10)
    for condition, holds in (
        (R2Conditional(uploaded_after=before), True),
        (R2Conditional(uploaded_after=put.uploaded), False),
        (R2Conditional(uploaded_after=after), False),
        (R2Conditional(uploaded_before=after), True),
        (R2Conditional(uploaded_before=put.uploaded), False),
        (R2Conditional(uploaded_before=before), False),
        # As in HTTP: an etag that decides makes the date unimportant.
        (R2Conditional(etag_matches=put.etag, uploaded_before=before), True),
        (R2Conditional(etag_matches=put.etag, uploaded_after=after), False),
        (R2Conditional(etag_does_not_match="x", uploaded_after=after), True),
        (R2Conditional(etag_does_not_match="x", uploaded_before=before), False),
    ):
        found = await there(bucket.get("k", only_if=condition), condition)
        assert has_body(found) is holds, condition


@contract.case()
async def conditions_may_come_from_headers(bucket: R2Bucket) -> None:
    put = await bucket.put("k", "hello")
    for headers, holds in (
        ({"If-Match": f'"{put.etag}"'}, True),
        ({"If-Match": f'"x", "{put.etag}"'}, True),
        ({"If-Match": f'W/"{put.etag}"'}, False),
        ({"If-Match": "*"}, True),
        ({"If-None-Match": f'"{put.etag}"'}, False),
        ({"If-None-Match": f'W/"{put.etag}"'}, False),
        ({"If-None-Match": '"x"'}, True),
        ({"If-None-Match": "*"}, False),
        ({"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, True),
        ({"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, False),
        ({}, True),
    ):
        found = await there(bucket.get("k", only_if=Headers(headers)), headers)
        assert has_body(found) is holds, headers


@contract.case()
async def malformed_conditions_are_refused(bucket: R2Bucket) -> None:
    await bucket.put("k", "v")
    message = 'Conditional ETag should not be wrapped in quotes ("x").'
    own = await refused(bucket.get("k", only_if=R2Conditional(etag_matches='"x"')), R2TypeError, message)
    assert own.status is None
    await refused(bucket.put("k", "v", only_if=R2Conditional(etag_does_not_match='"x"')), R2TypeError, message)
    for header, message in (
        ('"x', "Unclosed double quote for Etag"),
        ('W"x"', "Weak etags must start with W/ and their value must be quoted"),
    ):
        await refused(bucket.get("k", only_if=Headers({"If-Match": header})), R2Error, message)
    await refused(bucket.get("k", only_if=Headers({"If-Match": "x"})), R2Error, "Invalid ETag in if-match header")


@contract.case()
async def a_put_whose_condition_fails_stores_nothing(bucket: R2Bucket) -> None:
    assert await bucket.put("k", "first", only_if=R2Conditional(etag_matches="*")) is None
    assert await bucket.head("k") is None
    first = await there(bucket.put("k", "first", only_if=R2Conditional(etag_does_not_match="*")))
    assert await bucket.put("k", "second", only_if=R2Conditional(etag_does_not_match="*")) is None
    await there(bucket.put("k", "second", only_if=R2Conditional(etag_matches=first.etag)))
    assert await bucket.put("k", "third", only_if=R2Conditional(etag_matches=first.etag)) is None
    assert await text(bucket, "k") == "second"


@contract.case()
async def a_put_to_a_missing_key_holds_only_what_asks_for_nothing(bucket: R2Bucket) -> None:
    now = datetime.now(UTC)
    assert await bucket.put("a", "v", only_if=R2Conditional(uploaded_after=now - timedelta(days=1))) is None
    assert await bucket.put("b", "v", only_if=R2Conditional(uploaded_before=now - timedelta(days=1))) is not None
    assert await bucket.put("c", "v", only_if=R2Conditional(etag_does_not_match="x")) is not None
    assert await keys(bucket) == ["b", "c"]


# ---------------------------------------------------------------------- ranges


@contract.case()
async def a_range_gives_a_part(bucket: R2Bucket) -> None:
    await bucket.put("k", "0123456789")
    for span, offset, part in (
        (R2Range(offset=2), 2, "23456789"),
        (R2Range(offset=2, length=3), 2, "234"),
        (R2Range(length=3), 0, "012"),
        (R2Range(suffix=3), 7, "789"),
        (R2Range(suffix=30), 0, "0123456789"),
        (R2Range(offset=8, length=50), 8, "89"),
        (R2Range(offset=0), 0, "0123456789"),
        (R2Range(), 0, "0123456789"),
    ):
        found = await there(bucket.get("k", range=span), span)
        assert await found.text() == part, span
        assert (found.range, found.size) == (R2Range(offset, len(part)), 10)


@contract.case()
async def ranges_of_a_large_object_are_right_at_every_edge(bucket: R2Bucket) -> None:
    data = bytes(range(256)) * 2048
    await bucket.put("k", data)
    for offset, length in ((0, 1), (262_143, 2), (262_144, 1), (len(data) - 1, 1), (1, len(data) - 2), (100, 400_000)):
        found = await there(bucket.get("k", range=R2Range(offset, length)))
        assert await found.bytes() == data[offset : offset + length]


@contract.case()
async def a_range_that_is_not_there_is_refused(bucket: R2Bucket) -> None:
    await bucket.put("k", "0123456789")
    await bucket.put("empty", "")
    message = "get: The requested range is not satisfiable (10039)"
    for span in (R2Range(offset=10), R2Range(offset=11), R2Range(length=0), R2Range(suffix=0)):
        await refused(bucket.get("k", range=span), R2Error, message)
    await refused(bucket.get("empty", range=R2Range(offset=0)), R2Error, message)
    await refused(bucket.get("empty", range=R2Range(suffix=1)), R2Error, message)


@contract.case()
async def a_range_that_is_none_is_refused(bucket: R2Bucket) -> None:
    await bucket.put("k", "0123456789")
    fraction: Any = 1.5
    for span, kind, message in (
        (
            R2Range(offset=-1),
            R2ValueError,
            "Invalid range. Starting offset (-1) must be greater than or equal to 0.",
        ),
        (R2Range(length=-1), R2ValueError, "Invalid range. Length (-1) must be greater than or equal to 0."),
        (
            R2Range(length=fraction),
            R2ValueError,
            "Invalid range. Length (1.5) must be an integer, not floating point.",
        ),
        (R2Range(offset=1, suffix=1), R2TypeError, "Suffix is incompatible with offset."),
        (R2Range(length=1, suffix=1), R2TypeError, "Suffix is incompatible with length."),
    ):
        await refused(bucket.get("k", range=span), kind, message)


@contract.case()
async def options_of_another_form_are_refused(bucket: R2Bucket) -> None:
    span, told = cast("R2Range", (0, 3)), "range must be a dict, headers or an R2Range, not tuple"
    await refused(bucket.get("k", range=span), R2TypeError, told)
    kind, told = (
        cast("R2HTTPMetadata", "text/plain"),
        "http_metadata must be a dict, headers or an R2HTTPMetadata, not str",
    )
    await refused(bucket.put("k", "v", http_metadata=kind), R2TypeError, told)


@contract.case()
async def a_range_header_is_taken_as_http_says(bucket: R2Bucket) -> None:
    await bucket.put("k", "0123456789")
    whole = "0123456789"
    for header, part in (
        ("bytes=2-4", "234"),
        ("bytes=5-", "56789"),
        ("bytes=-3", "789"),
        ("bytes=8-50", "89"),
        ("BYTES = 2 - 4", "234"),
        # A range that cannot be met, is malformed or asks for several parts is ignored.
        ("bytes=10-", whole),
        ("bytes=4-2", whole),
        ("bytes=0-1,3-4", whole),
        ("bytes=-0", whole),
        ("bytes=", whole),
        ("lines=1-2", whole),
        ("bytes=a-b", whole),
        (f"bytes=0-{'9' * 5000}", whole),
    ):
        assert await text(bucket, "k", range=Headers({"Range": header})) == part, header
    assert await text(bucket, "k", range=Headers()) == whole
    await bucket.put("empty", "")
    for headers in (Headers(), Headers({"Range": "bytes=0-1"})):
        assert await text(bucket, "empty", range=headers) == ""


# ---------------------------------------------------------------------- lists


async def fill(bucket: R2Bucket, *names: str) -> None:
    """An object under each key."""
    for name in names:
        await bucket.put(name, name)


@contract.case()
async def a_list_is_in_the_order_of_utf_8(bucket: R2Bucket) -> None:
    await fill(bucket, "b", "a", "B", "\uff5e", "😀", "é", "aa")
    assert await keys(bucket) == ["B", "a", "aa", "b", "é", "\uff5e", "😀"]


@contract.case()
async def a_prefix_is_literal(bucket: R2Bucket) -> None:
    await fill(bucket, "a%b", "axb", "A%b", "a_b", "a\U0010ffffb")
    assert await keys(bucket, prefix="a%") == ["a%b"]
    assert await keys(bucket, prefix="a_") == ["a_b"]
    assert await keys(bucket, prefix="A") == ["A%b"]
    assert await keys(bucket, prefix="a\U0010ffff") == ["a\U0010ffffb"]
    assert await keys(bucket, prefix="nope") == []


@contract.case()
async def pages_follow_one_another(bucket: R2Bucket) -> None:
    await fill(bucket, "a", "b", "c", "d", "e")
    first = await bucket.list(limit=2)
    assert ([o.key for o in first.objects], first.truncated) == (["a", "b"], True)
    assert first.cursor is not None
    # Objects put or deleted meanwhile do not matter.
    await fill(bucket, "bb")
    await bucket.delete(["b", "e"])
    rest = await bucket.list(cursor=first.cursor)
    assert ([o.key for o in rest.objects], rest.truncated, rest.cursor) == (["bb", "c", "d"], False, None)


@contract.case()
async def a_page_that_is_just_full_is_the_last(bucket: R2Bucket) -> None:
    await fill(bucket, "a", "b")
    page = await bucket.list(limit=2)
    assert (page.truncated, page.cursor) == (False, None)


@contract.case()
async def start_after_and_cursor_the_later_one_counts(bucket: R2Bucket) -> None:
    await fill(bucket, "a", "b", "c", "d")
    assert await keys(bucket, start_after="b") == ["c", "d"]
    assert await keys(bucket, start_after="bb") == ["c", "d"]
    cursor = (await bucket.list(limit=2)).cursor
    assert await keys(bucket, start_after="a", cursor=cursor) == ["c", "d"]
    assert await keys(bucket, start_after="c", cursor=cursor) == ["d"]


@contract.case()
async def a_delimiter_gathers_prefixes_which_count(bucket: R2Bucket) -> None:
    await fill(bucket, "a", "d1/x", "d1/y", "d2/x", "d2/y/z", "z")
    page = await bucket.list(delimiter="/")
    assert ([o.key for o in page.objects], page.delimited_prefixes) == (["a", "z"], ["d1/", "d2/"])
    page = await bucket.list(delimiter="/", prefix="d2/")
    assert ([o.key for o in page.objects], page.delimited_prefixes) == (["d2/x"], ["d2/y/"])
    first = await bucket.list(delimiter="/", limit=2)
    assert ([o.key for o in first.objects], first.delimited_prefixes) == (["a"], ["d1/"])
    assert first.truncated
    second = await bucket.list(delimiter="/", limit=2, cursor=first.cursor)
    assert ([o.key for o in second.objects], second.delimited_prefixes) == (["z"], ["d2/"])
    assert not second.truncated
    page = await bucket.list(delimiter="/y")
    assert page.delimited_prefixes == ["d1/y", "d2/y"]
    assert (await bucket.list()).delimited_prefixes == []


@contract.case()
async def a_limit_is_1_to_1000(bucket: R2Bucket) -> None:
    message = "list: MaxKeys params must be positive integer <= 1000. (10022)"
    for limit in (0, -1, 1001):
        error = await refused(bucket.list(limit=limit), R2Error, message)
        assert error.code == 10022
    await bucket.list(limit=1)
    await bucket.list(limit=1000)


@contract.case()
async def metadata_comes_with_a_list_only_when_asked_for(bucket: R2Bucket) -> None:
    await bucket.put("k", "v", http_metadata={"content_type": "a/b"}, custom_metadata={"x": "y"})
    page = await bucket.list(include=["http_metadata"])
    assert page.objects[0].http_metadata == R2HTTPMetadata("a/b")
    page = await bucket.list(include=["customMetadata", "httpMetadata"])
    assert page.objects[0].custom_metadata == {"x": "y"}
    wrong: Any = ["nope"]
    await refused(bucket.list(include=wrong), R2ValueError, "Unsupported include value nope")


@contract.case(heavy=True)
async def more_than_1000_objects_are_listed_in_pages(bucket: R2Bucket) -> None:
    for number in range(1001):
        await bucket.put(f"k{number:04}", b"")
    page = await bucket.list()
    assert (len(page.objects), page.truncated) == (1000, True)
    rest = await bucket.list(cursor=page.cursor)
    assert ([o.key for o in rest.objects], rest.truncated) == (["k1000"], False)


# ---------------------------------------------------------------------- multipart uploads


@contract.case()
async def an_upload_in_parts_appears_when_it_is_complete(bucket: R2Bucket) -> None:
    await bucket.put("k", "old")
    upload = await bucket.create_multipart_upload(
        "k", http_metadata={"content_type": "a/b"}, custom_metadata={"x": "y"}
    )
    part = await upload.upload_part(1, "new")
    assert part.part_number == 1
    assert await text(bucket, "k") == "old"
    done = await upload.complete([part])
    digest = hashlib.md5(hashlib.md5(b"new", usedforsecurity=False).digest(), usedforsecurity=False).hexdigest()
    assert (done.etag, done.size) == (f"{digest}-1", 3)
    assert done.checksums.to_json() == {}
    assert await text(bucket, "k") == "new"
    head = await there(bucket.head("k"))
    assert head.http_metadata == R2HTTPMetadata("a/b")
    assert head.custom_metadata == {"x": "y"}
    assert await keys(bucket) == ["k"]


@contract.case(heavy=True)
async def parts_are_joined_in_the_order_of_their_numbers(bucket: R2Bucket) -> None:
    upload = await bucket.create_multipart_upload("k")
    second = await upload.upload_part(2, FixedLengthStream(pieces(b"B" * PART), PART))
    first = await upload.upload_part(1, b"A" * PART)
    third = await upload.upload_part(7, b"CC")
    await upload.upload_part(9, b"dropped")
    done = await upload.complete([first, second, third])
    assert done.size == 2 * PART + 2
    assert done.etag.endswith("-3")
    assert await text(bucket, "k", range=R2Range(PART - 2, 4)) == "AABB"
    assert await text(bucket, "k", range=R2Range(suffix=4)) == "BBCC"
    assert await text(bucket, "k", range=R2Range(0, 2)) == "AA"


@contract.case(heavy=True)
async def parts_have_a_size(bucket: R2Bucket) -> None:
    upload = await bucket.create_multipart_upload("k")
    small = await upload.upload_part(1, "small")
    tail = await upload.upload_part(2, "tail")
    message = "completeMultipartUpload: Your proposed upload is smaller than the minimum allowed object size. (10011)"
    await refused(upload.complete([small, tail]), R2Error, message)
    full = await upload.upload_part(3, b"A" * PART)
    larger = await upload.upload_part(4, b"B" * (PART + 1))
    message = "completeMultipartUpload: There was a problem with the multipart upload. (10048)"
    await refused(upload.complete([full, larger]), R2Error, message)
    assert await bucket.head("k") is None
    assert (await upload.complete([full])).size == PART


@contract.case()
async def a_part_uploaded_again_replaces_the_first(bucket: R2Bucket) -> None:
    upload = await bucket.create_multipart_upload("k")
    first = await upload.upload_part(1, "first")
    second = await upload.upload_part(1, "second")
    message = "completeMultipartUpload: One or more of the specified parts could not be found. (10025)"
    await refused(upload.complete([first]), R2Error, message)
    await refused(upload.complete([R2UploadedPart(2, "nope")]), R2Error, message)
    await upload.complete([{"part_number": second.part_number, "etag": second.etag}])
    assert await text(bucket, "k") == "second"


@contract.case()
async def an_upload_that_has_ended_takes_nothing_more(bucket: R2Bucket) -> None:
    gone = "The specified multipart upload does not exist. (10024)"
    upload = await bucket.create_multipart_upload("k")
    part = await upload.upload_part(1, "x")
    await upload.complete([part])
    await refused(upload.upload_part(2, "y"), R2Error, f"uploadPart: {gone}")
    await refused(upload.complete([part]), R2Error, f"completeMultipartUpload: {gone}")
    await upload.abort()
    assert await text(bucket, "k") == "x"
    upload = await bucket.create_multipart_upload("k")
    await upload.upload_part(1, "y")
    await upload.abort()
    await upload.abort()
    await refused(upload.upload_part(1, "z"), R2Error, f"uploadPart: {gone}")
    assert await text(bucket, "k") == "x"


@contract.case()
async def an_upload_is_resumed_by_its_id_and_checked_when_used(bucket: R2Bucket) -> None:
    upload = await bucket.create_multipart_upload("k")
    again = bucket.resume_multipart_upload("k", upload.upload_id)
    assert (again.key, again.upload_id) == ("k", upload.upload_id)
    part = await again.upload_part(1, "x")
    await upload.complete([part])
    assert await text(bucket, "k") == "x"
    gone = "uploadPart: The specified multipart upload does not exist. (10024)"
    await refused(bucket.resume_multipart_upload("k", "no-such-id").upload_part(1, "x"), R2Error, gone)
    await refused(bucket.resume_multipart_upload("other", upload.upload_id).upload_part(1, "x"), R2Error, gone)


@contract.case()
async def part_numbers_are_1_to_10000(bucket: R2Bucket) -> None:
    upload = await bucket.create_multipart_upload("k")
    for number in (0, -1, 10_001):
        message = f"Part number must be between 1 and 10000 (inclusive). Actual value was: {number}"
        await refused(upload.upload_part(number, "x"), R2TypeError, message)
        await refused(upload.complete([R2UploadedPart(number, "e")]), R2TypeError, message)
    assert (await upload.upload_part(10_000, "x")).part_number == 10_000
