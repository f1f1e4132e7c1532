"""Fixtures of the tests: the worker's Env over fakes."""

from pathlib import Path

import pytest
from core.testing import Client, FakeExecutionContext, env

from my_notes.env import Env
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
    return Client(app, env, ctx)
