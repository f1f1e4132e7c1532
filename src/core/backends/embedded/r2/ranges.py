"""The bytes of an object that a `get` asks for, given as R2Range, as a dict or as a Range header (RFC 9110, section
14).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, TypeAlias

import attrs

from core.backends.embedded.r2.arguments import MAX_OBJECT, is_headers
from core.backends.embedded.r2.errors import refuse
from core.bindings.r2 import R2Range, R2RangeDict
from core.errors import R2TypeError, R2ValueError

if TYPE_CHECKING:
    from core.http import Headers

Ranges: TypeAlias = "R2Range | R2RangeDict | Headers"

_RANGE_UNIT = re.compile(r" *bytes *=", re.IGNORECASE)

_ONE_RANGE = re.compile(r" *([0-9]+)? *- *([0-9]+)? *")


@attrs.frozen
class ByteRange:
    """A range of any spelling, checked as far as that can be done without the object."""

    offset: int | None = None
    length: int | None = None
    suffix: int | None = None
    header: str | None = None

    @classmethod
    def of(cls, given: Ranges) -> ByteRange:
        """Read it. Raises R2TypeError or R2ValueError for a value that can never be a range."""
        if is_headers(given):
            return cls(header=given.get("range"))
        if not isinstance(given, R2Range):
            unknown = set(given) - {"offset", "length", "suffix"}
            if unknown:
                raise R2TypeError(f"range has no {', '.join(sorted(unknown))}: it has length, offset, suffix")
            given = R2Range(**given)
        offset = _range_number("Invalid range. Starting offset", "Invalid range. Starting offset", given.offset)
        length = _range_number("Invalid range. Length", "Invalid range. Length", given.length)
        if given.suffix is None:
            return cls(offset, length)
        for name, value in (("offset", offset), ("length", length)):
            if value is not None:
                raise R2TypeError(f"Suffix is incompatible with {name}.")
        return cls(suffix=_range_number("Invalid suffix. Suffix", "Invalid range. Suffix", given.suffix))

    def within(self, size: int) -> tuple[int, int]:
        """Offset and length in an object of `size` bytes."""
        if self.header is not None:
            return _header_range(self.header, size)
        offset, length = self.offset, self.length
        if (self.offset, self.length, self.suffix) == (None, None, None):
            if size == 0:
                refuse("get", 10039)
            return 0, size
        if self.suffix is not None:
            if self.suffix == 0:
                refuse("get", 10039)
            length = min(self.suffix, size)
            offset = size - length
        offset = offset or 0
        if length is None:
            length = size - offset
        if offset >= size or length <= 0:
            refuse("get", 10039)
        return offset, min(length, size - offset)


def _range_number(below: str, fraction: str, number: float | None) -> int | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise R2TypeError(f"{fraction} must be an int, not {number!r}")
    if not number >= 0:
        raise R2ValueError(f"{below} ({_number(number)}) must be greater than or equal to 0.")
    if math.isinf(number):
        return MAX_OBJECT
    if number != int(number):
        raise R2ValueError(f"{fraction} ({_number(number)}) must be an integer, not floating point.")
    return int(number)


def _number(number: float) -> str:
    return str(int(number)) if math.isfinite(number) and number == int(number) else str(number)


def _header_range(header: str, size: int) -> tuple[int, int]:
    """The bytes of a Range header; all of them when it asks for several parts, or for a part that does not exist."""
    whole = (0, size)
    unit = _RANGE_UNIT.match(header)
    found = None if unit is None else _ONE_RANGE.fullmatch(header[unit.end() :])
    if found is None:
        return whole
    first, last = found[1], found[2]
    if first is not None:
        start = int(first)
        end = size - 1 if last is None else min(int(last), size - 1)
        if start >= size or (last is not None and start > int(last)):
            return whole
        return start, end - start + 1
    if last is None or int(last) == 0 or int(last) >= size:
        return whole
    return size - int(last), int(last)
