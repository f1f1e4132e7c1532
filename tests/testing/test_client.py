"""`Client`: requests through `app.fetch`, and the fixtures built on it."""

from __future__ import annotations

from typing import Any

import pytest

from core import App, Request, Response, create_app
from core.testing import Client

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
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


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
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    result.stdout.fnmatch_lines([f"*{message}*"])
    assert result.ret != 0
