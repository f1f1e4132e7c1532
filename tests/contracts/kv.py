"""The promises of every key-value namespace. The wording of the errors is the platform's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import attrs
from tests.contracts.contract import Contract, MovingClock, refused

from core.bindings.kv import KVKey, KVListResult, KVNamespace, KVValue
from core.errors import KVError, KVSyntaxError, KVTypeError
from core.validation.mistakes import StructureError

MEBIBYTE = 1024 * 1024


async def clean(kv: KVNamespace) -> None:
    """Delete every key."""
    cursor: str | None = None
    while True:
        page = await kv.list(cursor=cursor)
        for key in page.keys:
            await kv.delete(key.name)
        if page.list_complete:
            return
        cursor = page.cursor


contract: Contract[KVNamespace] = Contract("kv", clean)


@attrs.frozen
class Point:
    """A value that the JSON cases read."""

    x: int
    y: float


async def names(kv: KVNamespace, **options: Any) -> list[str]:
    """The keys of one page."""
    return [key.name for key in (await kv.list(**options)).keys]


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    """A stream."""
    for chunk in chunks:
        yield chunk


async def gathered(stream: AsyncIterator[bytes] | None) -> bytes:
    """Everything that a stream gives."""
    assert stream is not None
    return b"".join([bytes(chunk) async for chunk in stream])


# ---------------------------------------------------------------------- values


@contract.case()
async def half_a_surrogate_pair_is_no_key(kv: KVNamespace) -> None:
    for key in ("a\ud800", "a\udfff"):
        await refused(kv.put(key, "1"), KVError)
        await refused(kv.get(key), KVError)
        await refused(kv.get([key]), KVError)
        await refused(kv.delete(key), KVError)
        await refused(kv.list(prefix=key), KVError)
    assert (await kv.list()).keys == []


@contract.case()
async def half_a_surrogate_pair_in_a_value_is_replaced(kv: KVNamespace) -> None:
    await kv.put("k", "a\ud800é", metadata={"m": "\udfff"})
    assert await kv.get_with_metadata("k") == KVValue("a\ufffdé", {"m": "\ufffd"})


@contract.case()
async def a_value_reads_as_text_json_bytes_and_stream(kv: KVNamespace) -> None:
    await kv.put("k", '{"a":[1,2.5,null,true,"é"]}')
    raw = '{"a":[1,2.5,null,true,"é"]}'
    assert await kv.get("k") == raw
    assert await kv.get("k", "text") == raw
    assert await kv.get("k", type="json") == {"a": [1, 2.5, None, True, "é"]}
    assert await kv.get("k", "bytes") == raw.encode()
    assert await gathered(await kv.get("k", "stream")) == raw.encode()


@contract.case()
async def a_missing_key_is_none_for_every_type(kv: KVNamespace) -> None:
    assert await kv.get("nope") is None
    assert await kv.get("nope", "json") is None
    assert await kv.get("nope", "bytes") is None
    assert await kv.get("nope", "stream") is None
    assert await kv.get_json("nope", Point) is None
    assert await kv.get_with_metadata("nope") == KVValue(None, None)


@contract.case()
async def text_bytes_and_streams_are_stored(kv: KVNamespace) -> None:
    await kv.put("text", "héllo 😀")
    await kv.put("bytes", b"\x00\xff")
    await kv.put("bytearray", bytearray(b"ab"))
    await kv.put("memoryview", memoryview(b"abcd")[1:3])
    await kv.put("stream", pieces(b"one", b"", b"two"))
    assert await kv.get("text", "bytes") == "héllo 😀".encode()
    assert await kv.get("bytes", "bytes") == b"\x00\xff"
    assert await kv.get("bytearray") == "ab"
    assert await kv.get("memoryview") == "bc"
    assert await kv.get("stream") == "onetwo"


@contract.case()
async def an_empty_value_is_a_value(kv: KVNamespace) -> None:
    await kv.put("k", "")
    assert await kv.get("k") == ""
    assert await kv.get("k", "bytes") == b""
    assert await gathered(await kv.get("k", "stream")) == b""
    assert await names(kv) == ["k"]
    await refused(kv.get("k", "json"), KVSyntaxError)


@contract.case()
async def other_kinds_of_values_are_refused(kv: KVNamespace) -> None:
    for value in ({"a": 1}, [1], 5, 1.5, True, None):
        message = (
            f"KV put(): a value is str, bytes or an async iterable of bytes, not {type(value).__name__}. "
            "Write put(key, str(value)), or put_json(key, value) for JSON"
        )
        error = await refused(kv.put("k", cast("Any", value)), KVTypeError, message)
        assert isinstance(error, TypeError)
    assert await kv.get("k") is None


@contract.case()
async def what_a_stream_raises_is_raised_and_stores_nothing(kv: KVNamespace) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"abc"
        raise LookupError("in the stream")

    await kv.put("k", "old")
    await refused(kv.put("k", source()), LookupError, "in the stream")
    assert await kv.get("k") == "old"


@contract.case()
async def invalid_utf8_reads_with_replacement_characters(kv: KVNamespace) -> None:
    await kv.put("k", b"a\xff\xfeb\xe2\x82")
    assert await kv.get("k") == "a\ufffd\ufffdb\ufffd"
    assert await kv.get("k", "bytes") == b"a\xff\xfeb\xe2\x82"


@contract.case()
async def a_byte_order_mark_stays(kv: KVNamespace) -> None:
    await kv.put("k", b"\xef\xbb\xbf1")
    assert await kv.get("k") == "\ufeff1"
    await refused(kv.get("k", "json"), KVSyntaxError)


@contract.case()
async def json_is_strict(kv: KVNamespace) -> None:
    for text in ("{bad", "NaN", "Infinity", "[1,]", "1 2", "'a'"):
        await kv.put("k", text)
        error = await refused(kv.get("k", "json"), KVSyntaxError)
        assert isinstance(error, ValueError)
        assert isinstance(error, KVError)
    await kv.put("k", "null")
    assert await kv.get("k", "json") is None


@contract.case()
async def json_is_structured(kv: KVNamespace) -> None:
    await kv.put_json("k", Point(1, 2.5))
    assert await kv.get("k") == '{"x":1,"y":2.5}'
    assert await kv.get_json("k", Point) == Point(1, 2.5)
    await kv.put_json("many", [Point(1, 2), Point(3, 4)])
    assert await kv.get_json("many", list[Point]) == [Point(1, 2), Point(3, 4)]
    await kv.put_json("wrong", {"x": "1", "y": None})
    error = await refused(kv.get_json("wrong", Point), StructureError)
    assert sorted(issue["path"] for issue in error.issues) == ["x", "y"]
    await kv.put("null", "null")
    assert await kv.get_json("null", Point) is None
    await refused(kv.put_json("nan", float("nan")), KVTypeError)


@contract.case()
async def an_unknown_type_is_an_error_only_where_the_key_exists(kv: KVNamespace) -> None:
    message = 'Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".'
    unknown = cast("Any", kv)
    assert await unknown.get("k", "TEXT") is None
    await kv.put("k", "v")
    await refused(unknown.get("k", "TEXT"), KVTypeError, message)


@contract.case()
async def the_last_put_wins_and_replaces_everything(kv: KVNamespace) -> None:
    await kv.put("k", "1", metadata={"a": 1})
    await kv.put("k", "2")
    assert await kv.get_with_metadata("k") == KVValue("2", None)


@contract.case(heavy=True)
async def a_value_has_at_most_25_mebibytes(kv: KVNamespace) -> None:
    limit = 25 * MEBIBYTE
    await kv.put("k", b"a" * limit)
    stored = await kv.get("k", "bytes")
    assert stored is not None
    assert len(stored) == limit
    message = f"KV PUT failed: 413 Value length of {limit + 1} exceeds limit of {limit}."
    await refused(kv.put("k", b"b" * (limit + 1)), KVError, message)
    await refused(kv.put("new", pieces(b"c" * limit, b"c")), KVError, message)
    assert await kv.get("k", "bytes") == b"a" * limit
    assert await kv.get("new") is None


# ---------------------------------------------------------------------- keys


@contract.case()
async def any_text_of_512_bytes_is_a_key(kv: KVNamespace) -> None:
    keys = [
        "a/b",
        "%20",
        "?q#f",
        "...",
        "../a",
        " k ",
        "line\nbreak",
        "clé",
        "cle\u0301",
        "日本",
        "😀",
        "K",
        "k" * 512,
        "é" * 256,
    ]
    for key in keys:
        await kv.put(key, key)
    for key in keys:
        assert await kv.get(key) == key, key
    assert await kv.get("k") is None
    assert sorted(await names(kv)) == sorted(keys)


@contract.case()
async def empty_dotted_and_long_keys_are_refused(kv: KVNamespace) -> None:
    calls: tuple[Callable[[str], Awaitable[object]], ...] = (
        kv.get,
        kv.delete,
        kv.get_with_metadata,
        lambda key: kv.put(key, "v"),
    )
    for call in calls:
        await refused(call(""), KVTypeError, "Key name cannot be empty.")
        await refused(call("."), KVTypeError, '"." is not allowed as a key name.')
        await refused(call(".."), KVTypeError, '".." is not allowed as a key name.')
    limit = "exceeds key length limit of 512."
    await refused(kv.get("k" * 513), KVError, f"KV GET failed: 414 UTF-8 encoded length of 513 {limit}")
    await refused(kv.get_with_metadata("é" * 257), KVError, f"KV GET failed: 414 UTF-8 encoded length of 514 {limit}")
    await refused(kv.put("k" * 513, "v"), KVError, f"KV PUT failed: 414 UTF-8 encoded length of 513 {limit}")
    await refused(kv.delete("k" * 513), KVError, f"KV DELETE failed: 414 UTF-8 encoded length of 513 {limit}")


@contract.case()
async def the_key_is_checked_before_the_value(kv: KVNamespace) -> None:
    await refused(kv.put("", cast("Any", {"x": 1})), KVTypeError, "Key name cannot be empty.")


@contract.case()
async def delete_is_quiet(kv: KVNamespace) -> None:
    await kv.put("k", "v")
    await kv.delete("k")
    await kv.delete("k")
    await kv.delete("never")
    assert await kv.get("k") is None
    assert await names(kv) == []


@contract.case(paired=True)
async def two_namespaces_are_apart(kv: KVNamespace, other: KVNamespace) -> None:
    await kv.put("k", "one")
    await other.put("k", "two")
    await kv.delete("k")
    assert await kv.get("k") is None
    assert await other.get("k") == "two"


# ---------------------------------------------------------------------- several keys


@contract.case()
async def several_keys_give_a_dict_in_the_order_asked(kv: KVNamespace) -> None:
    await kv.put("a", "1")
    await kv.put("b", "", metadata={"m": 1})
    found = await kv.get(["b", "missing", "a", "b"])
    assert found == {"b": "", "missing": None, "a": "1"}
    assert list(found) == ["b", "missing", "a"]
    assert await kv.get(("a",), "json") == {"a": 1}
    for key in ("10", "2", "__proto__"):
        await kv.put(key, f"[{key!r}]".replace("'", '"'), metadata=key)
    assert await kv.get(["10", "missing", "2", "7", "__proto__"], "json") == {
        "10": ["10"],
        "missing": None,
        "2": ["2"],
        "7": None,
        "__proto__": ["__proto__"],
    }
    assert await kv.get_with_metadata(["10", "7"]) == {"10": KVValue('["10"]', "10"), "7": None}
    with_metadata = await kv.get_with_metadata(["b", "missing"])
    assert with_metadata == {"b": KVValue("", {"m": 1}), "missing": None}


@contract.case()
async def several_keys_have_errors_of_their_own(kv: KVNamespace) -> None:
    bad = "KV GET_BULK failed: 400 "
    await refused(kv.get([]), KVError, f"{bad}You must request a minimum of 1 key")
    await refused(kv.get(["k"] * 101), KVError, f"{bad}You can request a maximum of 100 keys")
    await refused(
        kv.get(["k"], cast("Any", "stream")), KVError, f'{bad}"stream" is not a valid type. Use "json" or "text"'
    )
    await refused(kv.get(["k", ""]), KVError, f"{bad}Key names must not be empty")
    await refused(kv.get(["."]), KVError, f'{bad}Illegal key name ".". Please use a different name.')
    await kv.put("text", "{bad")
    await refused(
        kv.get(["text"], "json"), KVError, f"{bad}At least one of the requested keys corresponds to a non-json value"
    )


@contract.case()
async def several_keys_as_json_keep_whole_numbers(kv: KVNamespace) -> None:
    await kv.put("id", '{"id":12345678901234567890}', metadata={"constructor": 1})
    assert await kv.get(["id", "missing"], "json") == {"id": {"id": 12345678901234567890}, "missing": None}
    value = KVValue({"id": 12345678901234567890}, {"constructor": 1})
    assert await kv.get_with_metadata(["id"], "json") == {"id": value}


@contract.case()
async def a_hundred_keys_are_read_at_once(kv: KVNamespace) -> None:
    await kv.put("k99", "v")
    found = await kv.get([f"k{index}" for index in range(100)])
    assert len(found) == 100
    assert found["k99"] == "v"


# ---------------------------------------------------------------------- metadata


@contract.case()
async def metadata_is_any_json(kv: KVNamespace) -> None:
    for metadata in ({"a": [1, None]}, "text", 3.5, 2**53 - 1, [1], True, False, 0, "", {"n": "日本 😀\n"}):
        await kv.put("k", "v", metadata=metadata)
        assert await kv.get_with_metadata("k") == KVValue("v", metadata), metadata
        assert await kv.list() == KVListResult([KVKey("k", None, metadata)], list_complete=True)
    await kv.put("k", "v", metadata=None)
    assert (await kv.get_with_metadata("k")).metadata is None


@contract.case()
async def metadata_has_no_whole_number_that_the_platform_cannot_hold(kv: KVNamespace) -> None:
    carried = {"most": 2**53 - 1, "least": -(2**53 - 1), "text": str(2**60), "float": 1e300}
    await kv.put("k", "v", metadata=carried)
    assert await kv.get_with_metadata("k") == KVValue("v", carried)
    for number in (2**53, -(2**53), 2**60, 10**30):
        error = await refused(kv.put("k", "new", metadata={"a": [number]}), KVTypeError)
        assert f"{number} is beyond 2**53 - 1" in str(error)
    assert await kv.get("k") == "v"
    # A value is text, which carries every number.
    await kv.put_json("k", {"a": 2**60})
    assert await kv.get("k", "json") == {"a": 2**60}


@contract.case()
async def metadata_has_at_most_1024_bytes_of_json(kv: KVNamespace) -> None:
    await kv.put("k", "v", metadata="m" * 1022)
    message = "KV PUT failed: 413 Metadata length of 1025 exceeds limit of 1024."
    await refused(kv.put("k", "new", metadata="m" * 1023), KVError, message)
    assert await kv.get("k") == "v"


# ---------------------------------------------------------------------- time


@contract.case()
async def ttl_is_checked(kv: KVNamespace) -> None:
    await kv.put("k", "old")
    least = "Expiration TTL must be at least 60."
    await refused(
        kv.put("k", "v", expiration_ttl=59), KVError, f"KV PUT failed: 400 Invalid expiration_ttl of 59. {least}"
    )
    await refused(
        kv.put("k", "v", expiration_ttl=59.9), KVError, f"KV PUT failed: 400 Invalid expiration_ttl of 59. {least}"
    )
    for ttl in (0, -1):
        message = f"KV PUT failed: 400 Invalid expiration_ttl of {ttl}. Please specify integer greater than 0."
        await refused(kv.put("k", "v", expiration_ttl=ttl), KVError, message)
    message = "Value out of range. Must be between -2147483648 and 2147483647 (inclusive)."
    await refused(kv.put("k", "v", expiration_ttl=2**31), KVTypeError, message)
    await refused(kv.put("k", "v", expiration=1_800_000_000_000), KVTypeError, message)
    message = (
        "KV PUT failed: 400 Invalid expiration of 1. Please specify integer greater than the current number of seconds "
        "since the UNIX epoch."
    )
    await refused(kv.put("k", "v", expiration=1), KVError, message)
    assert await kv.get("k") == "old"


@contract.case(timed=True)
async def a_key_is_gone_when_its_time_has_come(kv: KVNamespace, clock: MovingClock) -> None:
    await kv.put("k", "v", expiration_ttl=60, metadata=1)
    await kv.put("stays", "v")
    await clock.advance(58)
    assert await kv.get("k") == "v"
    await clock.advance(2)
    assert await kv.get("k") is None
    assert await kv.get_with_metadata("k") == KVValue(None, None)
    assert await kv.get(["k", "stays"]) == {"k": None, "stays": "v"}
    assert await names(kv) == ["stays"]
    await kv.put("k", "again")
    await clock.advance(3600)
    assert await kv.get("k") == "again"


@contract.case(timed=True)
async def expiration_is_a_second_since_1970(kv: KVNamespace, clock: MovingClock) -> None:
    now = int(clock.time())
    too_soon = "Expiration times must be at least 60 seconds in the future."
    await refused(
        kv.put("k", "v", expiration=now + 59),
        KVError,
        f"KV PUT failed: 400 Invalid expiration of {now + 59}. {too_soon}",
    )
    await kv.put("k", "v", expiration=now + 60)
    assert await kv.list() == KVListResult([KVKey("k", now + 60)], list_complete=True)
    await kv.put("k", "v", expiration=now - 1000, expiration_ttl=100)
    assert (await kv.list()).keys == [KVKey("k", now + 100)]
    await clock.advance(100)
    assert await names(kv) == []


@contract.case()
async def cache_ttl_is_at_least_30(kv: KVNamespace) -> None:
    message = "400 Invalid cache_ttl of 29. Cache TTL must be at least 30."
    await kv.put("k", "v")
    assert await kv.get("k", cache_ttl=30) == "v"
    await refused(kv.get("missing", cache_ttl=29), KVError, f"KV GET failed: {message}")
    await refused(kv.get_with_metadata("k", cache_ttl=29), KVError, f"KV GET failed: {message}")
    await refused(kv.get(["k"], cache_ttl=29), KVError, f"KV GET_BULK failed: {message}")


# ---------------------------------------------------------------------- lists


@contract.case()
async def keys_are_listed_in_the_order_of_their_bytes(kv: KVNamespace) -> None:
    ordered = ["10", "9", "A", "a", "a-", "a/", "a0", "aa", "~", "é", "\ue000", "～", "😀"]
    for key in reversed(ordered):
        await kv.put(key, "v")
    assert await names(kv) == ordered


@contract.case()
async def a_prefix_is_literal(kv: KVNamespace) -> None:
    for key in ("a", "a%", "a%b", "a_", "ab", "b"):
        await kv.put(key, "v")
    assert await names(kv, prefix="a%") == ["a%", "a%b"]
    assert await names(kv, prefix="") == ["a", "a%", "a%b", "a_", "ab", "b"]
    assert await names(kv, prefix="c") == []
    long = "KV GET failed: 414 UTF-8 encoded length of 513 exceeds key length limit of 512."
    await refused(kv.list(prefix="p" * 513), KVError, long)


@contract.case()
async def options_of_another_kind_are_refused(kv: KVNamespace) -> None:
    await refused(kv.list(prefix=cast("str", 5)), KVTypeError)
    await refused(kv.list(limit=cast("int", "2")), KVTypeError, "limit must be a number, not '2'")


@contract.case()
async def pages_follow_each_other(kv: KVNamespace) -> None:
    for key in "abcdef":
        await kv.put(key, "v")
    first = await kv.list(limit=2)
    assert [key.name for key in first.keys] == ["a", "b"]
    assert not first.list_complete
    assert first.cursor
    await kv.delete("b")
    await kv.delete("c")
    await kv.put("bb", "late")
    second = await kv.list(limit=2, cursor=first.cursor)
    assert [key.name for key in second.keys] == ["bb", "d"]
    rest = await kv.list(cursor=second.cursor)
    assert rest == KVListResult([KVKey("e"), KVKey("f")], list_complete=True)


@contract.case()
async def an_invented_cursor_is_no_error(kv: KVNamespace) -> None:
    await kv.put("a", "v")
    for cursor in ("not base64!", "bad", "====", "a"):
        assert (await kv.list(cursor=cursor)).list_complete


@contract.case()
async def a_page_has_at_most_1000_keys(kv: KVNamespace) -> None:
    for index in range(1001):
        await kv.put(f"k{index:04}", "v")
    page = await kv.list()
    assert len(page.keys) == 1000
    assert not page.list_complete
    assert await names(kv, cursor=page.cursor) == ["k1000"]
    for limit in (0, -1):
        assert len((await kv.list(limit=limit)).keys) == 1000
    whole = await kv.list(limit=1000, prefix="k0")
    assert len(whole.keys) == 1000
    assert whole.list_complete
    assert whole.cursor is None
    message = "KV GET failed: 400 Invalid key_count_limit of 1001. Please specify an integer less than 1000."
    await refused(kv.list(limit=1001), KVError, message)
