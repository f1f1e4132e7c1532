"""Fixtures of this worker's tests: its Env over fakes, users who are signed in, and articles of theirs."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from conduit.auth import User, issue_token
from conduit.env import Env
from conduit.main import app
from core import Request, Secret, http
from core.testing import Client, FakeD1Database, FakeExecutionContext

MIGRATIONS = Path(__file__).parent.parent / "migrations"


@pytest.fixture
def env() -> Env:
    return Env(DB=FakeD1Database(migrations=MIGRATIONS), JWT_SECRET=Secret("a-secret-for-tests-that-is-long-enough"))


@pytest.fixture
def client(env: Env) -> Client[Env]:
    return Client(app, env)


@pytest.fixture
def join(env: Env) -> Callable[[str], Awaitable[dict[str, str]]]:
    """Make a user of that name, without a password, and give the headers of their requests."""

    async def join(name: str) -> dict[str, str]:
        insert = env.DB.prepare("INSERT INTO users (username, email, password) VALUES (?, ?, '') RETURNING id")
        user_id: int = await insert.bind(name, f"{name}@example.com").first("id")
        req = Request(http.Request("https://conduit.test/"), env, FakeExecutionContext())
        return {"Authorization": f"Token {await issue_token(req, User(user_id, name, '', None, None))}"}

    return join


@pytest.fixture
def write(client: Client[Env]) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Post an article and give it as it was answered."""

    async def write(headers: dict[str, str], title: str = "A title", **fields: object) -> dict[str, Any]:
        article = {"title": title, "description": "What it is about", "body": "All of it", **fields}
        response = await client.post("/api/articles", json={"article": article}, headers=headers)
        assert response.status == 201
        written: dict[str, Any] = (await response.json())["article"]
        return written

    return write
