"""The largest messages and batches that a queue takes, wherever an application runs.

workerd counts as well, but all it says of a message that is too large is `Unknown Internal Error (15000)`. So its
adapter counts before it sends, as the embedded queue does, and both name the limit and the way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from core.errors import QueueError

MAX_MESSAGE: Final = 128_000
MAX_BATCH_COUNT: Final = 100
MAX_BATCH_BYTES: Final = 256_000

_SEND_LESS: Final = "Send less, or put the body into KV or R2 and send its key"
_SPLIT: Final = "Send the messages in several batches"


def check_message(size: int) -> None:
    """Raise QueueError for one message of too many bytes."""
    if size > MAX_MESSAGE:
        raise QueueError(
            f"Queue send failed: message length of {size} bytes exceeds limit of {MAX_MESSAGE}. {_SEND_LESS}"
        )


def check_batch(sizes: Sequence[int], *, most: int = MAX_BATCH_BYTES) -> None:
    """Raise QueueError for too many messages, for one of too many bytes, or for more than `most` together."""
    if len(sizes) > MAX_BATCH_COUNT:
        raise QueueError(
            f"Queue sendBatch failed: batch message count of {len(sizes)} exceeds limit of {MAX_BATCH_COUNT}. {_SPLIT}"
        )
    if (largest := max(sizes)) > MAX_MESSAGE:
        raise QueueError(
            f"Queue sendBatch failed: message in batch has length {largest} bytes "
            f"which exceeds single message size limit of {MAX_MESSAGE}. {_SEND_LESS}"
        )
    if (total := sum(sizes)) > most:
        raise QueueError(f"Queue sendBatch failed: batch size of {total} bytes exceeds limit of {most}. {_SPLIT}")


def size_of_text(text: str) -> int:
    """The bytes of a text as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def size_of_v8(value: Any) -> int:
    """The bytes that V8's format takes at least: the texts and bytes in a value, and one for each part of it."""
    given = value  # not narrowed by what follows
    match value:
        case str():
            latin = value.isascii() or max(value) <= "\xff"
            return 1 + (len(value) if latin else len(value.encode("utf-16-le", "surrogatepass")))
        case bytes() | bytearray() | memoryview():
            return 1 + memoryview(given).nbytes
        case Mapping():
            return 1 + sum(size_of_v8(key) + size_of_v8(one) for key, one in given.items())
        case list() | tuple() | AbstractSet():
            return 1 + sum(map(size_of_v8, given))
        case _:
            return 1
