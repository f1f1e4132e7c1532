"""A message: the values that may be sent, the bytes that are stored of them, and the values that come back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import attrs

from core.backends.embedded.clone import CloneError, dump, load
from core.bindings.numbers import refuse_large_numbers
from core.bindings.queue import QueueContentType
from core.bindings.queue_limits import refuse_body
from core.errors import QueueTypeError
from core.http.streams import encode

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


def serialise(body: Any, kind: QueueContentType) -> bytes:
    """A body as the bytes of its content type. Raises QueueTypeError where the two do not fit."""
    given = body  # not narrowed by what follows
    match kind:
        case "text":
            if not isinstance(body, str):
                refuse_body("text", "string", body)
            # The platform cuts a string at its first NUL.
            text = body.partition("\0")[0]
            return encode(text)
        case "bytes":
            if not isinstance(body, (bytes, bytearray, memoryview)):
                refuse_body("bytes", "ArrayBufferView", body)
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


def to_datetime(milliseconds: int) -> datetime:
    """The moment that is `milliseconds` after 1970 began, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
