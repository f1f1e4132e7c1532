"""A queue from both ends, every method of it, with the type of every result."""

from collections.abc import Sequence
from datetime import datetime
from typing import assert_type

import attrs

from core.bindings.queue import (
    Message,
    MessageBatch,
    MessageBatchMetadata,
    MessageSendRequest,
    Queue,
    QueueMetrics,
    QueueSendResponse,
)


@attrs.frozen
class Job:
    kind: str


@attrs.frozen
class UrgentJob(Job):
    pass


async def sends(queue: Queue[Job]) -> None:
    assert_type(await queue.send(Job("a")), QueueSendResponse)
    assert_type(await queue.send(UrgentJob("a"), content_type="json", delay_seconds=5), QueueSendResponse)
    response = await queue.send_batch([MessageSendRequest(Job("a"), "v8", 0), MessageSendRequest(UrgentJob("b"))])
    assert_type(response, QueueSendResponse)
    await queue.send_batch([{"body": Job("c")}, {"body": Job("d"), "delay_seconds": 5}], delay_seconds=1)
    assert_type(response.metadata.metrics, QueueMetrics)
    metrics = await queue.metrics()
    assert_type(metrics.backlog_count, int)
    assert_type(metrics.backlog_bytes, int)
    assert_type(metrics.oldest_message_timestamp, datetime | None)


def a_queue_of_all_jobs_takes_urgent_ones(queue: Queue[Job]) -> Queue[UrgentJob]:
    return queue


def a_batch_of_urgent_jobs_is_one_of_jobs(batch: MessageBatch[UrgentJob]) -> MessageBatch[Job]:
    return batch


async def consumes(batch: MessageBatch[Job]) -> None:
    assert_type(batch.queue, str)
    assert_type(batch.messages, Sequence[Message[Job]])
    assert_type(batch.metadata, MessageBatchMetadata)
    for message in batch.messages:
        assert_type(message.id, str)
        assert_type(message.timestamp, datetime)
        assert_type(message.body, Job)
        assert_type(message.body.kind, str)
        assert_type(message.attempts, int)
        message.ack()
        message.retry()
        message.retry(5)
        message.retry(delay_seconds=5)
    batch.ack_all()
    batch.retry_all()
    batch.retry_all(delay_seconds=5)
