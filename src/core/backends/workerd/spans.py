"""The spans of an isolate: those of the platform's own tracing, and those that are kept until the supervisor fetches
them, which sends them to a collector.

In the platform's tracing the runtime makes the spans of requests and bindings by itself; only the application's own, of
`req.ctx.span`, are made here. JavaScript does not know Python's tasks, so the parent of a span is kept in Python and
handed over with `withActiveSpan`.

workerd has no way out for spans that may be relied on, and its own know neither routes nor consumers. These have the
names of every other place. What is sent to an object or into a queue while they are kept carries its `traceparent`
along, for our own side to take off again: nothing else runs beside an application there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from core.backends.workerd.conversion import bridge
from core.spans import AttributeValue, Elsewhere, Running, Span, SpanKind, Tracer, is_traceparent, running

PARENT: Final = "__core_traceparent__"
"""The key under which a `traceparent` travels with a call, or with a message."""

_MOST_KEPT: Final = 2048


class IsolateSpan(Span):
    """One span. It is kept when it ends, unless whoever began the trace said that it is not sampled."""

    __slots__ = ("_flags", "_kept", "_tracer")

    def __init__(
        self,
        tracer: IsolateTracer,
        name: str,
        kind: SpanKind,
        parent: Span | str | None,
        attributes: Mapping[str, AttributeValue],
    ) -> None:
        above = parent if isinstance(parent, str) else "" if parent is None else parent.traceparent
        _, trace_id, parent_id, flags, *_ = above.split("-") if above else ("", os.urandom(16).hex(), "", "01")
        ids = {"trace_id": trace_id, "span_id": os.urandom(8).hex(), "parent_id": parent_id}
        self._tracer = tracer
        self._flags: str = flags
        self._span: dict[str, Any] = {"name": name, "kind": kind, **ids, "attributes": dict(attributes)}
        self._span["started"] = time.time_ns()

    @property
    def traceparent(self) -> str:
        return f"00-{self._span['trace_id']}-{self._span['span_id']}-{self._flags}"

    def set_attribute(self, name: str, value: AttributeValue, /) -> None:
        self._span["attributes"][name] = value

    def end(self, error: BaseException | None = None, /) -> None:
        if error is not None:
            self.set_attribute("error.type", type(error).__name__)
        if int(self._flags, 16) & 1:
            self._tracer.keep({**self._span, "ended": time.time_ns(), "failed": error is not None})


class IsolateTracer(Tracer):
    """A `core.spans.Tracer` that keeps what has ended until it is taken, the first 2048 of it."""

    current: ClassVar[IsolateTracer | None] = None
    """The one of this isolate, where the supervisor collects spans."""

    def __init__(self) -> None:
        self._ended: list[dict[str, object]] = []

    def start_span(
        self, name: str, /, *, kind: SpanKind, parent: Span | str | None, attributes: Mapping[str, AttributeValue]
    ) -> IsolateSpan:
        return IsolateSpan(self, name, kind, parent, attributes)

    def keep(self, span: dict[str, object]) -> None:
        if len(self._ended) < _MOST_KEPT:
            self._ended.append(span)

    def taken(self) -> list[dict[str, object]]:
        """Those kept so far, for the last time."""
        ended, self._ended = self._ended, []
        return ended


def parent_to_send() -> str:
    """The `traceparent` to send along with a call or a message; empty where the supervisor collects no spans."""
    above = running.get()
    return above.span.traceparent if above is not None and isinstance(above.tracer, IsolateTracer) else ""


def follow(parent: str | None) -> None:
    """Let the spans of the task that runs belong to the span `parent`, which came along with a call."""
    tracer = IsolateTracer.current
    if tracer is not None and parent and is_traceparent(parent):
        running.set(Running(tracer, Elsewhere(parent)))


# The platform's own ---------------------------------------------------------------------------------------------------


class PlatformSpan(Span):
    __slots__ = ("js",)

    def __init__(self, js: object) -> None:
        self.js: Any = js

    @property
    def traceparent(self) -> str:
        """The span as a `traceparent` header; empty where the runtime does not tell its ids."""
        context = self.js.spanContext() if hasattr(self.js, "spanContext") else None
        trace_id, span_id = getattr(context, "traceId", ""), getattr(context, "spanId", "")
        return f"00-{trace_id}-{span_id}-01" if trace_id and span_id else ""

    def set_attribute(self, name: str, value: AttributeValue, /) -> None:
        self.js.setAttribute(name, value)

    def end(self, error: BaseException | None = None, /) -> None:
        if error is not None:
            self.js.setAttribute("error.type", type(error).__name__)
        self.js.end()


class PlatformTracer(Tracer):
    """A `core.spans.Tracer` over `tracing`, which the runtime's execution context carries."""

    __slots__ = ("_tracing",)

    def __init__(self, tracing: Any) -> None:
        self._tracing = tracing

    def start_span(
        self, name: str, /, *, kind: SpanKind, parent: Span | str | None, attributes: Mapping[str, AttributeValue]
    ) -> PlatformSpan:
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
