"""A hundred runs of everything that a tape decides, as one digest: the same in every version of Python.

It needs no pytest, and no sockets, so that it runs in every Python that there is: `python schedules.py`.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

import attrs

from core import Bindings, DurableObject, KVNamespace, Request, Response, create_app
from core.testing import (
    Client,
    FakeClock,
    FakeDurableObjectNamespace,
    FakeKVNamespace,
    FakeQueue,
    SimulatedCall,
    simulate,
)

DIGEST = "441c681fde1e3a37674a0c0a49b26d91b7e5552535be95cebb9991f7d03ecdcc"


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace


class Memory(DurableObject[Any]):
    count = 0

    async def add(self) -> int:
        self.count += 1
        return self.count


app = create_app(Env)


@app.post("/increments")
async def increment(req: Request[Env], res: Response) -> None:
    number = int(await req.env.KV.get("n") or 0)
    await req.env.KV.put("n", str(number + 1))
    res.json({"n": number + 1})


def digest() -> str:
    """Make the runs. Returns the digest of all their calls, with arguments, results and errors."""
    seen = hashlib.sha256()

    def remember(calls: Sequence[SimulatedCall]) -> None:
        seen.update("\n".join(map(str, calls)).encode())

    async def test() -> None:
        kv, clock = FakeKVNamespace(), FakeClock()
        queue: FakeQueue[int] = FakeQueue(clock=clock)
        here, there = Client(app, Env(KV=kv)), Client(app, Env(KV=kv))
        memory = FakeDurableObjectNamespace(Memory, clock=clock).get_by_name("a")
        calls = [here.post("/increments"), there.post("/increments"), memory.add(), queue.send(1)]
        await asyncio.gather(*calls, return_exceptions=True)
        await asyncio.gather(memory.add(), return_exceptions=True)

        async def consume(batch: Any) -> None:
            await kv.put("consumed", uuid.uuid4().hex)

        queue.consume(consume)
        await clock.advance(30)
        await queue.stop()

    simulate(runs=100, seed=7, faults=["error", "crash", "queue", "evict"], places=2, checks=[remember])(test)()
    return seen.hexdigest()


if __name__ == "__main__":
    import sys

    print(*sys.version_info[:2], digest())
