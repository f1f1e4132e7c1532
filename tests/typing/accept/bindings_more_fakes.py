"""Embedded and fake buckets, queues, models and Durable Objects fit where the Protocol is asked for."""

from typing import Any, assert_type

from core.backends.embedded.ai import EmbeddedAi
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace, ObjectState, ObjectStorage
from core.backends.embedded.queue import EmbeddedQueue
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.rate_limit import EmbeddedRateLimit
from core.backends.embedded.version_metadata import EmbeddedVersionMetadata
from core.bindings.ai import Ai
from core.bindings.durable_object import (
    DurableObject,
    DurableObjectNamespace,
    DurableObjectState,
    DurableObjectStorage,
)
from core.bindings.queue import MessageBatch, Queue
from core.bindings.r2 import R2Bucket
from core.bindings.rate_limit import RateLimit
from core.bindings.version_metadata import VersionMetadata
from core.testing import FakeAi, FakeDurableObjectNamespace, FakeQueue, FakeR2Bucket, FakeRateLimit
from core.testing.calls import Call
from core.testing.queue import message_batch


class Counter(DurableObject[Any]):
    async def increment(self) -> int:
        return 1


def buckets(embedded: EmbeddedR2Bucket, fake: FakeR2Bucket) -> list[R2Bucket]:
    return [embedded, fake]


def queues(embedded: EmbeddedQueue[int], fake: FakeQueue[int]) -> list[Queue[int]]:
    return [embedded, fake]


def models(embedded: EmbeddedAi, fake: FakeAi) -> list[Ai]:
    return [embedded, fake]


def namespaces(
    embedded: EmbeddedDurableObjectNamespace[Counter], fake: FakeDurableObjectNamespace[Counter]
) -> list[DurableObjectNamespace[Counter]]:
    return [embedded, fake]


def state(state: ObjectState) -> DurableObjectState:
    return state


def storage(storage: ObjectStorage) -> DurableObjectStorage:
    return storage


def limits(embedded: EmbeddedRateLimit, fake: FakeRateLimit) -> list[RateLimit]:
    return [embedded, fake]


def others(version: EmbeddedVersionMetadata) -> VersionMetadata:
    return version


def batches() -> MessageBatch[int]:
    return message_batch("q", [1, 2])


async def uses(queue: FakeQueue[int], counters: FakeDurableObjectNamespace[Counter]) -> None:
    assert_type(queue.sent, list[int])
    assert_type(queue.calls, list[Call])
    assert_type(await counters.get_by_name("a").increment(), int)
