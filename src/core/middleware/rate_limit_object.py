"""The Durable Object that counts for `DurableObjectStore`, apart from it, since only who exports it loads Durable
Objects.

It knows one window at a time and nothing of requests.
"""

from __future__ import annotations

from typing import Any

from core.bindings.durable_object import DurableObject

__all__ = ["RateLimiterObject"]


class RateLimiterObject(DurableObject[Any]):
    """The Durable Object behind `DurableObjectStore`: one counter, kept in its storage until the window is over."""

    _start: int | None = None
    _used = 0

    async def take(self, start: int, window: int, cost: int, limit: int) -> int:
        """Return the part of the window used with this request, or -1 - used where that is over `limit`."""
        if self._start is None:
            saved = await self.ctx.storage.get("window")
            # Another call may have been let in while storage was asked, and have counted already.
            if self._start is None:
                self._start, self._used = (int(saved[0]), int(saved[1])) if saved else (start, 0)
        if start > self._start:
            self._start, self._used = start, 0
        if self._used + cost > limit:
            return -1 - self._used
        self._used += cost
        used = self._used
        await self.ctx.storage.put("window", [self._start, used])
        if used == cost:
            await self.ctx.storage.set_alarm((self._start + window) * 1000 + 60_000)
        return used

    async def alarm(self, info: object = None, /) -> None:
        """Forget a window that is over, so that clients who never return cost nothing."""
        self._start, self._used = None, 0
        await self.ctx.storage.delete_all()
