"""Times each middleware of a request, and its handler, for the waterfall of the explorer."""

from __future__ import annotations

from collections.abc import Awaitable
from contextvars import ContextVar
from copy import copy
from typing import TYPE_CHECKING, Any

from core.app import App
from core.dev.exchange import RecordedStep, current
from core.dev.record import Recorder
from core.handlers import MiddlewareInfo, attach_info, before, info_of, name_of
from core.middleware.logger import is_plain
from core.request import AnyRequest
from core.response import Response
from core.telemetry.instruments import Run, Wrapping, in_place_of, wrap
from core.types import Middleware, Next

if TYPE_CHECKING:
    from core.app import EventInstrument
    from core.dispatch.finder import Instrument
    from core.routing.table import Route

_MOST = 100
_depth: ContextVar[int] = ContextVar("core_dev_depth", default=0)


def time_steps(app: App[Any], recorder: Recorder) -> None:
    """Let every step of `app` be recorded in its exchange, around whatever traces the application already."""
    wrap(app, lambda requests, events: _Steps(recorder, requests, events))


class _Steps(Wrapping):
    """Records around the instrument that was there before."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder, requests: Instrument | None, events: EventInstrument | None) -> None:
        super().__init__(requests, events)
        self._recorder = recorder

    def middleware(self, middleware: Middleware[Any, Any], /) -> Middleware[Any, Any]:
        """The same middleware, timed. A logger is left out whose line says less than that of `core dev`."""
        if is_plain(middleware):
            middleware = before(lambda req, res: None, name="logger")
        middleware = super().middleware(middleware)
        info = info_of(middleware)
        if info is not None and info.public:
            return middleware
        name = name_of(middleware)
        if info is not None and info.before is not None:
            return self._before(middleware, info, name)

        async def timed(req: AnyRequest, res: Response, next: Next, /) -> None:
            step = self._begin(name)
            token = _depth.set(_depth.get() + 1)
            try:
                await middleware(req, res, next)
            finally:
                _depth.reset(token)
                self._end(step)

        return in_place_of(middleware, timed)

    def _before(self, middleware: Middleware[Any, Any], info: MiddlewareInfo, name: str) -> Middleware[Any, Any]:
        """A middleware that only looks at the request first: the chain calls its step, so the step is timed."""
        first: Any = info.before

        def step(req: AnyRequest, res: Response) -> Awaitable[object] | None:
            noted = self._begin(name)
            try:
                instead: Awaitable[object] | None = first(req, res)
                return instead
            finally:
                self._end(noted)

        async def same(req: AnyRequest, res: Response, next: Next, /) -> None:
            await middleware(req, res, next)

        own = copy(info)
        own.before = step
        attach_info(same, own)
        return same

    def request(self, run: Run, route: Route | None, /) -> Run:
        """The same chain, which notes its route."""
        chain = super().request(run, route)
        path = None if route is None else route.pattern.text

        def noted(req: AnyRequest, res: Response) -> Awaitable[object]:
            exchange = current.get()
            if exchange is not None and exchange.route is None:
                exchange.route = path
            return chain(req, res)

        return noted

    def _begin(self, name: str) -> RecordedStep | None:
        exchange = current.get()
        if exchange is None or len(exchange.steps) >= _MOST:
            return None
        step = RecordedStep(name, _depth.get(), self._recorder.elapsed(exchange))
        exchange.steps.append(step)
        return step

    def _end(self, step: RecordedStep | None) -> None:
        exchange = current.get()
        if step is not None and exchange is not None:
            step.duration = self._recorder.elapsed(exchange) - step.started
