"""Spans: the name of a part of the work, when it began and ended, and the span it belongs to.

A `Tracer` makes spans, and whoever traces hands one in: `core.telemetry.tracing` for requests and bindings, a test,
OpenTelemetry. The span that is running is in a context variable, so that tasks started meanwhile have it as their
parent. Without a tracer there is none, and `span` costs one look. This file knows no request and no binding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, Literal, Protocol, TypeAlias

__all__ = [
    "AttributeValue",
    "Elsewhere",
    "NO_SPAN",
    "Running",
    "RunningSpan",
    "Span",
    "SpanKind",
    "Tracer",
    "current_traceparent",
    "is_traceparent",
    "running",
    "span",
]

AttributeValue: TypeAlias = str | int | float | bool
SpanKind: TypeAlias = Literal["internal", "server", "client", "producer", "consumer"]
"""The kinds of OpenTelemetry: a request is "server", a call of a binding "client"."""


class Span(Protocol):
    """One part of the work, from its start to `end`."""

    @property
    def traceparent(self) -> str:
        """The span as the header `traceparent` of W3C Trace Context; empty where it has no such form."""
        ...

    def set_attribute(self, name: str, value: AttributeValue, /) -> None:
        """Set one attribute. Names follow OpenTelemetry, such as `http.route`."""
        ...

    def end(self, error: BaseException | None = None, /) -> None:
        """End the span, as failed where there is an error. Only the error's type may be kept, never its message."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def start_span(
        self, name: str, /, *, kind: SpanKind, parent: Span | str | None, attributes: Mapping[str, AttributeValue]
    ) -> Span:
        """Start a span now. `parent` is another span of this tracer, or a `traceparent` that came from outside."""
        ...


class Running:
    """A span that is running, and the tracer that makes its children."""

    __slots__ = ("span", "tracer")

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self.tracer: Tracer = tracer
        self.span: Span = span

    @property
    def parent(self) -> Span | str:
        """The parent that its children are started with: the span, or the `traceparent` of one in another process."""
        return self.span.traceparent if isinstance(self.span, Elsewhere) else self.span


running: ContextVar[Running | None] = ContextVar("running", default=None)
"""The span that is running; None outside every trace."""


class _NoSpan:
    __slots__ = ()
    traceparent = ""

    def set_attribute(self, name: str, value: AttributeValue, /) -> None:
        pass

    def end(self, error: BaseException | None = None, /) -> None:
        pass


class Elsewhere(_NoSpan):
    """A span that runs in another process, which sent its `traceparent` along with the work."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str) -> None:
        self.traceparent: str = traceparent


NO_SPAN: Final[Span] = _NoSpan()
"""Takes everything and keeps nothing: returned by `span` where nothing traces."""


class RunningSpan:
    """Returned by `span`: `with` starts it, ends it, and marks it as failed by an error.

    `root` is the tracer of a span that is not inside another one; without it there is none then.
    """

    __slots__ = ("_attributes", "_kind", "_name", "_root", "_started", "_token")

    def __init__(
        self,
        name: str,
        attributes: Mapping[str, AttributeValue],
        kind: SpanKind = "internal",
        root: Tracer | None = None,
    ) -> None:
        self._name = name
        self._attributes = attributes
        self._kind: SpanKind = kind
        self._root = root
        self._started: Running | None = None
        self._token: Token[Running | None] | None = None

    def __enter__(self) -> Span:
        above = running.get()
        tracer = self._root if above is None else above.tracer
        if tracer is None:
            return NO_SPAN
        parent = None if above is None else above.parent
        started = tracer.start_span(self._name, kind=self._kind, parent=parent, attributes=self._attributes)
        self._started = Running(tracer, started)
        self._token = running.set(self._started)
        return started

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        started, token = self._started, self._token
        if started is not None and token is not None:
            self._started = self._token = None
            running.reset(token)
            started.span.end(error)


def span(name: str, /, **attributes: AttributeValue) -> RunningSpan:
    """A span around a part of your own work, as a child of the span that is running.

        with span("charge", amount=order.amount) as current:
            current.set_attribute("payment.id", await charge(order))

    Where nothing traces it does nothing. `req.ctx.span` is the same, and in workerd the platform's own.
    """
    return RunningSpan(name, attributes)


def current_traceparent() -> str:
    """The running span as a `traceparent` header, for a request to another service; empty where nothing traces."""
    above: Any = running.get()
    return "" if above is None else str(above.span.traceparent)


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


def is_traceparent(value: str) -> bool:
    """Return True if `value` is a `traceparent` as W3C Trace Context, section 3.2, has it: of version 00, nothing
    follows.
    """
    return _TRACEPARENT.fullmatch(value) is not None and (len(value) == 55 or not value.startswith("00"))
