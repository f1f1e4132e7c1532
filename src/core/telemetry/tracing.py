"""Traces requests, middleware, consumers, schedules and every call of a binding, under the platform's own names.

    trace(app, tracer)
    trace_bindings(env, tracer)

The names are those that workerd itself gives (`d1_all`, `kv_get`, `r2_put`), so that a trace from a laptop and one from
the platform read alike. A span carries the route's template and never the path, the statement's text and never its
values, no key, no query and no body. Nothing here is imported where nothing traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.bindings.calls import BindingCall, BoundHook, Hookable, Proceed, add_hook, has_hook
from core.bindings.kinds import bindings_of
from core.dispatch.instruments import Instrument, Run, Work, in_place_of
from core.handlers import info_of, name_of
from core.spans import AttributeValue, Elsewhere, Running, RunningSpan, Span, SpanKind, Tracer, is_traceparent, running
from core.types import Middleware, Next

if TYPE_CHECKING:
    from core.app import App
    from core.bindings.queue import MessageBatch
    from core.context import ScheduledEvent
    from core.request import AnyRequest
    from core.response import Response
    from core.routing.table import Route

__all__ = ["BINDING_SPANS", "BindingSpans", "trace", "trace_bindings", "untrace"]


class BindingSpans(NamedTuple):
    """The spans of one kind of binding. `prefix` and a method's name on the platform are the span's name.

    `type` is `cloudflare.binding.type`, `system` is `db.system.name`. `methods` maps our names to the platform's where
    they differ by more than `get_with_metadata` and `getWithMetadata`. `single` is the name of every span of the kind.
    """

    prefix: str
    type: str
    system: str = ""
    methods: Mapping[str, str] = {}
    single: str = ""
    kind: SpanKind = "client"


BINDING_SPANS: Final[Mapping[str, BindingSpans]] = {
    "kv": BindingSpans("kv", "KV", "cloudflare-kv"),
    "d1": BindingSpans("d1", "D1", "cloudflare-d1", {"raw": "all"}),
    "r2": BindingSpans("r2", "r2"),
    "queue": BindingSpans("queue", "Queue", methods={"send_batch": "send"}, kind="producer"),
    "ai": BindingSpans("ai", "AI"),
    "durable_object": BindingSpans("durable_object", "DurableObject", single="durable_object_subrequest"),
    "vectorize": BindingSpans("vectorize", "Vectorize"),
    "images": BindingSpans("images", "Images"),
    "workflow": BindingSpans("workflow", "Workflow"),
    "service": BindingSpans("service", "Service", single="fetch"),
    "assets": BindingSpans("assets", "Assets", single="fetch"),
}
"""By kind of binding, as workerd's source has them; a kind that is not here is named after itself."""


def trace(app: App[Any], tracer: Tracer, /) -> None:
    """Let `tracer` see every request, message batch and scheduled event of `app`. A second call replaces the first.

    Other instruments, such as metrics, stay.
    """
    untrace(app)
    app.add_instrument(_Traces(tracer))


def untrace(app: App[Any], /) -> None:
    """Trace `app` no more. Other instruments stay."""
    app.instruments[:] = [instrument for instrument in app.instruments if not isinstance(instrument, _Traces)]
    app.dispatcher.finder.reload()


def trace_bindings(env: object, /) -> Callable[[], None]:
    """Let every call of a binding in `env` be a child of the span that is running.

    `env` is an Env, or anything with the bindings as attributes. Outside a trace a call has no span. A binding that is
    traced already stays as it is. Returns a function that takes the hooks away again.
    """
    hooked: list[tuple[Hookable, BoundHook | None]] = []
    for name, kind, binding in bindings_of(env):
        if isinstance(binding, Hookable) and not has_hook(binding, _trace_call):
            hooked.append((binding, binding._hook))
            add_hook(binding, _trace_call, name=name, kind=kind)

    def restore() -> None:
        for binding, hook in hooked:
            binding._hook = hook

    return restore


async def _trace_call(call: BindingCall, proceed: Proceed, /) -> object:
    above = running.get()
    if above is None:
        return await proceed()
    spans = BINDING_SPANS.get(call.kind, BindingSpans(call.kind, call.kind))
    method = spans.methods.get(call.method, call.method)
    head, *rest = method.split("_")
    operation = head + "".join(word.title() for word in rest)
    attributes: dict[str, AttributeValue] = {
        "cloudflare.binding.name": call.binding,
        "cloudflare.binding.type": spans.type,
    }
    if spans.system:
        attributes["db.system.name"] = spans.system
        attributes["db.operation.name"] = operation
    if call.kind == "d1":
        _describe_statements(call, attributes)
    elif spans.single:
        attributes["rpc.method"] = call.method
    name = spans.single or f"{spans.prefix}_{operation}"
    with RunningSpan(name, attributes, spans.kind) as current:
        result = await proceed()
        _describe_result(call, result, current)
    return result


def _describe_statements(call: BindingCall, attributes: dict[str, AttributeValue]) -> None:
    if call.target:
        attributes["db.query.text"] = str(call.target[0])
    elif call.method == "batch" and call.args and isinstance(call.args[0], (list, tuple)):
        statements: list[object] = [*call.args[0]]
        attributes["db.operation.batch.size"] = len(statements)
        attributes["db.query.text"] = "\n".join(str(getattr(statement, "sql", "")) for statement in statements)
    # Of `exec` there is no string: it may hold values, since nothing can be bound to it.


def _describe_result(call: BindingCall, result: object, current: Span) -> None:
    """The rows that a statement read and wrote, which a database bills."""
    results: list[object] = [*result] if isinstance(result, (list, tuple)) else [result]
    metas = [meta for each in results if (meta := getattr(each, "meta", None)) is not None]
    if call.kind == "d1" and metas:
        current.set_attribute("cloudflare.d1.response.rows_read", sum(meta.rows_read for meta in metas))
        current.set_attribute("cloudflare.d1.response.rows_written", sum(meta.rows_written for meta in metas))


class _Traces(Instrument):
    __slots__ = ("tracer",)

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def middleware(self, middleware: Middleware[Any, Any], /) -> Middleware[Any, Any]:
        """The same middleware, in a span of its name. A middleware that is not a step of its own stays as it is."""
        info = info_of(middleware)
        if info is not None and (info.public or info.before is not None):
            return middleware
        name = name_of(middleware)

        async def traced(req: AnyRequest, res: Response, next: Next, /) -> None:
            with RunningSpan(name, {"core.middleware": name}):
                await middleware(req, res, next)

        return in_place_of(middleware, traced)

    def request(self, run: Run, route: Route | None, /) -> Run:
        """The same chain, in the span of its request, which ends when the response is finalized."""
        tracer = self.tracer
        pattern = None if route is None else route.pattern.text

        async def traced(req: AnyRequest, res: Response) -> object:
            attributes: dict[str, AttributeValue] = {
                "faas.trigger": "http",
                "http.request.method": req.method,
                "url.scheme": req.url.partition(":")[0],
            }
            if pattern is not None:
                attributes["http.route"] = pattern
            came = req.header("traceparent")
            above = running.get()
            parent = above.parent if above is not None else came if came and is_traceparent(came) else None
            name = req.method if pattern is None else f"{req.method} {pattern}"
            started = tracer.start_span(name, kind="server", parent=parent, attributes=attributes)
            res.tokens = (running, running.set(Running(tracer, started)), res.tokens)
            failure: list[BaseException] = []

            def end(req: AnyRequest, status: int, duration_ms: float) -> None:
                started.set_attribute("http.response.status_code", status)
                if status >= 500 and not failure:
                    started.set_attribute("error.type", str(status))
                started.end(failure[0] if status >= 500 and failure else None)

            res.on_finalize(end)
            try:
                return await run(req, res)
            except Exception as error:
                failure.append(error)
                raise
            except BaseException as error:  # cancelled: no response is finalized, and no hook runs
                started.end(error)
                raise

        return traced

    def batch(self, batch: MessageBatch[Any], run: Work, /) -> Work:
        """The same consumer in a span of its queue, in the trace that sent the messages where it is one."""
        attributes: dict[str, AttributeValue] = {
            "faas.trigger": "pubsub",
            "cloudflare.queue.name": batch.queue,
            "cloudflare.queue.batch_size": len(batch.messages),
        }
        sent_by: list[str] = [*getattr(batch, "traceparents", ())]
        traces = {traceparent.split("-")[1] for traceparent in sent_by if is_traceparent(traceparent)}
        parent = sent_by[0] if len(traces) == 1 else None
        return partial(self._event, f"queue {batch.queue}", "consumer", attributes, run, parent)

    def scheduled(self, event: ScheduledEvent, run: Work, /) -> Work:
        """The same handler in a span of its cron expression."""
        attributes: dict[str, AttributeValue] = {
            "faas.trigger": "timer",
            "faas.cron": event.cron,
            "cloudflare.scheduled_time": int(event.scheduled_time * 1000),
        }
        return partial(self._event, f"scheduled {event.cron}", "internal", attributes, run)

    def alarm(self, name: str, run: Work, /) -> Work:
        """The same alarm of a Durable Object in a span of its class, which begins a trace."""
        attributes: dict[str, AttributeValue] = {"faas.trigger": "timer", "core.durable_object": name}
        return partial(self._event, f"alarm {name}", "internal", attributes, run)

    async def _event(
        self, name: str, kind: SpanKind, attributes: Mapping[str, AttributeValue], run: Work, parent: str | None = None
    ) -> None:
        token = running.set(None if parent is None else Running(self.tracer, Elsewhere(parent)))
        try:
            with RunningSpan(name, attributes, kind, root=self.tracer):
                await run()
        finally:
            running.reset(token)
