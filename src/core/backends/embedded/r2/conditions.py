"""The conditions of a `get` or a `put`, and the bytes that a `get` asks for, however they are given: as values, as a
dict or as headers, which are read as RFC 9110 has it (sections 13 and 14).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import attrs

from core.backends.embedded.r2.arguments import MAX_OBJECT, parse_http_date, to_milliseconds
from core.backends.r2 import record, refuse
from core.bindings.r2 import R2Conditional, R2ConditionalDict, R2Range, R2RangeDict
from core.errors import R2Error, R2TypeError, R2ValueError
from core.http import HeadersView
from core.http.conditional import parse_range

if TYPE_CHECKING:
    from core.backends.embedded.r2.rows import Row
    from core.http import Headers

Conditions: TypeAlias = "R2Conditional | R2ConditionalDict | Headers | Preconditions"

Etag: TypeAlias = tuple[Literal["strong", "weak", "wildcard"], str]


@attrs.frozen
class Preconditions:
    """Conditions of any spelling as the platform tests them. Dates are in milliseconds."""

    match: Sequence[Etag] | None
    none_match: Sequence[Etag] | None
    before: int | None
    after: int | None
    in_seconds: bool

    @classmethod
    def of(cls, given: Conditions) -> Preconditions:
        """Read them. Raises R2TypeError for an unknown field or a malformed etag, R2Error for a malformed header."""
        if isinstance(given, Preconditions):
            return given
        if isinstance(given, HeadersView):
            match, none_match = [_parse_etags(name, given.get(name)) for name in ("if-match", "if-none-match")]
            before, after = [parse_http_date(given.get(f"if-{name}-since")) for name in ("unmodified", "modified")]
            in_seconds = True
        else:
            wanted = record(R2Conditional, given, "only_if")
            match, none_match = _read_etag(wanted.etag_matches), _read_etag(wanted.etag_does_not_match)
            before, after, in_seconds = wanted.uploaded_before, wanted.uploaded_after, wanted.seconds_granularity
        earlier, later = [None if date is None else to_milliseconds(date) for date in (before, after)]
        return cls(match, none_match, earlier, later, in_seconds)

    def hold_for(self, found: Row | None) -> bool:
        """True if they hold for an object, or for its absence."""
        if found is None:
            return self.match is None and self.after is None
        etag, uploaded = found.etag, found.uploaded
        unit = 1000 if self.in_seconds else 1
        matches = self.match is None or any(
            kind == "wildcard" or (kind == "strong" and value == etag) for kind, value in self.match
        )
        differs = self.none_match is None or not any(kind == "wildcard" or tag == etag for kind, tag in self.none_match)
        after = self.after is None or self.after // unit < uploaded // unit or (self.none_match is not None and differs)
        before = self.before is None or uploaded // unit < self.before // unit or (self.match is not None and matches)
        return matches and differs and after and before


def _read_etag(etag: str | None) -> Sequence[Etag] | None:
    if etag is None:
        return None
    if not isinstance(etag, str):
        raise R2TypeError(f"An etag must be a str, not {type(etag).__name__}")
    if etag == "*":
        return (("wildcard", ""),)
    if etag.startswith('"') and etag.endswith('"'):
        raise R2TypeError(f"Conditional ETag should not be wrapped in quotes ({etag}).")
    return (("strong", etag),)


_ETAG_BEGINS: Final = {
    "*": "Encountered a wildcard character '*' instead.",
    '"': (
        "Encountered a double quote character '\"' instead. "
        "This would otherwise indicate the start of a new strong etag."
    ),
    "W": (
        "Encountered a weak quotation character 'W' instead. "
        "This would otherwise indicate the start of a new weak etag."
    ),
}


def _parse_etags(header: str, text: str | None) -> Sequence[Etag] | None:
    """The etags of an If-Match or If-None-Match header, with the platform's errors for those that are malformed."""
    if text is None:
        return None
    etags: list[Etag] = []
    comma_needed = False
    while text := text.lstrip(" \t"):
        first = text[0]
        if first == ",":
            text = text[1:]
            comma_needed = False
            continue
        if first not in _ETAG_BEGINS:
            # The rest is not an etag, and is ignored.
            break
        if comma_needed:
            raise R2Error(f"Comma was expected to separate etags. {_ETAG_BEGINS[first]}")
        if first == "*":
            return (("wildcard", ""),)
        if first == "W" and not text.startswith('W/"'):
            raise R2Error("Weak etags must start with W/ and their value must be quoted")
        start = text.index('"') + 1
        end = text.find('"', start)
        if end < 0:
            raise R2Error("Unclosed double quote for Etag")
        etags.append(("weak" if first == "W" else "strong", text[start:end]))
        text = text[end + 1 :]
        comma_needed = True
    if not etags:
        raise R2Error(f"Invalid ETag in {header} header")
    return etags


# Ranges ---------------------------------------------------------------------------------------------------------------

Ranges: TypeAlias = "R2Range | R2RangeDict | Headers"


def span_of(given: Ranges) -> Callable[[int], tuple[int, int]]:
    """Read a range of any spelling. Returns what gives its offset and length in an object of some size.

    Raises R2TypeError or R2ValueError for a value that can never be a range.
    """
    if isinstance(given, HeadersView):
        header = re.sub(" *([=-]) *", r"\1", given.get("range") or "")

        def of_header(size: int) -> tuple[int, int]:
            part = parse_range(header, size)
            # The whole object where it asks for several parts, or for a part that does not exist.
            return (part.start, part.length) if part is not None and part.satisfiable else (0, size)

        return of_header
    wanted = record(R2Range, given, "range")
    offset = _range_number("Invalid range. Starting offset", "Invalid range. Starting offset", wanted.offset)
    length = _range_number("Invalid range. Length", "Invalid range. Length", wanted.length)
    for name, value in (("offset", offset), ("length", length)):
        if value is not None and wanted.suffix is not None:
            raise R2TypeError(f"Suffix is incompatible with {name}.")
    suffix = _range_number("Invalid suffix. Suffix", "Invalid range. Suffix", wanted.suffix)

    def within(size: int) -> tuple[int, int]:
        start = (offset or 0) if suffix is None else size - min(suffix, size)
        count = size - start if length is None else length
        if start >= size or count <= 0:
            refuse("get", 10039)
        return start, min(count, size - start)

    return within


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
