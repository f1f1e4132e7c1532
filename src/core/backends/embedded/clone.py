"""Values that JSON has no type for, as bytes and back, as the platform's structured clone makes them for its storage.

Decided here: which Python values can be stored in a Durable Object or sent as `v8`, and the values that come back for
them. None, bool, int, float (NaN and infinities included), str, bytes, datetime, list, dict, set. Tuples come back as
lists and attrs objects as dicts: stored values have no class. The text is JSON, with an object {"$": kind, "v": …} for
values that JSON lacks; nothing that is read back can run code, as pickle's bytes could.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from core.http.json import MAX_DEPTH
from core.validation.unset import UNSET


class CloneError(ValueError):
    """A value that cannot be copied, with the way to it and how to fix it."""


def dump(value: object) -> bytes:
    """`value` as bytes. Raises CloneError for values that cannot be copied: functions, open files, classes, cycles, and
    what is nested deeper than `core.http.json.MAX_DEPTH`, as JSON may be.
    """
    # Bytes and strings stay as they are, and as large.
    if type(value) is bytes:
        return b"B" + value
    if type(value) is str:
        return b"S" + value.encode("utf-8", "surrogatepass")
    text = json.dumps(_tag(value, "the value", []), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return b"J" + text.encode("utf-8", "surrogatepass")


def load(data: bytes) -> object:
    """The value that `dump` made bytes of."""
    match data[:1]:
        case b"B":
            return data[1:]
        case b"S":
            return data[1:].decode("utf-8", "surrogatepass")
        case b"J":
            return _untag(json.loads(data[1:].decode("utf-8", "surrogatepass")))
        case kind:
            raise CloneError(f"a stored value begins with {kind!r}: a newer version of this package wrote it")


_DEEP: Final = f"is nested too deeply, {MAX_DEPTH} levels at most: keep it in parts"


def _refuse(path: str, problem: str) -> NoReturn:
    if len(path) > 200:
        path = f"{path[:100]}…{path[-100:]}"
    raise CloneError(
        f"{path} {problem}. Values are None, bool, int, float, str, bytes, datetime, and lists, dicts and sets of them"
    )


def _tag(value: Any, path: str, above: list[int]) -> object:
    given = value  # not narrowed by what follows
    if value is UNSET:
        _refuse(path, "is UNSET, which is left out of a class that has it as a field")
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$": "float", "v": repr(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$": "bytes", "v": b64encode(given).decode()}
    if isinstance(value, datetime):
        return {"$": "date", "v": _date(value, path).isoformat()}
    if id(value) in above:
        _refuse(path, "is inside itself")
    if len(above) >= MAX_DEPTH:
        _refuse(path, _DEEP)
    above.append(id(value))
    tagged = _tag_container(value, path, above)
    above.pop()
    return tagged


def _tag_container(value: Any, path: str, above: list[int]) -> object:
    whole = value  # not narrowed by what follows
    if isinstance(value, (list, tuple)):
        return [_tag(item, f"{path}[{place}]", above) for place, item in enumerate(whole)]
    if isinstance(value, Mapping):
        mapping: Mapping[object, object] = whole
        pairs = [(_plain(key, "a key", path), _tag(item, f"{path}[{key!r}]", above)) for key, item in mapping.items()]
        if all(isinstance(key, str) for key, _ in pairs) and "$" not in mapping:
            return dict(pairs)
        return {"$": "map", "v": [[_tag(key, path, above), item] for key, item in pairs]}
    if isinstance(value, AbstractSet):
        members: AbstractSet[object] = whole
        return {"$": "set", "v": [_tag(_plain(item, "an item", path), path, above) for item in members]}
    names = _fields_of(value)
    if names is not None:
        fields = {name: getattr(value, name) for name in names}
        return _tag_container({name: part for name, part in fields.items() if part is not UNSET}, path, above)
    _refuse(path, f"is of type {type(value).__name__}, which cannot be stored")


def _date(value: datetime, path: str) -> datetime:
    """A datetime as JavaScript's Date has it: in UTC, with its milliseconds."""
    if value.tzinfo is None:
        _refuse(path, "is a datetime without a time zone: write datetime(..., tzinfo=timezone.utc)")
    return value.astimezone(UTC).replace(microsecond=value.microsecond // 1000 * 1000)


def _plain(value: object, part: str, path: str) -> object:
    """A key of a dict or an item of a set: a value that JavaScript's Map and Set find again."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return _bare(value)
    raise CloneError(f"{part} of {path} is of type {type(value).__name__}. Use None, bool, int, float or str there")


def _bare(value: Any) -> object:
    """A text or a number without its class, a member of a StrEnum or IntEnum for one: JavaScript has no other."""
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case _:
            return bytes(value)


def _fields_of(value: object) -> list[str] | None:
    """The names of an attrs object's fields."""
    fields: Any = getattr(type(value), "__attrs_attrs__", None)
    return None if fields is None else [field.name for field in fields]


def _untag(value: Any) -> object:
    whole = value  # not narrowed by what follows
    if isinstance(value, list):
        return [_untag(item) for item in whole]
    if not isinstance(value, dict):
        return value
    kind, inner = whole.get("$"), whole.get("v")
    match kind:
        case None:
            return {key: _untag(item) for key, item in whole.items()}
        case "float":
            return float(inner)
        case "bytes":
            return b64decode(inner)
        case "date":
            return datetime.fromisoformat(inner)
        case "set":
            return {_untag(item) for item in inner}
        case "map":
            return {_untag(key): _untag(item) for key, item in inner}
        case _:
            raise CloneError(
                f"a stored value is of the unknown kind {kind!r}: a newer version of this package wrote it"
            )


def copy_value(value: Any, path: str = "the value", depth: int = 0) -> object:
    """A copy for another object in the same process: as stored and read, but tuples and attrs objects keep their class.
    Texts and numbers do not: a member of an enum is what workerd makes of it.

    A value between two Durable Objects shares nothing, as if there were machines between them, and yet has the types
    that their methods are annotated with. Raises CloneError for a value that cannot be copied.
    """
    whole = value  # not narrowed by what follows
    if isinstance(value, datetime):
        return _date(value, path)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return _bare(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(whole)
    depth += 1
    if depth > MAX_DEPTH:
        _refuse(path, _DEEP)
    if isinstance(value, (list, tuple)):
        items = [copy_value(item, f"{path}[{place}]", depth) for place, item in enumerate(whole)]
        if isinstance(value, list):
            return items
        make = whole.__class__
        return make(*items) if hasattr(make, "_fields") else tuple(items)
    if isinstance(value, Mapping):
        mapping: Mapping[object, object] = whole
        return {
            _plain(key, "a key", path): copy_value(item, f"{path}[{key!r}]", depth) for key, item in mapping.items()
        }
    if isinstance(value, (set, frozenset)):
        members: AbstractSet[object] = whole
        copied = {_plain(item, "an item", path) for item in members}
        return copied if isinstance(value, set) else frozenset(copied)
    return _copy_object(value, path, depth)


def _copy_object(value: object, path: str, depth: int) -> object:
    import copy

    names = _fields_of(value)
    if names is None:
        _refuse(path, f"is of type {type(value).__name__}, which cannot go to another object")
    twin = copy.copy(value)
    for name in names:
        object.__setattr__(twin, name, copy_value(getattr(value, name), f"{path}.{name}", depth))
    return twin
