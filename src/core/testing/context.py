"""`FakeExecutionContext`: given to a request beside its bindings, with a list of the work that was left to run.

Work that a handler gives to `wait_until` and a test never awaits hides its failure. So every context
is remembered while a test runs, and the pytest plugin fails the test that leaves one with unfinished
or failed work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

from core.context import Clock, Spans, require_awaitable
from core.testing import seam
from core.testing.clock import FakeClock

_contexts: list[FakeExecutionContext] = []


class FakeExecutionContext(Spans):
    """An execution context for tests.

        ctx = FakeExecutionContext()
        response = await app.fetch(request, env, ctx)
        await ctx.drain()
        assert await env.SESSIONS.get("visits") == "1"

    `clock` is the clock of the request's times, windows and timeouts; without one, a `FakeClock` of its own that stays
    at the present. Give the same one to the fakes of bindings, or give it to `env(…)` and let `Client` make the
    context.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or seam.running.time() or FakeClock(time.time())
        self.waited: list[asyncio.Future[Any]] = []
        """Everything given to `wait_until`, as tasks, in order."""
        self.passed_through: bool = False
        """True if `pass_through_on_exception` was called."""
        self._raised: set[int] = set()
        _contexts.append(self)

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        """Start `awaitable` beside the request."""
        require_awaitable(awaitable)
        self.waited.append(asyncio.ensure_future(awaitable))

    def pass_through_on_exception(self) -> None:
        """Remember the call."""
        self.passed_through = True

    async def drain(self) -> list[Any]:
        """Wait for everything given to `wait_until`, work added meanwhile included, and return the results.

        Raises the errors of the work, as one error or an ExceptionGroup, after all of it has ended.
        """
        results: list[Any] = []
        while len(results) < len(self.waited):
            results += await asyncio.gather(*self.waited[len(results) :], return_exceptions=True)
        failed = {
            number: result
            for number, result in enumerate(results)
            if isinstance(result, BaseException) and not isinstance(result, seam.IsolateDied)
        }
        errors = [result for number, result in failed.items() if number not in self._raised]
        self._raised.update(failed)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise BaseExceptionGroup("work given to wait_until failed", errors)
        return results

    async def _die(self) -> None:
        """End everything given to `wait_until` where it is, as the death of the isolate does, and forget it."""
        for task in self.waited:
            task.cancel()
        await asyncio.gather(*self.waited, return_exceptions=True)
        self.waited.clear()
        self._raised.clear()

    def problems(self) -> list[str]:
        """Return the problems that the test did not resolve: work that has not ended, and failures that nobody has
        seen.
        """
        found: list[str] = []
        for number, task in enumerate(self.waited):
            if not task.done():
                found.append(f"work given to wait_until has not ended: {_name(task)}. Write `await ctx.drain()`")
            elif number in self._raised or task.cancelled():
                continue
            elif (error := task.exception()) is not None and not isinstance(error, seam.IsolateDied):
                found.append(f"work given to wait_until failed: {_name(task)}: {type(error).__name__}: {error}")
        return found


def _name(task: asyncio.Future[Any]) -> str:
    coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
    return getattr(coroutine, "__qualname__", None) or repr(task)


def forget_contexts() -> None:
    """Forget the contexts of the tests before."""
    _contexts.clear()


def left_behind() -> list[str]:
    """Return the problems that remain in the contexts made since `forget_contexts`."""
    found = [problem for context in _contexts for problem in context.problems()]
    _contexts.clear()
    return found
