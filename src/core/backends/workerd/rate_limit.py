"""The platform's own rate limits."""

from __future__ import annotations

from core.backends.workerd.conversion import binding_error, call_js
from core.backends.workerd.engine import JsEngine
from core.bindings.rate_limit import RateLimit, RateLimitOutcome


class WorkerdRateLimit(JsEngine, RateLimit):
    async def _limit(self, *, key: str) -> RateLimitOutcome:
        outcome = await call_js(binding_error, self._js.limit, key=key)
        return RateLimitOutcome(bool(outcome.success))
