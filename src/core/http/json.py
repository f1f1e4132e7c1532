"""JSON, as RFC 8259 has it: `NaN` and `Infinity` are not, duplicate names are (the last one counts).

Values that JSON has not are written so: attrs classes and dataclasses as objects, sets and other sequences as lists,
enums as their value, dates and times in ISO 8601 (UTC as `Z`, as JavaScript and RFC 3339 write it), UUID and Decimal as
text, since a number would lose the digits of a Decimal in most readers. Bytes are refused: JSON has no such thing. An
attribute of an attrs class is written under its alias, and left out where it is UNSET.

Nothing is read or written that is nested deeper than `MAX_DEPTH`, on any host: the standard library's accelerator
recurses in C, and inside a worker that ends the interpreter, for good, some thousand levels further down.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from core.values import lazily

if TYPE_CHECKING:
    from json import JSONDecodeError

    from core.http.json_faults import Faults
else:
    # The standard library's package is loaded by a mistake, or where its accelerator is missing: it takes as long to
    # import as half of this package, and writing and reading want only the accelerator.
    __getattr__ = lazily(__name__, {"json": "JSONDecodeError"})

__all__ = [
    "JSONDecodeError",
    "JsonObject",
    "MAX_DEPTH",
    "check_depth",
    "check_nesting",
    "dumps",
    "loads",
    "parse_float",
]

JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON document: what `loads` gives for one, and what `dumps` writes as one."""

MAX_DEPTH: Final = 200
"""The number of arrays and objects that may be inside each other in a document that is read or written."""


# --------------------------------------------------------------------- writing


def dumps(value: object) -> str:
    """`value` as compact JSON, characters beyond ASCII as they are. The result can always be encoded as UTF-8.

    Keys may be str, int, float, bool, None (written as JSON writes them), and enums, UUIDs, Decimals, dates and times.

    Raises TypeError for a value that JSON cannot have, ValueError for NaN, infinities, cycles and values nested deeper
    than `MAX_DEPTH`. Either names the place, as in `items[0].price`.
    """
    try:
        chunks = _encode(value, 0)
        # One text, nearly always, and then there is nothing to join.
        text = chunks[0] if len(chunks) == 1 else "".join(chunks)
    except (TypeError, ValueError, RecursionError):
        text = _faults().write(value)
    if len(text) > MAX_DEPTH and _is_deep(text, MAX_DEPTH):
        _faults().plain(value)
    # Characters that UTF-8 has not can only stand inside a string, so an escape is right wherever they are.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _convert(value: object) -> object:
    """The JSON form of a value of another type. Raises TypeError; the encoder calls it."""
    kind: type = type(value)
    convert = _converter(kind)
    if convert is None:
        raise TypeError(kind.__name__)
    return convert(value)


# Most applications write values of a handful of types; the bound is against one that makes classes without end.
@lru_cache(1024)
def _converter(kind: type[Any]) -> Callable[[Any], object] | None:
    fields = getattr(kind, "__attrs_attrs__", None)
    if fields is not None:
        return _object_of({field.alias: field.name for field in fields}, fields)
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        # Pseudo-fields (ClassVar, InitVar) are in the table too.
        names = {name: name for name, field in fields.items() if field._field_type.name == "_FIELD"}
        return _object_of(names, fields.values())
    if issubclass(kind, Enum):
        return None if _is_subclass(kind, "core.validation.unset", "Unset") else attrgetter("value")
    # A value of these types can only be met where their module was loaded already.
    if _is_subclass(kind, "datetime", "date") or _is_subclass(kind, "datetime", "time"):
        return _iso_text
    if _is_subclass(kind, "uuid", "UUID"):
        return str
    if _is_subclass(kind, "decimal", "Decimal"):
        return _decimal
    if issubclass(kind, Mapping):
        return dict
    if issubclass(kind, bytes | bytearray | memoryview) or _is_subclass(kind, "collections", "UserString"):
        return None  # a UserString is a sequence of others
    return list if issubclass(kind, AbstractSet | Sequence) else None


def _is_subclass(kind: type, module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and issubclass(kind, found)


def _object_of(names: dict[str, str], fields: Iterable[object]) -> Callable[[object], dict[str, object]]:
    # Written out, as attrs writes a class's __init__: a loop over the names takes five times as long.
    source = "".join(["lambda value: {", *[f"{key!r}: value.{name}, " for key, name in names.items()], "}"])

    write: Callable[[object], dict[str, object]] = eval(source)
    # A value is UNSET only where something has loaded its module.
    unset = sys.modules.get("core.validation.unset")
    return write if unset is None else unset.leaving_out(write, fields)


def _iso_text(value: Any) -> str:
    text: str = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _decimal(value: Any) -> str:
    if not value.is_finite():
        raise ValueError(str(value))
    return str(value)


def _encoder() -> Callable[[object, int], Sequence[str]]:
    # The standard library builds this object anew for every document, which costs more than the document.
    try:
        from _json import encode_basestring, make_encoder

        encode: Callable[[object, int], Sequence[str]]
        encode = make_encoder(None, _convert, encode_basestring, None, ":", ",", False, False, False)
        encode([{"probe": 1.5}], 0)
    except (ImportError, TypeError):  # no accelerator, or another signature in some later Python
        import json

        plain = json.JSONEncoder(
            ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_convert
        )
        return lambda value, _indent: [*plain.iterencode(value)]
    return encode


def _checked_encoder() -> Callable[[object, int], Sequence[str]]:
    # Elsewhere the accelerator notices by itself how deep it is, long before it is too late.
    encode = _encoder()
    if sys.platform == "emscripten":

        def checked(value: object, indent: int) -> Sequence[str]:
            check_nesting(value)
            return encode(value, indent)

        return checked
    return encode


def check_nesting(value: object) -> None:
    """Raise ValueError for a value nested deeper than `MAX_DEPTH`, before something recurses over it in C.

    Looks at dicts, lists, tuples, and the values that `dumps` makes of other objects. A cycle is nested without end.
    """
    _faults().check_nesting(value)


def _faults() -> Faults:
    from core.http.json_faults import Faults

    return Faults(MAX_DEPTH, _encode, _converter, _is_subclass)


_encode = _checked_encoder()


# --------------------------------------------------------------------- reading


class _Refused(ValueError):
    """A name or a number that Python's reader takes and JSON does not have: the message, and the text of it."""


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is not JSON", name)


def parse_float(text: str) -> float:
    """The number of a document.

    Raises ValueError beyond 1.8e308: infinity is not the number that was sent, and not JSON.
    """
    value = float(text)
    if value - value != 0.0:
        raise _Refused("Number beyond the range of a float", text)
    return value


def _scanner(parse_float: Callable[[str], float]) -> Callable[[str, int], tuple[Any, int]]:
    scan: Callable[[str, int], tuple[object, int]]
    # The attributes of a JSONDecoder that the accelerator reads.
    none: dict[str, Any] = dict.fromkeys(["object_hook", "object_pairs_hook"])
    numbers = {"parse_float": parse_float, "parse_int": int, "parse_constant": _refuse_constant}
    reading: Any = SimpleNamespace(strict=True, **none, **numbers)
    try:
        from _json import make_scanner

        scan = make_scanner(reading)
        scan("[1.5]", 0)
    except (ImportError, AttributeError, TypeError):  # no accelerator, or one that asks for more in some later Python
        scan = _decoder(parse_float).scan_once
    return scan


def _decoder(parse_float: Callable[[str], float]) -> Any:
    import json

    return json.JSONDecoder(parse_constant=_refuse_constant, parse_float=parse_float)


_scan = _scanner(parse_float)
_scan_finite = _scanner(float)  # makes an infinity of what is too large, and is quicker, since it calls nothing


# Documents longer than this take msgspec, where it is installed, a fraction of the time.
_WORTH: Final = 1000


@cache
def _plain_reader() -> Callable[[str], object] | None:
    """The reader of `core-edge[fast]`: it gives what is read here of all that it takes. None without it.

    A worker never has one, so that it answers as one without the package, and does not wait for it to load.
    """
    from importlib import import_module

    if sys.platform == "emscripten":
        return None
    try:
        read: Callable[[str], object] = import_module("msgspec.json").Decoder().decode
    except ImportError:
        return None
    return read


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
    scan = _scan
    try:
        if len(text) > MAX_DEPTH:
            check_depth(text)
            if len(text) > _WORTH and (read := _plain_reader()) is not None:
                try:
                    return read(text)
                except Exception:
                    pass  # whatever it refuses is read, or refused, below
            # Where many fractions are in it, to look for one that is too large is quicker than a call for each.
            if len(text) > 20_000 and len(re.findall(r"\.[0-9]", text[:2048])) > 16 and not _may_overflow(text):
                scan = _scan_finite
        value, end = scan(text, 0)
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
        return _decoder(parse_float).decode(text)
    except (ValueError, RecursionError) as error:
        _explain(text, error)


def check_depth(text: str, most: int = MAX_DEPTH) -> None:
    """Raise json.JSONDecodeError for a string that a reader would have to follow deeper than `most` levels.

    For code that parses JSON with another parser; `loads` does it. A document with few brackets, as most documents,
    takes two counts of its characters.
    """
    if _is_deep(text, most):
        raise _error(f"Nested deeper than {most} levels", text, 0)


def _is_deep(text: str, most: int) -> bool:
    """Return True if a reader comes deeper than `most`. Exact for JSON; of another text, exact up to its first mistake.

    The contents of strings are taken out, then all but the brackets. Those are counted in blocks: within a block the
    depth is at most the one at its start and the openings in it. All of it runs in C but the blocks that could be deep.
    """
    # Counted where that is quicker than the pass below: in short documents, most of which have few.
    if len(text) < 8192 and text.count("[") + text.count("{") <= most:
        return False
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    structure = _reduced(text, _FOLD, _NEITHER)
    brackets = structure.translate(None, b'"')
    # A string without a bracket in it is two quotes side by side.
    if structure.count(b'""') * 2 < len(structure) - len(brackets):
        brackets = b"".join(structure.replace(b'""', b"").split(b'"')[::2])
    depth, size = 0, most + most // 2
    for at in range(0, len(brackets), size):
        block = brackets[at : at + size]
        opened = block.count(b"[")
        if depth + opened > most:
            here = depth
            for bracket in block:
                here += 1 if bracket == 0x5B else -1
                if here > most:
                    return True
        depth += 2 * opened - len(block)
    return False


def _reduced(text: str, table: bytes, without: bytes) -> bytes:
    """The characters of a text through a table, without some. In pieces, which stay in the processor's cache."""
    reduced = bytearray()
    for at in range(0, len(text), 32768):
        reduced += text[at : at + 32768].encode("utf-8", "replace").translate(table, without)
    return bytes(reduced)


_FOLD: Final = bytes.maketrans(b"{}", b"[]")
_NEITHER: Final = bytes(range(256)).translate(None, b'[]{}"')


def _may_overflow(text: str) -> bool:
    """Return True if a number may be beyond the range of a float: by an exponent above 0, or more than 308 digits."""
    digits = _reduced(text, _DIGITS, _NO_NUMBER)
    return b"0e0" in digits or b"0" * 309 in digits


_DIGITS: Final = bytes.maketrans(b"123456789+E", b"0000000000e")
# Quotes and commas are left, so that numbers stay apart from each other and from texts.
_NO_NUMBER: Final = bytes(range(256)).translate(None, b'0123456789+-eE",')

_TEXTS_AND_OTHERS = r'(?s)"(?:[^"\\]|\\.)*+"|(-?[0-9][0-9.eE+-]*|NaN|-?Infinity)'
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
    if isinstance(error, _Refused):
        message, refused = error.args
        at = next((found.start() for found in re.finditer(_TEXTS_AND_OTHERS, text) if found[1] == refused), 0)
        raise JSONDecodeError(message, text, at) from None
    match = re.search(_LONG_DIGITS, text)
    raise JSONDecodeError("Integer with too many digits", text, match.start() if match else 0) from None
