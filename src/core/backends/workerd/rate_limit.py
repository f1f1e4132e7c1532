"""The platform's own rate limits."""

from __future__ import annotations

from core.backends.workerd.engine import JsEngine, js_call
from core.bindings.rate_limit import RateLimit, RateLimitOutcome


class WorkerdRateLimit(JsEngine, RateLimit):
    _limit = js_call(RateLimit.limit, lambda outcome: RateLimitOutcome(bool(outcome.success)))
