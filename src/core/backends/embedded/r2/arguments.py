"""Dates, checksums and metadata as R2 accepts them, what they become, and the platform's errors for all others."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from core.backends.embedded.disk import StoreError
from core.backends.r2 import Method, record, refuse
from core.bindings.r2 import R2Hash, R2HTTPMetadata, R2HTTPMetadataDict
from core.errors import R2Error, R2TypeError
from core.http import Headers, HeadersView

HTTPMetadata: TypeAlias = R2HTTPMetadata | R2HTTPMetadataDict | Headers

MAX_OBJECT: Final = 5 * 1024**3 - 5 * 1024**2
MAX_METADATA: Final = 8192


def store_failure(method: Method, error: StoreError) -> R2Error:
    return R2Error(f"{method}: {error} (10001)")


def parse_http_date(text: str | None) -> datetime | None:
    """An HTTP date. Text that is not a date counts as absent, as HTTP wants it."""
    if text is None:
        return None
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def to_milliseconds(date: datetime) -> int:
    """Milliseconds since 1970. Raises R2TypeError for a datetime without a time zone."""
    if date.tzinfo is None:
        raise R2TypeError(f"{date!r} has no time zone. Write datetime(..., tzinfo=timezone.utc)")
    return math.floor(date.timestamp() * 1000 + 0.0005)


def to_datetime(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


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
        return R2HTTPMetadata(**fields, cache_expiry=parse_http_date(metadata.get("expires")))
    return record(R2HTTPMetadata, metadata, "http_metadata")


def dump_http_metadata(metadata: R2HTTPMetadata) -> str:
    fields = {name: value for name in _HTTP_FIELDS if (value := getattr(metadata, name)) is not None}
    if metadata.cache_expiry is not None:
        fields["cache_expiry"] = to_milliseconds(metadata.cache_expiry)
    return json.dumps(fields)


def load_http_metadata(text: str) -> R2HTTPMetadata:
    fields = json.loads(text)
    if "cache_expiry" in fields:
        fields["cache_expiry"] = to_datetime(fields["cache_expiry"])
    return R2HTTPMetadata(**fields)


def check_metadata_size(method: Method, custom: Mapping[str, str]) -> None:
    if sum(_serialised_length(name) + _serialised_length(value) for name, value in custom.items()) > MAX_METADATA:
        refuse(method, 10012)


def _serialised_length(text: str) -> int:
    """As the platform counts it: UTF-16 units, doubled for a string that latin-1 cannot carry."""
    if text.isascii():
        return len(text)
    units = len(text) + sum(character > "\uffff" for character in text)
    return units * 2 if max(text) > "\xff" else units
