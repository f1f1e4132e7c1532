"""What a queue takes, wherever an application runs: the form of a message, its delay, and the largest messages and
batches.

workerd counts as well, but all it says of a message that is too large is `Unknown Internal Error (15000)`, and its own
queues take any delay. So its adapter looks before it sends, as the embedded queue does, and both name the limit and the
way out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, NoReturn, TypeAlias, TypeVar, get_args

from core.bindings.numbers import refuse_large_numbers
from core.bindings.queue import MessageSendRequest, QueueContentType
from core.errors import QueueError, QueueTypeError
from core.http.json import dumps
from core.http.streams import encode

MAX_MESSAGE: Final = 128_000
MAX_BATCH_COUNT: Final = 100
MAX_BATCH_BYTES: Final = 256_000
MAX_DELAY: Final = 86_400

D = TypeVar("D", int, None)

_SEND_LESS: Final = "Send less, or put the body into KV or R2 and send its key"
_SPLIT: Final = "Send the messages in several batches"


Verb: TypeAlias = Literal["send", "sendBatch", "retry", "retryAll"]
"""The platform's name of a call."""


def request_of(message: Any) -> MessageSendRequest[Any]:
    """A message of a batch, however it is given. Raises QueueTypeError for another type, or an unknown field."""
    whole = message  # not narrowed by what follows
    if isinstance(message, MessageSendRequest):
        request: MessageSendRequest[Any] = whole
        return request
    if not isinstance(message, dict) or "body" not in message:
        raise QueueTypeError(
            f"A message of a batch must be a MessageSendRequest, or a dict with a body, not {message!r:.80}"
        )
    given: dict[str, Any] = whole
    unknown = set(given) - {"body", "content_type", "delay_seconds"}
    if unknown:
        raise QueueTypeError(f"A message has no {', '.join(sorted(unknown))}: it has body, content_type, delay_seconds")
    return MessageSendRequest(given["body"], given.get("content_type"), given.get("delay_seconds"))


def check_delay(verb: Verb, seconds: object, otherwise: D) -> int | D:
    """A delay in whole seconds, `otherwise` without one. Raises QueueTypeError, and QueueError for one out of range."""
    if seconds is None:
        return otherwise
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        raise QueueTypeError(f"delay_seconds must be a number of seconds, not {seconds!r}")
    whole = int(seconds)
    if not 0 <= whole <= MAX_DELAY:
        raise QueueError(
            f"Queue {verb} failed: message delay {whole} is invalid: it must be between 0 and {MAX_DELAY} seconds"
        )
    return whole


_CONTENT_TYPES: Final[Mapping[str, QueueContentType]] = {kind: kind for kind in get_args(QueueContentType)}


def check_content_type(kind: str, given: object = None) -> QueueContentType:
    """`kind` as a content type. Raises QueueTypeError, with `given` as the caller wrote it, for an unknown one."""
    known = _CONTENT_TYPES.get(kind)
    if known is None:
        raise QueueTypeError(f"Unsupported queue message content type: {kind if given is None else given}")
    return known


def written(body: Any, kind: QueueContentType) -> Any:
    """A body as its content type has it: a str for `text` and `json`, bytes for `bytes`; for `v8`, which each engine
    writes itself, as it is. Raises QueueTypeError where the two do not fit.
    """
    given = body  # not narrowed by what follows
    match kind:
        case "text":
            if not isinstance(body, str):
                _refuse_body("text", "string", body)
            # The platform cuts a string at its first NUL.
            return body.partition("\0")[0]
        case "bytes":
            if not isinstance(body, (bytes, bytearray, memoryview)):
                _refuse_body("bytes", "ArrayBufferView", body)
            return bytes(given)
        case "json":
            try:
                text = dumps(body)
                refuse_large_numbers(text)
                return text
            except (TypeError, ValueError) as error:
                raise QueueTypeError(f"A message of the content type json cannot be written: {error}") from error
        case "v8":
            return given


_JS_TYPES: Final = {bool: "boolean", int: "number", float: "number", str: "string"}


def _refuse_body(kind: str, wanted: str, body: object) -> NoReturn:
    """Refuse a body that is not of its content type, in the platform's words."""
    other = "function" if callable(body) else "object"
    got = next((name for kind, name in _JS_TYPES.items() if isinstance(body, kind)), other)
    raise QueueTypeError(f'Content Type "{kind}" requires a value of type {wanted}, but received: {got}')


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


def size_of(value: Any, kind: QueueContentType) -> int:
    """The bytes of a body that count; `value` is as `written` gives it, and not too deep to be looked through."""
    if kind == "v8":
        return _size_of_v8(value)
    return len(value if kind == "bytes" or value.isascii() else encode(value))


def _size_of_v8(value: Any) -> int:
    """The bytes that V8's format takes at least: the texts and bytes in a value, and one for each part of it."""
    given = value  # not narrowed by what follows
    match value:
        case str():
            latin = value.isascii() or max(value) <= "\xff"
            return 1 + (len(value) if latin else len(value.encode("utf-16-le", "surrogatepass")))
        case bytes() | bytearray() | memoryview():
            return 1 + memoryview(given).nbytes
        case Mapping():
            return 1 + sum(_size_of_v8(key) + _size_of_v8(one) for key, one in given.items())
        case list() | tuple() | AbstractSet():
            return 1 + sum(map(_size_of_v8, given))
        case _:
            return 1
