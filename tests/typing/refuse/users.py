"""A forgotten authenticator, and other handlers that read a user whom nobody has found.

One function and one router for each line: one of the checkers keeps what it once accepted of them.
"""

from __future__ import annotations

from typing import Literal, Protocol

import attrs

from core import Bindings, KVNamespace, Next, Request, Response, Router, allow, create_app, optional
from core.http.websocket import WebSocket


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace


@attrs.frozen
class Other(Bindings):
    COUNTERS: KVNamespace


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


async def maybe(req: Request[Env]) -> Account | None:
    return None


async def promote(req: Request[Env, Account]) -> Admin:
    return Admin(req.user.id)


app = create_app(Env)
accounts = app.authenticated(auth)
maybes = app.authenticated(maybe)


@app.get("/feed")  # E
async def feed(req: Request[Env, Account], res: Response) -> None: ...


@app.Router().get("/feed")  # E
async def feed_of_a_router(req: Request[Env, Account], res: Response) -> None: ...


async def given(req: Request[Env, Account], res: Response) -> None: ...
async def by_protocol(req: Request[Env, HasId], res: Response) -> None: ...
async def by_params(req: Request[Env, Account, Literal["id"]], res: Response) -> None: ...
async def of_none(req: Request[Env, None], res: Response) -> None: ...
async def of_account(req: Request[Env, Account], res: Response) -> None: ...
async def of_admin(req: Request[Env, Admin], res: Response) -> None: ...


app.get("/", given)  # E
app.get("/", by_protocol)  # E
app.get("/:id")(by_params)  # E
app.get("/", of_none)  # E
maybes.get("/", of_account)  # E
accounts.get("/", of_admin)  # E


async def account_only(req: Request[Env, Account], res: Response, next: Next) -> None: ...
async def account_first(req: Request[Env, Account], res: Response, next: Next) -> None: ...
async def account_maybe(req: Request[Env, Account], res: Response, next: Next) -> None: ...


app.use(account_only)  # E
app.use("/x", account_first)  # E
maybes.use(account_maybe)  # E

needs: Router[Env, Account] = Router()
app.use("/n", needs)  # E
needs_more: Router[Env, Account] = Router()
maybes.use("/n", needs_more)  # E
app.authenticated(promote)  # E


@app.websocket("/ws")  # E
async def ws(req: Request[Env, Account], socket: WebSocket) -> None: ...


@app.websocket("/ws")  # E
async def ws_of_another_env(req: Request[Other], socket: WebSocket) -> None: ...


@app.websocket("/ws")  # E
def ws_not_async(req: Request[Env], socket: WebSocket) -> None: ...


@app.on_error  # E
async def error_user(err: Exception, req: Request[Env, Account], res: Response, next: Next) -> None: ...


@app.on_error  # E
async def error_env(err: Exception, req: Request[Other], res: Response, next: Next) -> None: ...


@app.not_found  # E
async def missing_user(req: Request[Env, Account], res: Response) -> None: ...


@app.not_found  # E
async def missing_env(req: Request[Other], res: Response) -> None: ...


app.Router().nonsense()  # E


def is_strong(user: Admin) -> bool:
    return user.power > 1


anyone = app.authenticated(optional(auth))
app.authenticated(allow(is_strong))  # E
accounts.authenticated(allow(is_strong))  # E
anyone.get("/", of_account)  # E
