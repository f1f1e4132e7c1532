"""A message: the values that may be sent, the bytes that are stored of them, and the values that come back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, NoReturn, TypeAlias

import attrs

from core.backends.embedded.clone import CloneError, dump, load
from core.bindings.numbers import refuse_large_numbers
from core.bindings.queue import MessageSendRequest, QueueContentType
from core.errors import QueueError, QueueTypeError
from core.http.streams import encode

MAX_DELAY: Final = 86_400

MessageRow: TypeAlias = tuple[str, str, str, bytes, int, int, int, str, int]
"""Queue, id, content type, body, when it was sent, when it is due, failures, traceparent, failures in other queues."""


@attrs.frozen
class OutgoingMessage:
    """A message that was checked and is to be stored. `delay` is in seconds."""

    content_type: QueueContentType
    body: bytes
    delay: int


@attrs.frozen
class StoredMessage:
    """A message as it is stored. Times are in milliseconds since 1970.

    `failures`: attempts that were begun and not acknowledged, those included whose process ended meanwhile.
    """

    seq: int
    id: str
    content_type: QueueContentType
    body: bytes
    sent: int
    failures: int
    traceparent: str = ""
    """The span that sent it, where one was running."""
    failed_before: int = 0
    """Its failures in the queue whose dead letter it is."""

    def stored_in(self, queue: str, due: int, failures: int, *, failed_before: int | None = None) -> MessageRow:
        """Its row when it is stored again, in this queue or another."""
        before = self.failed_before if failed_before is None else failed_before
        return queue, self.id, self.content_type, self.body, self.sent, due, failures, self.traceparent, before

    def read(self) -> Any:
        """The body, as it was sent."""
        match self.content_type:
            case "text":
                return self.body.decode("utf-8", "replace")
            case "bytes":
                return self.body
            case "json":
                from core.http.json import loads

                return loads(self.body)
            case "v8":
                return load(self.body)


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


_CONTENT_TYPES: Final[Mapping[object, QueueContentType]] = {
    "text": "text",
    "bytes": "bytes",
    "json": "json",
    "v8": "v8",
}


def check_content_type(kind: str, given: object = None) -> QueueContentType:
    """`kind` as a content type. Raises QueueTypeError, with `given` as the caller wrote it, for an unknown one."""
    known = _CONTENT_TYPES.get(kind)
    if known is None:
        raise QueueTypeError(f"Unsupported queue message content type: {kind if given is None else given}")
    return known


def check_delay(verb: Literal["send", "sendBatch", "retry", "retryAll"], seconds: object) -> int:
    """A delay in whole seconds. Raises QueueTypeError for anything but a number, QueueError for one out of range."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        raise QueueTypeError(f"delay_seconds must be a number of seconds, not {seconds!r}")
    whole = int(seconds)
    if not 0 <= whole <= MAX_DELAY:
        raise QueueError(
            f"Queue {verb} failed: message delay {whole} is invalid: it must be between 0 and {MAX_DELAY} seconds"
        )
    return whole


def serialise(body: Any, kind: QueueContentType) -> bytes:
    """A body as the bytes of its content type. Raises QueueTypeError where the two do not fit."""
    given = body  # not narrowed by what follows
    match kind:
        case "text":
            if not isinstance(body, str):
                _refuse_body("text", "string", body)
            # The platform cuts a string at its first NUL.
            text = body.partition("\0")[0]
            return encode(text)
        case "bytes":
            if not isinstance(body, (bytes, bytearray, memoryview)):
                _refuse_body("bytes", "ArrayBufferView", body)
            return bytes(given)
        case "json":
            from core.http.json import dumps

            try:
                text = dumps(body)
                refuse_large_numbers(text)
                return text.encode()
            except (TypeError, ValueError) as error:
                raise QueueTypeError(f"A message of the content type json cannot be written: {error}") from error
        case "v8":
            try:
                return dump(body)
            except CloneError as error:
                clone_error = QueueTypeError(f"A message of the content type v8 could not be cloned: {error}")
                clone_error.js_name = "DataCloneError"
                raise clone_error from error


def _refuse_body(kind: str, wanted: str, body: object) -> NoReturn:
    match body:
        case bool():
            got = "boolean"
        case int() | float():
            got = "number"
        case str():
            got = "string"
        case _ if callable(body):
            got = "function"
        case _:
            got = "object"
    raise QueueTypeError(f'Content Type "{kind}" requires a value of type {wanted}, but received: {got}')


def to_datetime(milliseconds: int) -> datetime:
    """The moment that is `milliseconds` after 1970 began, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
