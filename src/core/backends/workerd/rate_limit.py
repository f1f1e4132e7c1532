"""The platform's own rate limits."""

from __future__ import annotations

from typing import Any

from core.backends.workerd.crossing import ask, bare
from core.bindings.rate_limit import RateLimitOutcome
from core.errors import BindingError

__all__ = ["WorkerdRateLimit"]


class WorkerdRateLimit:
    """`RateLimit` over the runtime's."""

    __slots__ = ("_limiter",)

    def __init__(self, limiter: Any) -> None:
        self._limiter = bare(limiter)

    async def limit(self, *, key: str) -> RateLimitOutcome:
        """Count one for `key`. See `RateLimit.limit`."""
        outcome = await ask(lambda name, message: BindingError(message), self._limiter.limit, key=key)
        return RateLimitOutcome(bool(outcome.success))
