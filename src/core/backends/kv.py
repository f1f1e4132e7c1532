"""What every engine of a key-value namespace has in common: the calls that are made of its others, for values as JSON
and as classes, and the words for keys and values that are none.
"""

from __future__ import annotations

from typing import Any, NoReturn

from core.bindings.calls import Hookable
from core.bindings.kv import KVNamespace
from core.errors import KVSyntaxError, KVTypeError
from core.http.json import loads


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


def parse(text: str) -> Any:
    """A value as JSON. Raises KVSyntaxError."""
    try:
        return loads(text)
    except ValueError as error:
        raise KVSyntaxError(f"The value is not JSON: {error}") from error


def refuse_key(key: object) -> NoReturn:
    """Refuse a key that is not a string."""
    raise KVTypeError(f"A key must be a str, not {type(key).__name__}. Write str(key) if that is what you mean")
