"""`bearer_auth` and `basic_auth`: one secret, or a function that knows."""

from __future__ import annotations

import base64
from typing import Any

import attrs
import pytest

from core import http
from core.app import App
from core.bindings.secret import Secret
from core.middleware.basic_auth import basic_auth
from core.middleware.bearer_auth import bearer_auth
from core.request import Request
from core.response import Response
from core.testing import Client


@attrs.frozen
class Env:
    TOKEN: Any = "s3cret-token"


def by_env(req: Request[Any]) -> Any:
    return req.env.TOKEN


async def get(auth: Any, authorization: str | None, env: Env | None = None) -> http.Response:
    app: App[Any] = App()

    @app.authenticated(auth).get("/")
    async def show(req: Request[Any, Any], res: Response) -> None:
        res.json({"user": req.user})

    headers = {} if authorization is None else {"Authorization": authorization}
    return await Client(app, env or Env()).get("/", headers=headers)


@pytest.mark.parametrize("secret", ["s3cret-token", b"s3cret-token", Secret("s3cret-token")])
async def test_the_right_bearer_token_lets_in(secret: Any) -> None:
    assert (await get(bearer_auth(token=by_env), "bearer s3cret-token", Env(secret))).status == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer s3cret-toke",
        "Bearer s3cret-token2",
        "Bearer S3CRET-TOKEN",
        "Basic s3cret-token",
        "s3cret-token",
        "Bearer s3cret-token, Bearer s3cret-token",
        "Bearer " + "x" * 5000,
    ],
)
async def test_any_other_is_401_with_a_challenge(authorization: str | None) -> None:
    response = await get(bearer_auth(token=by_env), authorization)
    assert (response.status, await response.json()) == (401, {"error": "Unauthorized"})
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("secret", ["", None, " ", Secret("")])
async def test_an_empty_token_is_a_500_that_names_the_binding(secret: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert (await get(bearer_auth(token=by_env), "Bearer x", Env(secret))).status == 500
    assert (await get(bearer_auth(token=by_env), None, Env(secret))).status == 500
    assert "the binding TOKEN is empty or missing" in caplog.text


async def test_verify_gives_the_user_or_refuses() -> None:
    async def verify(token: str, req: Request[Any]) -> dict[str, str] | None:
        return {"name": "ada"} if token == "abc" else None

    assert await (await get(bearer_auth(verify=verify), "Bearer abc")).json() == {"user": {"name": "ada"}}
    assert (await get(bearer_auth(verify=verify), "Bearer abd")).status == 401


def basic(name: str, word: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{word}".encode()).decode()


async def test_the_right_name_and_password_let_in_and_the_user_is_the_name() -> None:
    auth = basic_auth(username="ada", password=by_env)
    assert await (await get(auth, basic("ada", "s3cret-token"))).json() == {"user": "ada"}
    assert (await get(auth, basic("ada", "s3cret-token").replace("Basic", "bASIC"))).status == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        basic("ada", "wrong"),
        basic("eve", "s3cret-token"),
        basic("", ""),
        "Basic !!!!",
        "Basic YQ",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
        basic("ada", "s3cret-token") + "\u00e9",
        basic("ada", "s3cret-token")[:10] + " " + basic("ada", "s3cret-token")[10:],
        "Basic " + "A" * 5000,
    ],
)
async def test_anything_else_is_401_and_asks_for_it(authorization: str | None) -> None:
    response = await get(basic_auth(username="ada", password=by_env, realm="Admin"), authorization)
    assert (response.status, await response.json()) == (401, {"error": "Unauthorized"})
    assert response.headers["www-authenticate"] == 'Basic realm="Admin", charset="UTF-8"'


async def test_a_password_may_hold_colons_and_any_script() -> None:
    auth = basic_auth(username="ada", password=by_env)
    assert (await get(auth, basic("ada", "a:b:ü"), Env("a:b:ü"))).status == 200


async def test_basic_verify_gives_the_user_or_refuses() -> None:
    async def verify(name: str, word: str, req: Request[Any]) -> str | None:
        return name if word == name[::-1] else None

    assert await (await get(basic_auth(verify=verify), basic("ada", "ada"))).json() == {"user": "ada"}
    assert (await get(basic_auth(verify=verify), basic("bob", "x"))).status == 401
