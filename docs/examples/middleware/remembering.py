"""Sessions in KV: a basket, and a login that changes the id."""

import attrs

from core import Bindings, KVNamespace, Request, Response, Secret, create_app
from core.middleware.sessions import session_of, sessions


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    SESSION_SECRET: Secret


# --8<-- [start:app]
app = create_app(Env)
app.use(sessions(kv_binding="SESSIONS", secret=lambda req: req.env.SESSION_SECRET))


@app.post("/basket/:item")
async def add(req: Request[Env], res: Response) -> None:
    session = await session_of(req)
    session["basket"] = [*session.get("basket", []), req.params["item"]]
    res.json(session["basket"])


@app.post("/login")
async def login(req: Request[Env], res: Response) -> None:
    session = await session_of(req)
    session["user"] = "ada"
    session.regenerate()
    res.json({"ok": True})


# --8<-- [end:app]
