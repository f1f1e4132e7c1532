"""Python values in the form in which workerd stores JavaScript's, which V8 calls its serialization format.

Written here, and read by workerd alone. Its source is its description:
https://github.com/v8/v8/blob/main/src/objects/value-serializer.cc
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

from core.bindings.numbers import MAX_SAFE_INTEGER

_HEAD: Final = b"\xff\x0f"
_SMALL: Final = 2**30


def dump(value: object) -> bytes:
    """The bytes of a value that `core.backends.embedded.clone` can hold."""
    out = bytearray(_HEAD)
    _write(value, out)
    return bytes(out)


def _write(value: Any, out: bytearray) -> None:
    whole = value  # not narrowed by what follows
    match value:
        case None:
            out += b"0"
        case bool():
            out += b"T" if value else b"F"
        case int() if -_SMALL <= value < _SMALL:
            out += b"I" + _varint((value << 1) ^ (value >> 31))
        case int() if abs(value) <= MAX_SAFE_INTEGER:
            out += b"N" + struct.pack("<d", value)
        case int():
            length = (abs(value).bit_length() + 63) // 64 * 8
            out += b"Z" + _varint(length << 1 | (value < 0)) + abs(value).to_bytes(length, "little")
        case float():
            out += b"N" + struct.pack("<d", value)
        case str() if all(char <= "\xff" for char in value):
            out += b'"' + _varint(len(value)) + value.encode("latin-1")
        case str():
            units = value.encode("utf-16-le", "surrogatepass")
            out += b"c" + _varint(len(units)) + units
        case bytes():
            out += b"B" + _varint(len(value)) + value + b"VB" + _varint(0) + _varint(len(value)) + _varint(0)
        case datetime():
            out += b"D" + struct.pack("<d", value.timestamp() * 1000)
        case Mapping():
            # An object, or a Map where a key is not a text.
            mapping: Mapping[object, object] = whole
            plain = all(isinstance(key, str) for key in mapping)
            out += b"o" if plain else b";"
            for pair in mapping.items():
                for part in pair:
                    _write(part, out)
            out += b"{" + _varint(len(mapping)) if plain else b":" + _varint(2 * len(mapping))
        case AbstractSet():
            members: AbstractSet[Any] = whole
            out += b"'"
            for item in members:
                _write(item, out)
            out += b"," + _varint(len(members))
        case _:
            items: Sequence[Any] = whole
            out += b"A" + _varint(len(items))
            for item in items:
                _write(item, out)
            out += b"$" + _varint(0) + _varint(len(items))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
