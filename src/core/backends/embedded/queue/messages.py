"""A message: the values that may be sent, the bytes that are stored of them, and the values that come back; and a batch
as its consumer has it: which of ack and retry holds for each message, whatever was called in which order.

The recordings in `tests/traces` decide; where the platform's documentation says otherwise (an acknowledged message
stays so when the handler raises), the documentation does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeAlias

import attrs
from typing_extensions import TypeVar

from core.backends.embedded.clone import CloneError, dump, load
from core.bindings.queue import MessageBatchMetadata, QueueContentType, QueueMetrics
from core.bindings.queue_limits import check_delay
from core.errors import QueueTypeError
from core.http.json import loads
from core.http.streams import encode

T = TypeVar("T", default=Any)

_log = logging.getLogger("core.queue")

Outgoing: TypeAlias = tuple[QueueContentType, bytes, int]
"""Content type, body, and delay in seconds of a message that was checked and is to be stored."""


class StoredMessage(NamedTuple):
    """A message as its row has it. Times are in milliseconds since 1970.

    `failures`: attempts that were begun and not acknowledged, those included whose process ended meanwhile.
    """

    seq: int
    queue: str
    id: str
    content_type: QueueContentType
    body: bytes
    sent: int
    due: int
    failures: int
    traceparent: str
    """The span that sent it, where one was running."""
    failed_before: int
    """Its failures in the queue whose dead letter it is."""

    def read(self) -> object:
        match self.content_type:
            case "text":
                return self.body.decode("utf-8", "replace")
            case "bytes":
                return self.body
            case "json":
                return loads(self.body)
            case "v8":
                return load(self.body)


def stored_as(value: Any, kind: QueueContentType) -> bytes:
    """The bytes that are stored of a body, which is as `written` gives it. Raises QueueTypeError for `v8`."""
    if kind != "v8":
        return value if kind == "bytes" else encode(value)
    try:
        return dump(value)
    except CloneError as error:
        clone_error = QueueTypeError(f"A message of the content type v8 could not be cloned: {error}")
        clone_error.js_name = "DataCloneError"
        raise clone_error from error


def to_datetime(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


@attrs.define(eq=False, repr=False)
class DeliveredMessage(Generic[T]):
    """A message of a batch, and its consumer's decision about it. See `Message`."""

    _delivery: Delivery[T]
    id: str
    timestamp: datetime
    body: T
    attempts: int

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self._delivery.queue!r}, attempt {self.attempts}: {self.body!r:.80}>"

    def ack(self) -> None:
        self._delivery.ack(self.id)

    def retry(self, delay_seconds: int | None = None) -> None:
        self._delivery.retry(self.id, delay_seconds)


class Delivery(Generic[T]):
    """A batch, and its consumer's decisions about it. See `MessageBatch`.

    `add` fills it; afterwards `acked`, `retried`, `all_acked` and `all_retried` are the calls that were made, the first
    call winning wherever two contradict each other. Of several retries of one message the last one's delay holds, as on
    the platform; a `retry_all` without a delay keeps that of the one before.
    """

    def __init__(self, queue: str, metrics: QueueMetrics | None = None, traceparents: Sequence[str] = ()) -> None:
        self.queue = queue
        self.traceparents: Sequence[str] = traceparents
        """The spans that sent its messages, for whoever traces."""
        self.metadata: MessageBatchMetadata = MessageBatchMetadata(QueueMetrics() if metrics is None else metrics)
        self.messages: list[DeliveredMessage[T]] = []
        self.acked: set[str] = set()
        self.retried: dict[str, int | None] = {}
        self.all_acked: bool = False
        self.all_retried: bool = False
        self.delay: int | None = None

    def __repr__(self) -> str:
        return f"<MessageBatch of {self.queue!r} with {len(self.messages)} messages>"

    def add(self, id: str, timestamp: datetime, body: T, attempts: int = 1) -> None:
        self.messages.append(DeliveredMessage(self, id, timestamp, body, attempts))

    def ack_all(self) -> None:
        if self.all_retried:
            self._warn("ack_all()", "retry_all()")
        else:
            self.all_acked = True

    def retry_all(self, delay_seconds: int | None = None) -> None:
        delay = check_delay("retryAll", delay_seconds, None)
        if self.all_acked:
            self._warn("retry_all()", "ack_all()")
        else:
            self.all_retried = True
            self.delay = self.delay if delay is None else delay

    def ack(self, id: str) -> None:
        if self.all_retried:
            self._warn(f"ack() on message {id}", "retry_all()")
        elif id in self.retried:
            self._warn(f"ack() on message {id}", "retry()")
        elif not self.all_acked:
            self.acked.add(id)

    def retry(self, id: str, delay_seconds: int | None) -> None:
        delay = check_delay("retry", delay_seconds, None)
        if self.all_acked:
            self._warn(f"retry() on message {id}", "ack_all()")
        elif id in self.acked:
            self._warn(f"retry() on message {id}", "ack()")
        else:
            self.retried[id] = delay

    def _warn(self, call: str, before: str) -> None:
        _log.warning("%s after %s had been called has no effect (queue %s)", call, before, self.queue)

    def is_retried(self, id: str, *, failed: bool) -> bool:
        """True if a message is to come again, when the handler has `failed` or ended well."""
        if id in self.retried:
            return True
        if id in self.acked or self.all_acked:
            return False
        return self.all_retried or failed

    def delay_of(self, id: str, default: int) -> int:
        """Seconds before a retried message comes again."""
        own = self.retried.get(id)
        if own is not None:
            return own
        return default if self.delay is None else self.delay
