"""`FakeQueue`: the embedded queue in memory, with a record of sent messages, deliveries when a test asks for them, and
faults.

`message_batch` makes a batch out of nothing, for `app.consume`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from core.backends.embedded.queue import Consumer, ConsumerSettings, Delivery, EmbeddedQueue, QueueBroker, StoredMessage
from core.backends.embedded.queue.database import QueueDatabase
from core.backends.embedded.store import Store
from core.bindings.calls import BindingCall
from core.bindings.queue import (
    MessageBatch,
    MessageSendRequest,
    MessageSendRequestDict,
    QueueContentType,
    QueueSendResponse,
)
from core.bindings.queue_limits import request_of
from core.context import Clock, system_clock
from core.errors import HandlerError
from core.router import Router
from core.testing import seam
from core.testing.calls import Call, Faulty

__all__ = ["FakeQueue", "SentMessage", "message_batch"]

T = TypeVar("T", default=Any)

Handler = Callable[[MessageBatch[Any]], Awaitable[None]]


@attrs.frozen
class SentMessage(Generic[T]):
    """A message as it was sent: a copy of the object, and the options that were given."""

    body: T
    content_type: QueueContentType = "json"
    delay_seconds: int | None = None


class FakeQueue(Faulty, EmbeddedQueue[T]):
    """A `Queue[T]` in memory for tests, with the semantics of the embedded one.

        jobs: FakeQueue[Job] = FakeQueue(clock=clock)
        ...
        assert jobs.sent == [Job("welcome", "ada")]
        await jobs.deliver(lambda batch: app.consume(batch, env, ctx))

    `name`: the queue's name, as a batch has it. `clock`: the clock of delays and timestamps. `latency`: seconds on the
    clock that every call takes. `settings`: how it is consumed, the platform's defaults when None. Without a delivery
    nothing is consumed: sent messages wait.
    """

    def __init__(
        self,
        name: str = "queue",
        *,
        clock: Clock = system_clock,
        latency: float = 0.0,
        delivery_delay: int = 0,
        settings: ConsumerSettings | None = None,
    ) -> None:
        self.settings: ConsumerSettings = settings or ConsumerSettings()
        self.messages: list[SentMessage[T]] = []
        """Every message that was sent, in order, with its options."""
        super().__init__(Store(clock=clock), name, delivery_delay=delivery_delay)
        self._begin(name, "queue", clock, latency)
        self._delivered: list[StoredMessage] = []

    @property
    def sent(self) -> list[T]:
        """The body of every message that was sent, in order, as it was then: a later change is not in it."""
        return [message.body for message in self.messages]

    async def send(
        self, body: T, *, content_type: QueueContentType = "json", delay_seconds: int | None = None
    ) -> QueueSendResponse:
        """Send one message. See `Queue.send`."""
        body = _copied(body)
        response = await super().send(body, content_type=content_type, delay_seconds=delay_seconds)
        self.messages.append(SentMessage(body, content_type, delay_seconds))
        return response

    async def send_batch(
        self, messages: Iterable[MessageSendRequest[T] | MessageSendRequestDict[T]], *, delay_seconds: int | None = None
    ) -> QueueSendResponse:
        """Send several messages. See `Queue.send_batch`."""
        requests = [request_of(_copied(message)) for message in messages]
        response = await super().send_batch(requests, delay_seconds=delay_seconds)
        for request in requests:
            delay = delay_seconds if request.delay_seconds is None else request.delay_seconds
            self.messages.append(SentMessage(request.body, request.content_type or "json", delay))
        return response

    # ------------------------------------------------------------------ the other end

    @property
    def broker(self) -> QueueBroker:
        """The broker that hands the messages to consumers."""
        return self._broker

    @property
    def waiting(self) -> int:
        """The number of messages that wait, delayed ones included."""
        return len(self.broker.waiting(self.name))

    async def deliver(self, handler: Handler) -> list[Delivery[Any]]:
        """Hand all that is due now to `handler`, in batches of the settings' size, and return the batches.

        Each batch has the decisions: `acked`, `retried`, `all_acked`, `all_retried`. Retried messages are in the
        queue again, due after their delay; after the last attempt they are in `dead`, if the settings name a dead
        letter queue. The handler's error is raised, after its batch was retried. Raises HandlerError for an
        application: its `consume` wants an Env and a context too.
        """
        _checked("deliver", handler)
        broker = self.broker
        now = broker.now()
        due = [seq for seq, at in broker.waiting(self.name) if at <= now]
        consumer = _FakeConsumer(self, broker, self.name, handler, self.settings)
        size = self.settings.max_batch_size
        batches: list[Delivery[Any]] = []
        self._delivered = []
        # A simulation may cut the batches otherwise, and leave the last message for a later delivery.
        size -= seam.running.draw("queue", min(size, len(due)))
        due = due[: len(due) - seam.running.draw("queue", 2)]
        for start in range(0, len(due), size):
            try:
                batch, failure = await consumer.hand_over(broker.rows(due[start : start + size]))
            except _UndecidedError:  # the messages wait for the next delivery
                continue
            batches.append(batch)
            if failure is not None:
                raise failure
        return batches

    def redeliver(self) -> int:
        """Put back the messages of the last `deliver`, or of the last batch of `consume`: each comes at least once.

        Returns how many messages that were. They keep id, timestamp and attempts. Those that wait already, since they
        were retried, are not doubled.
        """
        broker = self.broker
        waiting = {row.id for row in broker.rows([seq for seq, _ in broker.waiting(self.name)])}
        again = [row for row in self._delivered if row.id not in waiting]
        broker.put_back(self.name, again)
        return len(again)

    def dead(self) -> list[Any]:
        """The bodies in the dead letter queue, in order."""
        letters = self.settings.dead_letter_queue
        if letters is None:
            return []
        broker = self.broker
        return [row.read() for row in broker.rows([seq for seq, _ in broker.waiting(letters)])]

    def consume(self, handler: Handler) -> None:
        """Deliver to `handler` from now on, as the clock moves: `await clock.advance(5)`. Needs the running loop."""
        _checked("consume", handler)
        self.broker.consume(self.name, handler, self.settings, consumer=partial(_FakeConsumer, self))

    async def stop(self) -> None:
        """End the consumer that `consume` began."""
        await self.broker.cancel(self.name)

    def _recorded(self, call: BindingCall) -> Call:
        """As with every fake, without the content type where it is the usual one."""
        args, options = call.canonical()
        return Call(call.method, args, {name: value for name, value in options.items() if value != "json"})


class _UndecidedError(Exception):
    """The isolate of a batch died before it had decided about its messages."""


class _FakeConsumer(Consumer):
    """Delivers a queue's messages. A simulation may make a batch smaller, end its isolate, and put messages back."""

    def __init__(
        self, queue: FakeQueue[Any], broker: QueueDatabase, name: str, handler: Handler, settings: ConsumerSettings
    ) -> None:
        super().__init__(broker, name, handler, settings)
        self._queue = queue

    def _size(self) -> int:
        size = super()._size()
        return size - seam.running.draw("queue", size)

    async def hand_over(self, rows: Sequence[StoredMessage]) -> tuple[Delivery[Any], Exception | None]:
        """See `Consumer.hand_over`. Raises _UndecidedError where the isolate died."""
        queue = self._queue
        queue._delivered = [*([] if self.is_active else queue._delivered), *rows]
        handed = await seam.running.event(f"batch of {self.name}", 0, partial(super().hand_over, rows))
        if seam.running.draw("queue", 2):
            queue.redeliver()
        if handed is None:
            raise _UndecidedError(f"the isolate of a batch of {self.name} died")
        return handed


def _checked(method: str, handler: object) -> None:
    """Refuse an application, which could be called, but as a router of requests."""
    if isinstance(handler, Router):
        raise HandlerError(
            f"{method} was given an application, which takes requests. Hand it each batch: "
            f"{method}(lambda batch: app.consume(batch, env, ctx))"
        )


def _copied(value: T) -> T:
    try:
        return deepcopy(value)
    except Exception:  # whatever cannot be copied cannot be sent either, which the queue says in its own words
        return value


def message_batch(
    queue: str, bodies: Iterable[T], *, attempts: int = 1, timestamp: datetime | None = None
) -> Delivery[T]:
    """A batch for `app.consume`, of these bodies, with ids `1`, `2`, ...

    The consumer's decisions are on it: `acked` and `retried` by id, `all_acked`, `all_retried`.
    """
    batch: Delivery[T] = Delivery(queue)
    for number, body in enumerate(bodies, 1):
        batch.add(str(number), timestamp or datetime(2026, 1, 1, tzinfo=UTC), body, attempts)
    return batch
