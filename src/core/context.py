"""The surroundings of a request: its execution context, the datacenter that it reached, and the time.

Time is asked of a `Clock` everywhere in the framework, so that a test can hand one in
and move it. This file knows no request and no binding. The Protocols are in `types_only.py`, and names of this
module too.
"""

from __future__ import annotations

import asyncio
import time as machine_time
from collections.abc import Callable
from typing import TYPE_CHECKING

from core.values import frozen

if TYPE_CHECKING:
    from core.spans import AttributeValue, RunningSpan
    from core.types_only import Clock, ExecutionContext, RequestContext, TimerHandle

__all__ = [
    "Clock",
    "EdgeMetadata",
    "ExecutionContext",
    "RequestContext",
    "ScheduledEvent",
    "Spans",
    "SystemClock",
    "TimerHandle",
    "require_awaitable",
    "system_clock",
]

if not TYPE_CHECKING:  # a type checker would take the module to have every name

    def __getattr__(name: str) -> object:
        # A running worker needs no types.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from core import types_only

        value: object = getattr(types_only, name)
        globals()[name] = value
        return value


class Spans:
    """The base class of execution contexts: `span` outside workerd. Derive a context of your own from it to have it."""

    __slots__ = ()

    def span(self, name: str, /, **attributes: AttributeValue) -> RunningSpan:
        """A span around a part of your own work. See `RequestContext.span`."""
        from core.spans import span

        return span(name, **attributes)


@frozen
class EdgeMetadata:
    """The location at which a request reached the edge: `colo`, a three-letter datacenter code, and `country`, ISO
    3166-1 alpha-2.
    """

    colo: str | None = None
    country: str | None = None


@frozen
class ScheduledEvent:
    """A cron trigger that came up: its expression, and the time it was due, in seconds since 1970-01-01 UTC."""

    cron: str
    scheduled_time: float


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()

    time: staticmethod[[], float] = staticmethod(machine_time.time)
    monotonic: staticmethod[[], float] = staticmethod(machine_time.perf_counter)
    if TYPE_CHECKING:

        async def sleep(self, seconds: float, /) -> None:
            """Return after `seconds`."""
    else:
        sleep = staticmethod(asyncio.sleep)

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> TimerHandle:
        """Call `callback` in the running event loop, `seconds` from now."""
        return asyncio.get_running_loop().call_later(seconds, callback)


system_clock: Clock = SystemClock()


def require_awaitable(given: object) -> None:
    """Refuse an object that `wait_until` cannot wait for, a function that was not called above all.

    Raises TypeError.
    """
    if hasattr(type(given), "__await__"):
        return
    name = str(getattr(given, "__qualname__", type(given).__qualname__)).rpartition("<locals>.")[2]
    if callable(given):
        from core.mistakes import uncalled

        raise TypeError(uncalled(name))
    raise TypeError(
        f"wait_until(…) takes an awaitable, not a {name}. Give it the call of an async function: wait_until(job())"
    )
