"""The surroundings of a request: its execution context, the datacenter that it reached, and the time.

Time is asked of a `Clock` everywhere in the framework, so that a test can hand one in
and move it. This file knows no request and no binding.
"""

from __future__ import annotations

import time as machine_time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from core.errors import DeveloperError
from core.values import frozen

if TYPE_CHECKING:
    from core.spans import AttributeValue, RunningSpan

__all__ = [
    "Clock",
    "EdgeMetadata",
    "ExecutionContext",
    "RequestContext",
    "ScheduledEvent",
    "Spans",
    "StateKey",
    "SystemClock",
    "TimerHandle",
    "require_awaitable",
    "system_clock",
]

T_co = TypeVar("T_co", covariant=True)


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
    # Whoever waits has a loop, and with it asyncio; tools that only ask what a request has do not load it.

    async def sleep(self, seconds: float, /) -> None:
        """Return after `seconds`."""
        import asyncio

        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> TimerHandle:
        """Call `callback` in the running event loop, `seconds` from now."""
        import asyncio

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
        from core.errors.mistakes import uncalled

        raise TypeError(uncalled(name))
    raise TypeError(
        f"wait_until(…) takes an awaitable, not a {name}. Give it the call of an async function: wait_until(job())"
    )


class WithEnv(Protocol):
    """A request, as far as the value of a lifespan is looked up by it."""

    @property
    def env(self) -> object:
        """The bindings."""
        ...


class StateKey(Generic[T_co]):
    """Returned by `@app.lifespan`: gives the value that the lifespan yielded.

        @app.lifespan
        async def pool(env: Env) -> AsyncIterator[Pool]:
            async with open_pool(env.DATABASE_URL) as opened:
                yield opened

    `pool.of(req)`, `pool(req)` and `req.state[pool]` are a `Pool`, and `pool.of_env(env)` is one for consumers of
    queues and schedules. Raises DeveloperError where the lifespan is not running.
    """

    __slots__ = ("_name", "_values_of")

    def __init__(self, values_of: Callable[[object], Mapping[StateKey[Any], Any] | None], name: str) -> None:
        self._values_of = values_of
        self._name = name

    def __repr__(self) -> str:
        return f"<StateKey {self._name}>"

    def of(self, req: WithEnv, /) -> T_co:
        """The value for a request."""
        return self.of_env(req.env)

    __call__ = of

    def of_env(self, env: object, /) -> T_co:
        """The value for an Env that is being served."""
        values = self._values_of(env)
        if values is None or self not in values:
            raise DeveloperError(
                f"the lifespan {self._name} is not running. Hosts and core.testing.Client start it; around app.fetch "
                "itself, `await app.startup(env)` first and `await app.shutdown(env)` last"
            )
        value: T_co = values[self]
        return value
