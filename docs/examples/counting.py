"""A Durable Object that counts exactly, and forgets after an hour."""

import attrs

from core import Bindings, DurableObject, DurableObjectNamespace, Request, Response, create_app
from core.bindings.durable_object import AlarmInvocationInfo

HOUR_MS = 3_600_000


# --8<-- [start:object]
class Counter(DurableObject[Bindings]):
    async def increment(self, by: int = 1, *, now_ms: int) -> int:
        count = (await self.ctx.storage.get("count") or 0) + by
        await self.ctx.storage.put("count", count)
        await self.ctx.storage.set_alarm(now_ms + HOUR_MS)
        return count

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        await self.ctx.storage.delete_all()


# --8<-- [end:object]


# --8<-- [start:app]
@attrs.frozen
class Env(Bindings):
    COUNTERS: DurableObjectNamespace[Counter]


app = create_app(Env)


@app.post("/counters/:name")
async def count(req: Request[Env], res: Response) -> None:
    counter = req.env.COUNTERS.get_by_name(req.params["name"])
    res.json({"count": await counter.increment(now_ms=int(req.clock.time() * 1000))})


# --8<-- [end:app]
