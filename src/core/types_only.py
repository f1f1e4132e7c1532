"""Types that a running worker does without: the surroundings of a request, and a mistake in a client's data.

Programs take them from `core`, `core.context` and `core.errors`, which load this file for who asks: the framework
itself does not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

if TYPE_CHECKING:
    from core.spans import AttributeValue, RunningSpan

__all__ = ["Clock", "ExecutionContext", "Issue", "RequestContext", "TimerHandle"]


@runtime_checkable
class ExecutionContext(Protocol):
    """The execution context that the runtime gives beside a request. Any object with these two methods will do."""

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        """Let `awaitable` run on after the response was sent. An error that it raises is logged and harms nothing."""
        ...

    def pass_through_on_exception(self) -> None:
        """Let the runtime fall back to the origin when the worker itself fails.

        It has no effect on errors of handlers: those are always answered, and never reach the runtime.
        """
        ...


class RequestContext(ExecutionContext, Protocol):
    """The type of `req.ctx`: an execution context with spans."""

    def span(self, name: str, /, **attributes: AttributeValue) -> RunningSpan:
        """A span around a part of your own work, as a child of the one that is running; nothing where nothing traces.

        with req.ctx.span("charge", amount=order.amount) as current:
            current.set_attribute("payment.id", await charge(order))

        In workerd it is a span of the platform's own tracing.
        """
        ...


class TimerHandle(Protocol):
    """A timer that has not gone off yet."""

    def cancel(self) -> None:
        """Take it back. A second call does nothing."""
        ...


class Clock(Protocol):
    """The source of the time."""

    def time(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> TimerHandle:
        """Call `callback` in the running event loop, `seconds` from now."""
        ...

    async def sleep(self, seconds: float, /) -> None:
        """Return after `seconds`."""
        ...


class Issue(TypedDict):
    """One mistake in the data that a client sent."""

    path: str
    """The place of the mistake, such as `items[0].email`; empty for the whole value."""
    message: str
