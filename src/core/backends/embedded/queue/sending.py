"""The sending side of a queue: the limits of one message and of one batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typing_extensions import TypeVar

from core.backends.embedded.queue.broker import broker_of
from core.backends.embedded.queue.messages import OutgoingMessage, check_content_type, serialise
from core.backends.embedded.store import Store
from core.bindings.calls import Hookable
from core.bindings.queue import (
    MessageSendRequest,
    MessageSendRequestDict,
    Queue,
    QueueContentType,
    QueueMetrics,
    QueueSendResponse,
)
from core.bindings.queue_limits import (
    MAX_BATCH_BYTES,
    check_batch,
    check_delay,
    check_message,
    request_of,
    size_of_v8,
)
from core.errors import QueueTypeError

T = TypeVar("T", default=Any)


class EmbeddedQueue(Hookable, Queue[T]):
    """The sending side of the queue `name` of `store`. Two objects of one name are one queue.

    `delivery_delay`: seconds that a message waits when its send names no delay. `max_batch_bytes`: what `send_batch`
    takes at most.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        delivery_delay: int = 0,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        self.name = name
        self._broker = broker_of(store)
        self._delivery_delay = delivery_delay
        self._max_batch_bytes = max_batch_bytes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} in {self._broker.location}>"

    async def _send(
        self, body: T, *, content_type: QueueContentType = "json", delay_seconds: int | None = None
    ) -> QueueSendResponse:
        # A single send takes the name of a content type in any case, a batch does not: so the platform.
        kind = check_content_type(str(content_type).lower(), content_type)
        data = serialise(body, kind)
        check_message(_size(body, kind, data))
        delay = self._delivery_delay if delay_seconds is None else check_delay("send", delay_seconds)
        return await self._broker.send("send", self.name, [OutgoingMessage(kind, data, delay)])

    async def _send_batch(
        self,
        messages: Iterable[MessageSendRequest[T] | MessageSendRequestDict[T]],
        *,
        delay_seconds: int | None = None,
    ) -> QueueSendResponse:
        requests = [request_of(message) for message in messages]
        if not requests:
            raise QueueTypeError("sendBatch() requires at least one message")
        bodies: list[tuple[QueueContentType, bytes]] = []
        for request in requests:
            kind = check_content_type("json" if request.content_type is None else request.content_type)
            bodies.append((kind, serialise(request.body, kind)))
        sizes = [_size(request.body, kind, data) for request, (kind, data) in zip(requests, bodies, strict=True)]
        check_batch(sizes, most=self._max_batch_bytes)
        common = self._delivery_delay if delay_seconds is None else check_delay("sendBatch", delay_seconds)
        outgoing = [
            OutgoingMessage(
                kind, data, common if request.delay_seconds is None else check_delay("sendBatch", request.delay_seconds)
            )
            for request, (kind, data) in zip(requests, bodies, strict=True)
        ]
        return await self._broker.send("sendBatch", self.name, outgoing)

    async def _metrics(self) -> QueueMetrics:
        return await self._broker.wait("metrics", lambda: self._broker.metrics(self.name))


def _size(body: Any, kind: QueueContentType, data: bytes) -> int:
    """The bytes that count. Those of `v8` are not stored in V8's format."""
    return size_of_v8(body) if kind == "v8" else len(data)
