"""What every engine of a key-value namespace has in common: the calls that are made of its others, for values as JSON
and as classes, and the arguments that none of them takes, with the words for each.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, TypeAlias

from core.bindings import as_type
from core.bindings.calls import Hookable
from core.bindings.kv import KVNamespace
from core.bindings.numbers import refuse_large_numbers
from core.errors import KVError, KVSyntaxError, KVTypeError
from core.http.json import check_nesting, dumps, loads
from core.http.streams import well_formed

Verb: TypeAlias = Literal["GET", "PUT", "DELETE", "GET_BULK"]


class KVEngine(Hookable, KVNamespace):
    """A namespace of which `_get`, `_get_with_metadata`, `_put`, `_delete` and `_list` are the engine's own."""

    _get: Any
    _put: Any

    async def _get_json(self, key: str, type_: Any, /, *, cache_ttl: int | None = None) -> object:
        value = await self._get(key, "json", cache_ttl=cache_ttl)
        return None if value is None else as_type(value, type_)

    async def _put_json(self, key: str, value: object, **options: object) -> None:
        try:
            text = dumps(value)
        except (TypeError, ValueError) as error:
            raise KVTypeError(f"KV put_json() cannot write this value as JSON: {error}") from error
        await self._put(key, text, **options)


def parse(text: str) -> object:
    """A value as JSON. Raises KVSyntaxError."""
    try:
        return loads(text)
    except ValueError as error:
        raise KVSyntaxError(f"The value is not JSON: {error}") from error


def parse_bulk(text: str) -> object:
    """A value of a bulk read as JSON. Raises KVError, which does not say whose."""
    try:
        return loads(text)
    except ValueError as error:
        message = "At least one of the requested keys corresponds to a non-json value"
        raise KVError(f"KV GET_BULK failed: 400 {message}") from error


def refuse(verb: Verb, status: int, message: str) -> NoReturn:
    raise KVError(f"KV {verb} failed: {status} {message}")


def refuse_key(key: object) -> NoReturn:
    raise KVTypeError(f"A key must be a str, not {type(key).__name__}. Write str(key) if that is what you mean")


def key_of(key: object, verb: Verb) -> bytes:
    """A key in bytes. Raises KVTypeError for one that the platform does not take: it looks at it before all else."""
    if not isinstance(key, str):
        refuse_key(key)
    if key == "":
        raise KVTypeError("Key name cannot be empty.")
    if len(key) < 3 and key in (".", ".."):
        raise KVTypeError(f'"{key}" is not allowed as a key name.')
    return encode_key(key, verb)


def encode_key(key: str, verb: Verb) -> bytes:
    """A key as UTF-8. Half a surrogate pair has none: U+FFFD for it would make one key of several."""
    try:
        return key.encode()
    except UnicodeEncodeError:
        refuse(verb, 400, "Could not URL-decode key name")


def keys_of(keys: object) -> Sequence[str]:
    """The keys of a bulk read. Raises KVTypeError where they are not a sequence of str."""
    given: Any = keys  # not narrowed by what follows
    if not isinstance(keys, Sequence) or isinstance(keys, (bytes, bytearray, memoryview)):
        refuse_key(given)
    for key in given:
        if not isinstance(key, str):
            refuse_key(key)
    several: Sequence[str] = given
    return several


def refuse_value(value: object) -> NoReturn:
    raise KVTypeError(
        f"KV put(): a value is str, bytes or an async iterable of bytes, not {type(value).__name__}. "
        "Write put(key, str(value)), or put_json(key, value) for JSON"
    )


def check_number(name: str, value: float | None) -> float | None:
    if value is None or isinstance(value, (int, float)):
        return value
    raise KVTypeError(f"{name} must be a number, not {value!r}")


def check_page(prefix: object, cursor: object) -> None:
    """Refuse a prefix that is not a string, and a cursor that no page had."""
    if not isinstance(prefix, str | None):
        raise KVTypeError(f"A prefix must be a str, not {type(prefix).__name__}")
    if not isinstance(cursor, str | None):
        raise KVTypeError(f"A cursor must be a str, not {type(cursor).__name__}. Pass the last page's cursor")


def dump_metadata(metadata: object) -> str:
    """Metadata as JSON. Raises KVTypeError for a value without a JSON form."""
    try:
        check_nesting(metadata)
        text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        refuse_large_numbers(text)
        return well_formed(text)
    except (TypeError, ValueError) as error:
        raise KVTypeError(f"Metadata must be JSON: {error}") from error
