"""Arguments that queues, buckets and Durable Objects must not be given, nor the error of a database asked."""

from typing import Any

import attrs

from core.bindings.ai import Ai
from core.bindings.durable_object import DurableObject, DurableObjectNamespace
from core.bindings.queue import MessageBatch, MessageSendRequest, Queue
from core.bindings.r2 import R2Bucket
from core.errors import D1Error


@attrs.frozen
class Job:
    kind: str


@attrs.frozen
class User:
    name: str


class Counter(DurableObject[Any]):
    async def increment(self, by: int = 1) -> int:
        return by


async def sends(queue: Queue[Job]) -> None:
    await queue.send(User("ada"))  # E
    await queue.send_batch([MessageSendRequest(User("ada"))])  # E
    await queue.send(Job("a"), content_type="xml")  # E


async def consumes(batch: MessageBatch[Job]) -> None:
    for message in batch.messages:
        print(message.body.name)  # E


async def puts(bucket: R2Bucket) -> None:
    await bucket.put("k", 5)  # E
    await bucket.put("k", "v", md5=5)  # E
    await bucket.put("k", "v", md6="x")  # E, but for ty
    await bucket.get("k", length=5)  # E, but for ty
    await bucket.put("k", "v", only_if={"etag": "x"})  # E
    (await bucket.put("k", "v", only_if={"etag_matches": "x"})).etag  # E
    (await bucket.get("k")).text()  # E


async def runs(ai: Ai) -> None:
    await ai.run("@cf/m", {}, tags=5)  # E
    await ai.run("@cf/m", {}, stream=True, temperature=1)  # E, but for ty


async def calls(counters: DurableObjectNamespace[Counter]) -> None:
    counter = counters.get_by_name("a")
    await counter.increment(by="one")  # E
    await counter.decrement()  # E
    print((await counter.increment()).upper())  # E


def refused(error: D1Error) -> None:
    error.columns.append("users.email")  # E
    error.constraint.lower()  # E
