"""Spans of the platform's own tracing, which `req.ctx.span` makes in workerd.

The runtime makes the spans of requests and bindings by itself; only the application's own are made here. JavaScript
does not know Python's tasks, so the parent of a span is kept in Python and handed over with `withActiveSpan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.backends.workerd.conversion import bridge
from core.spans import AttributeValue, Span, SpanKind


class PlatformSpan:
    """A span of the runtime."""

    __slots__ = ("js",)

    def __init__(self, js: Any) -> None:
        self.js: Any = js

    @property
    def traceparent(self) -> str:
        """The span as a `traceparent` header; empty where the runtime does not tell its ids."""
        context = self.js.spanContext() if hasattr(self.js, "spanContext") else None
        trace_id, span_id = getattr(context, "traceId", ""), getattr(context, "spanId", "")
        return f"00-{trace_id}-{span_id}-01" if trace_id and span_id else ""

    def set_attribute(self, name: str, value: AttributeValue, /) -> None:
        """Set one attribute."""
        self.js.setAttribute(name, value)

    def end(self, error: BaseException | None = None, /) -> None:
        """End the span, with the type of the error as `error.type`."""
        if error is not None:
            self.js.setAttribute("error.type", type(error).__name__)
        self.js.end()


class PlatformTracer:
    """A `core.spans.Tracer` over `tracing`, which the runtime's execution context carries."""

    __slots__ = ("_tracing",)

    def __init__(self, tracing: Any) -> None:
        self._tracing = tracing

    def start_span(
        self, name: str, /, *, kind: SpanKind, parent: Span | str | None, attributes: Mapping[str, AttributeValue]
    ) -> PlatformSpan:
        """Start a span. See `Tracer.start_span`."""
        tracing = self._tracing
        if isinstance(parent, PlatformSpan):

            def start(*given: object) -> Any:
                return tracing.startSpan(name)

            proxy = bridge().create_proxy(start)
            try:
                span = PlatformSpan(tracing.withActiveSpan(parent.js, proxy))
            finally:
                proxy.destroy()
        else:
            span = PlatformSpan(tracing.startSpan(name))
        for attribute, value in attributes.items():
            span.set_attribute(attribute, value)
        return span
