"""Handlers that want a user (`core-user`), and consumers over another Env, as `core check` tells them."""

from __future__ import annotations

from pathlib import Path

from core.config.load import load_all
from core.program.proof import check_program

HEAD = """\
import attrs
from core import App, Bindings, Middleware, Next, Request, Response, Router, create_app

@attrs.frozen
class Env(Bindings):
    NAME: str

@attrs.frozen
class Account:
    name: str

async def who(req: Request[Env]) -> Account:
    return Account("a")

app = create_app(Env)
"""


def found(tmp_path: Path, text: str) -> list[str]:
    consumer = '[[queues.consumers]]\nqueue = "jobs"\n' if '.queue("jobs")' in text else ""
    cron = '[triggers]\ncrons = ["0 * * * *"]\n' if ".scheduled(" in text else ""
    (tmp_path / "wrangler.toml").write_text(f'name = "x"\nmain = "app.py"\n[vars]\nNAME = "x"\n{consumer}{cron}')
    (tmp_path / "app.py").write_text(HEAD + text)
    lines = HEAD.count("\n")
    return [f"{f.line - lines} {f.code}: {f.message}" for f in check_program(load_all(tmp_path / "wrangler.toml"))]


def test_a_handler_a_middleware_and_a_router_that_want_a_user_are_told(tmp_path: Path) -> None:
    text = """\
users: Router[Env] = Router()
accounts: Router[Env, Account] = Router()
Signed = Request[Env, Account]

@users.get("/a")
async def show(req: Signed, res: Response) -> None: ...

async def plain(req: Request[Env], res: Response) -> None: ...

async def guard(req: "Request[Env, Account]", res: Response, next: Next) -> None: ...

app.use("/b", guard)
app.get("/b/c", plain)
app.use("/users", users)
app.use("/accounts", accounts)
accounts.get("/c", show)
"""
    assert found(tmp_path, text) == [
        (
            '5 core-user: show wants a user, Account, and get("/users/a") has no authenticator before it. '
            "Register it on a view: app.authenticated(…).get(…)"
        ),
        (
            '13 core-user: guard wants a user, Account, and get("/b/c") has no authenticator before it. '
            "Register it on a view: app.authenticated(…).get(…)"
        ),
        (
            '16 core-user: show wants a user, Account, and get("/accounts/c") has no authenticator before it. '
            "Register it on a view: app.authenticated(…).get(…)"
        ),
    ]


def test_what_has_a_user_or_may_have_one_is_silent(tmp_path: Path) -> None:
    text = """\
from typing import Any, TypeVar

U = TypeVar("U")
Members = Router[Env, Account]
members: Members = Router()
accounts: Router[Env, Account] = Router()
signed = app.authenticated(who)
view = accounts.authenticated(who)

@members.get("/a")
@signed.get("/a")
@app.authenticated(who).post("/a")
async def show(req: Request[Env, Account], res: Response) -> None: ...

signed.use("/accounts", accounts)
signed.use("/members", members)
app.use("/view", view)

@view.get("/v")
async def viewed(req: Request[Env, Account], res: Response) -> None: ...

@app.get("/b")
async def nobody(req: Request[Env, object], res: Response) -> None: ...

@app.get("/c")
async def anybody(req: Request[Env, Any], res: Response) -> None: ...

def register(router: Router[Env, U]) -> None:
    @router.get("/d")
    async def generic(req: Request[Env, U], res: Response) -> None: ...

def more(router: Router[Env, Account]) -> None:
    router.get("/e", show)
"""
    assert found(tmp_path, text) == []


def test_a_consumer_and_a_trigger_over_another_env_are_told(tmp_path: Path) -> None:
    text = """\
from typing import Protocol
from core import ExecutionContext
from core.bindings.queue import MessageBatch
from core.context import ScheduledEvent

class HasName(Protocol):
    NAME: str

@attrs.frozen
class Other(Bindings):
    NAME: str

@attrs.frozen
class Wide(Env): ...

@app.queue("jobs")
async def work(batch: MessageBatch[str], env: Other, ctx: ExecutionContext) -> None: ...

@app.scheduled("0 * * * *")
async def nightly(event: ScheduledEvent, env: Other, ctx: ExecutionContext) -> None: ...

@app.scheduled()
async def fine(event: ScheduledEvent, env: HasName, ctx: ExecutionContext) -> None: ...

wide = create_app(Wide)

@wide.scheduled()
async def too(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None: ...
"""
    assert [line for line in found(tmp_path, text) if "takes env" in line] == [
        '17 core-queue: queue("jobs"): work takes env: Other, but the app has Env. Write env: Env',
        '20 core-env: scheduled("0 * * * *"): nightly takes env: Other, but the app has Env. Write env: Env',
    ]


def test_a_router_with_nothing_on_it_is_told_where_nothing_else_has_it(tmp_path: Path) -> None:
    text = """\
empty: Router[Env] = Router()
given: Router[Env] = Router()
full: Router[Env] = Router()

def fill(router: Router[Env]) -> None:
    router.get("/", show)

async def show(req: Request[Env], res: Response) -> None: ...

full.get("/", show)
fill(given)
app.use("/empty", empty)
app.use("/given", given)
app.use("/full", full)
"""
    assert found(tmp_path, text) == [
        (
            '12 core-route: use("/empty", Router()) mounts nothing: the router has neither routes nor middleware. '
            "Register them on it, or leave it out"
        ),
    ]
