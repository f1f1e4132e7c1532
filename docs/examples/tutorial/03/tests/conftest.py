"""Fixtures of the tests: the worker's Env over fakes, and two people who are signed in."""

from pathlib import Path

import pytest
from core import Request, http
from core.testing import Client, FakeExecutionContext, env
from my_notes.env import Env

from my_notes.auth import User, auth
from my_notes.main import app

CONFIG = Path(__file__).parent.parent / "wrangler.toml"


@pytest.fixture(name="env")
def fakes() -> Env:
    """Fakes for every binding of wrangler.toml, the database with its migrations."""
    return env(Env, config=CONFIG)


@pytest.fixture
def ctx() -> FakeExecutionContext:
    """The context that work after an answer is given to: a test waits for it with `await ctx.drain()`."""
    return FakeExecutionContext()


@pytest.fixture
def client(env: Env, ctx: FakeExecutionContext) -> Client[Env]:
    """Somebody who is not signed in."""
    return Client(app, env, ctx)


@pytest.fixture
async def ada(client: Client[Env]) -> Client[Env]:
    return await signed_in(client, "ada@example.com")


@pytest.fixture
async def bob(client: Client[Env]) -> Client[Env]:
    return await signed_in(client, "bob@example.com")


async def signed_in(client: Client[Env], email: str) -> Client[Env]:
    """A client whose every request brings the token of a new account.

    No password is hashed, which is slow on purpose.
    """
    insert = client.env.DB.prepare("INSERT INTO accounts (email, password) VALUES (?, '') RETURNING id")
    account_id: int = await insert.bind(email).first("id")
    req = Request(http.Request("https://example.test/"), client.env, client.ctx)
    token = await auth.issue(req, User(sub=str(account_id)), expires_in=60)
    return Client(app, client.env, client.ctx, headers={"Authorization": f"Bearer {token}"})
