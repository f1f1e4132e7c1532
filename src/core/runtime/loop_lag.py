"""The lag of an event loop, which runs late what is due: the time that a request waits for others to let go of it."""

from __future__ import annotations

import asyncio

__all__ = ["LoopLag"]

_BEAT = 0.1


class LoopLag:
    """Measures the running loop from `start` on, ten times a second."""

    def __init__(self) -> None:
        self._most = 0.0

    def start(self) -> None:
        """Begin to measure."""
        loop = asyncio.get_running_loop()
        self._beat(loop, loop.time())

    def taken(self) -> float:
        """The longest lag since this was asked last, in seconds."""
        most, self._most = self._most, 0.0
        return most

    def _beat(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = loop.time()
        self._most = max(self._most, now - due)
        loop.call_later(_BEAT, self._beat, loop, now + _BEAT)
