"""`SpanRecorder`: the spans of a test's calls, to ask how often and in which order bindings were called.

    async def test_a_page_is_one_query(core_client: Client[Env], core_spans: SpanRecorder) -> None:
        await core_client.get("/articles")
        core_spans.at_most(1, "d1")

`Client` traces its requests while the fixture is in use, and the bindings of its Env with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs

from core.app import App
from core.context import Clock, system_clock
from core.spans import AttributeValue, Running, Span, SpanKind, running

__all__ = ["RecordedSpan", "SpanRecorder"]


@attrs.define(eq=False, repr=False)
class RecordedSpan:
    """One span. Times are seconds on the recorder's clock; `ended` is None while it runs."""

    _recorder: SpanRecorder
    name: str
    kind: SpanKind
    attributes: dict[str, AttributeValue]
    started: float
    trace_id: str
    parent_id: str
    span_id: str
    ended: float | None = None
    error: str | None = None
    """The type of the error that ended it."""

    def __repr__(self) -> str:
        return f"<span {self.name}{f' failed with {self.error}' if self.error else ''}>"

    @property
    def traceparent(self) -> str:
        """The span as a `traceparent` header."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def set_attribute(self, name: str, value: AttributeValue, /) -> None:
        """Set one attribute."""
        self.attributes[name] = value

    def end(self, error: BaseException | None = None, /) -> None:
        """End the span. A second call changes nothing."""
        if self.ended is None:
            self.ended = self._recorder.clock.monotonic()
            self.error = None if error is None else type(error).__name__

    @property
    def parent(self) -> RecordedSpan | None:
        """The span it is a child of; None for the first of a trace, and where that was not recorded here."""
        return next((span for span in self._recorder.spans if span.span_id == self.parent_id), None)

    @property
    def children(self) -> list[RecordedSpan]:
        """The spans that belong to it, in the order they began."""
        return [span for span in self._recorder.spans if span.parent_id == self.span_id]


class SpanRecorder:
    """A `core.spans.Tracer` that keeps its spans, in the order they began.

    `clock`: the clock of `started` and `ended`, the machine's by default.
    """

    def __init__(self, *, clock: Clock = system_clock) -> None:
        self.clock: Clock = clock
        self.spans: list[RecordedSpan] = []
        self._undo = ExitStack()

    def __repr__(self) -> str:
        return f"<SpanRecorder of {len(self.spans)} spans>"

    def start_span(
        self, name: str, /, *, kind: SpanKind, parent: Span | str | None, attributes: Mapping[str, AttributeValue]
    ) -> RecordedSpan:
        """Start a span. See `core.spans.Tracer`."""
        above = parent if isinstance(parent, str) or parent is None else parent.traceparent
        _, trace_id, parent_id, *_ = above.split("-") if above else ("", secrets.token_hex(16), "")
        now, span_id = self.clock.monotonic(), secrets.token_hex(8)
        span = RecordedSpan(self, name, kind, dict(attributes), now, trace_id, parent_id, span_id)
        self.spans.append(span)
        return span

    def attach(self, app: App[Any], env: object) -> None:
        """Trace `app` and the bindings of `env`, until `detach`. An app or binding that is traced already stays so."""
        from core.telemetry.tracing import trace, trace_bindings, untrace

        trace(app, self)
        self._undo.callback(untrace, app)
        self._undo.callback(trace_bindings(env))

    def detach(self) -> None:
        """Trace nothing any more. The spans stay."""
        self._undo.close()

    def clear(self) -> None:
        """Forget the spans so far."""
        self.spans.clear()

    def named(self, name: str) -> list[RecordedSpan]:
        """The spans of this name, such as `d1_all` or `GET /users/:id`, or of a kind of binding: `d1`, `kv`, `r2`."""
        return [span for span in self.spans if span.name == name or span.name.startswith(f"{name}_")]

    def at_most(self, count: int, name: str) -> None:
        """Raise AssertionError, which lists them, when there are more than `count` spans of `name`. See `named`."""
        found = self.named(name)
        if len(found) > count:
            lines = "".join(f"\n  {span.name} {span.attributes.get('db.query.text', '')}".rstrip() for span in found)
            raise AssertionError(f"{len(found)} spans of {name}, and at most {count} are allowed:{lines}")

    def tree(self) -> str:
        """The traces as text: one line for each span, indented below its parent."""
        known = {span.span_id for span in self.spans}

        def lines(span: RecordedSpan, depth: int) -> Iterator[str]:
            yield f"{'  ' * depth}{span.name}"
            for child in span.children:
                yield from lines(child, depth + 1)

        roots = [span for span in self.spans if span.parent_id not in known]
        return "\n".join(line for root in roots for line in lines(root, 0))

    @contextmanager
    def span(self, name: str, /, **attributes: AttributeValue) -> Generator[RecordedSpan]:
        """A span around a part of the test: spans inside belong to it."""
        started = self.start_span(name, kind="internal", parent=None, attributes=attributes)
        token = running.set(Running(self, started))
        try:
            yield started
        finally:
            running.reset(token)
            started.end()
