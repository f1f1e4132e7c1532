"""A key-value namespace, every method of it, with the type of every result."""

from collections.abc import AsyncIterator
from typing import Any, assert_type

import attrs
from typing_extensions import TypedDict

from core.bindings.kv import KVKey, KVListResult, KVNamespace, KVValue


@attrs.frozen
class Session:
    user: int


class Counter(TypedDict):
    count: int


async def reads(kv: KVNamespace) -> None:
    assert_type(await kv.get("k"), str | None)
    assert_type(await kv.get("k", "text"), str | None)
    assert_type(await kv.get("k", type="json", cache_ttl=60), Any)
    assert_type(await kv.get("k", "bytes"), bytes | None)
    assert_type(await kv.get("k", "stream"), AsyncIterator[bytes] | None)
    assert_type(await kv.get(["a", "b"]), dict[str, str | None])
    assert_type(await kv.get(("a", "b"), "text"), dict[str, str | None])
    assert_type(await kv.get(["a"], "json"), dict[str, Any])


async def reads_as_types(kv: KVNamespace) -> None:
    assert_type(await kv.get_json("k", Session), Session | None)
    assert_type(await kv.get_json("k", list[Session]), list[Session] | None)
    assert_type(await kv.get_json("k", Counter, cache_ttl=30), Counter | None)


async def reads_with_metadata(kv: KVNamespace) -> None:
    found = await kv.get_with_metadata("k")
    assert_type(found, KVValue[str | None])
    assert_type(found.value, str | None)
    assert_type(found.metadata, Any)
    assert_type(found.cache_status, str | None)
    assert_type(await kv.get_with_metadata("k", "json"), KVValue[Any])
    assert_type(await kv.get_with_metadata("k", "bytes"), KVValue[bytes | None])
    assert_type(await kv.get_with_metadata("k", "stream"), KVValue[AsyncIterator[bytes] | None])
    assert_type(await kv.get_with_metadata(["k"]), dict[str, KVValue[str] | None])
    assert_type(await kv.get_with_metadata(["k"], "json"), dict[str, KVValue[Any] | None])


async def writes(kv: KVNamespace, stream: AsyncIterator[bytes]) -> None:
    await kv.put("k", "text", expiration=1_900_000_000)
    await kv.put("k", b"bytes", expiration_ttl=60)
    await kv.put("k", bytearray(b"bytes"), metadata={"any": ["json"]})
    await kv.put("k", memoryview(b"bytes"))
    await kv.put("k", stream)
    await kv.put_json("k", Session(1), expiration_ttl=3600, metadata=None)
    await kv.delete("k")


async def lists(kv: KVNamespace) -> None:
    page = await kv.list(prefix="a", limit=10, cursor=None)
    assert_type(page, KVListResult)
    assert_type(page.keys, list[KVKey])
    assert_type(page.list_complete, bool)
    assert_type(page.cursor, str | None)
    assert_type(page.keys[0].name, str)
    assert_type(page.keys[0].expiration, int | None)
    assert_type(page.keys[0].metadata, Any)
    await kv.list()
