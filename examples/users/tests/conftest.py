"""Fixtures of this worker's tests: its Env over fakes, and tokens."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import jwt
import pytest

from core import Secret
from core.testing import Client, FakeClock, FakeD1Database, FakeExecutionContext, FakeKVNamespace
from users_api.env import Env
from users_api.main import app

MIGRATIONS = Path(__file__).parent.parent / "migrations"
SECRET = "a-secret-for-tests-that-is-long-enough"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def env(clock: FakeClock) -> Env:
    return Env(
        COUNTERS=FakeKVNamespace(clock=clock),
        DB=FakeD1Database(migrations=MIGRATIONS, clock=clock),
        ALLOWED_ORIGINS="https://example.com",
        JWT_SECRET=Secret(SECRET),
    )


@pytest.fixture
def ctx(clock: FakeClock) -> FakeExecutionContext:
    return FakeExecutionContext(clock=clock)


@pytest.fixture
def client(env: Env, ctx: FakeExecutionContext) -> Client[Env]:
    return Client(app, env, ctx)


@pytest.fixture
def token() -> Callable[..., dict[str, str]]:
    """The headers of a signed-in user; `is_admin=True` for an administrator's, `secret` and `hours` to spoil it."""

    def headers(*, is_admin: bool = False, secret: str = SECRET, hours: float = 1) -> dict[str, str]:
        claims = {
            "sub": "7",
            "email": "grace@example.com",
            "isAdmin": is_admin,
            "exp": dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours),
        }
        return {"Authorization": f"Bearer {jwt.encode(claims, secret, algorithm='HS256')}"}

    return headers
