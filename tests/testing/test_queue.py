"""`FakeQueue`: what was sent, deliveries at the test's word, redelivery and faults."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import attrs
import pytest

from core.app import App
from core.backends.embedded.queue import ConsumerSettings
from core.bindings.queue import MessageBatch, MessageSendRequest, MessageSendRequestDict, Queue
from core.errors import HandlerError, QueueError, QueueTypeError
from core.testing import FakeClock, FakeQueue
from core.testing.calls import Call
from core.testing.queue import SentMessage, message_batch


@attrs.frozen
class Job:
    kind: str


class Seen:
    def __init__(self) -> None:
        self.bodies: list[Any] = []

    async def __call__(self, batch: MessageBatch[Any]) -> None:
        self.bodies += [message.body for message in batch.messages]


async def test_what_was_sent_is_the_very_object() -> None:
    queue: FakeQueue[Job] = FakeQueue()
    job = Job("audit")
    await queue.send(job, delay_seconds=5)
    await queue.send_batch([MessageSendRequest(Job("a")), {"body": Job("b"), "delay_seconds": 1}], delay_seconds=9)
    assert queue.sent == [Job("audit"), Job("a"), Job("b")]
    assert queue.sent[0] is not job
    assert queue.messages == [
        SentMessage(Job("audit"), "json", 5),
        SentMessage(Job("a"), "json", 9),
        SentMessage(Job("b"), "json", 1),
    ]
    assert [call.method for call in queue.calls] == ["send", "send_batch"]
    assert queue.calls[0] == Call("send", (job,), {"delay_seconds": 5})


async def test_a_fake_is_a_queue() -> None:
    queue: Queue[Job] = FakeQueue()
    assert isinstance(queue, Queue)


async def test_deliver_hands_over_what_is_due_in_batches() -> None:
    clock = FakeClock()
    queue: FakeQueue[int] = FakeQueue(clock=clock, settings=ConsumerSettings(max_batch_size=2))
    for number in range(3):
        await queue.send(number)
    await queue.send(99, delay_seconds=60)
    seen = Seen()
    batches = await queue.deliver(seen)
    assert [len(batch.messages) for batch in batches] == [2, 1]
    assert seen.bodies == [0, 1, 2]
    assert queue.waiting == 1
    clock.advance(60)
    await queue.deliver(seen)
    assert seen.bodies == [0, 1, 2, 99]
    assert queue.waiting == 0


async def test_what_a_handler_retries_or_leaves_by_raising_is_delivered_again() -> None:
    queue: FakeQueue[str] = FakeQueue()
    await queue.send("a")

    async def fail(batch: MessageBatch[Any]) -> None:
        raise LookupError("seen by the test")

    with pytest.raises(LookupError, match="seen by the test"):
        await queue.deliver(fail)

    async def retry(batch: MessageBatch[Any]) -> None:
        assert [message.attempts for message in batch.messages] == [2]
        batch.retry_all()

    (batch,) = await queue.deliver(retry)
    assert batch.all_retried
    seen = Seen()
    await queue.deliver(seen)
    assert seen.bodies == ["a"]


async def test_dead_letters_are_kept() -> None:
    queue: FakeQueue[str] = FakeQueue(settings=ConsumerSettings(max_retries=0, dead_letter_queue="dead"))
    await queue.send("a")

    async def retry(batch: MessageBatch[Any]) -> None:
        batch.retry_all()

    await queue.deliver(retry)
    assert queue.dead() == ["a"]
    assert queue.waiting == 0


async def test_redeliver_brings_acknowledged_messages_again_as_at_least_once_allows() -> None:
    queue: FakeQueue[str] = FakeQueue()
    await queue.send("a")
    seen = Seen()
    (first,) = await queue.deliver(seen)
    assert queue.redeliver() == 1
    (second,) = await queue.deliver(seen)
    assert seen.bodies == ["a", "a"]
    assert [m.id for m in first.messages] == [m.id for m in second.messages]
    assert [m.attempts for m in second.messages] == [1]


async def test_a_fault_is_raised_once_and_stores_nothing() -> None:
    queue: FakeQueue[str] = FakeQueue()
    queue.fail_next(QueueError("Too Many Requests"), method="send")
    with pytest.raises(QueueError, match="Too Many Requests"):
        await queue.send("a")
    assert queue.sent == []
    assert queue.waiting == 0
    await queue.send("b")
    assert queue.sent == ["b"]


async def test_consume_follows_the_clock() -> None:
    clock = FakeClock()
    queue: FakeQueue[str] = FakeQueue(clock=clock)
    seen = Seen()
    queue.consume(seen)
    await queue.send("a")
    await clock.advance(4)
    assert seen.bodies == []
    await clock.advance(1)
    assert seen.bodies == ["a"]
    await queue.stop()


async def test_a_batch_out_of_nothing_says_what_was_decided() -> None:
    batch = message_batch("jobs", [Job("a"), Job("b"), Job("c")], attempts=2)
    batch.messages[0].ack()
    batch.messages[1].retry(delay_seconds=5)
    assert batch.queue == "jobs"
    assert [message.attempts for message in batch.messages] == [2, 2, 2]
    assert batch.acked == {"1"}
    assert batch.retried == {"2": 5}
    assert isinstance(batch, MessageBatch)


async def test_sent_shows_what_was_sent_and_not_what_became_of_it() -> None:
    clock = FakeClock()
    queue: FakeQueue[dict[str, Any]] = FakeQueue(clock=clock, latency=1)
    body: dict[str, Any] = {"to": ["ada"]}
    request: MessageSendRequestDict[dict[str, Any]] = {"body": body}
    sending = [asyncio.ensure_future(queue.send(body)), asyncio.ensure_future(queue.send_batch([request]))]
    await asyncio.sleep(0)
    body["to"].append("bob")
    await clock.advance(1)
    await asyncio.gather(*sending)
    assert queue.sent == [{"to": ["ada"]}] * 2
    seen: list[object] = []

    async def note(batch: MessageBatch[Any]) -> None:
        seen.extend(message.body for message in batch.messages)

    await queue.deliver(note)
    assert seen == queue.sent
    with pytest.raises(QueueTypeError):
        await FakeQueue[Any]().send({"lock": threading.Lock()})


async def test_an_application_in_place_of_a_handler_is_told_with_the_line_to_write() -> None:
    app: Any = App()
    queue: FakeQueue[str] = FakeQueue()
    await queue.send("a")
    with pytest.raises(HandlerError, match=r"deliver\(lambda batch: app.consume\(batch, env, ctx\)\)"):
        await queue.deliver(app)
    with pytest.raises(HandlerError, match=r"consume\(lambda batch: app.consume\(batch, env, ctx\)\)"):
        queue.consume(app)
    assert queue.waiting == 1
