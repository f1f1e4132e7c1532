"""The platform's own rate limits."""

from __future__ import annotations

from core.backends.workerd.conversion import call_js, unwrap
from core.bindings.calls import Hookable
from core.bindings.rate_limit import RateLimit, RateLimitOutcome
from core.errors import BindingError


class WorkerdRateLimit(Hookable, RateLimit):
    """`RateLimit` over the runtime's."""

    def __init__(self, limiter: object) -> None:
        self._limiter = unwrap(limiter)

    async def _limit(self, *, key: str) -> RateLimitOutcome:
        outcome = await call_js(lambda name, message: BindingError(message), self._limiter.limit, key=key)
        return RateLimitOutcome(bool(outcome.success))
