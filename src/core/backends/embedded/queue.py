"""The embedded queues: messages in SQLite, and a broker that hands them to consumers in batches.

One database holds all queues of a store, so that a move to a dead letter queue is one transaction and no message
is ever in none of them. A send returns when its row is committed; a message's row goes when its handler is done
with it. So every message is delivered at least once, whatever ends the process, and twice only when it ended
between the handler's last line and the commit.

When a batch goes, in which order, and what ack and retry do follows the recordings in `tests/traces`; where the
platform's documentation says otherwise (an acknowledged message stays so when the handler raises; defaults of 10
messages, 5 seconds and 3 retries), the documentation. A queue has one consumer at a time: of two processes with one
state directory the first one consumes, and when it ends, however it ends, the other takes over within a second.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import secrets
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Generic, Literal, NoReturn, TypeAlias, cast
from weakref import WeakKeyDictionary

import attrs
from typing_extensions import TypeVar

from core.backends.embedded.clone import CloneError, dump, load
from core.backends.embedded.store import Gate, Store, StoreBusyError
from core.bindings.queue import (
    MessageBatch,
    MessageBatchMetadata,
    MessageSendRequest,
    MessageSendRequestDict,
    QueueContentType,
    QueueMetrics,
    QueueSendMetadata,
    QueueSendResponse,
)
from core.context import Clock, TimerHandle
from core.errors import QueueError, QueueTypeError

__all__ = [
    "Consumer",
    "ConsumerSettings",
    "DeliveredMessage",
    "Delivery",
    "EmbeddedQueue",
    "QueueBroker",
    "StoredMessage",
    "broker_of",
    "lock_file",
]

T = TypeVar("T", default=Any)

MAX_MESSAGE: Final = 128_000
MAX_BATCH_COUNT: Final = 100
MAX_BATCH_BYTES: Final = 256_000
MAX_DELAY: Final = 86_400
RETENTION: Final = 14 * 86_400

# How often a broker on disk looks what other processes sent, and whether their consumer is gone.
_LOOK_EVERY: Final = 1.0

_log = logging.getLogger("core.queue")

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS queue_messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  id TEXT NOT NULL,
  content_type TEXT NOT NULL,
  body BLOB NOT NULL,
  sent INTEGER NOT NULL,
  due INTEGER NOT NULL,
  failures INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS queue_messages_queue ON queue_messages (queue, sent);
CREATE TABLE IF NOT EXISTS queue_backlog (
  queue TEXT NOT NULL PRIMARY KEY,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS queue_message_added AFTER INSERT ON queue_messages
BEGIN
  INSERT INTO queue_backlog VALUES (new.queue, 1, length(new.body))
  ON CONFLICT (queue) DO UPDATE SET count = count + 1, bytes = bytes + length(new.body);
END;
CREATE TRIGGER IF NOT EXISTS queue_message_removed AFTER DELETE ON queue_messages
BEGIN
  UPDATE queue_backlog SET count = count - 1, bytes = bytes - length(old.body) WHERE queue = old.queue;
END;
"""

_INSERT: Final = (
    "INSERT INTO queue_messages (queue, id, content_type, body, sent, due, failures) VALUES (?, ?, ?, ?, ?, ?, ?)"
)

Handler: TypeAlias = Callable[[MessageBatch[Any]], Awaitable[None]]
"""What a consumer is: ending well acknowledges, raising retries."""


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """How a queue is consumed, with the platform's defaults.

    `max_batch_size`: 1 to 100 messages. `max_batch_timeout`: 0 to 60 seconds after the first message of a batch that is
    not full. `max_retries`: 0 to 100 deliveries after the first. `retry_delay`: seconds before a retry that names
    none. `dead_letter_queue`: where a message goes after its last attempt; without one it is dropped.
    """

    max_batch_size: int = 10
    max_batch_timeout: float = 5
    max_retries: int = 3
    retry_delay: int = 0
    dead_letter_queue: str | None = None


@attrs.frozen
class _Outgoing:
    """A message on its way into the database."""

    content_type: QueueContentType
    body: bytes
    delay: int


@attrs.frozen
class StoredMessage:
    """A message as it is stored. Times are in milliseconds since 1970."""

    seq: int
    id: str
    content_type: QueueContentType
    body: bytes
    sent: int
    failures: int

    def read(self) -> Any:
        """The body, as what was sent."""
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


class EmbeddedQueue(Generic[T]):
    """The sending side of the queue `name` of `store`. Two objects of one name are one queue.

    `delivery_delay`: seconds that a message waits when its send names no delay. `max_batch_bytes`: what `send_batch`
    takes at most. `gate` sees every call first, and may refuse it: how a fake records calls and injects faults.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        delivery_delay: int = 0,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        gate: Gate | None = None,
    ) -> None:
        self.name = name
        self._broker = broker_of(store)
        self._delivery_delay = delivery_delay
        self._max_batch_bytes = max_batch_bytes
        self._gate = gate

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} in {self._broker.place}>"

    async def send(
        self, body: T, *, content_type: QueueContentType = "json", delay_seconds: int | None = None
    ) -> QueueSendResponse:
        """Send one message. See `Queue.send`."""
        if self._gate is not None:
            options: dict[str, Any] = {} if content_type == "json" else {"content_type": content_type}
            await self._gate(
                "send", (body,), options if delay_seconds is None else options | {"delay_seconds": delay_seconds}
            )
        # A single send takes the name of a content type in any case, a batch does not: so the platform.
        kind = _content_type(str(content_type).lower(), content_type)
        data = _serialise(body, kind)
        if len(data) > MAX_MESSAGE:
            raise QueueError(f"Queue send failed: message length of {len(data)} bytes exceeds limit of {MAX_MESSAGE}")
        delay = self._delivery_delay if delay_seconds is None else _delay("send", delay_seconds)
        return await self._broker.send("send", self.name, [_Outgoing(kind, data, delay)])

    async def send_batch(
        self,
        messages: Iterable[MessageSendRequest[T] | MessageSendRequestDict[T]],
        *,
        delay_seconds: int | None = None,
    ) -> QueueSendResponse:
        """Send several messages, all or none. See `Queue.send_batch`."""
        requests = [_request(message) for message in messages]
        if self._gate is not None:
            await self._gate(
                "send_batch", (requests,), {} if delay_seconds is None else {"delay_seconds": delay_seconds}
            )
        if not requests:
            raise QueueTypeError("sendBatch() requires at least one message")
        bodies: list[tuple[QueueContentType, bytes]] = []
        for request in requests:
            kind = _content_type("json" if request.content_type is None else request.content_type)
            bodies.append((kind, _serialise(request.body, kind)))
        if len(requests) > MAX_BATCH_COUNT:
            raise QueueError(
                f"Queue sendBatch failed: batch message count of {len(requests)} exceeds limit of {MAX_BATCH_COUNT}"
            )
        largest = max(len(data) for _, data in bodies)
        if largest > MAX_MESSAGE:
            raise QueueError(
                f"Queue sendBatch failed: message in batch has length {largest} bytes "
                f"which exceeds single message size limit of {MAX_MESSAGE}"
            )
        total = sum(len(data) for _, data in bodies)
        if total > self._max_batch_bytes:
            raise QueueError(
                f"Queue sendBatch failed: batch size of {total} bytes exceeds limit of {self._max_batch_bytes}"
            )
        common = self._delivery_delay if delay_seconds is None else _delay("sendBatch", delay_seconds)
        outgoing = [
            _Outgoing(
                kind, data, common if request.delay_seconds is None else _delay("sendBatch", request.delay_seconds)
            )
            for request, (kind, data) in zip(requests, bodies, strict=True)
        ]
        return await self._broker.send("sendBatch", self.name, outgoing)

    async def metrics(self) -> QueueMetrics:
        """Return how much waits. See `Queue.metrics`."""
        if self._gate is not None:
            await self._gate("metrics", (), {})
        return self._broker.metrics(self.name)


# ---------------------------------------------------------------------- what a consumer gets


class DeliveredMessage(Generic[T]):
    """A message of a batch, and what its consumer decided about it. See `Message`."""

    __slots__ = ("_delivery", "attempts", "body", "id", "timestamp")

    def __init__(self, delivery: Delivery[T], id: str, timestamp: datetime, body: T, attempts: int) -> None:
        self._delivery = delivery
        self.id: str = id
        self.timestamp: datetime = timestamp
        self.body: T = body
        self.attempts: int = attempts

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self._delivery.queue!r}, attempt {self.attempts}: {self.body!r:.80}>"

    def ack(self) -> None:
        """Be done with it. See `Message.ack`."""
        self._delivery.ack(self.id)

    def retry(self, delay_seconds: int | None = None) -> None:
        """Have it delivered again. See `Message.retry`."""
        self._delivery.retry(self.id, delay_seconds)


class Delivery(Generic[T]):
    """A batch, and what its consumer decided about it. See `MessageBatch`.

    `add` fills it; afterwards `acked`, `retried`, `all_acked` and `all_retried` say what was called, the first call
    winning wherever two contradict each other.
    """

    def __init__(self, queue: str, metrics: QueueMetrics | None = None) -> None:
        self.queue = queue
        self.metadata: MessageBatchMetadata = MessageBatchMetadata(QueueMetrics() if metrics is None else metrics)
        self.messages: Sequence[DeliveredMessage[T]] = ()
        self.acked: set[str] = set()
        self.retried: dict[str, int | None] = {}
        self.all_acked: bool = False
        self.all_retried: bool = False
        self.delay: int | None = None

    def __repr__(self) -> str:
        return f"<MessageBatch of {self.queue!r} with {len(self.messages)} messages>"

    def add(self, id: str, timestamp: datetime, body: T, attempts: int = 1) -> None:
        """Put a message at the end."""
        self.messages = (*self.messages, DeliveredMessage(self, id, timestamp, body, attempts))

    def ack_all(self) -> None:
        """Be done with the batch. See `MessageBatch.ack_all`."""
        if self.all_retried:
            self._warn("ack_all()", "retry_all()")
        else:
            self.all_acked = True

    def retry_all(self, delay_seconds: int | None = None) -> None:
        """Have all delivered again. See `MessageBatch.retry_all`."""
        delay = None if delay_seconds is None else _delay("retryAll", delay_seconds)
        if self.all_acked:
            self._warn("retry_all()", "ack_all()")
        elif not self.all_retried:
            self.all_retried = True
            self.delay = delay

    def ack(self, id: str) -> None:
        """Be done with one message."""
        if self.all_retried:
            self._warn(f"ack() on message {id}", "retry_all()")
        elif id in self.retried:
            self._warn(f"ack() on message {id}", "retry()")
        elif not self.all_acked:
            self.acked.add(id)

    def retry(self, id: str, delay_seconds: int | None) -> None:
        """Have one message delivered again."""
        delay = None if delay_seconds is None else _delay("retry", delay_seconds)
        if self.all_acked:
            self._warn(f"retry() on message {id}", "ack_all()")
        elif id in self.acked:
            self._warn(f"retry() on message {id}", "ack()")
        elif not self.all_retried and id not in self.retried:
            self.retried[id] = delay

    def _warn(self, call: str, before: str) -> None:
        _log.warning("%s after %s had been called has no effect (queue %s)", call, before, self.queue)

    def is_retried(self, id: str, *, failed: bool) -> bool:
        """Whether a message is to come again, when the handler has `failed` or ended well."""
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


# ---------------------------------------------------------------------- the broker

_brokers: WeakKeyDictionary[Store, QueueBroker] = WeakKeyDictionary()


def broker_of(store: Store) -> QueueBroker:
    """The broker of a store: every queue of the store is in the one."""
    broker = _brokers.get(store)
    if broker is None:
        broker = _brokers[store] = QueueBroker(store)
    return broker


class QueueBroker:
    """All queues of a store, and who consumes them. `broker_of(store)` gives the one there is."""

    def __init__(self, store: Store) -> None:
        self.clock: Clock = store.clock
        self._database = store.database("queues", "messages")
        self._connection = self._database.connection
        self._consumers: dict[str, Consumer] = {}
        self._looking: asyncio.Task[None] | None = None
        self._data_version = 0
        self._database.insist(self._set_up)

    @property
    def place(self) -> str:
        """Where the messages are, for errors."""
        return self._database.place

    def consume(self, name: str, handler: Handler, settings: ConsumerSettings | None = None) -> None:
        """Hand the messages of a queue to `handler`, from now on. Call it with the event loop running.

        Messages that wait already, from before a restart too, come first. Raises ValueError when the queue has a
        consumer in this process.
        """
        if name in self._consumers:
            raise ValueError(f"the queue {name!r} has a consumer already. A queue has one consumer")
        consumer = self._consumers[name] = Consumer(self, name, handler, settings or ConsumerSettings())
        consumer.start()
        if self._database.path is not None and self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def cancel(self, name: str) -> None:
        """Stop consuming a queue, once its running handler has ended. What was not delivered stays."""
        consumer = self._consumers.pop(name, None)
        if consumer is not None:
            await consumer.stop()

    async def close(self) -> None:
        """Stop consuming every queue, once the running handlers have ended. What was not delivered stays."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        for name in [*self._consumers]:
            await self.cancel(name)

    async def idle(self) -> None:
        """Return when no handler is running. Batches that wait for their time do not count."""
        while running := [consumer.running for consumer in self._consumers.values() if consumer.running is not None]:
            await asyncio.wait(running)

    async def send(self, verb: str, name: str, messages: Sequence[_Outgoing]) -> QueueSendResponse:
        """Store checked messages, all or none, and wake the consumer."""
        now = self.now()

        def store() -> list[tuple[int, int]]:
            with self._database.transaction() as connection:
                return [self._insert(connection, name, message, now) for message in messages]

        stored = await self.wait(verb, store)
        consumer = self._consumers.get(name)
        if consumer is not None:
            consumer.arrived(stored)
        return QueueSendResponse(QueueSendMetadata(self.metrics(name)))

    def _insert(self, connection: sqlite3.Connection, name: str, message: _Outgoing, now: int) -> tuple[int, int]:
        due = now + message.delay * 1000
        row = (name, secrets.token_hex(16), message.content_type, message.body, now, due, 0)
        return cast("int", connection.execute(_INSERT, row).lastrowid), due

    def metrics(self, name: str, *, without: int = 0, bytes_without: int = 0) -> QueueMetrics:
        """How much waits in a queue, leaving out what is being delivered."""
        found = self._connection.execute("SELECT count, bytes FROM queue_backlog WHERE queue = ?", (name,)).fetchone()
        if found is None or found[0] <= without:
            return QueueMetrics()
        oldest = None
        if not without:
            (sent,) = self._connection.execute(
                "SELECT min(sent) FROM queue_messages WHERE queue = ?", (name,)
            ).fetchone()
            oldest = None if sent is None else _date(sent)
        return QueueMetrics(found[0] - without, found[1] - bytes_without, oldest)

    def now(self) -> int:
        """Milliseconds since 1970."""
        return math.floor(self.clock.time() * 1000)

    # ------------------------------------------------------------------ for its consumers

    def waiting(self, name: str) -> list[tuple[int, int]]:
        """Number and time of every message of a queue, in the order in which they are due."""
        return self._connection.execute(
            "SELECT seq, due FROM queue_messages WHERE queue = ? ORDER BY due, seq", (name,)
        ).fetchall()

    def rows(self, seqs: Sequence[int]) -> list[StoredMessage]:
        """The messages of these numbers that are still there, in this order."""
        found = {
            row[0]: StoredMessage(*row)
            for row in self._connection.execute(
                "SELECT seq, id, content_type, body, sent, failures FROM queue_messages"
                f" WHERE seq IN ({','.join('?' * len(seqs))})",
                seqs,
            )
        }
        return [found[seq] for seq in seqs if seq in found]

    def settle(
        self,
        name: str,
        done: Sequence[StoredMessage],
        again: Sequence[tuple[StoredMessage, int]],
        dead: Sequence[StoredMessage],
        letters: str | None,
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Write down what became of a batch, as one transaction. Gives the retried and the dead ones' new places."""
        now = self.now()
        with self._database.transaction() as connection:
            gone = [*done, *dead, *(row for row, _ in again)]
            connection.executemany("DELETE FROM queue_messages WHERE seq = ?", [(row.seq,) for row in gone])
            # A new number puts a retried message behind all that is there now, as a new arrival.
            retried: list[tuple[int, int]] = []
            for row, delay in again:
                due = now + delay * 1000
                values = (name, row.id, row.content_type, row.body, row.sent, due, row.failures + 1)
                retried.append((cast("int", connection.execute(_INSERT, values).lastrowid), due))
            moved: list[tuple[int, int]] = []
            if letters is not None:
                for row in dead:
                    values = (letters, row.id, row.content_type, row.body, row.sent, now, 0)
                    moved.append((cast("int", connection.execute(_INSERT, values).lastrowid), now))
        return retried, moved

    def put_back(self, name: str, rows: Sequence[StoredMessage]) -> None:
        """Store messages again that were delivered and acknowledged, with their id, time and attempts."""
        now = self.now()
        with self._database.transaction() as connection:
            stored: list[tuple[int, int]] = []
            for row in rows:
                values = (name, row.id, row.content_type, row.body, row.sent, now, row.failures)
                stored.append((cast("int", connection.execute(_INSERT, values).lastrowid), now))
        self.arrived(name, stored)

    def arrived(self, name: str, stored: Sequence[tuple[int, int]]) -> None:
        """Tell the consumer of a queue, if it has one here, what came into it."""
        consumer = self._consumers.get(name)
        if consumer is not None and stored:
            consumer.arrived(stored)

    async def wait(self, verb: str, action: Callable[[], T]) -> T:
        """Do it as soon as other processes let us, and say in the platform's way when they do not."""
        try:
            return await self._database.patiently(action)
        except StoreBusyError as error:
            raise QueueError(f"Queue {verb} failed: {error}") from error
        except sqlite3.Error as error:
            raise QueueError(f"Queue {verb} failed: {error}: {self._database.place}") from error

    # ------------------------------------------------------------------ other processes

    async def _look(self) -> None:
        """See what other processes sent, and take over the queues whose consumer has gone."""
        while True:
            # The machine's own time: other processes do not follow a test's clock.
            await asyncio.sleep(_LOOK_EVERY)
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            changed, self._data_version = version != self._data_version, version
            for consumer in [*self._consumers.values()]:
                if not consumer.is_active:
                    consumer.start()
                elif changed:
                    consumer.look()

    def lock_path(self, name: str) -> str | None:
        """The file whose lock the consumer of a queue holds, or None in memory, where there is no other process."""
        path = self._database.path
        if path is None:
            return None
        from urllib.parse import quote

        return str(path.with_name(f"consumer-{quote(name, safe='').replace('.', '%2E')}.lock"))

    def _set_up(self) -> None:
        with self._database.transaction() as connection:
            for statement in _statements(_SCHEMA):
                connection.execute(statement)
            connection.execute("DELETE FROM queue_messages WHERE sent < ?", (self.now() - RETENTION * 1000,))


class _Pending:
    """A batch that will go at some time, or at once."""

    __slots__ = ("immediate", "timer")

    def __init__(self, immediate: bool, timer: TimerHandle | asyncio.Handle) -> None:
        self.immediate = immediate
        self.timer = timer


class Consumer:
    """One queue's way to its handler: what is due, what is delayed, and when the next batch goes."""

    def __init__(self, broker: QueueBroker, name: str, handler: Handler, settings: ConsumerSettings) -> None:
        self.broker = broker
        self.name = name
        self.handler = handler
        self.settings = settings
        self.running: asyncio.Task[None] | None = None
        self._ready: deque[int] = deque()
        self._delayed: dict[int, TimerHandle] = {}
        self._delivering: set[int] = set()
        self._pending: _Pending | None = None
        self._lock: int | None = None
        self._stopped = False
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
        self._stopped = True
        if self._pending is not None:
            self._pending.timer.cancel()
            self._pending = None
        for timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        if self.running is not None and self.running is not asyncio.current_task():
            await asyncio.wait([self.running])
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self.is_active = False

    def look(self) -> None:
        """Take up the messages of the database that are not known yet."""
        known = {*self._ready, *self._delayed, *self._delivering}
        self.arrived([(seq, due) for seq, due in self.broker.waiting(self.name) if seq not in known])

    def arrived(self, stored: Sequence[tuple[int, int]]) -> None:
        """Take up messages, in their order; those that are delayed when their time has come."""
        if self._stopped or not self.is_active:
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
        if self._stopped or self.running is not None or not self._ready:
            # A slow consumer holds back the next batch; it is planned when the handler has ended.
            return
        full = len(self._ready) >= self.settings.max_batch_size
        if self._pending is not None:
            if self._pending.immediate or not full:
                return
            self._pending.timer.cancel()
        if full or self.settings.max_batch_timeout <= 0:
            self._pending = _Pending(True, asyncio.get_running_loop().call_soon(self._go))
        else:
            self._pending = _Pending(False, self.broker.clock.call_later(self.settings.max_batch_timeout, self._go))

    def _go(self) -> None:
        self._pending = None
        seqs = [self._ready.popleft() for _ in range(min(len(self._ready), self.settings.max_batch_size))]
        self._delivering.update(seqs)
        self.running = asyncio.get_running_loop().create_task(self._deliver(seqs))

    async def _deliver(self, seqs: Sequence[int]) -> None:
        try:
            await self._hand_over(seqs)
        except Exception:
            # The messages are in the database as they were. They come again as if nothing had been said of them.
            _log.exception("a batch of the queue %s could not be settled; it will be delivered again", self.name)
            self._ready.extend(seqs)
        finally:
            self._delivering.clear()
            self.running = None
            self._plan()

    async def _hand_over(self, seqs: Sequence[int]) -> None:
        rows = await self.broker.wait("delivery", lambda: self.broker.rows(seqs))
        if rows:
            await self.hand_over(rows)

    async def hand_over(self, rows: Sequence[StoredMessage]) -> tuple[Delivery[Any], Exception | None]:
        """Give messages to the handler as one batch, and do what it decided. Gives the batch, and what it raised."""
        batch: Delivery[Any] = Delivery(
            self.name,
            self.broker.metrics(self.name, without=len(rows), bytes_without=sum(len(row.body) for row in rows)),
        )
        batch.messages = [
            DeliveredMessage(batch, row.id, _date(row.sent), row.read(), row.failures + 1) for row in rows
        ]
        failure: Exception | None = None
        try:
            await self.handler(batch)
        except Exception as error:
            failure = error
            _log.error(
                "the consumer of the queue %s failed; what it did not acknowledge is retried", self.name, exc_info=error
            )
        await self._settle(rows, batch, failure is not None)
        return batch, failure

    async def _settle(self, rows: Sequence[StoredMessage], batch: Delivery[Any], failed: bool) -> None:
        settings = self.settings
        done: list[StoredMessage] = []
        again: list[tuple[StoredMessage, int]] = []
        dead: list[StoredMessage] = []
        for row in rows:
            if not batch.is_retried(row.id, failed=failed):
                done.append(row)
            elif row.failures < settings.max_retries:
                again.append((row, batch.delay_of(row.id, settings.retry_delay)))
            else:
                dead.append(row)
        letters = settings.dead_letter_queue
        for row in dead:
            where = "it is dropped" if letters is None else f"it goes to {letters}"
            _log.warning("message %s of the queue %s failed %d times; %s", row.id, self.name, row.failures + 1, where)
        retried, moved = await self.broker.wait(
            "acknowledgement", lambda: self.broker.settle(self.name, done, again, dead, letters)
        )
        self.arrived(retried)
        if letters is not None:
            self.broker.arrived(letters, moved)


def lock_file(path: str) -> int | None:
    """Lock a file for this process, or return None when another one has it. The system frees it when we end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # Windows only
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


# ---------------------------------------------------------------------- what comes in and goes out


def _date(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _request(message: Any) -> MessageSendRequest[Any]:
    whole = message  # not narrowed by what follows
    if isinstance(message, MessageSendRequest):
        request: MessageSendRequest[Any] = whole
        return request
    if not isinstance(message, dict) or "body" not in message:
        raise QueueTypeError(
            f"A message of a batch must be a MessageSendRequest, or a dict with a body, not {message!r:.80}"
        )
    given = cast("dict[str, Any]", message)
    unknown = set(given) - {"body", "content_type", "delay_seconds"}
    if unknown:
        raise QueueTypeError(f"A message has no {', '.join(sorted(unknown))}: it has body, content_type, delay_seconds")
    return MessageSendRequest(given["body"], given.get("content_type"), given.get("delay_seconds"))


_CONTENT_TYPES: Final[Mapping[object, QueueContentType]] = {
    "text": "text",
    "bytes": "bytes",
    "json": "json",
    "v8": "v8",
}


def _content_type(kind: str, given: object = None) -> QueueContentType:
    known = _CONTENT_TYPES.get(kind)
    if known is None:
        raise QueueTypeError(f"Unsupported queue message content type: {kind if given is None else given}")
    return known


def _delay(verb: Literal["send", "sendBatch", "retry", "retryAll"], seconds: object) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        raise QueueTypeError(f"delay_seconds must be a number of seconds, not {seconds!r}")
    whole = int(seconds)
    if not 0 <= whole <= MAX_DELAY:
        raise QueueError(
            f"Queue {verb} failed: message delay {whole} is invalid: it must be between 0 and {MAX_DELAY} seconds"
        )
    return whole


_lone_surrogates = re.compile("[\ud800-\udfff]")


def _serialise(body: Any, kind: QueueContentType) -> bytes:
    match kind:
        case "text":
            if not isinstance(body, str):
                _wrong_kind("text", "string", body)
            # The platform cuts a text at its first NUL.
            text = body.partition("\0")[0]
            try:
                return text.encode()
            except UnicodeEncodeError:
                return _lone_surrogates.sub("\ufffd", text).encode()
        case "bytes":
            if not isinstance(body, (bytes, bytearray, memoryview)):
                _wrong_kind("bytes", "ArrayBufferView", body)
            return bytes(cast("bytes", body))
        case "json":
            from core.http.json import dumps

            try:
                return dumps(body).encode()
            except (TypeError, ValueError) as error:
                raise QueueTypeError(f"A message of the content type json cannot be written: {error}") from error
        case "v8":
            try:
                return dump(body)
            except CloneError as error:
                clone_error = QueueTypeError(f"A message of the content type v8 could not be cloned: {error}")
                clone_error.js_name = "DataCloneError"
                raise clone_error from error


def _wrong_kind(kind: str, wanted: str, body: object) -> NoReturn:
    match body:
        case bool():
            got = "boolean"
        case int() | float():
            got = "number"
        case str():
            got = "string"
        case _ if callable(body):
            got = "function"
        case _:
            got = "object"
    raise QueueTypeError(f'Content Type "{kind}" requires a value of type {wanted}, but received: {got}')


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, whole: a trigger has semicolons inside."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
