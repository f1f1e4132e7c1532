"""Keys, values and times as a Durable Object's storage accepts them, their conversion, and the errors of calls."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from core.backends.embedded.clone import CloneError, dump
from core.errors import DurableObjectError, DurableObjectTypeError, DurableObjectValueError
from core.explain.diagnosis import words_of
from core.http.streams import encode

MAX_KEY: Final = 2048
MAX_VALUE: Final = 2_000_000
MAX_PAIRS: Final = 128
# In milliseconds since 1970: what 64 bits of nanoseconds hold.
_LATEST: Final = (2**63 - 1) // 10**6


def encode_key(key: object) -> bytes:
    """A key as its bytes. Raises DurableObjectTypeError for another type, DurableObjectValueError for a long one."""
    if not isinstance(key, str):
        raise DurableObjectTypeError(f"A key must be a str, not {type(key).__name__}")
    raw = encode(key)
    if len(raw) > MAX_KEY:
        raise DurableObjectValueError(
            f"Keys cannot be larger than {MAX_KEY} bytes. A key of size {len(raw)} was provided."
        )
    return raw


def several(keys: object) -> list[object]:
    """Keys as a list. Raises DurableObjectValueError for more than one call takes."""
    several: list[object] = [*keys] if isinstance(keys, Iterable) else [keys]
    if len(several) > MAX_PAIRS:
        raise DurableObjectValueError(f"Maximum number of keys is {MAX_PAIRS}. {len(several)} keys were provided.")
    return several


def encode_value(value: object) -> bytes:
    """A value as it is stored. Raises DurableObjectTypeError for one that cannot be copied."""
    try:
        return dump(value)
    except CloneError as error:
        raise clone_error(str(error)) from error


def to_milliseconds(time: object) -> int:
    """The time of an alarm, in milliseconds since 1970. Raises DurableObjectTypeError for anything but a time."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise DurableObjectTypeError(f"{time!r} has no time zone. Write datetime(..., tzinfo=timezone.utc)")
        time = math.floor(time.timestamp() * 1000)
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not math.isfinite(time):
        raise DurableObjectTypeError(f"An alarm's time must be a datetime, or milliseconds since 1970, not {time!r}")
    if time > _LATEST:
        raise DurableObjectTypeError("This API doesn't support dates after 2189.")
    return math.floor(time)


def clone_error(message: str) -> DurableObjectTypeError:
    error = DurableObjectTypeError(message)
    error.js_name = "DataCloneError"
    return error


def reset_error(why: BaseException) -> BaseException:
    """The error of a call that a reset ended, in the words of the reason, as on the platform."""
    return DurableObjectError(words_of(why))
