"""JSON, as RFC 8259 has it: `NaN` and `Infinity` are not, duplicate names are (the last one counts).

Values that JSON has not are written so: attrs classes and dataclasses as objects, sets as lists, enums as their value,
dates and times in ISO 8601 (UTC as `Z`, as JavaScript and RFC 3339 write it), UUID and Decimal as text, since a number
would lose the digits of a Decimal in most readers. Bytes are refused: JSON has no such thing. An attribute of an attrs
class is written under its alias.

Nothing is read or written that is nested deeper than `MAX_DEPTH`, on any host: the standard library's accelerator
recurses in C, and inside a worker that ends the interpreter, for good, some thousand levels further down.

One file, since reading and writing keep the same limits, and refuse the same values in the same words.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from operator import attrgetter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    from json import JSONDecodeError

__all__ = ["JSONDecodeError", "MAX_DEPTH", "check_depth", "check_nesting", "dumps", "loads", "parse_float"]

MAX_DEPTH: Final = 200
"""The number of arrays and objects that may be inside each other in a document that is read or written."""

# The slice there is true for those strings alone that can be nested too deeply. A slice costs no call.
_LONG: Final = slice(MAX_DEPTH, MAX_DEPTH + 1)

# The standard library's package is loaded by a mistake, or where its accelerator is missing: it takes as long to import
# as half of this room, and writing and reading want only the accelerator.


if not TYPE_CHECKING:  # a type checker would take the module to have every name

    def __getattr__(name: str) -> object:
        if name == "JSONDecodeError":
            from json import JSONDecodeError

            return JSONDecodeError
        raise AttributeError(f"module 'core.http.json' has no attribute {name!r}")


# --------------------------------------------------------------------- writing


def dumps(value: object) -> str:
    """`value` as compact JSON, characters beyond ASCII as they are. The result can always be encoded as UTF-8.

    Keys may be str, int, float, bool, None (written as JSON writes them), and enums, UUIDs, Decimals, dates and times.

    Raises TypeError for a value that JSON cannot have, ValueError for NaN, infinities, cycles and values nested deeper
    than `MAX_DEPTH`. Either names the place, as in `items[0].price`.
    """
    try:
        # One text, nearly always, and then there is nothing to join.
        text, *more = _encode(value, 0)
    except (TypeError, ValueError, RecursionError) as error:
        text, more = _dumps_slowly(value, error), []
    if more or (text[_LONG] and text.count("[") + text.count("{") > MAX_DEPTH) or not text.isascii():
        return _looked_through("".join([text, *more]), value)
    return text


def _looked_through(text: str, value: object) -> str:
    """A written text that may be nested too deeply, or have characters that UTF-8 has not."""
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(text, MAX_DEPTH):
        _find_fault(value)
    if re.search(_SURROGATE, text):
        # They can only stand inside a string of the document, so an escape is right wherever they are.
        return re.sub(_SURROGATE, _escape, text)
    return text


_SURROGATE = "[\ud800-\udfff]"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _convert(value: object) -> object:
    """The JSON form of a value of another type. Raises TypeError; the encoder calls it."""
    convert = _CONVERTERS.get(type(value))
    if convert is None:
        convert = _converter(type(value))
        if convert is None:
            raise TypeError(type(value).__name__)
    return convert(value)


# By type, found when the first value of it is met: most applications write a handful. Weak references would cost more
# than they save, so it is emptied when something makes classes without end.
_CONVERTERS: dict[type, Callable[[Any], object]] = {}
_CONVERTERS_MOST = 1024


def _converter(kind: type) -> Callable[[Any], object] | None:
    convert = _find_converter(kind)
    if convert is not None:
        if len(_CONVERTERS) >= _CONVERTERS_MOST:
            _CONVERTERS.clear()
        _CONVERTERS[kind] = convert
    return convert


def _find_converter(kind: type[Any]) -> Callable[[Any], object] | None:
    fields = getattr(kind, "__attrs_attrs__", None)
    if fields is not None:
        return _object_of({field.alias: field.name for field in fields})
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        # Pseudo-fields (ClassVar, InitVar) are in the table too.
        return _object_of({name: name for name, field in fields.items() if field._field_type.name == "_FIELD"})
    if issubclass(kind, Enum):
        return attrgetter("value")
    # A value of these types can only be met where their module was loaded already.
    if _is_subclass(kind, "datetime", "datetime") or _is_subclass(kind, "datetime", "time"):
        return _iso_moment
    if _is_subclass(kind, "datetime", "date"):
        return _iso_date
    if _is_subclass(kind, "uuid", "UUID"):
        return str
    if _is_subclass(kind, "decimal", "Decimal"):
        return _decimal
    if issubclass(kind, Mapping):
        return dict
    if issubclass(kind, AbstractSet):
        return list
    return None


def _is_subclass(kind: type, module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and issubclass(kind, found)


def _object_of(names: dict[str, str]) -> Callable[[Any], dict[str, Any]]:
    # Written out, as attrs writes a class's __init__: a loop over the names takes five times as long.
    source = "".join(["lambda value: {", *[f"{key!r}: value.{name}, " for key, name in names.items()], "}"])
    if all(map(str.isidentifier, names.values())):
        try:
            written: Callable[[Any], dict[str, Any]] = eval(source)
        except SyntaxError:  # an attribute named as a word of Python's own
            pass
        else:
            return written
    return lambda value: {key: getattr(value, name) for key, name in names.items()}


def _iso_moment(value: Any) -> str:
    text: str = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _iso_date(value: Any) -> str:
    text: str = value.isoformat()
    return text


def _decimal(value: Any) -> str:
    if not value.is_finite():
        raise ValueError(str(value))
    return str(value)


def _kept_encoder() -> Callable[[object, int], Iterable[str]]:
    # The standard library builds this object anew for every document, which costs more than the document.
    try:
        from _json import encode_basestring, make_encoder

        if "json.encoder" in sys.modules:
            # Where the package is loaded, it says whether there is an accelerator: None where it is switched off.
            make_encoder = sys.modules["json.encoder"].c_make_encoder  # type: ignore[misc]  # a function there, a class to stubs
        kept: Callable[[object, int], Iterable[str]]
        kept = make_encoder(None, _convert, encode_basestring, None, ":", ",", False, False, False)
        kept([{"probe": 1.5}], 0)
    except (ImportError, TypeError):  # no accelerator, or another signature in some later Python
        import json

        plain = json.JSONEncoder(
            ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_convert
        )
        return lambda value, _indent: plain.iterencode(value)
    return kept


def _checked_encoder() -> Callable[[object, int], Iterable[str]]:
    # Elsewhere the accelerator notices by itself how deep it is, long before it is too late.
    encode = _kept_encoder()
    if sys.platform == "emscripten":

        def checked(value: object, indent: int) -> Iterable[str]:
            check_nesting(value)
            return encode(value, indent)

        return checked
    return encode


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def check_nesting(value: object) -> None:
    """Raise ValueError for a value nested deeper than `MAX_DEPTH`, before something recurses over it in C.

    Looks at dicts, lists, tuples, and the values that `dumps` makes of other objects. A cycle is nested without end.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        # By id, so that an object in many places of a level is looked at once.
        below: dict[int, object] = {}
        for outer in level:
            for inner in _inside(outer):
                if inner.__class__ not in _SCALARS:
                    below[builtins.id(inner)] = inner
        if not below:
            return
        level = list(below.values())
    raise ValueError(f"the value {_DEEP}")


def _inside(value: object) -> Iterable[object]:
    """The values that are one level further down. Values that JSON cannot have are refused by the encoder."""
    if isinstance(value, dict):
        return cast("dict[object, object]", value).values()
    if isinstance(value, (list, tuple)):
        return cast("list[object]", value)
    if isinstance(value, (str, int, float)):
        return ()
    convert = _CONVERTERS.get(type(value)) or _converter(type(value))
    try:
        return () if convert is None else _inside(convert(value))
    except ValueError:  # a Decimal that is not a number
        return ()


_encode = _checked_encoder()


# --------------------------------------------------------------------- writing values that the encoder refused

_DEEP: Final = f"is nested too deeply for JSON, {MAX_DEPTH} levels at most: send less of it at once, or a flat list"

# The place of a value: that of its container, and its own key or number. Made into text only for an error, since
# texts would take quadratic room in a deep document.
_Place = tuple["_Place | None", str]


def _dumps_slowly(value: object, error: Exception) -> str:
    """Write a document with keys that only we allow, or raise an error that names the fault and its place."""
    _find_fault(value)
    try:
        return "".join(_encode(_with_text_keys(value), 0))
    except RecursionError:
        raise ValueError(f"the value {_DEEP}") from None
    except (TypeError, ValueError):
        # Nothing of ours: the value's own code raised.
        raise error from None


def _find_fault(top: object) -> None:
    # A list instead of recursion, since the fault may be the depth itself.
    above: set[int] = set()
    # Converted objects stay alive, so that no id is met twice.
    kept: list[object] = []
    todo: list[tuple[_Place | None, object, bool]] = [(None, top, False)]
    depth = 0
    while todo:
        place, value, leave = todo.pop()
        if leave:
            above.discard(builtins.id(value))
            depth -= isinstance(value, (dict, list, tuple))
        elif value is None or isinstance(value, (str, bool)):
            pass
        elif isinstance(value, int):
            _check_int(place, value)
        elif isinstance(value, float):
            if value - value != 0.0:
                _refuse(ValueError, place, f"is {value}, which JSON cannot have: send None or a string instead")
        elif builtins.id(value) in above:
            _refuse(ValueError, place, "is inside itself: JSON can have no cycles")
        else:
            above.add(builtins.id(value))
            kept.append(value)
            todo.append((None, value, True))
            depth += isinstance(value, (dict, list, tuple))
            if depth > MAX_DEPTH:
                _refuse(ValueError, place, _DEEP)
            if isinstance(value, dict):
                for key, inner in reversed(cast("dict[object, object]", value).items()):
                    name = _text_key(key)
                    if name is None:
                        _refuse(
                            TypeError,
                            place,
                            f"has a key of type {type(key).__name__}, which JSON cannot have: use a str",
                        )
                    todo.append(((place, f".{name}"), inner, False))
            elif isinstance(value, (list, tuple)):
                items = cast("list[object]", value)
                for number in range(len(items) - 1, -1, -1):
                    todo.append(((place, f"[{number}]"), items[number], False))
            else:
                todo.append((place, _convert_at(place, value), False))


def _check_int(place: _Place | None, value: int) -> None:
    try:
        int.__repr__(value)
    except ValueError:
        _refuse(ValueError, place, "is an int with too many digits to be written: send it as a string of your own")


def _convert_at(place: _Place | None, value: object) -> object:
    if isinstance(value, (bytes, bytearray, memoryview)):
        _refuse(TypeError, place, "is bytes, which JSON cannot have: decode it, or send base64 text")
    if hasattr(type(value), "__await__"):
        if isinstance(value, CoroutineType):
            value.close()  # or Python warns of it a second time, in words of its own
        _refuse(TypeError, place, "is a call that was not awaited. Write `await` before it")
    if _is_subclass(type(value), "core.bindings.secret", "Secret"):
        _refuse(TypeError, place, "is a Secret, which belongs in no answer. Remove it from there")
    if _CONVERTERS.get(type(value)) is None and _converter(type(value)) is None:
        _refuse(
            TypeError,
            place,
            f"is of type {type(value).__name__}, which JSON cannot have: make a dict, a list or a str of it",
        )
    if _is_subclass(type(value), "decimal", "Decimal"):
        try:
            return _convert(value)
        except ValueError:
            _refuse(ValueError, place, f"is {value}, which JSON cannot have: send None or a string instead")
    return _convert(value)


def _refuse(kind: type[Exception], place: _Place | None, problem: str) -> NoReturn:
    parts: list[str] = []
    while place is not None:
        place, part = place
        parts.append(part)
    path = "".join(reversed(parts)).removeprefix(".")
    if len(path) > 200:
        path = f"{path[:100]}…{path[-100:]}"
    raise kind(f"{path or 'the value'} {problem}") from None


def _text_key(key: object) -> str | None:
    """A key as JSON writes it, or None for a value that cannot be one."""
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return int.__repr__(key)
    if isinstance(key, float):
        return float.__repr__(key) if key - key == 0.0 else None
    convert = _CONVERTERS.get(type(key)) or _converter(type(key))
    if convert is None:
        return None
    try:
        converted = convert(key)
    except ValueError:
        return None
    # A set, a mapping or an object is not a key; an enum's value is whatever it is.
    return None if isinstance(converted, (dict, list)) else _text_key(converted)


def _with_text_keys(value: object) -> object:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value)
        return {_text_key(key): _with_text_keys(inner) for key, inner in entries.items()}
    if isinstance(value, (list, tuple)):
        return [_with_text_keys(inner) for inner in cast("list[object]", value)]
    return _with_text_keys(_convert(value))


# --------------------------------------------------------------------- reading


class _NoConstant(ValueError):
    """One of the names that Python's reader takes and JSON does not have."""


class _NoNumber(ValueError):
    """A number beyond the range of a float, which Python's reader makes an infinity."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NoConstant(name)


def parse_float(text: str) -> float:
    """The number of a document.

    Raises ValueError beyond 1.8e308: infinity is not the number that was sent, and not JSON.
    """
    value = float(text)
    if value - value != 0.0:
        raise _NoNumber(text)
    return value


class _Reading:
    """The methods that the accelerator calls on a decoder: one for each kind of value in a document."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = staticmethod(parse_float)
    parse_int = int
    parse_constant = staticmethod(_refuse_constant)


def _kept_scanner() -> Callable[[str, int], tuple[Any, int]]:
    kept: Callable[[str, int], tuple[Any, int]]
    reading: Any = _Reading()  # which has the attributes of a JSONDecoder that are read
    try:
        from _json import make_scanner

        kept = make_scanner(reading)
        kept("[1.5]", 0)
    except (ImportError, AttributeError, TypeError):  # no accelerator, or one that asks for more in some later Python
        kept = _decoder().scan_once
    return kept


def _decoder() -> Any:
    import json

    return json.JSONDecoder(parse_constant=_refuse_constant, parse_float=parse_float)


_scan = _kept_scanner()


def loads(data: bytes | bytearray | memoryview | str) -> Any:
    """The value of a JSON document; bytes are UTF-8, and a byte order mark before them is passed over.

    Raises json.JSONDecodeError (a ValueError), and nothing else, for whatever is wrong with the document: also for
    bytes that are not UTF-8, for a nesting deeper than `MAX_DEPTH`, for integers of more than 4300 digits and for
    numbers beyond the range of a float, such as 1e999.
    """
    if isinstance(data, str):
        text = data
    else:
        try:
            text = str(data, "utf-8")
        except UnicodeDecodeError as error:
            before = str(bytes(data)[: error.start], "utf-8")
            raise _error("Invalid UTF-8", before, len(before)) from None
    try:
        if text[_LONG]:
            check_depth(text)
        value, end = _scan(text, 0)
        if end == len(text) or not text[end:].strip(" \t\r\n"):
            return value
    except (StopIteration, SystemError):
        # Python 3.11 has no error to raise as long as nothing has imported `json.decoder`, and raises SystemError.
        pass
    except (ValueError, RecursionError) as error:
        _explain(text, error)
    # Blanks around it, or a mark before it, or a mistake: the reader with the messages.
    if text[:1] == "\ufeff" and not isinstance(data, str):
        text = text[1:]
    try:
        return _decoder().decode(text)
    except (ValueError, RecursionError) as error:
        _explain(text, error)


def check_depth(text: str) -> None:
    """Raise json.JSONDecodeError for a string that a reader would have to follow deeper than `MAX_DEPTH`.

    For code that parses JSON with another parser; `loads` does it. A document with few brackets, as most documents,
    takes two counts of its characters.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(text, MAX_DEPTH):
        raise _error(f"Nested deeper than {MAX_DEPTH} levels", text, 0)


def _is_deep(text: str, most: int) -> bool:
    """Return True if a reader comes deeper than `most`. Exact for JSON; of another text, exact up to its first mistake.

    The contents of strings are taken out, then all but the brackets, and those are counted in blocks: within a block
    the depth is at most the one at its start and the openings in it. All of it runs in C but the blocks that could be
    deep.
    """
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    if '"' in text:
        text = "".join(text.split('"')[::2])
    brackets = text.encode("utf-8", "replace").translate(_FOLD, _NO_BRACKETS)
    depth, size = 0, max(1, most // 2)
    for start in range(0, len(brackets), size):
        block = brackets[start : start + size]
        opened = block.count(b"[")
        if depth + opened > most:
            here = depth
            for bracket in block:
                here += 1 if bracket == 0x5B else -1
                if here > most:
                    return True
        depth += 2 * opened - len(block)
    return False


_FOLD: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(range(256)).translate(None, b"[]{}")

_TEXTS_AND_NUMBERS = r'(?s)"(?:[^"\\]|\\.)*+"|(-?[0-9][0-9.eE+-]*)'
_TEXTS_AND_NAMES = r'(?s)"(?:[^"\\]|\\.)*+"|(NaN|-?Infinity)'
_LONG_DIGITS = "[0-9]{4000,}"


def _error(message: str, text: str, at: int) -> JSONDecodeError:
    from json import JSONDecodeError

    return JSONDecodeError(message, text, at)


def _explain(text: str, error: Exception) -> NoReturn:
    from json import JSONDecodeError

    if isinstance(error, JSONDecodeError):
        raise error
    if isinstance(error, RecursionError):
        raise JSONDecodeError("Nested too deeply", text, 0) from None
    if isinstance(error, _NoConstant):
        at = next((match.start() for match in re.finditer(_TEXTS_AND_NAMES, text) if match[1]), 0)
        raise JSONDecodeError(f"{error} is not JSON", text, at) from None
    if isinstance(error, _NoNumber):
        at = next((found.start() for found in re.finditer(_TEXTS_AND_NUMBERS, text) if found[1] == str(error)), 0)
        raise JSONDecodeError("Number beyond the range of a float", text, at) from None
    match = re.search(_LONG_DIGITS, text)
    raise JSONDecodeError("Integer with too many digits", text, match.start() if match else 0) from None
