"""The runtime's own queues: sending, and the batches that its `queue` event brings.

Bodies sent as JSON are written on this side, so that attrs classes, dates and exact whole numbers travel as they do
everywhere else, and are handed over as the value that the runtime will write as that very text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from core.backends.workerd.conversion import date_of, from_js, js_json, js_value, of_fields, options
from core.backends.workerd.engine import JsBacked, JsEngine, JsMethod, js_attribute, js_call
from core.backends.workerd.spans import PARENT, parent_to_send
from core.bindings.queue import (
    Message,
    MessageBatch,
    MessageBatchMetadata,
    MessageSendRequest,
    Queue,
    QueueContentType,
    QueueMetrics,
    QueueSendMetadata,
    QueueSendResponse,
)
from core.bindings.queue_limits import (
    MAX_BATCH_BYTES,
    MAX_MESSAGE,
    check_batch,
    check_content_type,
    check_delay,
    check_message,
    request_of,
    size_of,
    written,
)
from core.errors import QueueError, QueueTypeError


class WorkerdQueue(JsEngine, Queue[Any]):
    _errors = QueueError
    _metrics = js_call(Queue.metrics, lambda found: _metrics(from_js(found)))

    async def _send(
        self, body: object, *, content_type: QueueContentType = "json", delay_seconds: int | None = None
    ) -> QueueSendResponse:
        delay = check_delay("send", delay_seconds, None)
        parent, kind = parent_to_send(), check_content_type(str(content_type).lower(), content_type)
        value, size = _outgoing(body, kind, parent)
        if parent and size > MAX_MESSAGE:
            value, size = _outgoing(body, kind, "")  # rather a trace with a gap than a message refused
        check_message(size)
        return _response(await self._call("send", value, content_type=kind, delay_seconds=delay))

    async def _send_batch(
        self, messages: Iterable[MessageSendRequest[Any] | Mapping[str, object]], *, delay_seconds: int | None = None
    ) -> QueueSendResponse:
        requests = [request_of(message) for message in messages]
        if not requests:
            raise QueueTypeError("sendBatch() requires at least one message")
        parent = parent_to_send()
        outgoing, sizes = _entries(requests, parent)
        if parent and (max(sizes) > MAX_MESSAGE or sum(sizes) > MAX_BATCH_BYTES):
            outgoing, sizes = _entries(requests, "")
        check_batch(sizes)
        delay = check_delay("sendBatch", delay_seconds, None)
        return _response(await self._call("sendBatch", outgoing, delay_seconds=delay))


class WorkerdMessage(JsBacked, Message[Any]):
    """`Message` over the runtime's; its body crosses when it is first read."""

    id: JsMethod = js_attribute("id", str)
    timestamp: JsMethod = js_attribute("timestamp", date_of)
    attempts: JsMethod = js_attribute("attempts", int)
    ack: JsMethod = js_call(Message.ack)

    @property
    def body(self) -> object:
        return self._sent[0]

    @property
    def traceparent(self) -> str:
        """The span that sent it, where spans are collected."""
        return self._sent[1]

    @cached_property
    def _sent(self) -> tuple[object, str]:
        return _taken_apart(from_js(self._js.body))

    def retry(self, delay_seconds: int | None = None) -> None:
        self._now("retry", delay_seconds=check_delay("retry", delay_seconds, None))


class WorkerdMessageBatch(JsBacked, MessageBatch[Any]):
    queue: JsMethod = js_attribute("queue", str)
    messages: JsMethod = cached_property(lambda self: [*map(WorkerdMessage, self._js.messages)])
    ack_all: JsMethod = js_call(MessageBatch.ack_all)

    @property
    def traceparents(self) -> list[str]:
        """The spans that sent the messages, where spans are collected."""
        return [message.traceparent for message in self.messages if message.traceparent]

    @property
    def metadata(self) -> MessageBatchMetadata:
        found: dict[str, Any] = from_js(getattr(self._js, "metadata", None)) or {}
        return MessageBatchMetadata(_metrics(found.get("metrics")))

    def retry_all(self, delay_seconds: int | None = None) -> None:
        self._now("retryAll", delay_seconds=check_delay("retryAll", delay_seconds, None))


def _with_parent(body: object, parent: str) -> object:
    """The value to send for a body: itself, or in an object with the span that sends it.

    A body that looks like such an object is put into one, so that it arrives as it was sent.
    """
    whole = body  # not narrowed by what follows
    mistakable = isinstance(body, dict) and PARENT in body
    return {PARENT: parent, "body": whole} if parent or mistakable else whole


def _taken_apart(sent: Any) -> tuple[Any, str]:
    """The body of a message, and the span that sent it."""
    whole = sent  # not narrowed by what follows
    wrapped = isinstance(sent, dict) and PARENT in sent
    return (whole["body"], whole[PARENT]) if wrapped else (whole, "")


def _entries(requests: Iterable[MessageSendRequest[Any]], parent: str) -> tuple[list[object], list[int]]:
    """The messages of a batch as the runtime takes them, and the bytes of each."""
    entries: list[object] = []
    sizes: list[int] = []
    for request in requests:
        kind = check_content_type("json" if request.content_type is None else request.content_type)
        value, size = _outgoing(request.body, kind, parent)
        delay = options(delay_seconds=check_delay("sendBatch", request.delay_seconds, None))
        entries.append({"body": value, "contentType": kind, **delay})
        sizes.append(size)
    return entries, sizes


def _outgoing(body: object, kind: QueueContentType, parent: str) -> tuple[object, int]:
    """A body for the runtime, and the bytes of it that count."""
    value = written(_with_parent(body, parent) if kind in ("json", "v8") else body, kind)
    return js_json(value) if kind == "json" else js_value(value), size_of(value, kind)


def _response(answer: object) -> QueueSendResponse:
    found: dict[str, Any] = from_js(answer) or {}
    metadata: dict[str, Any] = found.get("metadata") or {}
    return QueueSendResponse(QueueSendMetadata(_metrics(metadata.get("metrics"))))


def _metrics(found: Mapping[str, object] | None) -> QueueMetrics:
    given = found or {}
    oldest = given.get("oldestMessageTimestamp")
    return of_fields(QueueMetrics, {**given, "oldestMessageTimestamp": None if oldest is None else date_of(oldest)})
