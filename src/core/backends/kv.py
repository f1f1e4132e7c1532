"""The calls of a key-value namespace that are made of its others in every engine: values as JSON, and as classes."""

from __future__ import annotations

from typing import Any

from core.bindings.calls import Hookable
from core.bindings.kv import KVNamespace
from core.errors import KVTypeError


class KVEngine(Hookable, KVNamespace):
    """A namespace of which `_get`, `_get_with_metadata`, `_put`, `_delete` and `_list` are the engine's own."""

    _get: Any
    _put: Any

    async def _get_json(self, key: str, type_: Any, /, *, cache_ttl: int | None = None) -> Any:
        value = await self._get(key, "json", cache_ttl=cache_ttl)
        if value is None:
            return None
        from core.validation.structure import structure

        return structure(value, type_)

    async def _put_json(self, key: str, value: Any, **options: Any) -> None:
        from core.http.json import dumps

        try:
            text = dumps(value)
        except (TypeError, ValueError) as error:
            raise KVTypeError(f"KV put_json() cannot write this value as JSON: {error}") from error
        await self._put(key, text, **options)
