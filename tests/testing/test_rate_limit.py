"""`FakeRateLimit`: its counts, its limit from the configuration, and its places."""

from pathlib import Path

import attrs

from core import Bindings, Request, Response, create_app
from core.bindings.rate_limit import RateLimit
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_stores import PlatformStore
from core.testing import Client, FakeClock, FakeRateLimit, env
from core.testing.calls import Call


@attrs.frozen
class Env(Bindings):
    LIMITER: RateLimit


app = create_app(Env)
app.use(rate_limit(limit=2, window=60, store=PlatformStore("LIMITER")))


@app.get("/")
async def index(req: Request[Env], res: Response) -> None:
    res.json({})


TOML = """\
name = "limited"
main = "src/main.py"
compatibility_date = "2026-04-01"

[[ratelimits]]
name = "LIMITER"
namespace_id = "1"
simple = { limit = 2, period = 60 }
"""


async def statuses(client: Client[Env], times: int) -> list[int]:
    return [(await client.get("/")).status for _ in range(times)]


async def test_the_limit_and_the_period_are_those_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text(TOML)
    clock = FakeClock()
    client = Client(app, env(Env, config=tmp_path / "wrangler.toml", clock=clock))
    assert await statuses(client, 3) == [200, 200, 429]
    clock.advance(60)
    assert await statuses(client, 3) == [200, 200, 429]


async def test_without_a_configuration_nothing_is_over_the_limit() -> None:
    assert await statuses(Client(app, env(Env)), 100) == [200] * 100


async def test_counts_are_those_of_the_running_periods() -> None:
    clock = FakeClock()
    limiter = FakeRateLimit({"ada": 2}, limit=3, period=10, clock=clock)
    clock.advance(5)
    assert (await limiter.limit(key="ada")).success
    assert not (await limiter.limit(key="ada")).success
    await limiter.limit(key="bob")
    assert limiter.counts == {"ada": 4, "bob": 1}
    assert limiter.calls[-1] == Call("limit", (), {"key": "bob"})
    clock.advance(5)
    assert limiter.counts == {"bob": 1}
    limiter.counts = {"eve": 3}
    assert limiter.counts == {"eve": 3}
    assert not (await limiter.limit(key="eve")).success


async def test_each_place_counts_for_itself() -> None:
    shared = env(Env, LIMITER=FakeRateLimit(limit=1))
    here, there = Client(app, shared), Client(app, shared, place=1)
    assert await statuses(here, 2) == [200, 429]
    assert await statuses(there, 2) == [200, 429]
