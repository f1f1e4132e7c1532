"""Where a simulation meets the fakes: `running` is the one of the test that runs now.

Fakes ask it before they draw, wait or look at another place. In every ordinary test it is `Seam` itself: the order and
the time of asyncio, one place, and no fault. This file knows no simulation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextvars import ContextVar
from itertools import repeat
from typing import Final, TypeVar

from core.bindings.calls import BindingCall
from core.context import Clock

T = TypeVar("T")

# How often a walk lets the loop go round before it says that the tasks will never wait.
_MOST_ROUNDS = 10_000
_BLIND_ROUNDS = 50


class Seam:
    """What the fakes, the clock and the client see of a simulation, and what there is without one."""

    places: int = 1
    turns: Iterator[int] = repeat(0)
    """The places of the clients that are made, one after the other."""
    faults: Collection[str] = ()

    def time(self) -> Clock | None:
        """The clock of the run; None for that of each fake."""
        return None

    async def passing(self, fake: object, call: BindingCall, answer: Callable[[], Awaitable[object]], /) -> object:
        """Answer a call of a binding, when its turn has come."""
        return await answer()

    async def event(self, label: str, at: int, run: Callable[[], Awaitable[T]], /) -> T | None:
        """Run a request, a batch or a schedule at a place. Returns None if its isolate died."""
        there = place.set(at)
        try:
            return await run()
        finally:
            place.reset(there)

    def draw(self, fault: str, options: int, /) -> int:
        """Draw one of `options` where `fault` was asked for: 0, which is no fault, everywhere else."""
        return 0

    def has_timers(self, clock: Clock, /) -> None:
        """Move `clock` too when nothing else can happen."""

    async def rest(self) -> None:
        """Return when every task waits for something that only time brings."""
        # The loop's queue of ready callbacks; uvloop has none to look at, and gets a fair number of rounds instead.
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        for _ in range(_MOST_ROUNDS if ready is not None else _BLIND_ROUNDS):
            await asyncio.sleep(0)
            if ready is not None and not ready:
                return


class IsolateDied(BaseException):  # not an Exception: no handler sees its own death
    """The isolate of an event died at a call of a binding. It is raised only in a simulation."""


PLAIN: Final = Seam()
running: Seam = PLAIN
place: ContextVar[int] = ContextVar("place", default=0)
"""The place at which a request came in, among those of `FakeKVNamespace(places=…)`."""
