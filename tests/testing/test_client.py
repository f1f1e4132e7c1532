"""`Client`: requests through `app.fetch`, and the fixtures built on it."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

import attrs
import pytest
from tests.support.nested import PLAIN

from core import App, Bindings, D1Database, KVNamespace, Request, Response, Secret, create_app
from core.http.websocket import WebSocket
from core.middleware.jwt import jwt_auth
from core.testing import Client, FakeClock, FakeExecutionContext, env

pytest_plugins = ["pytester"]


@pytest.fixture
def app() -> App[Any]:
    app = create_app()

    @app.all("/echo")
    async def echo(req: Request, res: Response) -> None:
        res.json(
            {
                "method": req.method,
                "query": dict(req.query.pairs),
                "body": await req.text(),
                "type": req.header("content-type"),
                "ip": req.ip,
                "cookies": dict(req.cookies),
                "x": req.header("x-a"),
            }
        )

    @app.post("/login")
    async def login(req: Request, res: Response) -> None:
        res.cookie("session", "s1").send()

    @app.post("/logout")
    async def logout(req: Request, res: Response) -> None:
        res.delete_cookie("session").send()

    return app


async def test_each_method_has_its_call(app: App[Any]) -> None:
    client = Client(app, None)
    for method in ("get", "post", "put", "patch", "delete", "options"):
        assert (await (await getattr(client, method)("/echo")).json())["method"] == method.upper()
    assert (await client.head("/echo")).status == 200


async def test_json_query_headers_and_address_go_with_a_request(app: App[Any]) -> None:
    client = Client(app, None, headers={"X-A": "1"})
    found = await (await client.post("/echo?a=1", json={"b": 2}, query={"c": "d e"})).json()
    assert (found["body"], found["type"]) == ('{"b":2}', "application/json")
    assert found["query"] == {"a": "1", "c": "d e"}
    assert (found["ip"], found["x"]) == ("203.0.113.7", "1")
    assert (await (await client.get("/echo", headers={"x-a": "2"})).json())["x"] == "2"


async def test_cookies_are_kept_and_forgotten_as_the_application_says(app: App[Any]) -> None:
    client = Client(app, None)
    await client.post("/login")
    assert (await (await client.get("/echo")).json())["cookies"] == {"session": "s1"}
    await client.post("/logout")
    assert (await (await client.get("/echo")).json())["cookies"] == {}


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [
        ("Path=/; HttpOnly", True),
        ("Max-Age=60", True),
        ("max-age=0", False),
        ("Max-Age=-60", False),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/", False),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60", True),
        ("Expires=Fri, 01 Jan 2100 00:00:00 GMT", True),
        ("Expires=Fri, 01 Jan 2100 00:00:00 GMT; Max-Age=0", False),
        ("Expires=soon", True),
    ],
)
async def test_a_cookie_of_the_past_is_forgotten(attributes: str, kept: bool) -> None:
    app = create_app()

    @app.get("/")
    async def again(req: Request, res: Response) -> None:
        res.append("Set-Cookie", f"seen=2; {attributes}").send()

    client = Client(app, None)
    client.cookies["seen"] = "1"
    await client.get("/")
    assert client.cookies == ({"seen": "2"} if kept else {})


def test_the_fixtures_build_client_env_and_context_from_the_settings(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        application="""
import attrs
from core import Bindings, KVNamespace, Request, Response, create_app

@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    WORD: str

app = create_app(Env)

@app.get("/")
async def show(req: Request[Env], res: Response) -> None:
    req.ctx.wait_until(req.env.KV.put("seen", "1", expiration_ttl=60))
    res.text(req.env.WORD)
"""
    )
    pytester.makefile(
        ".toml",
        wrangler="""
name = "a"
main = "application.py"
compatibility_date = "2026-04-01"
[vars]
WORD = "hello"
[[kv_namespaces]]
binding = "KV"
id = "x"
""",
    )
    pytester.makepyfile(
        """
async def test_it(core_client, core_env, core_ctx, core_clock):
    response = await core_client.get("/")
    assert await response.text() == "hello"
    await core_ctx.drain()
    assert await core_env.KV.get("seen") == "1"
    core_clock.advance(61)
    assert await core_env.KV.get("seen") is None
"""
    )
    pytester.makeini(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
        "core_app = application:app\npythonpath = .\n"
    )
    pytester.runpytest_subprocess(*PLAIN).assert_outcomes(passed=1)


def test_pytest_tells_the_fix_for_a_mistake_of_the_test_itself(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
from core import create_app
from core.testing import Client

async def test_it():
    response = Client(create_app(), None).get("/")
    assert response.status == 404

def test_other():
    assert 1 == 2
"""
    )
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    result = pytester.runpytest_subprocess(*PLAIN)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["E * 'coroutine' object has no attribute 'status'", "E * How to fix: A call was not awaited*"]
    )
    assert result.stdout.str().count("E       How to fix") == 1  # in CI pytest has all of it in its summary too


def test_pytest_shows_what_failed_in_the_requests_of_a_test_that_failed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
from core import CoreError, create_app
from core.testing import Client

app = create_app()

@app.get("/notes")
async def show(req, res):
    res.json({"id": 1}, 201)

@app.get("/none")
async def none(req, res):
    raise CoreError(404)

async def test_that_passes():
    assert (await Client(app, None).get("/notes")).status == 500

async def test_that_fails():
    await Client(app, None).get("/none")
    assert (await Client(app, None).get("/notes")).status == 200
"""
    )
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    result = pytester.runpytest_subprocess(*PLAIN, "--show-capture=all")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*-- GET /notes failed --*",
            "TypeError: Response.json() takes 2 positional arguments but 3 were given",
            "  test_pytest_shows_what_failed*.py:8 show",
            '    res.json({"id": 1}, 201)',
            "  How to fix: Set the status first: `res.status(201).json(value)`.",
            "  Page: reference/api/response/",
        ],
        consecutive=True,
    )
    assert result.stdout.str().count(" failed --") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "core_app: name the application under test"),
        (("--core-app", "json:loads"), 'core_app: "json:loads" is not an App but function'),
        (("--core-config", "none.toml"), "core_config: there is no file"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_told(
    options: tuple[str, ...], message: str, pytester: pytest.Pytester
) -> None:
    fixture = "core_config" if "--core-config" in options else "core_app"
    pytester.makepyfile(f"def test_it({fixture}): pass")
    result = pytester.runpytest_subprocess(*PLAIN, *options)
    result.stdout.fnmatch_lines([f"*{message}*"])
    assert result.ret != 0


@attrs.frozen
class Env(Bindings):
    KEY: Secret
    STORE: KVNamespace
    DB: D1Database


def sign(claims: dict[str, Any], key: Secret) -> str:
    """A token, HS256."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256"}, claims)]
    digest = hmac.digest(key.reveal().encode(), b".".join(parts), "sha256")
    return b".".join([*parts, base64.urlsafe_b64encode(digest).rstrip(b"=")]).decode()


def clocked() -> App[Env]:
    app = create_app(Env)
    app.use(jwt_auth(secret=lambda req: req.env.KEY))

    @app.get("/when")
    async def when(req: Request[Env], res: Response) -> None:
        res.json(
            {"request": req.clock.time(), "sql": await req.env.DB.prepare("SELECT unixepoch('now') AS n").first("n")}
        )

    return app


async def test_a_token_of_the_machines_time_is_good_in_a_client_of_an_env() -> None:
    bindings = env(Env)
    now = int(time.time())
    token = sign({"sub": "ada", "iat": now, "nbf": now, "exp": now + 3600}, bindings.KEY)
    response = await Client(clocked(), bindings).get("/when", headers={"Authorization": f"Bearer {token}"})
    assert response.status == 200
    told = await response.json()
    assert abs(told["request"] - now) < 60
    assert abs(told["sql"] - now) < 60


async def test_a_fake_clock_handed_to_env_rules_the_requests_too() -> None:
    clock = FakeClock()
    bindings = env(Env, clock=clock)
    client = Client(clocked(), bindings)
    token = sign({"sub": "ada", "exp": int(clock.time()) + 60}, bindings.KEY)
    headers = {"Authorization": f"Bearer {token}"}
    assert await (await client.get("/when", headers=headers)).json() == {"request": clock.time(), "sql": clock.time()}
    clock.advance(61)
    assert (await client.get("/when", headers=headers)).status == 401


async def test_a_context_of_its_own_stands_at_the_present() -> None:
    assert abs(FakeExecutionContext().clock.time() - time.time()) < 60


async def test_a_socket_that_hears_nothing_says_so_and_loses_no_message() -> None:
    app = create_app()

    @app.websocket("/late")
    async def late(req: Request, socket: WebSocket) -> None:
        async for message in socket:
            await socket.send(message)

    socket = await Client(app, None).websocket("/late")
    assert socket.patience == 30
    socket.patience = 0.01
    with pytest.raises(TimeoutError, match=r"no message came within 0\.01 seconds"):
        await socket.receive()
    await socket.send("now")
    assert await socket.receive() == "now"
    await socket.close()
