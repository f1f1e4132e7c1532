"""A clock that stays still until a test moves it: `FakeClock`.

    clock.advance(61)           # now: every timer that is due goes off, in order
    await clock.advance(61)     # the same, and tasks that a timer wakes run at its time

Both spellings are one method. Called alone it jumps: timers go off in their order, each at its own time, before
the next line of the test, and tasks that slept run when the test next awaits. Awaited, it walks: after every
timer the tasks that it woke run until they wait again, so that their next steps (sleep, retry, send) happens
at its right time too.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Generator
from itertools import count

import attrs

from core.bindings.kinds import bindings_of
from core.context import Clock, TimerHandle
from core.testing import seam


@attrs.define(order=True)
class _Timer:
    due: float
    order: int
    callback: Callable[[], object] = attrs.field(order=False)
    cancelled: bool = attrs.field(default=False, order=False)

    def cancel(self) -> None:
        self.cancelled = True


class Advance:
    """A move of the clock, as `FakeClock.advance` gives it: await it to walk, or leave it alone for the jump."""

    __slots__ = ("_clock", "_target")

    def __init__(self, clock: FakeClock, target: float) -> None:
        self._clock: FakeClock | None = clock
        self._target = target

    def __await__(self) -> Generator[object, None, None]:
        clock, self._clock = self._clock, None
        if clock is not None:
            yield from clock._walk(self._target).__await__()

    def __del__(self) -> None:
        # A bare `clock.advance(5)` drops this object at once, and that is when the clock moves.
        if self._clock is not None:
            self._clock._jump(self._target)


class FakeClock:
    """A `Clock` for tests. It begins at `start`, in seconds since 1970, and moves only by `advance`."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._timers: list[_Timer] = []
        self._order = count()

    def __repr__(self) -> str:
        return f"FakeClock({self._start + self._elapsed!r})"

    def time(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> TimerHandle:
        """Call `callback` when the clock has moved `seconds` from now. Timers of one moment keep their order."""
        seam.running.has_timers(self)
        timer = _Timer(self._elapsed + max(0.0, seconds), next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    async def sleep(self, seconds: float, /) -> None:
        """Return when the clock has moved `seconds`. Nothing and less than nothing only let other tasks run."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        timer = self.call_later(seconds, wake)
        try:
            await woken
        finally:
            timer.cancel()

    @property
    def pending(self) -> int:
        """The number of timers and sleepers that wait for the clock."""
        return sum(not timer.cancelled for timer in self._timers)

    def until_next(self) -> float | None:
        """Seconds until the next timer; None where nothing waits for the clock."""
        dues = [timer.due for timer in self._timers if not timer.cancelled]
        return min(dues) - self._elapsed if dues else None

    def advance(self, seconds: float) -> Advance:
        """Move the clock on by `seconds`: at once, or, awaited, from timer to timer with tasks running in between.

        Raises ValueError for less than nothing. An error of a timer's callback goes to the event loop's exception
        handler, as asyncio's own timers do it, and stops nobody else.
        """
        if seconds < 0:
            raise ValueError(f"advance({seconds}): a clock does not go back")
        return Advance(self, self._elapsed + seconds)

    def _jump(self, target: float) -> None:
        while (timer := self._next(target)) is not None:
            self._fire(timer)
        self._elapsed = max(self._elapsed, target)

    async def _walk(self, target: float) -> None:
        await seam.running.rest()
        while (timer := self._next(target)) is not None:
            self._fire(timer)
            await seam.running.rest()
        self._elapsed = max(self._elapsed, target)
        await seam.running.rest()

    def _next(self, target: float) -> _Timer | None:
        while self._timers and self._timers[0].due <= target:
            timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                return timer
        return None

    def _fire(self, timer: _Timer) -> None:
        self._elapsed = max(self._elapsed, timer.due)
        try:
            timer.callback()
        except Exception as error:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise error from None
            loop.call_exception_handler({"message": "a timer of FakeClock raised", "exception": error})


def clock_of(env: object) -> Clock | None:
    """The clock of the fakes in an Env: a FakeClock if one has it. None where there are no fakes."""
    clocks: list[Clock] = [fake.clock for _, _, fake in bindings_of(env) if hasattr(fake, "clock")]
    return next((clock for clock in clocks if isinstance(clock, FakeClock)), clocks[0] if clocks else None)
