"""Every queue keeps the contract, from the sender to the consumer."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.contract import Case
from tests.contracts.places import Kind, standing_in
from tests.contracts.queue import Handler, Line, contract

from core.backends.embedded.queue import ConsumerSettings, EmbeddedQueue, QueueBroker, broker_of
from core.backends.embedded.store import Store
from core.testing.clock import FakeClock
from core.testing.queue import FakeQueue


class EmbeddedLine:
    """A queue of a store, and the store's broker."""

    def __init__(self, queue: EmbeddedQueue[Any], broker: QueueBroker) -> None:
        self.queue = queue
        self._broker = broker

    async def consume(
        self,
        handler: Handler,
        *,
        max_batch_size: int = 10,
        max_batch_timeout: float = 1,
        max_retries: int = 3,
        retry_delay: int = 0,
        dead_letters: Handler | None = None,
    ) -> None:
        letters = None
        if dead_letters is not None:
            letters = f"{self.queue.name}-dead"
            self._broker.consume(letters, dead_letters, ConsumerSettings(max_batch_size=1, max_batch_timeout=1))
        settings = ConsumerSettings(
            max_batch_size=max_batch_size,
            max_batch_timeout=max_batch_timeout,
            max_retries=max_retries,
            retry_delay=retry_delay,
            dead_letter_queue=letters,
        )
        self._broker.consume(self.queue.name, handler, settings)

    async def stop(self) -> None:
        await self._broker.close()


def embedded(store: Store, name: str) -> Line:
    return EmbeddedLine(EmbeddedQueue(store, name), broker_of(store))


def fake(clock: FakeClock, name: str) -> Line:
    queue: FakeQueue[Any] = FakeQueue(name, clock=clock)
    return EmbeddedLine(queue, queue.broker)


KIND: Kind[Line] = Kind(contract, embedded, fake)


async def test_a_queue_keeps_its_contract(
    case_in_place: tuple[str, Case[Line]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name, case = case_in_place
    caplog.set_level(logging.CRITICAL, "core.queue")
    with standing_in(name, KIND, tmp_path) as place:
        await case.run(place.binding, other=place.other, clock=place.clock)
        await place.binding.stop()
