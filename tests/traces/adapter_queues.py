"""The `queues` programs on the embedded queues: consumers that follow the program's script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from tests.traces.harness import Adapter, Program

from core.backends.embedded.queue import ConsumerSettings, EmbeddedQueue, QueueBroker, broker_of
from core.backends.embedded.store import Store
from core.bindings.queue import Message, MessageBatch

# What the recorded simulator has where a program leaves a setting out, and how large a batch it takes. Ours are the
# platform's own (docs/reference/differences.md).
_MAX_BATCH_SIZE, _MAX_BATCH_TIMEOUT, _MAX_RETRIES, _MAX_BATCH_BYTES = 5, 1, 2, 288_000


class QueuesAdapter(Adapter):
    options_at: ClassVar[Mapping[str, int]] = {"send": 1, "sendBatch": 1}
    store: Store
    broker: QueueBroker

    async def open(self, program: Program) -> Mapping[str, Any]:
        self.start = int(self.clock.time())
        self.store = Store(self.folder, clock=self.clock)
        self.broker = broker_of(self.store)
        self.batches: list[dict[str, Any]] = []
        self.bindings: dict[str, EmbeddedQueue[Any]] = {}
        for name, queue in program.get("queues", {}).items():
            if "binding" in queue:
                delay = queue.get("producer", {}).get("deliveryDelay", 0)
                self.bindings[queue["binding"]] = EmbeddedQueue(
                    self.store, name, delivery_delay=delay, max_batch_bytes=_MAX_BATCH_BYTES
                )
        for name, queue in program.get("queues", {}).items():
            consumer = queue.get("consumer")
            if consumer is not None:
                settings = ConsumerSettings(
                    max_batch_size=consumer.get("maxBatchSize", _MAX_BATCH_SIZE),
                    max_batch_timeout=consumer.get("maxBatchTimeout", _MAX_BATCH_TIMEOUT),
                    max_retries=consumer.get("maxRetries", _MAX_RETRIES),
                    retry_delay=consumer.get("retryDelay", 0),
                    dead_letter_queue=consumer.get("deadLetterQueue"),
                )
                script = queue.get("script", {})
                handler = partial(self.consume, script.get("each", []), iter(script.get("batches", [])))
                self.broker.consume(name, handler, settings)
        return self.bindings

    async def close(self) -> None:
        await self.broker.close()
        self.store.close()

    def error(self, error: BaseException) -> tuple[str, str]:
        """Without the sentence that ours have in addition: what to do about a limit."""
        name, message = super().error(error)
        return name, message.partition(". Send ")[0]

    async def drain(self, seconds: float) -> Any:
        await self.advance(seconds)
        batches, self.batches = self.batches, []
        return batches

    async def consume(self, each: Sequence[Any], scripts: Any, batch: MessageBatch[Any]) -> None:
        """The recording's consumer: note the batch, then follow the script."""
        self.batches.append(
            {
                "queue": batch.queue,
                "t": round(self.clock.time() - self.start),
                "messages": [
                    {
                        "id": message.id,
                        "attempts": message.attempts,
                        "sent_t": round(message.timestamp.timestamp() - self.start),
                        "body": message.body,
                    }
                    for message in batch.messages
                ],
                "metrics": batch.metadata.metrics,
            }
        )
        script: Any = next(scripts, ())
        actions: list[Any] = [*each, *script]
        for action in actions:
            await self.act(batch, *action)

    async def act(self, batch: MessageBatch[Any], what: str, *rest: Any) -> None:
        match what, rest:
            case "ackAll", _:
                batch.ack_all()
            case "retryAll", _:
                batch.retry_all(**self.options("", rest[0] if rest else None))
            case "ack", _:
                self.message(batch, rest).ack()
            case "retry", (_, *options):
                self.message(batch, rest).retry(**self.options("", options[0] if options else None))
            case "throw", (text,):
                raise RuntimeError(text)
            case "sleep", (seconds,):
                await self.clock.sleep(seconds)
            case "send", (binding, body):
                await self.bindings[binding].send(body)
            case _:
                raise NotImplementedError(f"no such action: {what}")

    def message(self, batch: MessageBatch[Any], rest: Sequence[Any]) -> Message[Any]:
        place: int = rest[0]
        return batch.messages[place]

    def arguments(self, op: str, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        if op == "sendBatch" and args and isinstance(args[0], list):
            given: list[Any] = [*args[0]]
            messages = [self.options("", message) if isinstance(message, dict) else message for message in given]
            args = [messages, *args[1:]]
        return super().arguments(op, args)


def adapter(folder: Path | None) -> Adapter:
    """A fresh adapter, over memory or a folder."""
    return QueuesAdapter(folder)
