"""Middleware that asks for credentials of some requests alone: what is let in without them is open in the document."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.openapi.document import Described
from core.testing import Client, FakeKVNamespace

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

async def many_paths(req: Request, res: Response, next: Next) -> None:
    refused = CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})
    if req.path == "/many_paths/a" and req.header("X-A") is None:
        raise refused
    if req.path == "/many_paths/b" and req.header("X-B") is None:
        raise refused
    if req.path == "/many_paths/c" and req.header("X-C") is None:
        raise refused
    if req.path == "/many_paths/d" and req.header("X-D") is None:
        raise refused
    if req.path == "/many_paths/e" and req.header("X-E") is None:
        raise refused
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

async def in_a_loop(req: Request, res: Response, next: Next) -> None:
    for name in ("X-Key", "X-Other"):
        if req.header(name) == "secret":
            return await next()
    raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})

async def below_a_path(req: Request, res: Response, next: Next) -> None:
    key = req.header("X-Key")
    if req.path != "/none":
        if key == "secret":
            return await next()
        raise CoreError(401, "Who?", headers={"WWW-Authenticate": "Bearer"})
    res.status(204).send()

BY_METHOD = (two_ways, before_it, returns, in_one, matched)
NOT_KNOWN = (path_is, path_of_a_list, path_below, many_paths)
ALWAYS = (the_right, preflight, counted, in_each, in_a_loop, below_a_path)

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
        assert operation.get("security", []) == ([{"x-key": []}] if is_guarded else []), (name, method)


def test_a_guard_behind_a_condition_that_is_not_known_is_optional_and_told(described: Described) -> None:
    for name, method, operation in asked(described, "NOT_KNOWN"):
        assert operation["security"] == [{}, {"x-e" if name == "many_paths" else "x-key": []}], (name, method)
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
        ('if req.path == "/many_paths/e" and req.header("X-E") is None:', message),
    ]
    assert {Path(each.path).name for each in described.problems} == {"guards.py"}


async def test_a_guard_of_everybody_is_demanded(described: Described) -> None:
    for name, method, operation in asked(described, "ALWAYS"):
        names = ["x-key", "x-other"] if name == "in_a_loop" else ["x-key"]
        assert operation["security"] == [{each: []} for each in names], (name, method)
        assert (await status(name, method)) == 401


ALTERNATIVES = """
from core import AuthenticationError, Bindings, KVNamespace, Request, Response, Router, create_app
from core.middleware.jwt import jwt_auth
from core.middleware.sessions import session_of, sessions

import attrs

@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace

app = create_app(Env)
jwt = jwt_auth(secret=lambda req: "s" * 32)

async def key_token_session(req: Request) -> str:
    key = req.header("X-Key")
    if key is not None:
        return key
    token = req.header("Authorization")
    if token is not None:
        return token
    session = req.cookies.get("sid")
    if session is None:
        raise AuthenticationError()
    return session

def by_key(req: Request) -> str | None:
    return req.header("X-Key")

def by_token(req: Request) -> str | None:
    token = req.header("Authorization")
    return token.removeprefix("Bearer ") if token is not None else None

async def helped(req: Request) -> str:
    user = by_key(req) or by_token(req)
    if user is None:
        user = (await session_of(req)).get("user")
    if user is None:
        raise AuthenticationError()
    return user

async def branches(req: Request) -> str:
    if "X-Key" in req.headers:
        return req.headers["X-Key"]
    elif "key" in req.query:
        return req.query["key"]
    raise AuthenticationError()

async def key_or_jwt(req: Request) -> str:
    key = req.header("X-Key")
    return key if key is not None else str(await jwt(req))

async def jwt_or_key(req: Request) -> str:
    try:
        return str(await jwt(req))
    except AuthenticationError:
        if (key := req.query.get("key")) is None:
            raise
        return key

# -- together, and one way alone

async def together(req: Request) -> str:
    token, tenant = req.header("Authorization"), req.header("X-Tenant")
    if token is None or tenant is None:
        raise AuthenticationError()
    return token + tenant

async def nobody(req: Request) -> str | None:
    return req.header("X-Key") or req.query.get("key")

async def show(req: Request[Env, str], res: Response) -> None:
    res.json({"user": req.user})

for each in (key_token_session, branches, key_or_jwt, jwt_or_key, together, nobody):
    router: Router[Env] = Router()
    router.authenticated(each).get(f"/{each.__name__}", show)
    app.use(router)
visited: Router[Env] = Router()
visited.use(sessions(kv_binding="SESSIONS", secret=lambda req: "x" * 40))
visited.authenticated(helped).get("/helped", show)
visited.authenticated(key_token_session).get("/before", show)
app.use("/visited", visited)
"""


def test_an_authenticator_asks_for_one_of_what_its_ways_read(describing: Callable[..., Described]) -> None:
    described = describing("alternatives", ALTERNATIVES)
    found = {
        path: ["+".join(way) for way in item["get"]["security"]] for path, item in described.document["paths"].items()
    }
    assert found == {
        "/key_token_session": ["x-key", "bearer", "sid"],
        "/branches": ["x-key", "key"],
        "/key_or_jwt": ["x-key", "jwt"],
        "/jwt_or_key": ["jwt", "key"],
        "/together": ["x-tenant+bearer"],
        "/nobody": ["", "x-key", "key"],
        "/visited/helped": ["x-key", "bearer", "session"],
        "/visited/before": ["x-key", "bearer", "sid", "x-key+session", "bearer+session", "sid+session"],
    }
    assert described.problems == []


async def test_each_of_the_ways_is_let_in(describing: Callable[..., Described]) -> None:
    describing("ways", ALTERNATIVES)
    program = sys.modules["ways"]
    client: Client[Any] = Client(program.app, program.Env(SESSIONS=FakeKVNamespace()))
    for headers in ({"X-Key": "a"}, {"Authorization": "Bearer a"}, {"Cookie": "sid=a"}):
        assert (await client.get("/key_token_session", headers=headers)).status == 200
    for target in ("/key_or_jwt", "/branches", "/visited/helped"):
        assert (await client.get(target, headers={"X-Key": "a"})).status == 200
    for target in ("/branches", "/jwt_or_key"):
        assert (await client.get(f"{target}?key=a")).status == 200
    for target in ("/key_token_session", "/key_or_jwt", "/jwt_or_key", "/branches", "/visited/helped"):
        assert (await client.get(target)).status == 401
