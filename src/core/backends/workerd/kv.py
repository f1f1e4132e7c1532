"""The runtime's own key-value namespace, spoken to through its JavaScript object.

The platform checks keys, sizes and times itself; checked here are only values that JavaScript would quietly turn into
text. JSON is parsed on this side: one text crosses, and whole numbers stay exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.backends.kv import (
    KVEngine,
    check_number,
    check_page,
    dump_metadata,
    encode_key,
    key_of,
    keys_of,
    parse,
    parse_bulk,
    refuse_value,
)
from core.backends.workerd.conversion import attribute, bytes_of, chunks_of, from_js, js_json, js_stream
from core.backends.workerd.engine import JsEngine
from core.bindings.kv import KVKey, KVListResult, KVPutValue, KVType, KVValue
from core.errors import KVError
from core.http.streams import well_formed

_TYPES: Final = {"json": "text", "bytes": "arrayBuffer"}
"""The platform's name of a type, where it has another. JSON is read on this side."""


class WorkerdKVNamespace(JsEngine, KVEngine):
    _errors = KVError

    async def _get(self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None) -> object:
        if not isinstance(key, str):
            texts = await self._bulk("get", key, type, cache_ttl)
            return {name: _read_of_bulk(value, type) for name, value in texts.items()}
        if type == "text" and cache_ttl is None:
            return await self._call("get", key)
        given = {"type": _TYPES.get(type, type), "cache_ttl": check_number("cache_ttl", cache_ttl)}
        return _read_as(await self._call("get", key, **given), type)

    async def _get_with_metadata(
        self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None
    ) -> object:
        if not isinstance(key, str):
            found = await self._bulk("getWithMetadata", key, type, cache_ttl)
            return {
                name: None if entry is None else KVValue(_read_of_bulk(entry["value"], type), entry.get("metadata"))
                for name, entry in found.items()
            }
        given = {"type": _TYPES.get(type, type), "cache_ttl": check_number("cache_ttl", cache_ttl)}
        one = await self._call("getWithMetadata", key, **given)
        return KVValue(_read_as(attribute(one, "value"), type), from_js(one.metadata), attribute(one, "cacheStatus"))

    async def _put(self, key: str, value: KVPutValue, *, metadata: Any = None, **expiring: float | None) -> None:
        key_of(key, "PUT")
        failed: list[Exception] = []
        if isinstance(value, str):
            outgoing: Any = well_formed(value)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            outgoing = value
        elif hasattr(value, "__aiter__"):
            outgoing = js_stream(value, failed=failed)
        else:
            refuse_value(value)
        given: dict[str, object] = {name: check_number(name, at) for name, at in expiring.items()}
        if metadata is not None:
            given["metadata"] = js_json(dump_metadata(metadata))
        try:
            await self._call("put", key, outgoing, **given)
        except KVError as error:
            # The cause is the source's own error, not that its reader then saw a broken stream.
            raise failed[0] if failed else error from None

    async def _delete(self, key: str) -> None:
        key_of(key, "DELETE")
        await self._call("delete", key)

    async def _list(self, *, prefix: str | None = None, limit: int = 1000, cursor: str | None = None) -> KVListResult:
        check_page(prefix, cursor)
        encode_key(prefix or "", "GET")
        page = from_js(await self._call("list", prefix=prefix, limit=check_number("limit", limit), cursor=cursor))
        return KVListResult(
            [KVKey(key["name"], key.get("expiration"), key.get("metadata")) for key in page["keys"]],
            page["list_complete"],
            page.get("cursor"),
            page.get("cacheStatus"),
        )

    async def _bulk(self, method: str, keys: object, type: str, cache_ttl: int | None) -> dict[str, Any]:
        asked = keys_of(keys)
        for key in asked:
            encode_key(key, "GET_BULK")
        given = {"type": "text" if type == "json" else type, "cache_ttl": check_number("cache_ttl", cache_ttl)}
        # A Map; its items are in the order of the answer, which is not the order asked.
        found: Mapping[str, object] = from_js(await self._call(method, list(asked), **given))
        # The runtime loses `__proto__` from it, and keys that look like the index of an array.
        return {key: found[key] if key in found else _entry(await self._call(method, key, **given)) for key in asked}


def _entry(one: object) -> object:
    """The answer for one key as that for several keys has it."""
    if one is None or isinstance(one, str):
        return one
    found = from_js(one)
    return None if found["value"] is None else found


def _read_as(value: Any, type: str) -> Any:
    if value is None:
        return None
    match type:
        case "json":
            return parse(value)
        case "bytes" | "arrayBuffer":
            return bytes_of(value)
        case "stream":
            return chunks_of(value)
        case _:
            return value


def _read_of_bulk(value: str | None, type: str) -> object:
    return parse_bulk(value) if type == "json" and value is not None else value
