"""The application as a whole: unknown paths, unexpected errors, other origins, bad tokens and bad bodies."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import attrs
import jwt
import pytest

from conduit.env import Env
from conduit.main import app
from core import Secret
from core.testing import Client, FakeD1Database

Join = Callable[[str], Awaitable[dict[str, str]]]


async def test_an_unknown_path_is_a_404_in_the_specifications_shape(client: Client[Env]) -> None:
    response = await client.get("/api/nowhere")

    assert response.status == 404
    assert await response.json() == {"errors": {"path": ["not found"]}}


async def test_an_unexpected_error_tells_the_client_nothing(env: Env) -> None:
    client = Client(app, attrs.evolve(env, DB=FakeD1Database()))  # without migrations: there is no table

    response = await client.get("/api/tags")

    assert response.status == 500
    assert await response.json() == {"errors": {"body": ["Internal Server Error"]}}


async def test_every_origin_may_ask(client: Client[Env]) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "PUT"}
    response = await client.request("OPTIONS", "/api/user", headers=asked)

    assert response.status == 204
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "PUT" in response.headers["Access-Control-Allow-Methods"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/user"),
        ("PUT", "/api/user"),
        ("POST", "/api/profiles/ada/follow"),
        ("DELETE", "/api/profiles/ada/follow"),
        ("GET", "/api/articles/feed"),
        ("POST", "/api/articles"),
        ("PUT", "/api/articles/a"),
        ("DELETE", "/api/articles/a"),
        ("POST", "/api/articles/a/favorite"),
        ("DELETE", "/api/articles/a/favorite"),
        ("POST", "/api/articles/a/comments"),
        ("DELETE", "/api/articles/a/comments/1"),
    ],
)
async def test_who_is_not_signed_in_is_told_so_before_anything_else(
    client: Client[Env], method: str, path: str
) -> None:
    response = await client.request(method, path)

    assert response.status == 401
    assert await response.json() == {"errors": {"token": ["is missing"]}}
    assert response.headers["WWW-Authenticate"] == "Token"


@pytest.mark.parametrize(
    "header",
    ["Token", "Token nonsense", "Basic YTpi", "Token {expired}", "Token {forged}", "Basic {valid}", "Token {lost}"],
)
@pytest.mark.parametrize("path", ["/api/user", "/api/articles"])
async def test_a_bad_token_opens_nothing_and_is_told(client: Client[Env], env: Env, header: str, path: str) -> None:
    later, secret = datetime.now(UTC) + timedelta(hours=1), env.JWT_SECRET.reveal()
    tokens = {
        "expired": jwt.encode({"sub": "1", "exp": later - timedelta(hours=2)}, secret),
        "forged": jwt.encode({"sub": "1", "exp": later}, "another-secret-that-is-long-enough-too"),
        "valid": jwt.encode({"sub": "1", "exp": later}, secret),
        "lost": jwt.encode({"sub": "ada", "exp": later}, secret),
    }

    response = await client.get(path, headers={"Authorization": header.format(**tokens)})

    assert response.status == 401
    assert await response.json() == {"errors": {"token": ["is invalid"]}}


async def test_the_scheme_is_token_in_any_case(client: Client[Env], join: Join) -> None:
    headers = await join("ada")

    for scheme in ("Token", "token", "TOKEN"):
        sent = {"Authorization": headers["Authorization"].replace("Token", scheme)}
        assert (await client.get("/api/user", headers=sent)).status == 200


async def test_a_token_of_a_user_who_is_gone_opens_nothing(client: Client[Env], env: Env, join: Join) -> None:
    headers = await join("ada")
    await env.DB.exec("DELETE FROM users")

    response = await client.get("/api/user", headers=headers)

    assert (response.status, await response.json()) == (401, {"errors": {"token": ["is invalid"]}})


async def test_a_secret_that_can_be_guessed_serves_nobody(env: Env, join: Join) -> None:
    client, headers = Client(app, attrs.evolve(env, JWT_SECRET=Secret("short"))), await join("ada")

    assert (await client.get("/api/user", headers=headers)).status == 500


async def test_what_is_no_json_is_a_400(client: Client[Env]) -> None:
    response = await client.request("POST", "/api/users/login", body="{")

    assert response.status == 400
    assert await response.json() == {"errors": {"body": ["Invalid JSON"]}}


async def test_a_body_without_its_envelope_is_told(client: Client[Env]) -> None:
    response = await client.post("/api/users/login", json={"email": "ada@example.com"})

    assert response.status == 422
    assert await response.json() == {"errors": {"user": ["is required"]}}


async def test_a_page_that_is_none_is_told(client: Client[Env]) -> None:
    response = await client.get("/api/articles?limit=0&offset=-1")

    assert response.status == 422
    assert sorted((await response.json())["errors"]) == ["limit", "offset"]
