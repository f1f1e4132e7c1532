"""The promises of every queue to its senders, and to its consumer. The wording of the errors is the embedded one's:
the runtime's depends on its version.

A queue is tried through a `Line`: a producer, and a way to be its consumer. `Line.consume` begins with a handler and
the settings, `Line.stop` ends it. Only abilities of every implementation are asked for; the rest is marked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, cast

import attrs
from tests.contracts.contract import Contract, MovingClock, refused

from core.bindings.queue import Message, MessageBatch, MessageSendRequest, MessageSendRequestDict, Queue
from core.errors import QueueError, QueueTypeError

Handler = Callable[[MessageBatch[Any]], Awaitable[None]]


class Line(Protocol):
    """A queue from one end to the other. Nothing is consumed until `consume`."""

    @property
    def queue(self) -> Queue[Any]:
        """The sending side."""
        ...

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
        """Let `handler` consume the queue, and `dead_letters` its dead letter queue, one by one and after a second."""
        ...

    async def stop(self) -> None:
        """End consuming, and forget every message."""
        ...


async def clean(line: Line) -> None:
    """Forget every message."""
    await line.stop()


contract: Contract[Line] = Contract("queue", clean)


@attrs.frozen
class Job:
    """A message of the typed cases."""

    kind: str
    at: datetime


@attrs.define
class Seen:
    """A consumer that notes its messages, and follows a script: one function for each batch, nothing after that."""

    script: Sequence[Callable[[MessageBatch[Any]], None]] = ()
    batches: list[list[Any]] = attrs.field(factory=list[list[Any]])
    messages: list[Message[Any]] = attrs.field(factory=list[Message[Any]])

    async def __call__(self, batch: MessageBatch[Any]) -> None:
        number = len(self.batches)
        self.batches.append([message.body for message in batch.messages])
        self.messages += batch.messages
        if number < len(self.script):
            self.script[number](batch)

    @property
    def bodies(self) -> list[Any]:
        """Every body, in the order of delivery."""
        return [body for batch in self.batches for body in batch]


async def consuming(line: Line, *script: Callable[[MessageBatch[Any]], None], **settings: Any) -> Seen:
    """Let a new `Seen` consume the queue."""
    seen = Seen(script)
    await line.consume(seen, **settings)
    return seen


def boom(batch: MessageBatch[Any]) -> None:
    """Fail."""
    raise RuntimeError("boom")


# ---------------------------------------------------------------------- bodies


@contract.case(timed=True)
async def a_message_comes_as_it_was_sent(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line)
    bodies: list[Any] = [{"a": [1, 2.5, None, True, "é😀"]}, "text", 0, 1.5, False, None, [], {}, ""]
    for body in bodies:
        await line.queue.send(body)
    await line.queue.send("a text", content_type="text")
    await line.queue.send(b"\x00\xff", content_type="bytes")
    await clock.advance(5)
    assert seen.bodies == [*bodies, "a text", b"\x00\xff"]


@contract.case(timed=True)
async def an_attrs_object_is_sent_as_its_json(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line)
    await line.queue.send(Job("audit", datetime(2026, 1, 2, tzinfo=UTC)))
    await clock.advance(5)
    assert seen.bodies == [{"kind": "audit", "at": "2026-01-02T00:00:00Z"}]


@contract.case(timed=True)
async def what_is_changed_after_a_send_is_not_sent(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line)
    body = {"n": 1}
    await line.queue.send(body)
    body["n"] = 2
    await clock.advance(5)
    assert seen.bodies == [{"n": 1}]


@contract.case(timed=True)
async def whole_numbers_come_as_they_were_sent_or_are_refused(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line)
    for number in (2**53, -(2**53), 2**60, 10**30):
        error = await refused(line.queue.send({"a": [number]}), QueueTypeError)
        assert f"{number} is beyond 2**53 - 1" in str(error)
        await refused(line.queue.send_batch([MessageSendRequest(1), MessageSendRequest(number)]), QueueTypeError)
    bodies: list[Any] = [2**53 - 1, {"id": -(2**53 - 1)}, str(2**60), 1e300]
    for body in bodies:
        await line.queue.send(body)
    # A structured clone has whole numbers of any size.
    await line.queue.send([2**60], content_type="v8")
    await clock.advance(5)
    assert seen.bodies == [*bodies, [2**60]]


@contract.case()
async def a_body_must_be_of_its_content_type(line: Line) -> None:
    send = line.queue.send
    texts: tuple[tuple[Any, str], ...] = (
        ({"a": 1}, "object"),
        (5, "number"),
        (None, "object"),
        (b"x", "object"),
        (True, "boolean"),
    )
    for body, got in texts:
        message = f'Content Type "text" requires a value of type string, but received: {got}'
        await refused(send(body, content_type="text"), QueueTypeError, message)
    others: tuple[tuple[Any, str], ...] = (("text", "string"), ([1, 2], "object"), (5, "number"))
    for body, got in others:
        message = f'Content Type "bytes" requires a value of type ArrayBufferView, but received: {got}'
        await refused(send(body, content_type="bytes"), QueueTypeError, message)
    await refused(send(object()), QueueTypeError)
    await refused(send(float("nan")), QueueTypeError)


@contract.case()
async def an_unknown_content_type_is_refused(line: Line) -> None:
    for kind in ("xml", "application/json", ""):
        wrong = cast("Any", kind)
        message = f"Unsupported queue message content type: {kind}"
        await refused(line.queue.send("x", content_type=wrong), QueueTypeError, message)
        batch = line.queue.send_batch([MessageSendRequest("x", content_type=wrong)])
        await refused(batch, QueueTypeError, message)


@contract.case(timed=True)
async def v8_keeps_what_json_has_no_type_for(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line)
    body = {"when": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"\x00\xff", "some": [1, 2.5, None]}
    await line.queue.send(body, content_type="v8")
    await clock.advance(5)
    assert seen.bodies == [body]


# ---------------------------------------------------------------------- limits


@contract.case(timed=True)
async def the_largest_message_has_128000_bytes(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line, max_batch_size=1)
    await line.queue.send("x" * 128_000, content_type="text")
    await line.queue.send("x" * 127_998)
    await line.queue.send(b"x" * 128_000, content_type="bytes")
    await refused(line.queue.send("x" * 128_001, content_type="text"), QueueError)
    await refused(line.queue.send("x" * 127_999), QueueError)
    await refused(line.queue.send(b"x" * 128_001, content_type="bytes"), QueueError)
    await refused(line.queue.send("é" * 64_000 + "x", content_type="text"), QueueError)
    await clock.advance(5)
    assert [len(body) for body in seen.bodies] == [128_000, 127_998, 128_000]


@contract.case(timed=True)
async def a_batch_has_1_to_100_messages(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line, max_batch_size=100)
    await line.queue.send_batch([MessageSendRequest(number) for number in range(100)])
    await refused(line.queue.send_batch([MessageSendRequest(0)] * 101), QueueError)
    await refused(line.queue.send_batch([]), QueueTypeError, "sendBatch() requires at least one message")
    await clock.advance(5)
    assert seen.bodies == [*range(100)]


@contract.case(timed=True)
async def what_is_too_large_is_refused_with_its_limit_and_what_to_do(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line)
    message = (
        "Queue send failed: message length of {} bytes exceeds limit of 128000"
        ". Send less, or put the body into KV or R2 and send its key"
    )
    send, send_batch = line.queue.send, line.queue.send_batch
    await refused(send("x" * 128_001, content_type="text"), QueueError, message.format(128_001))
    await refused(send("é" * 64_000 + "x", content_type="text"), QueueError, message.format(128_001))
    await refused(send(b"x" * 128_001, content_type="bytes"), QueueError, message.format(128_001))
    await refused(send({"a": "é" * 64_000}), QueueError, message.format(128_008))
    error = await refused(send({"a": b"x" * 130_000}, content_type="v8"), QueueError)
    assert "exceeds limit of 128000. Send less" in str(error)

    message = (
        "Queue sendBatch failed: message in batch has length 128001 bytes which exceeds single message size limit of "
        "128000. Send less, or put the body into KV or R2 and send its key"
    )
    await refused(send_batch([{"body": "fine"}, {"body": "x" * 127_999}]), QueueError, message)
    message = (
        "Queue sendBatch failed: batch message count of 101 exceeds limit of 100. Send the messages in several batches"
    )
    small: MessageSendRequestDict[Any] = {"body": 0}
    await refused(send_batch([small] * 101), QueueError, message)
    half: MessageSendRequestDict[Any] = {"body": b"x" * 128_000, "content_type": "bytes"}
    message = (
        "Queue sendBatch failed: batch size of 256001 bytes exceeds limit of 256000"
        ". Send the messages in several batches"
    )
    await refused(send_batch([half, half, {"body": "x", "content_type": "text"}]), QueueError, message)
    await send_batch([half, half])
    await clock.advance(5)
    assert [len(body) for body in seen.bodies] == [128_000, 128_000]


@contract.case(timed=True)
async def a_bad_message_refuses_its_whole_batch(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line)
    bad: list[MessageSendRequest[Any]] = [
        MessageSendRequest("x" * 128_001),
        MessageSendRequest("x", delay_seconds=86_401),
        MessageSendRequest("x", delay_seconds=-1),
    ]
    for message in bad:
        await refused(line.queue.send_batch([MessageSendRequest("fine"), message]), QueueError)
    await refused(line.queue.send_batch([MessageSendRequest("fine"), MessageSendRequest(5, "text")]), QueueTypeError)
    await clock.advance(5)
    assert seen.batches == []


@contract.case()
async def delays_are_0_to_86400_seconds(line: Line) -> None:
    await line.queue.send("x", delay_seconds=86_400)
    await refused(line.queue.send("x", delay_seconds=86_401), QueueError)
    await refused(line.queue.send("x", delay_seconds=-1), QueueError)
    await refused(line.queue.send_batch([MessageSendRequest("x")], delay_seconds=-1), QueueError)


# ---------------------------------------------------------------------- batches


@contract.case(timed=True)
async def a_full_batch_goes_at_once(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line, max_batch_size=3, max_batch_timeout=60)
    for number in range(7):
        await line.queue.send(number)
    await clock.advance(0)
    assert seen.batches == [[0, 1, 2], [3, 4, 5]]
    await clock.advance(59)
    assert len(seen.batches) == 2
    await clock.advance(2)
    assert seen.batches[2:] == [[6]]


@contract.case(timed=True)
async def a_batch_waits_from_its_first_message_on(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line, max_batch_timeout=2)
    await line.queue.send("a")
    await clock.advance(1)
    await line.queue.send("b")
    await clock.advance(0.5)
    assert seen.batches == []
    await clock.advance(1)
    assert seen.batches == [["a", "b"]]
    await line.queue.send("c")
    await clock.advance(1)
    assert len(seen.batches) == 1
    await clock.advance(1.5)
    assert seen.batches[1:] == [["c"]]


@contract.case(timed=True)
async def messages_that_waited_for_a_consumer_come_to_it(line: Line, clock: MovingClock) -> None:
    await line.queue.send("early")
    await clock.advance(100)
    seen = await consuming(line)
    await clock.advance(5)
    assert seen.bodies == ["early"]


@contract.case(timed=True)
async def a_delay_is_kept_and_a_messages_own_wins(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line, max_batch_timeout=0)
    await line.queue.send("later", delay_seconds=10)
    await line.queue.send_batch([MessageSendRequest("now", delay_seconds=0), {"body": "soon"}], delay_seconds=5)
    await clock.advance(0)
    assert seen.bodies == ["now"]
    await clock.advance(4.9)
    assert seen.bodies == ["now"]
    await clock.advance(0.1)
    assert seen.bodies == ["now", "soon"]
    await clock.advance(5)
    assert seen.bodies == ["now", "soon", "later"]


@contract.case(timed=True)
async def a_message_has_an_id_a_time_and_attempts(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line, lambda batch: batch.retry_all())
    sent = clock.time()
    await line.queue.send_batch([{"body": "a"}, {"body": "b"}])
    await clock.advance(5)
    assert seen.batches == [["a", "b"], ["a", "b"]]
    first, second = seen.messages[:2], seen.messages[2:]
    assert [m.id for m in first] == [m.id for m in second]
    assert first[0].id != first[1].id
    assert [m.attempts for m in seen.messages] == [1, 1, 2, 2]
    assert all(abs(m.timestamp.timestamp() - sent) < 0.01 for m in seen.messages)


# ---------------------------------------------------------------------- acknowledgement


@contract.case(timed=True)
async def ending_well_acknowledges_all_that_was_not_retried(line: Line, clock: MovingClock) -> None:
    seen = await consuming(line, lambda batch: batch.messages[1].retry())
    await line.queue.send_batch([{"body": "a"}, {"body": "b"}])
    await clock.advance(10)
    assert seen.batches == [["a", "b"], ["b"]]


@contract.case(timed=True)
async def raising_retries_all_that_was_not_acknowledged(line: Line, clock: MovingClock) -> None:
    def ack_one_and_fail(batch: MessageBatch[Any]) -> None:
        batch.messages[0].ack()
        boom(batch)

    seen = await consuming(line, ack_one_and_fail)
    await line.queue.send_batch([{"body": "a"}, {"body": "b"}])
    await clock.advance(10)
    assert seen.batches == [["a", "b"], ["b"]]


@contract.case(timed=True)
async def the_first_word_on_a_message_counts(line: Line, clock: MovingClock) -> None:
    def ack_then_retry(batch: MessageBatch[Any]) -> None:
        batch.messages[0].ack()
        batch.messages[0].retry()
        batch.messages[1].retry()
        batch.messages[1].ack()

    seen = await consuming(line, ack_then_retry)
    await line.queue.send_batch([{"body": "acked"}, {"body": "retried"}])
    await clock.advance(10)
    assert seen.batches == [["acked", "retried"], ["retried"]]


@contract.case(timed=True)
async def the_first_word_on_a_batch_counts(line: Line, clock: MovingClock) -> None:
    def ack_all_then_retry(batch: MessageBatch[Any]) -> None:
        batch.ack_all()
        batch.retry_all()
        batch.messages[0].retry()

    def retry_all_then_ack(batch: MessageBatch[Any]) -> None:
        batch.retry_all()
        batch.ack_all()
        batch.messages[0].ack()

    seen = await consuming(line, ack_all_then_retry, retry_all_then_ack, max_batch_size=1)
    await line.queue.send("a")
    await clock.advance(5)
    await line.queue.send("b")
    await clock.advance(5)
    assert seen.batches == [["a"], ["b"], ["b"]]


@contract.case(timed=True)
async def an_acknowledged_message_stays_so_when_the_rest_is_retried(line: Line, clock: MovingClock) -> None:
    def ack_one_retry_rest(batch: MessageBatch[Any]) -> None:
        batch.messages[0].ack()
        batch.retry_all()

    seen = await consuming(line, ack_one_retry_rest)
    await line.queue.send_batch([{"body": "a"}, {"body": "b"}])
    await clock.advance(10)
    assert seen.batches == [["a", "b"], ["b"]]


@contract.case(timed=True)
async def a_retry_waits_for_its_own_delay_the_batchs_or_the_consumers(line: Line, clock: MovingClock) -> None:
    def retry(batch: MessageBatch[Any]) -> None:
        batch.messages[0].retry(delay_seconds=2)
        batch.messages[1].retry()
        batch.messages[2].retry(0)

    seen = await consuming(line, retry, max_batch_size=3, max_batch_timeout=0, retry_delay=5)
    await line.queue.send_batch([{"body": "a"}, {"body": "b"}, {"body": "c"}])
    await clock.advance(0)
    assert seen.bodies == ["a", "b", "c", "c"]
    await clock.advance(2)
    assert seen.bodies[4:] == ["a"]
    await clock.advance(3)
    assert seen.bodies[5:] == ["b"]


@contract.case(timed=True)
async def a_retry_has_the_delays_of_a_send(line: Line, clock: MovingClock) -> None:
    said: list[str] = []

    def retry(batch: MessageBatch[Any]) -> None:
        for call in (partial(batch.messages[0].retry, 86_401), partial(batch.retry_all, -1)):
            try:
                call()
            except QueueError as error:
                said.append(str(error))

    seen = await consuming(line, retry, max_batch_size=1)
    await line.queue.send("a")
    await clock.advance(1)
    invalid = "is invalid: it must be between 0 and 86400 seconds"
    assert said == [
        f"Queue retry failed: message delay 86401 {invalid}",
        f"Queue retryAll failed: message delay -1 {invalid}",
    ]
    await clock.advance(3)
    assert seen.bodies == ["a"]


@contract.case(timed=True)
async def of_several_retries_the_last_delay_holds(line: Line, clock: MovingClock) -> None:
    def retry(batch: MessageBatch[Any]) -> None:
        longer, shorter, none, after_all = batch.messages
        longer.retry(delay_seconds=1)
        longer.retry(delay_seconds=4)
        shorter.retry(delay_seconds=9)
        shorter.retry(delay_seconds=2)
        none.retry(delay_seconds=1)
        none.retry()
        batch.retry_all(delay_seconds=1)
        batch.retry_all(delay_seconds=6)
        batch.retry_all()
        after_all.retry(delay_seconds=8)

    seen = await consuming(line, retry, max_batch_size=4, max_batch_timeout=0)
    await line.queue.send_batch([{"body": "4"}, {"body": "2"}, {"body": "6"}, {"body": "8"}])
    await clock.advance(1.5)
    assert len(seen.bodies) == 4
    for seconds in (2, 4, 6, 8):
        await clock.advance(2)
        assert seen.bodies[3 + seconds // 2 :] == [str(seconds)]


# ---------------------------------------------------------------------- the last attempt


@contract.case(timed=True)
async def a_message_has_one_attempt_more_than_retries(line: Line, clock: MovingClock) -> None:
    for retries in (0, 2):
        seen = await consuming(line, *[boom] * 10, max_batch_size=1, max_retries=retries)
        await line.queue.send("a")
        await clock.advance(30)
        assert [m.attempts for m in seen.messages] == [*range(1, retries + 2)]
        await line.stop()


@contract.case(timed=True)
async def after_the_last_attempt_a_message_goes_to_the_dead_letter_queue(line: Line, clock: MovingClock) -> None:
    seen, dead = Seen([boom] * 10), Seen()
    await line.consume(seen, max_batch_size=1, max_retries=1, dead_letters=dead)
    await line.queue.send({"job": 1})
    await clock.advance(30)
    assert seen.bodies == [{"job": 1}] * 2
    assert dead.bodies == [{"job": 1}]
    assert dead.messages[0].id == seen.messages[0].id
    assert dead.messages[0].timestamp == seen.messages[0].timestamp
    assert dead.messages[0].attempts == 1
