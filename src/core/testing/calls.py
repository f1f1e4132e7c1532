"""What every fake has: the log of its calls, and failures on purpose.

A call is recorded first, then waits its latency on the clock, and then meets the failure that was laid out for it.
The engine is the embedded one and knows nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from core.bindings.calls import BindingCall, Proceed, add_hook
from core.context import Clock
from core.testing import seam

__all__ = ["Call", "Faulty"]


@attrs.frozen
class Call:
    """A method called on a fake: its name, its positional arguments and the options that were given."""

    method: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = attrs.Factory(dict[str, Any])


@attrs.define
class _Failure:
    error: BaseException
    method: str | None
    times: int


class Faulty:
    """The methods of every fake beside its binding's own."""

    clock: Clock
    latency: float
    """Seconds on the fake's clock that every call takes. Set it to slow the binding down."""
    calls: list[Call]
    """Every call so far, in order: `[Call("get", ("key", "text")), ...]`. Clear it with `calls.clear()`."""

    def _begin(self, name: str, kind: str, clock: Clock, latency: float) -> None:
        """Record every later call, and let it meet its failure."""
        self.clock = clock
        self.latency = latency
        self.calls = []
        self._failures: list[_Failure] = []
        add_hook(self, self._met, name=name, kind=kind)

    def fail_next(self, error: BaseException, *, method: str | None = None, times: int = 1) -> None:
        """Let the next call raise `error`: the next `times` calls, and only those of `method` when it is given.

        A call that fails has changed nothing.
        """
        if times < 1:
            raise ValueError(f"fail_next(times={times}) must be at least 1")
        self._failures.append(_Failure(error, method, times))

    def _recorded(self, call: BindingCall) -> Call:
        """A call as the log has it: the object it was called on and the arguments with their defaults filled in, and
        the options that are not None.
        """
        args, options = call.canonical()
        return Call(call.method, (*call.target, *args), options)

    async def _met(self, call: BindingCall, proceed: Proceed, /) -> object:
        self.calls.append(self._recorded(call))
        if seam.running is not seam.PLAIN:
            return await seam.running.passing(self, call, lambda: self._reached(call, proceed))
        # The same steps as in a simulation, without a call for each: they are in every count of a request's cost.
        if self.latency > 0:
            await self.clock.sleep(self.latency)
        if self._failures:
            self._fail(call)
        return await proceed()

    async def _reached(self, call: BindingCall, proceed: Proceed) -> object:
        if self.latency > 0:
            await self.clock.sleep(self.latency)
        self._fail(call)
        return await proceed()

    def _fail(self, call: BindingCall) -> None:
        for failure in self._failures:
            if failure.method in (None, call.method):
                failure.times -= 1
                if failure.times == 0:
                    self._failures.remove(failure)
                raise failure.error
