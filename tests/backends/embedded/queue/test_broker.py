"""The embedded queues beyond the contract: what lasts, who consumes, and what a consumer's failure says."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.backends.embedded.queue import ConsumerSettings, EmbeddedQueue, broker_of
from core.backends.embedded.store import Store
from core.bindings.queue import MessageBatch, MessageSendRequest
from core.errors import QueueError, QueueTypeError
from core.testing.clock import FakeClock

AT_ONCE = ConsumerSettings(max_batch_timeout=0)


class Collector:
    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self._came = asyncio.Event()

    async def __call__(self, batch: MessageBatch[Any]) -> None:
        self.bodies += [message.body for message in batch.messages]
        self._came.set()

    async def first(self) -> None:
        """Wait for a batch, in real time."""
        async with asyncio.timeout(10):
            await self._came.wait()


async def test_messages_attempts_and_delays_last_over_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()

    async def fail(batch: MessageBatch[Any]) -> None:
        batch.retry_all(delay_seconds=30)

    with Store(tmp_path, clock=clock) as store:
        queue: EmbeddedQueue[str] = EmbeddedQueue(store, "q")
        await queue.send("tried")
        await queue.send("later", delay_seconds=60)
        broker_of(store).consume("q", fail, AT_ONCE)
        await clock.advance(1)
        await broker_of(store).close()
    with Store(tmp_path, clock=clock) as store:
        seen: list[tuple[str, int]] = []

        async def note(batch: MessageBatch[Any]) -> None:
            seen.extend((message.body, message.attempts) for message in batch.messages)

        broker_of(store).consume("q", note, AT_ONCE)
        await clock.advance(20)
        assert seen == []
        await clock.advance(10)
        assert seen == [("tried", 2)]
        await clock.advance(30)
        assert seen == [("tried", 2), ("later", 1)]
        await broker_of(store).close()


async def test_a_slow_consumer_holds_back_the_next_batch() -> None:
    clock = FakeClock()
    with Store(clock=clock) as store:
        queue: EmbeddedQueue[int] = EmbeddedQueue(store, "q")
        running = most = 0
        batches: list[list[int]] = []

        async def slow(batch: MessageBatch[Any]) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            batches.append([message.body for message in batch.messages])
            await clock.sleep(10)
            running -= 1

        broker_of(store).consume("q", slow, ConsumerSettings(max_batch_size=2, max_batch_timeout=1))
        for number in range(6):
            await queue.send(number)
        await clock.advance(9)
        assert batches == [[0, 1]]
        await clock.advance(30)
        assert batches == [[0, 1], [2, 3], [4, 5]]
        assert most == 1
        await broker_of(store).close()


async def test_a_queue_has_one_consumer_in_a_process() -> None:
    with Store(clock=FakeClock()) as store:
        broker_of(store).consume("q", Collector())
        with pytest.raises(ValueError, match="has a consumer already"):
            broker_of(store).consume("q", Collector())
        await broker_of(store).close()
        broker_of(store).consume("q", Collector())
        await broker_of(store).close()


async def test_a_queue_has_one_consumer_of_two_processes_and_the_other_takes_over(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from core.backends.embedded.queue import broker_of\n"
        "from core.backends.embedded.store import Store\n"
        "async def main():\n"
        "    async def consume(batch): pass\n"
        "    broker_of(Store(sys.argv[1])).consume('q', consume)\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    first = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(tmp_path), stdout=subprocess.PIPE)
    assert first.stdout is not None
    try:
        assert await first.stdout.readline() == b"ready\n"
        collector = Collector()
        with Store(tmp_path) as store:
            broker_of(store).consume("q", collector, AT_ONCE)
            await EmbeddedQueue[str](store, "q").send("a", delay_seconds=1)
            first.kill()
            await first.wait()
            await collector.first()
            await broker_of(store).close()
        assert collector.bodies == ["a"]
    finally:
        if first.returncode is None:
            first.kill()
            await first.wait()


async def test_what_another_process_sends_is_delivered_here(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from core.backends.embedded.queue import EmbeddedQueue\n"
        "from core.backends.embedded.store import Store\n"
        "asyncio.run(EmbeddedQueue(Store(sys.argv[1]), 'q').send('from afar'))\n"
    )
    collector = Collector()
    with Store(tmp_path) as store:
        broker_of(store).consume("q", collector, AT_ONCE)
        process = await asyncio.create_subprocess_exec(sys.executable, "-W", "ignore", "-c", code, str(tmp_path))
        assert await process.wait() == 0
        await collector.first()
        await broker_of(store).close()
    assert collector.bodies == ["from afar"]


async def test_a_failing_consumer_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    with Store(clock=clock) as store:

        async def fail(batch: MessageBatch[Any]) -> None:
            raise LookupError("why it failed")

        broker_of(store).consume("orders", fail, ConsumerSettings(max_batch_timeout=0, max_retries=0))
        await EmbeddedQueue[int](store, "orders").send(1)
        with caplog.at_level(logging.WARNING, "core.queue"):
            await clock.advance(1)
        await broker_of(store).close()
    assert "the consumer of the queue orders failed" in caplog.text
    assert "why it failed" in caplog.text
    assert "failed 1 times; it is dropped" in caplog.text


async def test_a_delivery_delay_holds_for_sends_that_name_none() -> None:
    clock = FakeClock()
    with Store(clock=clock) as store:
        queue: EmbeddedQueue[str] = EmbeddedQueue(store, "q", delivery_delay=10)
        collector = Collector()
        broker_of(store).consume("q", collector, AT_ONCE)
        await queue.send("delayed")
        await queue.send("now", delay_seconds=0)
        await queue.send_batch([MessageSendRequest("now too", delay_seconds=0), MessageSendRequest("delayed too")])
        await clock.advance(1)
        assert collector.bodies == ["now", "now too"]
        await clock.advance(10)
        assert collector.bodies == ["now", "now too", "delayed", "delayed too"]
        await broker_of(store).close()


async def test_metrics_count_what_waits() -> None:
    clock = FakeClock()
    with Store(clock=clock) as store:
        queue: EmbeddedQueue[str] = EmbeddedQueue(store, "q")
        assert (await queue.metrics()).backlog_count == 0
        response = await queue.send("ab")
        await clock.advance(5)
        await queue.send("c")
        metrics = await queue.metrics()
        assert response.metadata.metrics.backlog_count == 1
        assert (metrics.backlog_count, metrics.backlog_bytes) == (2, 7)
        assert metrics.oldest_message_timestamp is not None
        assert metrics.oldest_message_timestamp.timestamp() == clock.time() - 5
        broker_of(store).consume("q", Collector(), AT_ONCE)
        await clock.advance(1)
        assert (await queue.metrics()).backlog_count == 0
        await broker_of(store).close()


async def test_a_batch_has_at_most_256000_bytes() -> None:
    with Store(clock=FakeClock()) as store:
        queue: EmbeddedQueue[bytes] = EmbeddedQueue(store, "q")
        half = MessageSendRequest(b"x" * 128_000, "bytes")
        await queue.send_batch([half, half])
        one_more = MessageSendRequest(b"x", "bytes")
        with pytest.raises(QueueError, match="batch size of 256001 bytes exceeds limit of 256000"):
            await queue.send_batch([half, half, one_more])


async def test_content_types_are_case_insensitive_in_a_send_and_not_in_a_batch() -> None:
    upper: Any = "JSON"
    with Store(clock=FakeClock()) as store:
        queue: EmbeddedQueue[str] = EmbeddedQueue(store, "q")
        await queue.send("x", content_type=upper)
        with pytest.raises(QueueTypeError, match="Unsupported queue message content type: JSON"):
            await queue.send_batch([MessageSendRequest("x", upper)])


async def test_messages_older_than_14_days_are_dropped_when_the_store_is_opened(tmp_path: Path) -> None:
    clock = FakeClock()
    with Store(tmp_path, clock=clock) as store:
        await EmbeddedQueue[str](store, "q").send("old")
        await clock.advance(10 * 86_400)
        await EmbeddedQueue[str](store, "q").send("newer")
    await clock.advance(5 * 86_400)
    with Store(tmp_path, clock=clock) as store:
        assert (await EmbeddedQueue[str](store, "q").metrics()).backlog_count == 1


async def test_a_message_of_a_batch_must_be_one() -> None:
    wrong: Any = [{"boddy": 1}]
    unknown: Any = [{"body": 1, "delaySeconds": 1}]
    with Store(clock=FakeClock()) as store:
        queue: EmbeddedQueue[Any] = EmbeddedQueue(store, "q")
        with pytest.raises(QueueTypeError, match="must be a MessageSendRequest, or a dict with a body"):
            await queue.send_batch(wrong)
        with pytest.raises(QueueTypeError, match="has no delaySeconds: it has body, content_type, delay_seconds"):
            await queue.send_batch(unknown)
