# mypy: disable-error-code="core-route"
"""The user of a router: what fits with an authenticator, and without one."""

from __future__ import annotations

from typing import Any, Literal, Protocol, assert_type

import attrs
from typing_extensions import TypeIs

from core import (
    App,
    Bindings,
    KVNamespace,
    Middleware,
    Next,
    Request,
    Response,
    Router,
    Secret,
    allow,
    create_app,
    optional,
)
from core.http.websocket import WebSocket
from core.middleware.jwt import JWTUser, jwt_auth
from core.middleware.logger import logger


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace


class HasSessions(Protocol):
    @property
    def SESSIONS(self) -> KVNamespace: ...


class HasId(Protocol):
    @property
    def id(self) -> str: ...


@attrs.frozen
class Account:
    id: str = ""


@attrs.frozen
class Admin(Account):
    power: int = 1


async def auth(req: Request[Env]) -> Account:
    return Account()


async def auth_protocol(req: Request[HasSessions]) -> Admin:
    return Admin()


async def maybe(req: Request[Env]) -> Account | None:
    return None


async def promote(req: Request[Env, Account]) -> Admin:
    return Admin(req.user.id)


app = create_app(Env)
assert_type(app.Router(), Router[Env])
assert_type(App(Env).Router(), Router[Env, object, object])
plain: Router[Env] = app.Router()
accounts = app.authenticated(auth)
assert_type(accounts, Router[Env, Account, object])
admins = plain.authenticated(auth_protocol)
maybes = app.authenticated(maybe)
assert_type(maybes, Router[Env, Account | None, object])
promoted = accounts.authenticated(promote)
assert_type(promoted, Router[Env, Admin, object])


# A handler that names no user fits everywhere.
async def any_user(req: Request[Env], res: Response) -> None:
    assert_type(req.user, object)


async def any_user_protocol(req: Request[HasSessions], res: Response) -> None: ...
async def bare(req: Request, res: Response) -> None: ...
async def with_params(req: Request[Env, object, Literal["id"]], res: Response) -> None: ...
async def unchecked(req: Request[Env, Any], res: Response) -> None: ...


app.get("/", any_user)
app.get("/")(any_user_protocol)
app.get("/", bare)
app.get("/", unchecked)
app.get("/:id")(with_params)
accounts.get("/", any_user)
accounts.get("/")(any_user_protocol)
accounts.get("/:id")(with_params)
maybes.get("/")(any_user)


async def of_account(req: Request[Env, Account], res: Response) -> None:
    assert_type(req.user, Account)


async def of_account_protocol(req: Request[HasSessions, HasId], res: Response) -> None: ...
async def of_account_params(req: Request[Env, Account, Literal["id"]], res: Response) -> None: ...
async def of_admin(req: Request[Env, Admin], res: Response) -> None: ...
async def of_maybe(req: Request[Env, Account | None], res: Response) -> None: ...


accounts.get("/")(of_account)
accounts.get("/", of_account)
accounts.get("/")(of_account_protocol)
accounts.get("/:id")(of_account_params)
accounts.get("/")(of_maybe)
admins.get("/", of_account)
admins.get("/")(of_admin)
maybes.get("/")(of_maybe)
promoted.get("/")(of_admin)


async def anyone(req: Request[Env], res: Response, next: Next) -> None: ...
async def account_only(req: Request[Env, Account], res: Response, next: Next) -> None: ...


app.use(logger(), anyone)
accounts.use(anyone, logger(), account_only)
accounts.get("/", anyone, account_only, of_account)
accounts.get("/", account_only)(of_account)
admins.use(account_only)
kept: Middleware[Env] = anyone
app.use(kept)


@accounts.websocket("/ws/:id")
async def ws(req: Request[Env, Account, Literal["id"]], socket: WebSocket) -> None:
    assert_type(req.user, Account)


@app.websocket("/ws")
async def ws_open(req: Request[HasSessions], socket: WebSocket) -> None: ...


# A router that demands a user is mounted behind an authenticator; a view brings its own along.
needs: Router[Env, Account] = Router()
needs.get("/")(of_account)
accounts.use("/n", needs)
promoted.use("/n", needs)
app.use("/v", accounts, admins, promoted)
shared: Router[HasSessions] = Router()
app.use("/p", shared)
accounts.use("/p", shared)
untyped: Router = Router()
app.use("/u", untyped)


@app.on_error
async def failed(err: Exception, req: Request[HasSessions], res: Response, next: Next) -> Response:
    return res.json({})


@app.not_found
async def missing(req: Request[HasSessions], res: Response) -> None: ...


# A user or None; a guard over users.
def is_strong(user: Admin) -> bool:
    return user.power > 1


def is_admin(user: Account) -> TypeIs[Admin]:
    return isinstance(user, Admin)


def has_id(user: HasId) -> bool:
    return user.id != ""


def secret(req: Request[Env]) -> Secret:
    return Secret("x")


guests = app.authenticated(optional(auth))
assert_type(guests, Router[Env, Account | None, object])
assert_type(accounts.authenticated(optional(promote)), Router[Env, Admin | None, object])
assert_type(app.authenticated(optional(jwt_auth(secret=secret))), Router[Env, JWTUser | None, object])
app.use(optional(jwt_auth(secret=secret)))
assert_type(accounts.authenticated(allow(is_admin)), Router[Env, Admin, object])
assert_type(promoted.authenticated(allow(is_strong)), Router[Env, Admin, object])


@guests.get("/a-user-or-none")
async def a_user_or_none(req: Request[Env, Account | None], res: Response) -> None:
    assert_type(req.user, Account | None)


@accounts.authenticated(allow(is_admin)).get("/an-admin")
async def an_admin(req: Request[Env, Admin], res: Response) -> None: ...
