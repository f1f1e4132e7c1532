"""What stands around the requests, message batches and scheduled events of an application: `tracing`, `metrics` and
others of one's own.

`app.add_instrument` puts one around those that an application has. Without one nothing here is imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from core.dispatch.chain import Run
from core.handlers import MiddlewareInfo, attach_info, info_of, name_of
from core.types import Middleware

if TYPE_CHECKING:
    from core.bindings.queue import MessageBatch
    from core.context import ScheduledEvent
    from core.routing.table import Route

__all__ = ["Instrument", "Run", "Work", "in_place_of"]

Work: TypeAlias = Callable[[], Awaitable[None]]
"""A consumer, a handler of a scheduled event or an alarm, with what it is called with."""


class Instrument:
    """The base of an instrument. Each method returns what runs instead of what it is given: here, the same."""

    __slots__ = ()

    def middleware(self, middleware: Middleware[Any, Any], /) -> Middleware[Any, Any]:
        """The middleware that runs instead of `middleware`."""
        return middleware

    def request(self, run: Run, route: Route | None, /) -> Run:
        """The chain that runs instead of a route's, or, where there is no route, of a path without one."""
        return run

    def batch(self, batch: MessageBatch[Any], run: Work, /) -> Work:
        """What runs instead of the consumer of `batch`."""
        return run

    def scheduled(self, event: ScheduledEvent, run: Work, /) -> Work:
        """What runs instead of one handler of `event`."""
        return run

    def alarm(self, name: str, run: Work, /) -> Work:
        """What runs instead of the alarm of a Durable Object of the class `name`."""
        return run


def in_place_of(middleware: Middleware[Any, Any], instrumented: Middleware[Any, Any], /) -> Middleware[Any, Any]:
    """Let `instrumented` run instead of `middleware`, under its name, with its declarations. Returns `instrumented`.

    Messages find the original under `__wrapped__`, where `functools.wraps` puts it.
    """
    info = info_of(middleware)
    attach_info(instrumented, info if info is not None else MiddlewareInfo(name_of(middleware)))
    replaced: Any = instrumented
    replaced.__wrapped__ = middleware
    return instrumented
