"""The runtime's own key-value namespace, spoken to through its JavaScript object.

The platform checks keys, sizes and times itself; checked here are only values that JavaScript would quietly turn into
text. JSON is parsed on this side: one text crosses, and whole numbers stay exact.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any, Final

from core.backends.kv import (
    KVEngine,
    check_key,
    check_number,
    check_page,
    dump_metadata,
    keys_of,
    parse,
    parse_bulk,
    refuse_value,
)
from core.backends.workerd.conversion import (
    attribute,
    bridge,
    bytes_of,
    call_js,
    chunks_of,
    from_js,
    js_bytes,
    js_json,
    js_stream,
    none_of,
    options,
    translator,
)
from core.backends.workerd.engine import JsEngine
from core.bindings.kv import KVKey, KVListResult, KVPutValue, KVType, KVValue
from core.errors import KVError, KVSyntaxError, KVTypeError
from core.http.streams import well_formed

_error = translator(KVError, TypeError=KVTypeError, SyntaxError=KVSyntaxError)

_TYPES: Final = {
    "text": "text",
    "json": "text",
    "bytes": "arrayBuffer",
    "arrayBuffer": "arrayBuffer",
    "stream": "stream",
}


class WorkerdKVNamespace(JsEngine, KVEngine):
    async def _get(self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None) -> object:
        if not isinstance(key, str):
            texts = await self._bulk(self._js.get, key, type, cache_ttl)
            return {name: _read_of_bulk(value, type) for name, value in texts.items()}
        if type == "text" and cache_ttl is None:
            return none_of(await call_js(_error, self._js.get, key))
        value = await call_js(_error, self._js.get, key, type=_TYPES.get(type, type), **_cache(cache_ttl))
        return _read_as(value, type)

    async def _get_with_metadata(
        self, key: str | Sequence[str], type: KVType = "text", *, cache_ttl: int | None = None
    ) -> object:
        if not isinstance(key, str):
            found = await self._bulk(self._js.getWithMetadata, key, type, cache_ttl)
            return {
                name: None if entry is None else KVValue(_read_of_bulk(entry["value"], type), entry.get("metadata"))
                for name, entry in found.items()
            }
        one = await call_js(_error, self._js.getWithMetadata, key, type=_TYPES.get(type, type), **_cache(cache_ttl))
        return KVValue(_read_as(one.value, type), from_js(one.metadata), attribute(one, "cacheStatus"))

    async def _put(self, key: str, value: KVPutValue, *, metadata: Any = None, **expiring: float | None) -> None:
        check_key(key)
        _check_whole(key)
        failed: list[Exception] = []
        if isinstance(value, str):
            outgoing: Any = well_formed(value)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            outgoing = js_bytes(value)
        elif hasattr(value, "__aiter__"):
            outgoing = js_stream(_watched(value, failed))
        else:
            refuse_value(value)
        given = options(
            **{name: _number(name, at) for name, at in expiring.items()},
            metadata=None if metadata is None else js_json(dump_metadata(metadata)),
        )
        try:
            await call_js(_error, self._js.put, key, outgoing, **given)
        except KVError as error:
            # The cause is the source's own error, not that its reader then saw a broken stream.
            raise failed[0] if failed else error from None

    async def _delete(self, key: str) -> None:
        check_key(key)
        _check_whole(key)
        await call_js(_error, self._js.delete, key)

    async def _list(self, *, prefix: str | None = None, limit: int = 1000, cursor: str | None = None) -> KVListResult:
        check_page(prefix, cursor)
        _check_whole(prefix or "")
        given = options(prefix=prefix, limit=_number("limit", limit), cursor=cursor)
        page = from_js(await call_js(_error, self._js.list, **given))
        return KVListResult(
            [KVKey(key["name"], key.get("expiration"), key.get("metadata")) for key in page["keys"]],
            page["list_complete"],
            page.get("cursor"),
            page.get("cacheStatus"),
        )

    async def _bulk(self, method: object, keys: object, type: str, cache_ttl: int | None) -> dict[str, Any]:
        asked = keys_of(keys)
        for key in asked:
            _check_whole(key)
        given = {"type": "text" if type == "json" else type, **_cache(cache_ttl)}
        # A Map; its entries are in the order of the answer, which is not the order asked.
        entries: Mapping[str, object] = from_js(await call_js(_error, method, bridge().to_js(asked), **given))
        # The runtime loses `__proto__` from it, and keys that look like the index of an array.
        return {
            key: entries[key] if key in entries else _entry(await call_js(_error, method, key, **given))
            for key in asked
        }


def _entry(one: object) -> object:
    """The answer for one key as that for several keys has it."""
    if none_of(one) is None or isinstance(one, str):
        return none_of(one)
    found = from_js(one)
    return None if found["value"] is None else found


async def _watched(chunks: AsyncIterable[bytes], failed: list[Exception]) -> AsyncIterator[bytes]:
    """The chunks of a stream; `failed` gets what it raises."""
    try:
        async for chunk in chunks:
            yield chunk
    except Exception as error:
        failed.append(error)
        raise


def _read_as(value: Any, type: str) -> Any:
    value = none_of(value)
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


def _cache(cache_ttl: int | None) -> dict[str, object]:
    return options(cache_ttl=_number("cache_ttl", cache_ttl))


def _number(name: str, value: float | None) -> float | None:
    if value is not None:
        check_number(name, value)
    return value


def _check_whole(key: str) -> None:
    """Refuse half a surrogate pair: JavaScript would make U+FFFD of it, and one key of several."""
    if well_formed(key) != key:
        raise KVError("KV failed: 400 Could not URL-decode key name")
