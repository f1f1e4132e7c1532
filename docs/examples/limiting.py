"""Rate limits: one for everything, a tighter one for a route."""

import attrs

from core import Bindings, KVNamespace, Request, Response, create_app
from core.middleware.rate_limit import rate_limit


@attrs.frozen
class Env(Bindings):
    COUNTERS: KVNamespace


# --8<-- [start:limits]
app = create_app(Env)
app.use(rate_limit(kv_binding="COUNTERS", limit=1000, window=3600))


@app.post("/login", rate_limit(kv_binding="COUNTERS", limit=5, window=60, message="Too many attempts"))
async def login(req: Request[Env], res: Response) -> None:
    res.json({"ok": True})


# --8<-- [end:limits]


@app.get("/")
async def home(req: Request[Env], res: Response) -> None:
    res.json({"ok": True})
