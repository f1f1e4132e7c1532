"""The queues of a store: sending to one, and the broker, which decides which consumer gets the messages.

Of two processes with one state directory the first one consumes; when it ends, however it ends, the other takes over
within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from typing_extensions import TypeVar

from core.backends.embedded.queue.consumer import LOOK_EVERY, Consumer, ConsumerSettings, Handler
from core.backends.embedded.queue.database import Arrival, QueueDatabase
from core.backends.embedded.queue.messages import Outgoing, stored_as
from core.backends.embedded.store import Database, Store
from core.bindings.calls import Hookable
from core.bindings.queue import (
    MessageSendRequest,
    MessageSendRequestDict,
    Queue,
    QueueContentType,
    QueueMetrics,
    QueueSendMetadata,
    QueueSendResponse,
)
from core.bindings.queue_limits import (
    MAX_BATCH_BYTES,
    check_batch,
    check_content_type,
    check_delay,
    check_message,
    request_of,
    size_of,
    written,
)
from core.context import Clock
from core.errors import QueueTypeError

T = TypeVar("T", default=Any)


def broker_of(store: Store) -> QueueBroker:
    """The broker of a store: every queue of the store is in the one."""
    database = store.database("queues", "messages")
    if database.engine is None:
        database.engine = QueueBroker(database, store.clock)
    broker: QueueBroker = database.engine
    return broker


class QueueBroker(QueueDatabase):
    """All queues of a store, and who consumes them. `broker_of(store)` gives the one there is."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._consumers: dict[str, Consumer] = {}
        self._looking: asyncio.Task[None] | None = None
        self._data_version = 0

    def consume(
        self,
        name: str,
        handler: Handler,
        settings: ConsumerSettings | None = None,
        *,
        consumer: Callable[[QueueDatabase, str, Handler, ConsumerSettings], Consumer] = Consumer,
    ) -> None:
        """Hand the messages of a queue to `handler`, from now on. Call it with the event loop running.

        Messages that wait already, from before a restart too, come first. Raises ValueError when the queue has a
        consumer in this process.
        """
        if name in self._consumers:
            raise ValueError(f"the queue {name!r} has a consumer already. A queue has one consumer")
        made = self._consumers[name] = consumer(self, name, handler, settings or ConsumerSettings())
        made.start()
        if self._database.path is not None and self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def cancel(self, name: str) -> None:
        """Stop consuming a queue, once its running handler has ended. Undelivered messages stay."""
        consumer = self._consumers.pop(name, None)
        if consumer is not None:
            await consumer.stop()

    async def close(self) -> None:
        """Stop consuming every queue, once the running handlers have ended. Undelivered messages stay."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        for name in [*self._consumers]:
            await self.cancel(name)

    async def send(self, verb: str, name: str, messages: Sequence[Outgoing]) -> QueueSendResponse:
        """Store checked messages, all or none, and wake the consumer."""
        now = self.now()
        stored, metrics = await self.wait(verb, lambda: self.add(name, messages, now))
        self.arrived(name, stored)
        return QueueSendResponse(QueueSendMetadata(metrics))

    def arrived(self, name: str, stored: Sequence[Arrival]) -> None:
        consumer = self._consumers.get(name)
        if consumer is not None and stored:
            consumer.arrived(stored)

    # ------------------------------------------------------------------ other processes

    async def _look(self) -> None:
        """Look for messages of other processes, and take over the queues whose consumer has gone."""
        while True:
            # The machine's own time: other processes do not follow a test's clock.
            await asyncio.sleep(LOOK_EVERY)
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            changed, self._data_version = version != self._data_version, version
            for consumer in [*self._consumers.values()]:
                if not consumer.is_active:
                    consumer.start()
                elif changed:
                    consumer.look()


class EmbeddedQueue(Hookable, Queue[T]):
    """The sending side of the queue `name` of `store`. Two objects of one name are one queue.

    `delivery_delay`: seconds that a message waits when its send names no delay. `max_batch_bytes`: what `send_batch`
    takes at most.
    """

    def __init__(
        self, store: Store, name: str, *, delivery_delay: int = 0, max_batch_bytes: int = MAX_BATCH_BYTES
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
        value = written(body, kind)
        data = stored_as(value, kind)
        check_message(size_of(value, kind))
        delay = check_delay("send", delay_seconds, self._delivery_delay)
        return await self._broker.send("send", self.name, [(kind, data, delay)])

    async def _send_batch(
        self, messages: Iterable[MessageSendRequest[T] | MessageSendRequestDict[T]], *, delay_seconds: int | None = None
    ) -> QueueSendResponse:
        requests = [request_of(message) for message in messages]
        if not requests:
            raise QueueTypeError("sendBatch() requires at least one message")
        bodies: list[tuple[QueueContentType, bytes]] = []
        sizes: list[int] = []
        for request in requests:
            kind = check_content_type("json" if request.content_type is None else request.content_type)
            value = written(request.body, kind)
            bodies.append((kind, stored_as(value, kind)))
            sizes.append(size_of(value, kind))
        check_batch(sizes, most=self._max_batch_bytes)
        common = check_delay("sendBatch", delay_seconds, self._delivery_delay)
        delays = [check_delay("sendBatch", request.delay_seconds, common) for request in requests]
        outgoing: list[Outgoing] = [(kind, data, delay) for (kind, data), delay in zip(bodies, delays, strict=True)]
        return await self._broker.send("sendBatch", self.name, outgoing)

    async def _metrics(self) -> QueueMetrics:
        return await self._broker.wait("metrics", lambda: self._broker.metrics(self.name))
