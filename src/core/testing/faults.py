"""Failures on purpose: `Faults`, the hook that every call of a fake passes.

A call is recorded first, then waits its latency on the clock, and then meets the failure that was laid out for it.
The engine is the embedded one and knows nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from core.bindings.calls import BindingCall, Proceed, add_hook
from core.context import Clock
from core.testing import seam
from core.testing.calls import Call

__all__ = ["Faults", "Faulty"]


@attrs.define
class _Failure:
    error: BaseException
    method: str | None
    times: int


def _recorded(call: BindingCall) -> Call:
    args, options = call.canonical()
    return Call(call.method, (*call.target, *args), options)


class Faults:
    """The hook of one fake. `latency`: seconds on `clock` that every call takes before it is answered.

    `record` makes the `Call` of a binding's call: by default the object it was called on and the arguments with their
    defaults filled in, and the options that are not None.
    """

    def __init__(
        self, clock: Clock, *, latency: float = 0.0, record: Callable[[BindingCall], Call] = _recorded
    ) -> None:
        self.calls: list[Call] = []
        self.latency = latency
        self._clock = clock
        self._record = record
        self._failures: list[_Failure] = []

    def fail_next(self, error: BaseException, *, method: str | None = None, times: int = 1) -> None:
        """Let the next call raise `error`: the next `times` calls, and only those of `method` when it is given."""
        if times < 1:
            raise ValueError(f"fail_next(times={times}) must be at least 1")
        self._failures.append(_Failure(error, method, times))

    async def __call__(self, call: BindingCall, proceed: Proceed, /) -> Any:
        """Let a call through, or raise the failure that was laid out for it."""
        self.calls.append(self._record(call))
        if seam.running is not seam.PLAIN:
            return await seam.running.passing(self, call, lambda: self._answer(call, proceed))
        # The same steps as in a simulation, without a call for each: they are in every count of a request's cost.
        if self.latency > 0:
            await self._clock.sleep(self.latency)
        if self._failures:
            self._fail(call)
        return await proceed()

    async def _answer(self, call: BindingCall, proceed: Proceed) -> Any:
        if self.latency > 0:
            await self._clock.sleep(self.latency)
        self._fail(call)
        return await proceed()

    def _fail(self, call: BindingCall) -> None:
        for failure in self._failures:
            if failure.method in (None, call.method):
                failure.times -= 1
                if failure.times == 0:
                    self._failures.remove(failure)
                raise failure.error


class Faulty:
    """The methods of every fake beside its binding's own."""

    clock: Clock
    faults: Faults

    def _begin(
        self, name: str, kind: str, clock: Clock, latency: float, record: Callable[[BindingCall], Call] = _recorded
    ) -> None:
        """Let every later call pass the faults of this fake."""
        self.clock = clock
        self.faults = Faults(clock, latency=latency, record=record)
        add_hook(self, self.faults, name=name, kind=kind)

    @property
    def calls(self) -> list[Call]:
        """Every call so far, in order: `[Call("get", ("key", "text")), ...]`. Clear it with `calls.clear()`."""
        return self.faults.calls

    @property
    def latency(self) -> float:
        """Seconds on the fake's clock that every call takes. Set it to slow the binding down."""
        return self.faults.latency

    @latency.setter
    def latency(self, seconds: float) -> None:
        self.faults.latency = seconds

    def fail_next(self, error: BaseException, *, method: str | None = None, times: int = 1) -> None:
        """Let the next call raise `error`: the next `times` calls, and only those of `method` when it is given.

        A call that fails has changed nothing.
        """
        self.faults.fail_next(error, method=method, times=times)
