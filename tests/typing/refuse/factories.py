"""Middleware kept in a variable that does not fit where it is registered."""

from __future__ import annotations

import attrs

from core import Bindings, KVNamespace, Request, Response, Secret, create_app
from core.middleware.cors import cors
from core.middleware.jwt import jwt_auth
from core.middleware.rate_limit import rate_limit


@attrs.frozen
class Env(Bindings):
    COUNTERS: KVNamespace
    ORIGINS: str
    JWT_SECRET: Secret


@attrs.frozen
class Other(Bindings):
    CACHE: KVNamespace


@attrs.frozen
class Claims:
    sub: str


app = create_app(Env)
other = create_app(Other)

auth = jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET, claims=Claims)
limit = rate_limit(Env, kv_binding=lambda req: req.env.COUNTERS, limit=5, window=60)
shared = cors(Env, origins=lambda req: req.env.ORIGINS.split(","))
other.authenticated(auth)  # E
other.use(limit)  # E
other.use(shared)  # E
other.use("/x", jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET))  # E
app.authenticated(jwt_auth(secret=lambda req: req.env.NOPE))  # E
rate_limit("COUNTERS", limit=5, window=60)  # E

app.use("/admin", auth)


@app.get("/admin")  # E
async def untyped(req: Request[Env, Claims], res: Response) -> None: ...
