"""The arguments of R2's calls: dates, checksums and metadata, conditions and ranges, and those of a list, as R2 accepts
them, what they become, and the platform's errors for all others. Headers are read as RFC 9110 has it (sections 13, 14).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import Any, Final, Literal, TypeAlias

import attrs

from core.backends.embedded.disk import StoreError
from core.backends.embedded.keys import decode_cursor
from core.backends.embedded.r2.rows import Row
from core.backends.r2 import Method, record, refuse
from core.bindings.r2 import (
    R2Conditional,
    R2ConditionalDict,
    R2Hash,
    R2HTTPMetadata,
    R2HTTPMetadataDict,
    R2Include,
    R2Range,
    R2RangeDict,
)
from core.errors import R2Error, R2TypeError, R2ValueError
from core.http import Headers, HeadersView
from core.http.conditional import parse_range
from core.http.dates import read_date
from core.http.streams import encode

HTTPMetadata: TypeAlias = R2HTTPMetadata | R2HTTPMetadataDict | Headers

MAX_OBJECT: Final = 5 * 1024**3 - 5 * 1024**2
MAX_METADATA: Final = 8192
MAX_LIST: Final = 1000
MAX_LIST_INCLUDE: Final = 100


def store_failure(method: Method, error: StoreError) -> R2Error:
    return R2Error(f"{method}: {error} (10001)")


def _http_date(text: str | None) -> datetime | None:
    """An HTTP date. Text that is not a date counts as absent, as HTTP wants it."""
    seconds = read_date(text, time())
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def to_milliseconds(date: datetime) -> int:
    """Milliseconds since 1970. Raises R2TypeError for a datetime without a time zone."""
    if date.tzinfo is None:
        raise R2TypeError(f"{date!r} has no time zone. Write datetime(..., tzinfo=timezone.utc)")
    return math.floor(date.timestamp() * 1000 + 0.0005)


# Checksums ------------------------------------------------------------------------------------------------------------

_ALGORITHMS: Final = {
    "md5": ("MD5", 16),
    "sha1": ("SHA-1", 20),
    "sha256": ("SHA-256", 32),
    "sha384": ("SHA-384", 48),
    "sha512": ("SHA-512", 64),
}


def given_checksum(options: Mapping[str, Any]) -> tuple[str, bytes] | None:
    """The one checksum among the options of a put, as its algorithm and its bytes; None without one.

    Raises R2TypeError for several, and for one of the wrong length or type.
    """
    found: tuple[str, bytes] | None = None
    for algorithm in _ALGORITHMS:
        value = options.get(algorithm)
        if value is None:
            continue
        if found is not None:
            raise R2TypeError("You cannot specify multiple hashing algorithms.")
        found = (algorithm, _read_digest(algorithm, value))
    return found


def _read_digest(algorithm: str, value: R2Hash) -> bytes:
    name, size = _ALGORITHMS[algorithm]
    if isinstance(value, (bytes, bytearray, memoryview)):
        if len(value) != size:
            raise R2TypeError(f"{name} is {size} bytes, not {len(value)}")
        return bytes(value)
    if not isinstance(value, str):
        raise R2TypeError(f"{algorithm} must be hex digits or bytes, not {type(value).__name__}")
    if len(value) != 2 * size:
        raise R2TypeError(f"{name} is {2 * size} hex characters, not {len(value)}")
    if not re.fullmatch("[0-9a-fA-F]+", value):
        raise R2TypeError(f"Provided {name} wasn't a valid hex string")
    return bytes.fromhex(value)


def check_digest(algorithm: str, given: bytes, actual: bytes) -> None:
    if given != actual:
        name = _ALGORITHMS[algorithm][0]
        refuse(
            "put",
            10037,
            f"The {name} checksum you specified did not match what we received.\n"
            f"You provided a {name} checksum with value: {given.hex()}\nActual {name} was: {actual.hex()}",
        )


def ssec_key_md5(key: R2Hash | None) -> str | None:
    """The MD5 of a customer's key, in hex. The embedded bucket keeps it, and encrypts nothing."""
    if key is None:
        return None
    if isinstance(key, str):
        if not re.fullmatch("[0-9a-f]+", key):
            raise R2Error("SSE-C Key has invalid format")
        if len(key) != 64:
            raise R2Error("SSE-C Key must be 32 bytes in length")
        key = bytes.fromhex(key)
    elif len(key) != 32:
        raise R2Error("SSE-C Key must be 32 bytes in length")
    return hashlib.md5(bytes(key), usedforsecurity=False).hexdigest()


# Metadata -------------------------------------------------------------------------------------------------------------

_HTTP_FIELDS: Final = ("content_type", "content_language", "content_disposition", "content_encoding", "cache_control")


def to_http_metadata(metadata: HTTPMetadata | None) -> R2HTTPMetadata:
    """HTTP metadata however it is given. Raises R2TypeError for an unknown field."""
    if metadata is None:
        return R2HTTPMetadata()
    if isinstance(metadata, HeadersView):
        fields: dict[str, Any] = {name: metadata.get(name.replace("_", "-")) for name in _HTTP_FIELDS}
        return R2HTTPMetadata(**fields, cache_expiry=_http_date(metadata.get("expires")))
    return record(R2HTTPMetadata, metadata, "http_metadata")


def dump_http_metadata(metadata: R2HTTPMetadata) -> str:
    fields = {name: value for name in _HTTP_FIELDS if (value := getattr(metadata, name)) is not None}
    if metadata.cache_expiry is not None:
        fields["cache_expiry"] = to_milliseconds(metadata.cache_expiry)
    return json.dumps(fields)


def check_metadata_size(method: Method, custom: Mapping[str, str]) -> None:
    if sum(_serialised_length(name) + _serialised_length(value) for name, value in custom.items()) > MAX_METADATA:
        refuse(method, 10012)


def _serialised_length(text: str) -> int:
    """As the platform counts it: UTF-16 units, doubled for a string that latin-1 cannot carry."""
    if text.isascii():
        return len(text)
    units = len(text) + sum(character > "\uffff" for character in text)
    return units * 2 if max(text) > "\xff" else units


# Conditions -----------------------------------------------------------------------------------------------------------

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
            before, after = [_http_date(given.get(f"if-{name}-since")) for name in ("unmodified", "modified")]
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


# Lists ----------------------------------------------------------------------------------------------------------------

_HTTP: Final = frozenset(["httpMetadata", "http_metadata"])
_CUSTOM: Final = frozenset(["customMetadata", "custom_metadata"])


def read_include(include: Iterable[R2Include] | None) -> tuple[bool, bool]:
    """Return two flags: HTTP metadata and custom metadata are wanted. Raises R2ValueError for other fields."""
    fields = [*(include or ())]
    if unknown := [field for field in fields if field not in (*_HTTP, *_CUSTOM)]:
        raise R2ValueError(f"Unsupported include value {unknown[0]}")
    return not _HTTP.isdisjoint(fields), not _CUSTOM.isdisjoint(fields)


def page_size(limit: object, *, with_metadata: bool) -> int:
    """Return the largest number of keys on a page. Raises R2TypeError or R2Error for a limit that cannot be one."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise R2TypeError(f"list: limit must be an int, not {limit!r}")
    count = MAX_LIST if limit is None else limit
    if not 1 <= count <= MAX_LIST:
        refuse("list", 10022)
    return min(count, MAX_LIST_INCLUDE) if with_metadata else count


def first_after(start_after: str | None, cursor: str | None) -> bytes | None:
    """The key after which a page begins; of two the later one."""
    after = None if start_after is None else encode(start_after)
    if cursor is None:
        return after
    continued = decode_cursor(cursor)
    return continued if after is None else max(after, continued)
