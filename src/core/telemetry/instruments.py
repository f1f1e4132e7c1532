"""Several instruments around one application, each of which hands on to the one before it.

An instrument is a function that `tracing`, `metrics` and others of one's own put around requests, message batches and
scheduled events. Without one nothing here is imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from core.handlers import MiddlewareInfo, attach_info, info_of, name_of
from core.types import Middleware

if TYPE_CHECKING:
    from core.app import App, EventInstrument
    from core.bindings.queue import MessageBatch
    from core.context import ScheduledEvent
    from core.dispatch.finder import Instrument
    from core.response import Response
    from core.routing.table import Route

__all__ = ["Run", "Wrapping", "in_place_of", "wrap"]

Run: TypeAlias = Callable[[Any, "Response"], Awaitable[object]]
"""A chain: it runs a request to its response."""


class Wrapping:
    """The base of an instrument around another one; every method of it hands on, and nothing else."""

    __slots__ = ("_events", "_requests")

    def __init__(self, requests: Instrument | None = None, events: EventInstrument | None = None) -> None:
        self._requests = requests
        self._events = events

    def middleware(self, middleware: Middleware[Any, Any], /) -> Middleware[Any, Any]:
        """The middleware that runs instead of `middleware`."""
        return middleware if self._requests is None else self._requests.middleware(middleware)

    def request(self, run: Run, route: Route | None, /) -> Run:
        """The chain that runs instead of `run`."""
        return run if self._requests is None else self._requests.request(run, route)

    async def batch(self, batch: MessageBatch[Any], consume: Callable[[], Awaitable[None]], /) -> None:
        """Run the consumer of a batch."""
        await (consume() if self._events is None else self._events.batch(batch, consume))

    async def scheduled(self, event: ScheduledEvent, run: Callable[[], Awaitable[None]], /) -> None:
        """Run a handler of a scheduled event."""
        await (run() if self._events is None else self._events.scheduled(event, run))

    async def alarm(self, name: str, run: Callable[[], Awaitable[None]], /) -> None:
        """Run the alarm of a Durable Object."""
        await (run() if self._events is None else self._events.alarm(name, run))


def wrap(app: App[Any], make: Callable[[Instrument | None, EventInstrument | None], Wrapping], /) -> None:
    """Put the instrument that `make` makes around the one that `app` has."""
    app.dispatcher.finder.instrument = app.instrument = make(app.dispatcher.finder.instrument, app.instrument)
    app.dispatcher.finder.reload()


def in_place_of(middleware: Middleware[Any, Any], instrumented: Middleware[Any, Any], /) -> Middleware[Any, Any]:
    """Let `instrumented` run instead of `middleware`, under its name, with its declarations. Returns `instrumented`.

    Messages find the original under `__wrapped__`, where `functools.wraps` puts it.
    """
    info = info_of(middleware)
    attach_info(instrumented, info if info is not None else MiddlewareInfo(name_of(middleware)))
    replaced: Any = instrumented
    replaced.__wrapped__ = middleware
    return instrumented
