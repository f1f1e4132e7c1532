"""`FakeRateLimit`: the embedded rate limit, with a call log, faults, and counts of each place."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from core.backends.embedded.rate_limit import EmbeddedRateLimit
from core.bindings.rate_limit import RateLimitOutcome
from core.context import Clock, system_clock
from core.testing import seam
from core.testing.calls import Faulty


class FakeRateLimit(Faulty, EmbeddedRateLimit):
    """A `RateLimit` for tests, with the semantics of the embedded one: `limit` requests of a key in `period` seconds.

        limiter = FakeRateLimit({"203.0.113.7": 2}, limit=2, clock=clock)
        assert not (await limiter.limit(key="203.0.113.7")).success

    `counts`: how many of each key were counted at the start, in a period that begins then. Without a `limit` every
    request is within it; `env(…, config=…)` takes it from the configuration. `clock`: the clock of the period.
    `latency`: seconds on the clock that every call takes.

    The counts are those of one place. A request comes in at the place of its client: `Client(app, env, place=1)`.
    """

    def __init__(
        self,
        counts: Mapping[str, int] | None = None,
        *,
        limit: int | None = None,
        period: float = 60,
        clock: Clock = system_clock,
        latency: float = 0.0,
    ) -> None:
        super().__init__(sys.maxsize if limit is None else limit, period, clock=clock)
        self._begin("LIMITER", "rate_limit", clock, latency)
        self._places = {0: self._counts}
        self.counts = counts or {}

    @property
    def counts(self) -> Mapping[str, int]:
        """What was counted in the periods that run, by key, at the place that counts. Setting it begins them anew."""
        now = self.clock.monotonic()
        return {key: count for key, (until, count) in self._here().items() if now < until}

    @counts.setter
    def counts(self, counts: Mapping[str, int]) -> None:
        until = self.clock.monotonic() + self._period
        here = self._here()
        here.clear()
        here.update({key: (until, count) for key, count in counts.items()})

    def _here(self) -> dict[str, tuple[float, int]]:
        return self._places.setdefault(seam.place.get(), {})

    async def _limit(self, *, key: str) -> RateLimitOutcome:
        self._counts = self._here()
        return await super()._limit(key=key)
