"""Spans: what belongs to what, under which names, and what is never in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import attrs
import pytest

from core import (
    App,
    Bindings,
    CoreError,
    D1Database,
    DurableObject,
    DurableObjectNamespace,
    ExecutionContext,
    KVNamespace,
    MessageBatch,
    Next,
    Queue,
    R2Bucket,
    Request,
    Response,
    ScheduledEvent,
    http,
)
from core.context import Spans
from core.spans import NO_SPAN, current_traceparent, is_traceparent, running, span
from core.telemetry.metrics import Meter, measure
from core.telemetry.tracing import trace, trace_bindings, untrace
from core.testing import (
    Client,
    FakeD1Database,
    FakeDurableObjectNamespace,
    FakeExecutionContext,
    FakeQueue,
    SpanRecorder,
    env,
)

SECRET = "only-the-user-may-see-this"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Stock(DurableObject[Any]):
    async def take(self, count: int) -> int:
        left = (await self.ctx.storage.get("left") or 10) - count
        await self.ctx.storage.put("left", left)
        with span("count what is left"):
            return int(left)


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    CACHE: KVNamespace
    FILES: R2Bucket
    JOBS: Queue[dict[str, int]]
    STOCK: DurableObjectNamespace[Stock]


def make_app() -> App[Env]:
    app = App(Env)

    @app.use
    async def guard(req: Request[Env, object, str], res: Response, next: Next) -> None:
        await req.env.CACHE.get(SECRET)
        await next()

    @app.post("/orders/:id")
    async def order(req: Request[Env], res: Response) -> None:
        note = await req.text()
        await req.env.DB.prepare("INSERT INTO orders (note) VALUES (?)").bind(note).run()
        await req.env.STOCK.get_by_name("tea").take(2)
        await req.env.JOBS.send({"order": 1})
        with req.ctx.span("thank", order=1) as current:
            current.set_attribute("thanks", True)
        res.status(201).json({"left": 8})

    @app.get("/fails")
    async def fails(req: Request[Env], res: Response) -> None:
        raise ValueError(SECRET)

    @app.get("/refuses")
    async def refuses(req: Request[Env], res: Response) -> None:
        raise CoreError(403, "Forbidden")

    @app.get("/waits")
    async def waits(req: Request[Env], res: Response) -> None:
        await asyncio.Event().wait()

    @app.get("/traceparent")
    async def traceparent(req: Request[Env], res: Response) -> None:
        res.text(current_traceparent())

    @app.queue("jobs")
    async def work(batch: MessageBatch[dict[str, int]], env: Env, ctx: ExecutionContext) -> None:
        await env.FILES.put("done", b"1")

    @app.scheduled("0 * * * *")
    async def hourly(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
        await env.CACHE.list()

    return app


@pytest.fixture
async def traced() -> AsyncIterator[tuple[Client[Env], SpanRecorder]]:
    database = FakeD1Database()
    await database.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT NOT NULL);")
    recorder = SpanRecorder()
    bindings = env(Env, DB=database, STOCK=FakeDurableObjectNamespace(Stock), JOBS=FakeQueue("jobs"))
    client = Client(make_app(), bindings)
    recorder.attach(client.app, client.env)
    yield client, recorder
    recorder.detach()


Traced = tuple[Client[Env], SpanRecorder]


async def test_a_request_is_one_trace_of_middleware_bindings_and_spans_of_ones_own(traced: Traced) -> None:
    client, recorder = traced
    response = await client.post("/orders/7?token=" + SECRET, body=SECRET.encode())
    assert response.status == 201
    assert recorder.tree() == (
        "POST /orders/:id\n"
        "  make_app.<locals>.guard\n"
        "    kv_get\n"
        "    d1_run\n"
        "    durable_object_subrequest\n"
        "      count what is left\n"
        "    queue_send\n"
        "    thank"
    ).replace("make_app.<locals>.", "")
    assert len({each.trace_id for each in recorder.spans}) == 1
    assert all(each.ended is not None for each in recorder.spans)


async def test_attributes_follow_the_platform_and_hold_no_value_of_the_users(traced: Traced) -> None:
    client, recorder = traced
    await client.post("/orders/7?token=" + SECRET, body=SECRET.encode())
    request, _, kv, d1, stock, _, queue, thank = recorder.spans
    assert request.kind == "server"
    assert request.attributes == {
        "faas.trigger": "http",
        "http.request.method": "POST",
        "http.route": "/orders/:id",
        "http.response.status_code": 201,
        "url.scheme": "https",
    }
    assert kv.attributes == {
        "cloudflare.binding.name": "CACHE",
        "cloudflare.binding.type": "KV",
        "db.system.name": "cloudflare-kv",
        "db.operation.name": "get",
    }
    assert d1.attributes["db.query.text"] == "INSERT INTO orders (note) VALUES (?)"
    assert d1.attributes["cloudflare.d1.response.rows_written"] == 1
    assert stock.attributes["rpc.method"] == "take"
    assert queue.kind == "producer"
    assert thank.attributes == {"order": 1, "thanks": True}
    everything = repr([(each.name, each.attributes) for each in recorder.spans])
    assert SECRET not in everything
    assert "/orders/7" not in everything


async def test_a_failure_marks_the_request_and_the_middleware_and_says_its_type_alone(traced: Traced) -> None:
    client, recorder = traced
    assert (await client.get("/fails")).status == 500
    request = recorder.named("GET /fails")[0]
    assert request.error == "ValueError"
    assert request.attributes["http.response.status_code"] == 500
    assert SECRET not in repr([each.attributes for each in recorder.spans])


async def test_a_refusal_is_no_failure_of_the_request(traced: Traced) -> None:
    client, recorder = traced
    assert (await client.get("/refuses")).status == 403
    request = recorder.named("GET /refuses")[0]
    assert (request.error, request.attributes["http.response.status_code"]) == (None, 403)


async def test_a_path_without_a_route_is_named_after_the_method_alone(traced: Traced) -> None:
    client, recorder = traced
    for path in (f"/{SECRET}", "/%zz"):
        recorder.clear()
        await client.get(path)
        request = recorder.spans[0]
        assert request.name == "GET"
        assert "http.route" not in request.attributes
        assert request.ended is not None


async def test_a_request_that_is_cancelled_ends_its_span(traced: Traced) -> None:
    client, recorder = traced
    task = asyncio.create_task(client.get("/waits"))
    for _ in range(100):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.named("GET /waits")[0].error == "CancelledError"


async def test_nothing_is_running_after_a_request(traced: Traced) -> None:
    client, _ = traced
    await client.app.fetch(http.Request("https://example.test/fails"), client.env, FakeExecutionContext())
    assert running.get() is None


async def test_a_traceparent_from_outside_is_the_parent_and_goes_out_again(traced: Traced) -> None:
    client, recorder = traced
    response = await client.get("/traceparent", headers={"traceparent": PARENT})
    request = recorder.named("GET /traceparent")[0]
    assert (request.trace_id, request.parent_id) == (PARENT[3:35], PARENT[36:52])
    assert (await response.text()).startswith(f"00-{request.trace_id}-")


@pytest.mark.parametrize(
    "came", ["", "nonsense", PARENT.upper(), "ff" + PARENT[2:], PARENT[:3] + "0" * 32 + PARENT[35:], PARENT + "-more"]
)
async def test_a_malformed_traceparent_begins_a_trace_of_its_own(traced: Traced, came: str) -> None:
    client, recorder = traced
    await client.get("/traceparent", headers={"traceparent": came})
    assert not is_traceparent(came)
    assert recorder.named("GET /traceparent")[0].parent_id == ""


async def test_a_batch_belongs_to_the_trace_that_sent_its_messages(traced: Traced) -> None:
    client, recorder = traced
    await client.post("/orders/7", body=b"x")
    sent = recorder.named("queue_send")[0]
    jobs: Any = client.env.JOBS

    async def consume(batch: MessageBatch[Any]) -> None:
        await client.app.consume(batch, client.env, FakeExecutionContext())

    await jobs.deliver(consume)
    consumed = recorder.named("queue jobs")[0]
    assert (consumed.trace_id, consumed.parent_id) == (sent.trace_id, sent.span_id)
    assert [child.name for child in consumed.children] == ["r2_put"]
    assert consumed.attributes["cloudflare.queue.batch_size"] == 1


async def test_a_scheduled_event_is_a_trace(traced: Traced) -> None:
    client, recorder = traced
    await client.app.trigger(ScheduledEvent("0 * * * *", 60.0), client.env, FakeExecutionContext())
    assert recorder.tree() == "scheduled 0 * * * *\n  kv_list"
    assert recorder.spans[0].attributes["cloudflare.scheduled_time"] == 60_000


async def test_without_a_trace_a_span_does_nothing_and_bindings_have_none(traced: Traced) -> None:
    client, recorder = traced
    with span("alone", size=1) as current:
        assert current is NO_SPAN
    await client.env.CACHE.get("a")
    assert recorder.spans == []
    assert current_traceparent() == ""


async def test_spans_of_tasks_at_once_keep_their_own_parents(traced: Traced) -> None:
    _, recorder = traced

    async def task(name: str) -> None:
        with span(name):
            await asyncio.sleep(0)
            with span(f"inside {name}"):
                await asyncio.sleep(0)

    with recorder.span("all"):
        await asyncio.gather(task("a"), task("b"))
    assert recorder.tree() == "all\n  a\n    inside a\n  b\n    inside b"


async def test_what_is_untraced_is_as_it_was() -> None:
    app, recorder = make_app(), SpanRecorder()
    bindings = env(Env, STOCK=FakeDurableObjectNamespace(Stock))
    trace(app, recorder)
    restore = trace_bindings(bindings)
    untrace(app)
    restore()
    await Client(app, bindings).get("/refuses")
    with recorder.span("test"):
        await bindings.CACHE.get("a")
    assert [each.name for each in recorder.spans] == ["test"]


@pytest.mark.parametrize("order", ["measure trace", "trace measure"])
async def test_a_tracer_and_other_instruments_leave_each_other_alone(order: str) -> None:
    app, meter, first, second = make_app(), Meter(), SpanRecorder(), SpanRecorder()
    for step in order.split():
        trace(app, first) if step == "trace" else measure(app, None, meter)
    client = Client(app, env(Env, STOCK=FakeDurableObjectNamespace(Stock)))

    def seen() -> tuple[int, int, float]:
        counted = sum(values[0] for _, values in meter.snapshot()["core_http_requests"])
        return len(first.spans), len(second.spans), counted

    await client.get("/refuses")
    traced = len(first.spans)
    assert seen() == (traced, 0, 1)
    assert traced > 0
    trace(app, second)
    await client.get("/refuses")
    assert seen() == (traced, traced, 2)
    untrace(app)
    await client.get("/refuses")
    assert seen() == (traced, traced, 3)


async def test_a_context_of_ones_own_has_spans_by_its_base_class() -> None:
    class Context(Spans):
        def wait_until(self, awaitable: Awaitable[Any], /) -> None: ...

        def pass_through_on_exception(self) -> None: ...

    app: App[None] = App()

    @app.get("/")
    async def root(req: Request[None], res: Response) -> None:
        with req.ctx.span("own"):
            res.json(req.ctx is context)

    context = Context()
    response = await app.fetch(http.Request("https://example.test/"), None, context)
    assert await response.json() is True


async def test_at_most_lists_what_was_too_much(traced: Traced) -> None:
    client, recorder = traced
    await client.post("/orders/7", body=b"x")
    recorder.at_most(1, "d1")
    with pytest.raises(AssertionError) as raised:
        recorder.at_most(0, "d1")
    assert str(raised.value) == (
        "1 spans of d1, and at most 0 are allowed:\n  d1_run INSERT INTO orders (note) VALUES (?)"
    )


class TestFixture:
    async def test_clients_made_before_and_after_are_traced(self, core_spans: SpanRecorder) -> None:
        await Client(make_app(), env(Env, STOCK=FakeDurableObjectNamespace(Stock))).get("/refuses")
        assert [each.name for each in core_spans.named("kv")] == ["kv_get"]


async def test_a_binding_that_is_traced_twice_has_one_span_for_each_call() -> None:
    client = Client(make_app(), env(Env, STOCK=FakeDurableObjectNamespace(Stock)))
    recorder = SpanRecorder()
    trace(client.app, recorder)
    restore = trace_bindings(client.env)
    again = trace_bindings(client.env)
    await client.get("/refuses")
    assert len(recorder.named("kv")) == 1
    again()
    await client.get("/refuses")
    assert len(recorder.named("kv")) == 2
    restore()
    await client.get("/refuses")
    assert len(recorder.named("kv")) == 2
