"""Middleware that asks for credentials of some requests alone: what is let in without them is open in the document."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.openapi.document import Described
from core.testing import Client

PROGRAM = """
from collections.abc import Awaitable, Callable

from core import App, CoreError, Next, Request, Response, Router

app: App[None] = App()
SAFE = ("GET", "HEAD")
OPEN = frozenset(["/by-path/open"])

async def auth(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Key") != "secret":
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})
    await next()

def check(req: Request) -> None:
    if req.header("X-Key") != "secret":
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})

def is_open(req: Request) -> bool:
    return req.path in OPEN

# -- by the method, which each operation has

async def two_ways(req: Request, res: Response, next: Next) -> None:
    if req.method == "GET":
        await next()
    else:
        await auth(req, res, next)

async def before_it(req: Request, res: Response, next: Next) -> None:
    if req.method not in SAFE:
        check(req)
    await next()

async def returns(req: Request, res: Response, next: Next) -> None:
    method = req.method
    if method in ("GET", "HEAD"):
        return await next()
    check(req)
    await next()

async def in_one(req: Request, res: Response, next: Next) -> None:
    if req.method != "GET" and req.header("X-Key") != "secret":
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})
    await next()

async def matched(req: Request, res: Response, next: Next) -> None:
    match req.method:
        case "GET" | "HEAD":
            await next()
        case _:
            await auth(req, res, next)

# -- by the path or the configuration, which are not known

async def path_is(req: Request, res: Response, next: Next) -> None:
    if req.path == "/path_is/open":
        return await next()
    await auth(req, res, next)

async def path_of_a_list(req: Request, res: Response, next: Next) -> None:
    if not is_open(req):
        check(req)
    await next()

async def path_below(req: Request, res: Response, next: Next) -> None:
    if req.path.startswith("/path_below/") and req.header("X-Key") != "secret":
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})
    await next()

# -- of everybody

async def the_right(req: Request, res: Response, next: Next) -> None:
    if req.header("X-Key") == "secret":
        return await next()
    raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})

async def preflight(req: Request, res: Response, next: Next) -> None:
    if req.method == "OPTIONS" or req.path == "/none":
        res.status(204).send()
        return
    if req.header("X-Key") == "secret":
        await next()
    else:
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})

async def counted(req: Request, res: Response, next: Next) -> None:
    if req.path == "/none":
        print("x")
    try:
        check(req)
    except KeyError:
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"}) from None
    await next()

async def in_each(req: Request, res: Response, next: Next) -> None:
    if req.path == "/none":
        check(req)
        await next()
    elif req.header("X-Key") != "secret":
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})
    else:
        await next()

BY_METHOD = (two_ways, before_it, returns, in_one, matched)
NOT_KNOWN = (path_is, path_of_a_list, path_below)
ALWAYS = (the_right, preflight, counted, in_each)

for middleware in (*BY_METHOD, *NOT_KNOWN, *ALWAYS):
    router: Router[None] = Router()

    @router.get("/")
    @router.post("/")
    async def answer(req: Request, res: Response) -> None:
        res.json({})

    app.use(f"/{middleware.__name__}", middleware, router)
"""


@pytest.fixture(scope="module")
def described(describing: Callable[..., Described]) -> Described:
    return describing("guards", PROGRAM)


def asked(described: Described, group: str) -> Iterator[tuple[str, str, Any]]:
    for middleware in getattr(sys.modules["guards"], group):
        for method, operation in described.document["paths"][f"/{middleware.__name__}"].items():
            yield middleware.__name__, method, operation


async def status(name: str, method: str) -> int:
    return (await Client(sys.modules["guards"].app, None).request(method.upper(), f"/{name}")).status


async def test_a_guard_of_some_methods_is_on_their_operations_alone(described: Described) -> None:
    for name, method, operation in asked(described, "BY_METHOD"):
        is_guarded = method == "post"
        assert (await status(name, method)) == (401 if is_guarded else 200), name
        assert ("401" in operation["responses"]) == is_guarded, (name, method)
        assert operation.get("security", []) == ([{"bearer": []}] if is_guarded else []), (name, method)


def test_a_guard_behind_a_condition_that_is_not_known_is_optional_and_told(described: Described) -> None:
    for name, method, operation in asked(described, "NOT_KNOWN"):
        assert operation["security"] == [{}, {"bearer": []}], (name, method)
        assert "401" in operation["responses"]
    lines = PROGRAM.splitlines()
    message = (
        "this condition lets requests in without the credentials that others need, so the document demands none. Put the "
        "guard before the routes that need it"
    )
    assert [(lines[each.line - 1].strip(), each.message) for each in described.problems] == [
        ('if req.path == "/path_is/open":', message),
        ("if not is_open(req):", message),
        ('if req.path.startswith("/path_below/") and req.header("X-Key") != "secret":', message),
    ]
    assert {Path(each.path).name for each in described.problems} == {"guards.py"}


async def test_a_guard_of_everybody_is_demanded(described: Described) -> None:
    for name, method, operation in asked(described, "ALWAYS"):
        assert operation["security"] == [{"bearer": []}], (name, method)
        assert (await status(name, method)) == 401
