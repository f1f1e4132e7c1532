"""The broker of a store: which consumer gets the messages of its queues.

Of two processes with one state directory the first one consumes; when it ends, however it ends, the other takes over
within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from core.backends.embedded.queue.consumer import LOOK_EVERY, Consumer, ConsumerSettings, Handler
from core.backends.embedded.queue.database import Arrival, QueueDatabase
from core.backends.embedded.queue.messages import OutgoingMessage
from core.backends.embedded.store import Store
from core.bindings.queue import QueueSendMetadata, QueueSendResponse

_brokers: WeakKeyDictionary[Store, QueueBroker] = WeakKeyDictionary()


def broker_of(store: Store) -> QueueBroker:
    """The broker of a store: every queue of the store is in the one."""
    broker = _brokers.get(store)
    if broker is None:
        broker = _brokers[store] = QueueBroker(store)
    return broker


class QueueBroker(QueueDatabase):
    """All queues of a store, and who consumes them. `broker_of(store)` gives the one there is."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
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

    async def idle(self) -> None:
        """Return when no handler is running. Batches that wait for their time do not count."""
        while running := [consumer.running for consumer in self._consumers.values() if consumer.running is not None]:
            await asyncio.wait(running)

    async def send(self, verb: str, name: str, messages: Sequence[OutgoingMessage]) -> QueueSendResponse:
        """Store checked messages, all or none, and wake the consumer."""
        now = self.now()
        stored, metrics = await self.wait(verb, lambda: self.add(name, messages, now))
        self.arrived(name, stored)
        return QueueSendResponse(QueueSendMetadata(metrics))

    def arrived(self, name: str, stored: Sequence[Arrival]) -> None:
        """Hand new messages of a queue to its consumer, if it has one here."""
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
