"""Rate limits: in KV as the specification says, exact in a Durable Object, and by the platform."""

import attrs

from core import Bindings, DurableObjectNamespace, KVNamespace, Request, Response, create_app
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_object import RateLimiterObject
from core.middleware.rate_limit_stores import DurableObjectStore

__all__ = ["RateLimiterObject", "app"]  # the worker exports the object's class


@attrs.frozen
class Env(Bindings):
    COUNTERS: KVNamespace
    LIMITER: DurableObjectNamespace[RateLimiterObject]


app = create_app(Env)

# --8<-- [start:kv]
app.use("/api", rate_limit(kv_binding="COUNTERS", limit=100, window=60))
# --8<-- [end:kv]


# --8<-- [start:exact]
@app.post("/login", rate_limit(store=DurableObjectStore("LIMITER"), limit=5, window=60, on_store_error="closed"))
async def login(req: Request[Env], res: Response) -> None:
    res.json({"ok": True})


# --8<-- [end:exact]


@app.get("/api/items")
async def items(req: Request[Env], res: Response) -> None:
    res.json([])
