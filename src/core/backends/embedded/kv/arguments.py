"""The arguments and values of KV calls: the refusals and their words, and the forms that a value is read in."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any, Final

from core.backends.embedded.disk import StoreBusyError, StoreError
from core.backends.kv import Verb, check_number, parse, refuse
from core.errors import KVError, KVTypeError

MAX_KEY: Final = 512
MAX_VALUE: Final = 25 * 1024 * 1024
MIN_CACHE_TTL: Final = 30
_CHUNK: Final = 64 * 1024


def failed(verb: Verb, error: StoreError) -> KVError:
    """The error for a call that the disk, or another process, got in the way of."""
    return KVError(f"KV {verb} failed: {503 if isinstance(error, StoreBusyError) else 500} {error}")


def check_length(verb: Verb, raw: bytes) -> None:
    if len(raw) > MAX_KEY:
        refuse(verb, 414, f"UTF-8 encoded length of {len(raw)} exceeds key length limit of {MAX_KEY}.")


def check_cache_ttl(verb: Verb, cache_ttl: int | None) -> None:
    if cache_ttl is None:
        return
    seconds = to_int32("cache_ttl", cache_ttl)
    if seconds < MIN_CACHE_TTL:
        refuse(verb, 400, f"Invalid cache_ttl of {seconds}. Cache TTL must be at least {MIN_CACHE_TTL}.")


def to_int32(name: str, value: float) -> int:
    """The platform's 32-bit integer: fractions are cut off, anything but a finite number is 0."""
    check_number(name, value)
    if not math.isfinite(value):
        return 0
    whole = math.trunc(value)
    if not -(2**31) <= whole < 2**31:
        raise KVTypeError("Value out of range. Must be between -2147483648 and 2147483647 (inclusive).")
    return whole


def text_of(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def read_as(value: bytes, type: str) -> object:
    match type:
        case "text":
            return text_of(value)
        case "json":
            return parse(text_of(value))
        case "bytes" | "arrayBuffer":
            return value
        case "stream":
            return _stream(value)
        case _:
            raise KVTypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".')


async def _stream(value: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(value), _CHUNK):
        yield value[start : start + _CHUNK]


async def collect(stream: Any) -> tuple[bytes, int]:
    """All of a stream, and its length. Bytes beyond the limit are counted, for the message, and not kept."""
    chunks: list[bytes] = []
    length = 0
    async for chunk in stream:
        given = chunk  # not narrowed by what follows
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise KVTypeError(f"A stream must give bytes, not {type(chunk).__name__}")
        length += len(chunk) if not isinstance(chunk, memoryview) else chunk.nbytes
        if length <= MAX_VALUE:
            chunks.append(bytes(given))
        else:
            chunks.clear()
    return b"".join(chunks), length
