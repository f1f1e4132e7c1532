"""The requests over the limit that each store of `rate_limit` lets through: `python benchmarks/rate_limit.py`.

One client sends a burst over one window to an application that runs in several isolates at several
places. The middleware and its stores are the real ones; simulated are the clock, and of KV what the
platform's documentation says: a place answers reads from its own cache for 60 seconds, its own writes
are seen there at once, one key takes one write a second, and a write takes a moment to arrive.
The platform's own limiter counts each place for itself.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

import attrs

from core import http
from core.app import App
from core.bindings.rate_limit import RateLimitOutcome
from core.errors import KVError
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_object import RateLimiterObject
from core.middleware.rate_limit_stores import (
    DurableObjectStore,
    KVStore,
    MemoryStore,
    PlatformStore,
    RateLimitStore,
)
from core.request import Request
from core.response import Response
from core.testing import FakeClock, FakeExecutionContext

LIMIT, WINDOW = 100, 60
CACHED_SECONDS = 60.0
WRITE_SECONDS = 1.0
ARRIVES_AFTER = 0.5


class World:
    """The central store of KV."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.values: dict[str, str] = {}
        self.written: dict[str, float] = {}
        self.refused = 0


class Place:
    """KV as one place sees it: a cache of 60 seconds, for what is missing too."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cache: dict[str, tuple[float, str | None]] = {}

    async def get(self, key: str) -> str | None:
        """The cached value while it is, else the central one."""
        now = self.world.clock.monotonic()
        until, value = self.cache.get(key, (0.0, None))
        if now >= until:
            value = self.world.values.get(key)
            self.cache[key] = (now + CACHED_SECONDS, value)
        return value

    async def put(self, key: str, value: str, *, expiration_ttl: int) -> None:
        """Write, at most once a second for each key in the whole world."""
        world, now = self.world, self.world.clock.monotonic()
        if now - world.written.get(key, -WRITE_SECONDS) < WRITE_SECONDS:
            world.refused += 1
            raise KVError("KV PUT failed: 429 Too Many Requests")
        world.written[key] = now
        self.cache[key] = (now + CACHED_SECONDS, value)
        world.clock.call_later(ARRIVES_AFTER, lambda: world.values.__setitem__(key, value))


class Objects:
    """Durable Objects: one each in the whole world."""

    def __init__(self) -> None:
        self.objects: dict[str, RateLimiterObject] = {}

    def get_by_name(self, name: str) -> RateLimiterObject:
        """The object of a name."""
        if name not in self.objects:
            self.objects[name] = RateLimiterObject(_State(_Storage()), None)  # type: ignore[arg-type]  # what it uses
        return self.objects[name]


class _Storage:
    async def get(self, key: str) -> None:
        return None

    async def put(self, key: str, value: object) -> None:
        return None

    async def set_alarm(self, at: int) -> None:
        return None


@attrs.frozen
class _State:
    storage: _Storage


class PlatformLimiter:
    """The platform's binding: exact at one place, unknown at every other."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.counts: dict[tuple[str, int], int] = {}

    async def limit(self, *, key: str) -> RateLimitOutcome:
        """Count one."""
        window = (key, int(self.clock.time()) // WINDOW)
        self.counts[window] = self.counts.get(window, 0) + 1
        return RateLimitOutcome(self.counts[window] <= LIMIT)


async def passed(store: str, places: int, isolates: int, requests: int, seconds: float) -> int:
    """The number of a burst's requests that get through."""
    clock = FakeClock(1_800_000_000.0)
    context = FakeExecutionContext(clock=clock)
    world, objects = World(clock), Objects()
    kvs = [Place(world) for _ in range(places)]
    limiters = [PlatformLimiter(clock) for _ in range(places)]
    makers: dict[str, Callable[[int], RateLimitStore]] = {
        "KV": lambda place: KVStore(lambda _: kvs[place]),  # type: ignore[arg-type,return-value]  # the two methods it uses
        "Durable Object": lambda place: DurableObjectStore(lambda _: objects),
        "platform": lambda place: PlatformStore(lambda _: limiters[place]),
        "memory": lambda place: MemoryStore(),
    }
    apps: list[App[Any]] = []
    for number in range(places * isolates):
        app: App[Any] = App()
        app.get("/", rate_limit(store=makers[store](number // isolates), limit=LIMIT, window=WINDOW), _answer)
        apps.append(app)
    chooser = random.Random(7)
    through = 0
    for _ in range(requests):
        await clock.advance(seconds / requests)
        request = http.Request("https://a.test/", headers={"Edge-Connecting-IP": "192.0.2.1"})
        response = await chooser.choice(apps).fetch(request, None, context)
        through += response.status == 204
        await context.drain()
        context.waited.clear()
    return through


async def _answer(req: Request[Any], res: Response) -> None:
    res.status(204).send()


async def main() -> None:
    """Print the table of the documentation."""
    logging.disable(logging.CRITICAL)
    scenes = [
        ("1 place, 1 isolate", 1, 1),
        ("1 place, 10 isolates", 1, 10),
        ("5 places, 2 isolates each", 5, 2),
        ("20 places, 2 isolates each", 20, 2),
    ]
    bursts = [(1000, 1.0), (1000, 50.0), (5000, 50.0)]
    stores = ["KV", "Durable Object", "platform", "memory"]
    print(f"Requests let through of a limit of {LIMIT} per {WINDOW} s\n")
    print(f"| sent | from | {' | '.join(stores)} |")
    print(f"| --- | --- |{' ---: |' * len(stores)}")
    for requests, seconds in bursts:
        for name, places, isolates in scenes:
            results = [await passed(store, places, isolates, requests, seconds) for store in stores]
            sent = f"{requests:,} in {seconds:g} s"
            print(f"| {sent} | {name} | {' | '.join(f'{result:,}' for result in results)} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
