"""The application as a whole: headers, unknown paths, unexpected errors."""

import attrs

from core.testing import Client, FakeD1Database
from users_api.env import Env
from users_api.main import app


async def test_every_answer_has_an_id_and_secure_headers(client: Client[Env]) -> None:
    response = await client.get("/health")

    assert await response.json() == {"ok": True}
    assert response.headers["X-Request-Id"]
    assert response.headers["X-Frame-Options"] == "DENY"


async def test_an_unknown_path_is_a_404(client: Client[Env]) -> None:
    response = await client.get("/nowhere")

    assert response.status == 404
    assert await response.json() == {"error": "Not Found"}


async def test_an_unexpected_error_tells_the_client_nothing_but_its_id(env: Env) -> None:
    client = Client(app, attrs.evolve(env, DB=FakeD1Database()))  # without migrations: there is no table

    response = await client.get("/users", headers={"X-Request-Id": "test-3"})

    assert response.status == 500
    assert await response.json() == {"error": "Internal Server Error", "requestId": "test-3"}


async def test_an_allowed_origin_may_read(client: Client[Env]) -> None:
    response = await client.get("/health", headers={"Origin": "https://example.com"})

    assert response.headers["Access-Control-Allow-Origin"] == "https://example.com"
