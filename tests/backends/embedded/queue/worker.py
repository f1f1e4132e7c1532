"""A process that sends numbers to a queue and consumes them, for tests that end it with SIGKILL.

`python worker.py STATE LOG FIRST LAST`: every send that returned and every message that was handled is a line of
LOG, written before anything else happens. It ends when all is sent and the queue is empty.
"""

from __future__ import annotations

import asyncio
import os
import sys

from core.backends.embedded.queue import ConsumerSettings, EmbeddedQueue, broker_of
from core.backends.embedded.store import Store
from core.bindings.queue import MessageBatch


async def main(state: str, log: str, first: int, last: int) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = Store(state)
    queue: EmbeddedQueue[int] = EmbeddedQueue(store, "numbers")
    broker = broker_of(store)

    async def consume(batch: MessageBatch[int]) -> None:
        os.write(descriptor, "".join(f"c{message.body:05}\n" for message in batch.messages).encode())
        await asyncio.sleep(0)
        if batch.messages[0].body % 7 == 0 and batch.messages[0].attempts == 1:
            raise RuntimeError("every seventh batch fails once")

    broker.consume("numbers", consume, ConsumerSettings(max_batch_size=50, max_batch_timeout=0.01))
    for number in range(first, last):
        if number % 50 == 0 and number + 10 <= last:
            # A batch among the single messages, with the same numbers again.
            await queue.send_batch([{"body": n} for n in range(number, number + 10)])
        await queue.send(number)
        os.write(descriptor, f"s{number:05}\n".encode())
        if number % 20 == 0:
            await asyncio.sleep(0)
    while (await queue.metrics()).backlog_count:  # noqa: ASYNC110 - the queue tells nobody that it is empty
        await asyncio.sleep(0.01)
    await broker.close()
    store.close()


if __name__ == "__main__":
    import logging

    logging.disable(logging.CRITICAL)
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
