"""Values that JSON has no type for, as bytes and back, as the platform's structured clone makes them for its storage.

Decided here: which Python values can be stored in a Durable Object or sent as `v8`, and the values that come back for
them. None, bool, int, float (NaN and infinities included), str, bytes, datetime, list, dict, set. Tuples come back as
lists and attrs objects as dicts: stored values have no class. The text is JSON, with an object {"$": kind, "v": …} for
values that JSON lacks, and bytes as they are behind it; nothing that is read back can run code, as pickle's could.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from typing import Any, NoReturn

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
    behind: list[bytes] = []
    plain = _tagged(_copied(value, "the value", (), classes=False), behind)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    raw = text.encode("utf-8", "surrogatepass")
    return b"".join([b"P", len(raw).to_bytes(4, "big"), raw, *behind]) if behind else b"J" + raw


def load(data: bytes) -> object:
    """The value that `dump` made bytes of."""
    match data[:1]:
        case b"B":
            return data[1:]
        case b"S":
            return data[1:].decode("utf-8", "surrogatepass")
        case b"J":
            return json.loads(data[1:].decode("utf-8", "surrogatepass"), object_hook=_untag)
        case b"P":
            end = 5 + int.from_bytes(data[1:5], "big")
            untag = partial(_untag, behind=BytesIO(data[end:]))
            return json.loads(data[5:end].decode("utf-8", "surrogatepass"), object_hook=untag)
        case kind:
            raise CloneError(f"a stored value begins with {kind!r}: a newer version of this package wrote it")


def _refuse(path: str, problem: str) -> NoReturn:
    if len(path) > 200:
        path = f"{path[:100]}…{path[-100:]}"
    raise CloneError(
        f"{path} {problem}. Values are None, bool, int, float, str, bytes, datetime, and lists, dicts and sets of them"
    )


def _tagged(value: Any, behind: list[bytes]) -> object:
    """A copy as JSON has it, with its bytes `behind` it."""
    whole = value  # not narrowed by what follows
    tagged = partial(_tagged, behind=behind)
    match value:
        case float() if not math.isfinite(value):
            return {"$": "float", "v": repr(value)}
        case bytes():
            behind.append(value)
            return {"$": "bytes", "v": len(value)}
        case datetime():
            return {"$": "date", "v": value.isoformat()}
        case list():
            return [*map(tagged, whole)]
        case set():
            return {"$": "set", "v": [*map(tagged, whole)]}
        case dict():
            if all(isinstance(key, str) for key in whole) and "$" not in value:
                return {key: tagged(item) for key, item in whole.items()}
            return {"$": "map", "v": [[tagged(key), tagged(item)] for key, item in whole.items()]}
        case _:
            return value


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


def _untag(value: dict[str, Any], behind: BytesIO | None = None) -> object:
    """What an object of JSON stands for, in which the others are values already; bytes are the next ones `behind`."""
    inner: Any = value.get("v")
    match value.get("$"):
        case None:
            return value
        case "float":
            return float(inner)
        case "bytes":
            return b64decode(inner) if behind is None else behind.read(inner)
        case "date":
            return datetime.fromisoformat(inner)
        case "set":
            return set(inner)
        case "map":
            return dict(inner)
        case kind:
            raise CloneError(
                f"a stored value is of the unknown kind {kind!r}: a newer version of this package wrote it"
            )


def copy_value(value: object, path: str = "the value") -> object:
    """A copy for another object in the same process: as stored and read, but tuples and attrs objects keep their class.
    Texts and numbers do not: a member of an enum is what workerd makes of it.

    A value between two Durable Objects shares nothing, as if there were machines between them, and yet has the types
    that their methods are annotated with. Raises CloneError for a value that cannot be copied.
    """
    return _copied(value, path, (), classes=True)


def _copied(value: Any, path: str, above: tuple[int, ...], *, classes: bool) -> Any:
    """A copy of plain values, of lists, dicts and sets; with `classes`, tuples and attrs objects stay what they are."""
    whole = value  # not narrowed by what follows
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return _bare(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(whole)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            _refuse(path, "is a datetime without a time zone: write datetime(..., tzinfo=timezone.utc)")
        # As JavaScript's Date has it: in UTC, with its milliseconds.
        return value.astimezone(UTC).replace(microsecond=value.microsecond // 1000 * 1000)
    if value is UNSET:
        _refuse(path, "is UNSET, which is left out of a class that has it as a field")
    if id(value) in above:
        _refuse(path, "is inside itself")
    if len(above) >= MAX_DEPTH:
        _refuse(path, f"is nested too deeply, {MAX_DEPTH} levels at most: keep it in parts")
    copied = partial(_copied, above=(*above, id(value)), classes=classes)
    if isinstance(value, (list, tuple)):
        items = [copied(item, f"{path}[{place}]") for place, item in enumerate(whole)]
        if isinstance(value, list) or not classes:
            return items
        make = whole.__class__
        return make(*items) if hasattr(make, "_fields") else tuple(items)
    if isinstance(value, Mapping):
        return {_plain(key, "a key", path): copied(item, f"{path}[{key!r}]") for key, item in whole.items()}
    if isinstance(value, AbstractSet):
        members = {_plain(item, "an item", path) for item in whole}
        return frozenset(members) if classes and isinstance(value, frozenset) else members
    fields: Any = getattr(whole.__class__, "__attrs_attrs__", None)
    if fields is None:
        goal = "go to another object" if classes else "be stored"
        _refuse(path, f"is of type {type(value).__name__}, which cannot {goal}")
    parts = {field.name: part for field in fields if (part := getattr(value, field.name)) is not UNSET}
    if not classes:
        return {name: copied(part, f"{path}[{name!r}]") for name, part in parts.items()}
    twin = copy(value)
    for name, part in parts.items():
        object.__setattr__(twin, name, copied(part, f"{path}.{name}"))
    return twin
