"""Sends the spans of an application to a collector of OpenTelemetry, over OTLP.

The hosts for CPython do it where `OTEL_EXPORTER_OTLP_ENDPOINT` is set; without it nothing here is imported. All else is
named in OpenTelemetry's own variables, such as `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER` and
`OTEL_EXPORTER_OTLP_HEADERS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import attrs

from core.app import App
from core.errors import MissingExtraError
from core.spans import AttributeValue, Span, SpanKind, Tracer
from core.telemetry.tracing import trace, trace_bindings

try:
    from opentelemetry import trace as otel
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import Decision
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    raise MissingExtraError(
        "core.hosts.otel sends spans, and is loaded where OTEL_EXPORTER_OTLP_ENDPOINT is set. Install what it needs: "
        "pip install 'core-edge[otel]'"
    ) from None

__all__ = ["OtelSpan", "OtelTracer", "export", "send"]

_propagator = TraceContextTextMapPropagator()


@attrs.frozen(eq=False)
class OtelSpan:
    """A span of OpenTelemetry."""

    span: otel.Span

    @property
    def traceparent(self) -> str:
        """The span as a `traceparent` header."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, otel.set_span_in_context(self.span))
        return carrier.get("traceparent", "")

    def set_attribute(self, name: str, value: AttributeValue, /) -> None:
        """Set one attribute."""
        self.span.set_attribute(name, value)

    def end(self, error: BaseException | None = None, /) -> None:
        """End the span, as failed where there is an error: its type is kept and its message is not."""
        if error is not None:
            self.span.set_attribute("error.type", type(error).__name__)
            self.span.set_status(otel.StatusCode.ERROR)
        self.span.end()


@attrs.frozen(eq=False)
class OtelTracer:
    """A `core.spans.Tracer` over one of OpenTelemetry's."""

    _tracer: otel.Tracer

    def start_span(
        self, name: str, /, *, kind: SpanKind, parent: Span | str | None, attributes: Mapping[str, AttributeValue]
    ) -> OtelSpan:
        """Start a span. See `Tracer.start_span`."""
        context = otel.set_span_in_context(otel.INVALID_SPAN)
        if isinstance(parent, OtelSpan):
            context = otel.set_span_in_context(parent.span)
        elif isinstance(parent, str):
            context = _propagator.extract({"traceparent": parent})
        return OtelSpan(self._tracer.start_span(name, context, otel.SpanKind[kind.upper()], attributes))


@cache
def _sender() -> tuple[TracerProvider, BatchSpanProcessor]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider, processor = TracerProvider(), BatchSpanProcessor(OTLPSpanExporter())
    provider.add_span_processor(processor)
    return provider, processor


def export(app: App[Any], env: object) -> Tracer:
    """Send the spans of `app` and of the bindings in `env` to the collector that the environment names.

    Spans not sent yet when the process ends are sent then. Raises MissingExtraError without the extra `otel`.
    """
    tracer = OtelTracer(_sender()[0].get_tracer("core-edge"))
    trace(app, tracer)
    trace_bindings(env)
    return tracer


def send(spans: Iterable[Mapping[str, Any]], /) -> None:
    """Send spans that ended in workerd, as its isolate gives them to the supervisor, to the same collector."""
    provider, processor = _sender()
    for span in spans:
        trace_id, kind = int(span["trace_id"], 16), otel.SpanKind[span["kind"].upper()]
        sampled = provider.sampler.should_sample(None, trace_id, span["name"], kind, span["attributes"])
        if sampled.decision is not Decision.RECORD_AND_SAMPLE:
            continue
        flags = otel.TraceFlags(otel.TraceFlags.SAMPLED)
        above = span["parent_id"]
        processor.on_end(
            ReadableSpan(
                span["name"],
                otel.SpanContext(trace_id, int(span["span_id"], 16), is_remote=False, trace_flags=flags),
                otel.SpanContext(trace_id, int(above, 16), is_remote=True, trace_flags=flags) if above else None,
                provider.resource,
                span["attributes"],
                kind=kind,
                status=otel.Status(otel.StatusCode.ERROR if span["failed"] else otel.StatusCode.UNSET),
                start_time=span["started"],
                end_time=span["ended"],
                instrumentation_scope=InstrumentationScope("core-edge"),
            )
        )
