"""The embedded rate limit: counts per key in this process, for a fixed period from a key's first request on."""

from __future__ import annotations

from core.bindings.calls import Hookable
from core.bindings.rate_limit import RateLimit, RateLimitOutcome
from core.context import Clock, system_clock

# Keys come from clients: without a bound they would fill the memory.
_MOST_KEYS = 100_000


class EmbeddedRateLimit(Hookable, RateLimit):
    """At most `limit` requests of a key in `period` seconds. Counts are this process's, and gone with it."""

    def __init__(self, limit: int, period: float, *, clock: Clock = system_clock) -> None:
        self._most = limit
        self._period = period
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    async def _limit(self, *, key: str) -> RateLimitOutcome:
        now = self._clock.monotonic()
        until, count = self._counts.pop(key, (0.0, 0))
        if now >= until:
            until, count = now + self._period, 0
        # Put back at the end, so that the keys which came longest ago are the first to go.
        self._counts[key] = (until, count + 1)
        while len(self._counts) > _MOST_KEYS:
            del self._counts[next(iter(self._counts))]
        return RateLimitOutcome(success=count < self._most)
