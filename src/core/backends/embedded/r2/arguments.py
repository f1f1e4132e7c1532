"""Keys, values, part numbers and dates as R2 accepts them, and their conversion."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from core.backends.embedded.r2.errors import Method, refuse
from core.bindings.r2 import KnownLengthStream, R2Value
from core.errors import R2TypeError
from core.http.streams import encode

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from core.http import Headers

MAX_KEY: Final = 1024
MAX_OBJECT: Final = 5 * 1024**3 - 5 * 1024**2
MAX_PARTS: Final = 10_000


def is_headers(value: object) -> TypeIs[Headers]:
    """True for `http.Headers` and anything else that reads like it, but not for a plain dict of options."""
    return not isinstance(value, dict) and hasattr(value, "get_set_cookie")


def encode_key(method: Method, key: str) -> bytes:
    """A key as UTF-8. Raises R2TypeError for another type, R2Error for a key that is too long or has no UTF-8."""
    if not isinstance(key, str):
        raise R2TypeError(f"{method}: a key must be a str, not {type(key).__name__}. Write str(key) if that is meant")
    try:
        raw = key.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8; U+FFFD for it would make one object of several.
        refuse(method, 10020)
    if len(raw) > MAX_KEY:
        refuse(method, 10020)
    return raw


def check_part_number(number: object) -> int:
    """`number`, if it is one of a part. Raises R2TypeError."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise R2TypeError(f"Part number must be an int, not {number!r}")
    if not 1 <= number <= MAX_PARTS:
        raise R2TypeError(f"Part number must be between 1 and {MAX_PARTS} (inclusive). Actual value was: {number}")
    return number


def wrong_value(method: str, interface: str) -> str:
    """The message for a value of another type than R2 stores."""
    return (
        f"Failed to execute '{method}' on '{interface}': parameter 2 is not of type "
        "'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'."
    )


def source_of(method: Method, value: R2Value) -> bytes | KnownLengthStream:
    """A value as bytes, or as the stream that it is. Raises R2TypeError for another type, or an unknown length."""
    if value is None:
        return b""
    if isinstance(value, str):
        return encode(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "__aiter__"):
        length = getattr(value, "length", None)
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise R2TypeError(
                "Provided readable stream must have a known length "
                "(request/response body or readable half of FixedLengthStream)"
            )
        return value
    raise R2TypeError(wrong_value(method, "R2Bucket" if method == "put" else "R2MultipartUpload"))


def check_size(method: Method, source: bytes | KnownLengthStream) -> None:
    """Refuse a body that is larger than an object may be."""
    if (len(source) if isinstance(source, bytes) else source.length) > MAX_OBJECT:
        refuse(method, 100100)


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
    """The moment that is `milliseconds` after 1970 began, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
