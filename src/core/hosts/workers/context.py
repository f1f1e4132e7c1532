"""The runtime's execution context as the application's: work that outlives its response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from time import perf_counter
from typing import TYPE_CHECKING, Any

from core.backends.workerd.conversion import bridge, unwrap
from core.context import require_awaitable
from core.dispatch.answers import logged

if TYPE_CHECKING:
    from core.app import App
    from core.spans import AttributeValue, RunningSpan


class Given:
    """The objects that the runtime gives for an event, and the time of its arrival in milliseconds."""

    __slots__ = ("ctx", "received", "request")

    def __init__(self, ctx: object, request: object = None) -> None:
        self.ctx: Any = ctx
        self.request: Any = request
        self.received: float = perf_counter() * 1000


class WorkersContext:
    """`ExecutionContext` over the runtime's `ctx`, which `given` has."""

    __slots__ = ("_given",)

    def __init__(self, given: Any) -> None:
        self._given = given

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        """Let `awaitable` run on after the response was sent. An error that it raises is logged and harms nothing."""
        require_awaitable(awaitable)
        task = asyncio.ensure_future(logged(awaitable))
        # A coroutine handed over bare is destroyed when the call returns: JavaScript has to own the task.
        proxy = bridge().create_proxy(task)
        unwrap(self._given.ctx).waitUntil(proxy)
        task.add_done_callback(lambda _: proxy.destroy())

    def pass_through_on_exception(self) -> None:
        """Let the runtime fall back to the origin when the worker itself fails, which no handler's error is."""
        unwrap(self._given.ctx).passThroughOnException()

    def span(self, name: str, /, **attributes: AttributeValue) -> RunningSpan:
        """A span of the platform's tracing around a part of your own work. See `RequestContext.span`."""
        from core.backends.workerd.spans import PlatformTracer
        from core.spans import RunningSpan

        tracing = getattr(unwrap(self._given.ctx), "tracing", None)
        return RunningSpan(name, attributes, root=None if tracing is None else PlatformTracer(tracing))


async def entered(app: App[Any], work: Coroutine[Any, Any, None], env: object, ctx: WorkersContext) -> None:
    """Run the work of an event that is no request, when the lifespans of the application are entered."""
    if app.lifespans is not None:
        try:
            await app.lifespans.ensure_in_worker(env, ctx)
        except BaseException:
            work.close()
            raise
    await work
