"""One queue's way to its handler: when a batch goes, and the outcome of its messages.

An attempt is counted before the handler runs, so that a message that ends the process each time runs out of attempts
as well. A queue has one consumer at a time: of two processes with one state directory the first one consumes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import attrs

from core.backends.embedded.disk import lock_file
from core.backends.embedded.queue.database import Arrival, QueueDatabase
from core.backends.embedded.queue.messages import Delivery, StoredMessage, to_datetime
from core.bindings.queue import MessageBatch
from core.context import TimerHandle

_log = logging.getLogger("core.queue")

# How often a broker on disk looks for messages of other processes, and whether their consumer is gone.
LOOK_EVERY: Final = 1.0

Handler: TypeAlias = Callable[[MessageBatch[Any]], Awaitable[None]]
"""Handles a batch: ending well acknowledges it, raising retries it."""


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """Settings of a consumer, with the platform's defaults.

    `max_batch_size`: 1 to 100 messages. `max_batch_timeout`: 0 to 60 seconds after the first message of a batch that is
    not full. `max_retries`: 0 to 100 deliveries after the first. `retry_delay`: seconds before a retry that names
    none. `dead_letter_queue`: where a message goes after its last attempt; without one it is dropped.
    """

    max_batch_size: int = 10
    max_batch_timeout: float = 5
    max_retries: int = 3
    retry_delay: int = 0
    dead_letter_queue: str | None = None


class Consumer:
    """One queue's way to its handler: the messages due, the delayed ones, and the time of the next batch."""

    def __init__(self, broker: QueueDatabase, name: str, handler: Handler, settings: ConsumerSettings) -> None:
        self.broker = broker
        self.name = name
        self.handler = handler
        self.settings = settings
        self.running: asyncio.Task[None] | None = None
        self._ready: deque[int] = deque()
        self._delayed: dict[int, TimerHandle] = {}
        self._delivering: set[int] = set()
        # The next batch, and whether it goes at once.
        self._pending: TimerHandle | asyncio.Handle | None = None
        self._at_once = False
        self._lock: int | None = None
        self.is_active: bool = False

    def start(self) -> None:
        """Become the queue's consumer, unless another process is."""
        path = self.broker.lock_path(self.name)
        if path is not None:
            lock = lock_file(path)
            if lock is None:
                return
            self._lock = lock
        self.is_active = True
        self.look()

    async def stop(self) -> None:
        """Let the running handler end, and deliver nothing more."""
        self.is_active = False
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        for timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        if self.running is not None and self.running is not asyncio.current_task():
            await asyncio.wait([self.running])
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def look(self) -> None:
        """Take up the messages of the database that are not known yet."""
        known = {*self._ready, *self._delayed, *self._delivering}
        self.arrived([(seq, due) for seq, due in self.broker.waiting(self.name) if seq not in known])

    def arrived(self, stored: Sequence[Arrival]) -> None:
        """Take up messages, in their order; those that are delayed when their time has come."""
        if not self.is_active:
            return
        now = self.broker.clock.time() * 1000
        for seq, due in stored:
            if due - now <= 0:
                self._ready.append(seq)
            else:
                self._delayed[seq] = self.broker.clock.call_later((due - now) / 1000, partial(self._due, seq))
        self._plan()

    def _due(self, seq: int) -> None:
        del self._delayed[seq]
        self._ready.append(seq)
        self._plan()

    def _plan(self) -> None:
        """Decide when the next batch goes: at once when it is full, else after the timeout from its first message."""
        if not self.is_active or self.running is not None or not self._ready:
            # A slow consumer holds back the next batch; it is planned when the handler has ended.
            return
        full = len(self._ready) >= self.settings.max_batch_size
        if self._pending is not None:
            if self._at_once or not full:
                return
            self._pending.cancel()
        self._at_once = full or self.settings.max_batch_timeout <= 0
        if self._at_once:
            self._pending = asyncio.get_running_loop().call_soon(self._go)
        else:
            self._pending = self.broker.clock.call_later(self.settings.max_batch_timeout, self._go)

    def _go(self) -> None:
        self._pending = None
        seqs = [self._ready.popleft() for _ in range(self._size())]
        self._delivering.update(seqs)
        self.running = asyncio.get_running_loop().create_task(self._deliver(seqs))

    def _size(self) -> int:
        """The number of messages in the next batch."""
        return min(len(self._ready), self.settings.max_batch_size)

    async def _deliver(self, seqs: Sequence[int]) -> None:
        try:
            rows = await self.broker.wait("delivery", lambda: self.broker.rows(seqs))
            # Their last attempt was begun by a process that ended before it could note their outcome.
            spent = [row for row in rows if row.failures > self.settings.max_retries]
            if spent:
                await self._write(spent, [], spent)
            if left := [row for row in rows if row not in spent]:
                await self.hand_over(left)
        except Exception:
            # The messages are in the database, and come again as if nothing had been decided. Not at once: what
            # was in the way (a full disk, another process) seldom goes by itself.
            _log.exception("a batch of the queue %s could not be settled; it will be delivered again", self.name)
            if self.is_active:
                for seq in seqs:
                    self._delayed[seq] = self.broker.clock.call_later(LOOK_EVERY, partial(self._due, seq))
        finally:
            self._delivering.clear()
            self.running = None
            self._plan()

    async def hand_over(self, rows: Sequence[StoredMessage]) -> tuple[Delivery[Any], Exception | None]:
        """Give messages to the handler as one batch, and carry out its decisions.

        Returns the batch, and the error that it raised.
        """
        await self.broker.wait("delivery", lambda: self.broker.begin(rows))
        batch: Delivery[Any] = Delivery(
            self.name,
            self.broker.metrics(self.name, without=len(rows), bytes_without=sum(len(row.body) for row in rows)),
            [row.traceparent for row in rows if row.traceparent],
        )
        for row in rows:
            batch.add(row.id, to_datetime(row.sent), row.read(), row.failures + 1)
        failure: Exception | None = None
        try:
            await self.handler(batch)
        except Exception as error:
            failure = error
            _log.error(
                "the consumer of the queue %s failed; the messages it did not acknowledge are retried",
                self.name,
                exc_info=error,
            )
        await self._settle(rows, batch, failure is not None)
        return batch, failure

    async def _settle(self, rows: Sequence[StoredMessage], batch: Delivery[Any], failed: bool) -> None:
        settings = self.settings
        again: list[tuple[StoredMessage, int]] = []
        dead: list[StoredMessage] = []
        for row in rows:
            if not batch.is_retried(row.id, failed=failed):
                continue
            if row.failures < settings.max_retries:
                again.append((row, batch.delay_of(row.id, settings.retry_delay)))
            else:
                dead.append(row._replace(failures=row.failures + 1))
        await self._write(rows, again, dead)

    async def _write(
        self, rows: Sequence[StoredMessage], again: Sequence[tuple[StoredMessage, int]], dead: Sequence[StoredMessage]
    ) -> None:
        letters = self.settings.dead_letter_queue
        for row in dead:
            where = "it is dropped" if letters is None else f"it goes to {letters}"
            _log.warning("message %s of the queue %s failed %d times; %s", row.id, self.name, row.failures, where)
        retried, moved = await self.broker.wait(
            "acknowledgement", lambda: self.broker.settle(rows, again, dead, letters)
        )
        if dead and self.broker.on_dead is not None:
            self.broker.on_dead(self.name, len(dead))
        self.arrived(retried)
        if letters is not None:
            self.broker.arrived(letters, moved)
