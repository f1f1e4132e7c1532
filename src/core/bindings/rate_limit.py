"""A rate limit of the platform: counters close to the request, without storage of one's own."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from core.bindings import binding_call
from core.values import frozen

__all__ = ["RateLimit", "RateLimitOutcome"]


@frozen
class RateLimitOutcome:
    """True if the request is within the limit."""

    success: bool


@runtime_checkable
class RateLimit(Protocol):
    """Counts per key. The configuration says how many in how many seconds (10 or 60).

    The counters are of one location and approximate, for speed; use `core.middleware.rate_limit` over KV, or a Durable
    Object, where one count must hold for the whole world.
    """

    @binding_call
    async def limit(self, *, key: str) -> RateLimitOutcome:
        """Count one for `key`, and say whether that was within the limit."""
        raise AssertionError
