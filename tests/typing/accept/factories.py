"""Middleware kept in a variable: its factory is told the Env first, or takes a function with a name."""

from __future__ import annotations

from typing import Protocol, assert_type

import attrs

from core import Bindings, KVNamespace, Middleware, R2Bucket, Request, Response, Router, Secret, create_app
from core.middleware.authentication import Authentication
from core.middleware.basic_auth import basic_auth
from core.middleware.bearer_auth import bearer_auth
from core.middleware.cache import cache
from core.middleware.cors import cors
from core.middleware.csrf import csrf
from core.middleware.jwt import JWTAuthentication, JWTUser, jwt_auth
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.server_timing import server_timing
from core.middleware.sessions import sessions
from core.middleware.static import static


@attrs.frozen
class Env(Bindings):
    COUNTERS: KVNamespace
    FILES: R2Bucket
    ORIGINS: str
    JWT_SECRET: Secret
    OLD_SECRET: Secret | None
    LIMIT: str


class HasSecret(Protocol):
    @property
    def JWT_SECRET(self) -> Secret: ...


@attrs.frozen
class Claims:
    sub: str


app = create_app(Env)

# In place.
assert_type(
    app.authenticated(jwt_auth(secret=lambda req: req.env.JWT_SECRET, claims=Claims)), Router[Env, Claims, object]
)
assert_type(app.authenticated(jwt_auth(secret=lambda req: req.env.JWT_SECRET)), Router[Env, JWTUser, object])
app.use(jwt_auth(secret=lambda req: req.env.JWT_SECRET))
app.use("/admin", jwt_auth(secret=lambda req: req.env.JWT_SECRET, claims=Claims))
app.use("/admin", bearer_auth(token=lambda req: req.env.JWT_SECRET))
app.use("/admin", basic_auth(username="ada", password=lambda req: req.env.JWT_SECRET))
app.use("/x", rate_limit(limit=lambda req: int(req.env.LIMIT), kv_binding="COUNTERS", window=60))

# Kept in a variable.
auth = jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET, claims=Claims)
assert_type(auth, JWTAuthentication[Env, Claims])
auth_by_protocol = jwt_auth(HasSecret, secret=lambda req: req.env.JWT_SECRET)
assert_type(auth_by_protocol, JWTAuthentication[HasSecret, JWTUser])
limit = rate_limit(Env, kv_binding=lambda req: req.env.COUNTERS, limit=lambda req: int(req.env.LIMIT), window=60)
limit_by_name = rate_limit(Env, kv_binding="COUNTERS", limit=5, window=60, key_fn=lambda req: req.ip)
shared = cors(Env, origins=lambda req: req.env.ORIGINS.split(","))
shared_by_origin = cors(Env, origins=lambda origin, req: origin in req.env.ORIGINS)
basic = basic_auth(Env, username="ada", password=lambda req: req.env.JWT_SECRET)
bearer = bearer_auth(HasSecret, token=lambda req: req.env.JWT_SECRET)
cached = cache(Env, kv_binding=lambda req: req.env.COUNTERS)
guarded = csrf(Env, origins=lambda req: req.env.ORIGINS.split(","))
identified = request_id(Env, generator=lambda req: req.env.LIMIT)
timed = server_timing(Env, enabled=lambda req: req.env.LIMIT == "0")
remembered = sessions(Env, kv_binding=lambda req: req.env.COUNTERS, secret=lambda req: req.env.JWT_SECRET)
files = static(Env, bucket=lambda req: req.env.FILES)
plain_limit = rate_limit(kv_binding="COUNTERS", limit=5, window=60)
plain_shared = cors(origins=["https://a.test"])

app.use(limit, limit_by_name, plain_limit, shared, shared_by_origin, plain_shared)
app.use(cached, guarded, identified, timed, remembered)
app.use("/files", files)
app.use("/a", auth)
app.use("/b", auth_by_protocol, basic, bearer)
users = app.authenticated(auth)
assert_type(users, Router[Env, Claims, object])
app.authenticated(auth_by_protocol)
assert_type(app.authenticated(basic), Router[Env, str, object])

# Where a token is, several secrets, keys of an issuer.
app.use("/c", jwt_auth(secret=lambda req: [req.env.JWT_SECRET, req.env.OLD_SECRET], scheme="Token"))
app.use("/c", bearer_auth(token=lambda req: (req.env.JWT_SECRET, "b"), header="X-API-Key"))
app.use("/c", sessions(kv_binding="COUNTERS", secret=lambda req: [req.env.JWT_SECRET, req.env.OLD_SECRET]))
assert_type(jwt_auth(keys=[{"kty": "RSA"}], cookie="token"), Authentication[object, JWTUser])
assert_type(jwt_auth(keys={"keys": []}, claims=Claims), Authentication[object, Claims])


def secret(req: Request[HasSecret]) -> Secret:
    return req.env.JWT_SECRET


named = jwt_auth(secret=secret, claims=Claims)
assert_type(named, JWTAuthentication[HasSecret, Claims])
app.authenticated(named)
annotated: Middleware[Env] = rate_limit(kv_binding=lambda req: req.env.COUNTERS, limit=1, window=60)
app.use(annotated)


@users.get("/me", limit)
async def me(req: Request[Env, Claims], res: Response) -> None:
    assert_type(req.user, Claims)
    assert_type(await auth.issue(req, req.user, expires_in=60), str)
    await auth.issue(req, {"sub": "7"}, expires_in=60)
