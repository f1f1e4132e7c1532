"""A queue: its sending side, and the batches of messages that a consumer gets.

Bodies are JSON by default, so that `Queue[Job]` of an attrs class is sent as its JSON and structured as a `Job`
again for a consumer that takes a `MessageBatch[Job]`. This file knows no delivery.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, NotRequired, Protocol, Required, TypeAlias, runtime_checkable

from typing_extensions import ReadOnly, TypedDict, TypeVar

from core.bindings import binding_call
from core.values import frozen

__all__ = [
    "Message",
    "MessageBatch",
    "MessageBatchMetadata",
    "MessageSendRequest",
    "MessageSendRequestDict",
    "Queue",
    "QueueContentType",
    "QueueMetrics",
    "QueueSendMetadata",
    "QueueSendResponse",
]

T_co = TypeVar("T_co", covariant=True, default=Any)
T_contra = TypeVar("T_contra", contravariant=True, default=Any)

QueueContentType: TypeAlias = Literal["text", "bytes", "json", "v8"]
"""The encoding of a body: `json` (the default), `text` for str, `bytes` for bytes, `v8` for what JSON lacks."""


@frozen
class QueueMetrics:
    """The backlog of a queue: messages, their bytes, and the time the oldest one was sent."""

    backlog_count: int = 0
    backlog_bytes: int = 0
    oldest_message_timestamp: datetime | None = None


@frozen
class QueueSendMetadata:
    """Metadata about a queue, for the sender."""

    metrics: QueueMetrics = QueueMetrics()


@frozen
class QueueSendResponse:
    """The answer to a send. The message is kept: it will be delivered at least once."""

    metadata: QueueSendMetadata = QueueSendMetadata()


@frozen
class MessageBatchMetadata:
    """Metadata about a queue, for its consumer."""

    metrics: QueueMetrics = QueueMetrics()


@frozen
class MessageSendRequest(Generic[T_co]):
    """One message of `send_batch`. Its own `delay_seconds` wins over the batch's, 0 included."""

    body: T_co
    content_type: QueueContentType | None = None
    delay_seconds: int | None = None


class MessageSendRequestDict(TypedDict, Generic[T_co]):
    """`MessageSendRequest` as a plain dict."""

    body: Required[ReadOnly[T_co]]
    content_type: NotRequired[ReadOnly[QueueContentType | None]]
    delay_seconds: NotRequired[ReadOnly[int | None]]


@runtime_checkable
class Queue(Protocol[T_contra]):
    """The sending side of a queue whose messages are `T`.

    Limits: 128,000 bytes for a message (JSON counts its quotes), 100 messages and 256,000 bytes for a batch,
    delays of 0 to 86,400 seconds. More than that raises QueueError; a bad message refuses its whole batch.
    When a send returns, the message is stored.
    """

    @binding_call
    async def send(
        self, body: T_contra, *, content_type: QueueContentType = "json", delay_seconds: int | None = None
    ) -> QueueSendResponse:
        """Send one message, to be delivered no earlier than `delay_seconds` from now.

        Without `delay_seconds` the queue's own `delivery_delay` holds; 0 means now. Raises QueueTypeError when
        the body is not of the content type: `text` needs str, `bytes` needs bytes, `json` what JSON can say (attrs
        classes, dates, UUIDs, decimals and enums included, NaN not).
        """
        raise AssertionError

    @binding_call
    async def send_batch(
        self,
        messages: Iterable[MessageSendRequest[T_contra] | MessageSendRequestDict[T_contra]],
        *,
        delay_seconds: int | None = None,
    ) -> QueueSendResponse:
        """Send 1 to 100 messages, all or none. `delay_seconds` is for those that have none of their own.

        Raises QueueTypeError for an empty batch (`sendBatch() requires at least one message`).
        """
        raise AssertionError

    @binding_call
    async def metrics(self) -> QueueMetrics:
        """Return the number of messages that wait in the queue. Approximate in production."""
        raise AssertionError


@runtime_checkable
class Message(Protocol[T_co]):
    """A message as its consumer sees it. The first of `ack` and `retry` counts; of several `retry`, the last delay."""

    @property
    def id(self) -> str:
        """The same at every attempt, and in the dead letter queue."""
        ...

    @property
    def timestamp(self) -> datetime:
        """The time at which it was sent; the same at every attempt."""
        ...

    @property
    def body(self) -> T_co:
        """The value that was sent."""
        ...

    @property
    def attempts(self) -> int:
        """The number of this attempt, from 1: one whose process ended counts, and a dead letter queue begins anew."""
        ...

    def ack(self) -> None:
        """Be done with it, even when the handler fails later on."""
        ...

    def retry(self, delay_seconds: int | None = None) -> None:
        """Have it delivered again, `delay_seconds` from now at the earliest (0 to 86,400).

        Without `delay_seconds` that of `retry_all` holds, else the consumer's `retry_delay`, else 0. After the last
        attempt it goes to the dead letter queue, or nowhere when there is none.
        """
        ...


@runtime_checkable
class MessageBatch(Protocol[T_co]):
    """Some messages of one queue, in the order of their arrival, which is best effort in production.

    When the handler returns, all that was not retried is acknowledged. When it raises, all that was not
    acknowledged is retried. Messages are delivered at least once: be ready for one that was there before.
    """

    @property
    def queue(self) -> str:
        """The queue's name."""
        ...

    @property
    def messages(self) -> Sequence[Message[T_co]]:
        """The messages; at least one."""
        ...

    @property
    def metadata(self) -> MessageBatchMetadata:
        """The number of messages that still wait in the queue."""
        ...

    def ack_all(self) -> None:
        """Be done with the batch, except messages retried before. After it `retry` and `retry_all` do nothing."""
        ...

    def retry_all(self, delay_seconds: int | None = None) -> None:
        """Have all delivered again, except messages acknowledged before. After it `ack` and `ack_all` do nothing."""
        ...
