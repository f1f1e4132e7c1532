"""Numbers in OpenMetrics: what is counted, under which labels, and that a parser of the format reads them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.support import openmetrics
from tests.support.fetch import PlainContext

from core import (
    Bindings,
    CoreError,
    ExecutionContext,
    KVNamespace,
    MessageBatch,
    Request,
    Response,
    ScheduledEvent,
    create_app,
    http,
)
from core.backends.embedded.queue import Delivery
from core.http.websocket import WebSocket, WebSocketClosed
from core.telemetry.metrics import FAMILIES, Meter, Snapshot, add_up, exposition, measure
from core.testing import Client, SpanRecorder, env

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace


def make_client() -> Client[Env]:
    app = create_app(Env)

    @app.get("/users/:id")
    async def user(req: Request[Env], res: Response) -> None:
        res.json(await req.env.KV.get(req.params["id"]))

    @app.get("/refused")
    async def refused(req: Request[Env], res: Response) -> None:
        raise CoreError(403, "No")

    @app.get("/waits")
    async def waits(req: Request[Env], res: Response) -> None:
        await asyncio.Event().wait()

    @app.websocket("/echo")
    async def echo(req: Request[Env], socket: WebSocket) -> None:
        async for message in socket:
            await socket.send(message)

    @app.queue("jobs")
    async def jobs(batch: MessageBatch[int], env: Env, ctx: ExecutionContext) -> None:
        raise ValueError

    @app.scheduled("0 * * * *")
    async def hourly(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
        await env.KV.put("hour", "1")

    return Client(app, env(Env))


def samples(*snapshots: Snapshot) -> dict[tuple[str, str], float]:
    """Every sample of an exposition by its name and labels, read by the format's own parser."""
    return openmetrics.samples(exposition(snapshots))


async def test_requests_are_counted_by_route_method_and_status_and_never_by_path() -> None:
    client, meter = make_client(), Meter()
    measure(client.app, client.env, meter)
    for path in ("/users/secret-1", "/users/secret-2", "/refused", "/secret-3"):
        await client.get(path)
    await client.request("BREW", "/users/1")
    text = exposition([meter.snapshot()])
    assert "secret" not in text
    found = samples(meter.snapshot())
    assert found["core_http_requests_total", "method=GET,route=/users/:id,status=200"] == 2
    assert found["core_http_requests_total", "method=GET,route=/refused,status=403"] == 1
    assert found["core_http_requests_total", "method=GET,route=unmatched,status=404"] == 1
    assert found["core_http_requests_total", "method=other,route=unmatched,status=404"] == 1
    assert found["core_http_request_duration_seconds_count", "method=GET,route=/users/:id"] == 2
    assert found["core_http_request_duration_seconds_bucket", "le=+Inf,method=GET,route=/users/:id"] == 2
    assert found["core_binding_calls_total", "binding=KV,kind=kv,method=get,outcome=ok"] == 2


async def test_a_cancelled_request_is_counted_too() -> None:
    client, meter = make_client(), Meter()
    measure(client.app, client.env, meter)
    waiting = asyncio.ensure_future(client.get("/waits"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert samples(meter.snapshot())["core_http_requests_total", "method=GET,route=/waits,status=499"] == 1


@pytest.mark.parametrize("stray", [SystemExit(3), KeyboardInterrupt()], ids=["answered", "raised"])
async def test_a_handler_that_raises_what_is_no_exception_is_counted_once_as_500(stray: BaseException) -> None:
    app, meter = create_app(), Meter()

    @app.get("/")
    async def handler(req: Request[Any], res: Response) -> None:
        raise stray

    measure(app, None, meter)
    with contextlib.suppress(KeyboardInterrupt, StopIteration):
        # Stepped by hand: a task would hand the error to the loop, and end the tests.
        app.fetch(http.Request("https://example.test/"), None, PlainContext()).send(None)
    found = samples(meter.snapshot())
    counted = {labels: count for (name, labels), count in found.items() if name == "core_http_requests_total"}
    assert counted == {"method=GET,route=/,status=500": 1}


async def test_sockets_batches_and_crons_are_counted() -> None:
    client, meter = make_client(), Meter()
    measure(client.app, client.env, meter)
    socket = await client.websocket("/echo")
    await socket.send("a")
    assert await socket.receive() == "a"
    assert samples(meter.snapshot())["core_websockets_open", ""] == 1
    await socket.close()
    with pytest.raises(WebSocketClosed):
        await socket.receive()
    await asyncio.sleep(0)
    batch: Delivery[int] = Delivery("jobs")
    with pytest.raises(ValueError):  # noqa: PT011 - the consumer's own
        await client.app.consume(batch, client.env, client.ctx)
    await client.app.trigger(ScheduledEvent("0 * * * *", 0), client.env, client.ctx)
    found = samples(meter.snapshot())
    assert found["core_websockets_open", ""] == 0
    assert found["core_queue_batches_total", "outcome=error,queue=jobs"] == 1
    assert found["core_cron_runs_total", "cron=0 * * * *,outcome=ok"] == 1
    assert found["core_binding_calls_total", "binding=KV,kind=kv,method=put,outcome=ok"] == 1


async def test_an_application_is_traced_and_measured_at_once() -> None:
    client, meter, recorder = make_client(), Meter(), SpanRecorder()
    recorder.attach(client.app, client.env)
    measure(client.app, client.env, meter)
    await client.get("/users/1")
    assert [span.name for span in recorder.named("GET /users/:id")] == ["GET /users/:id"]
    assert samples(meter.snapshot())["core_http_requests_total", "method=GET,route=/users/:id,status=200"] == 1


def test_numbers_of_processes_add_up_and_counters_outlive_them() -> None:
    first, second = Meter(), Meter()
    for meter, count in ((first, 1), (second, 2)):
        meter.add("core_http_requests", "GET", "/", "200", by=count)
        meter.observe("core_http_request_duration_seconds", "GET", "/", seconds=0.02 * count)
        meter.add("core_websockets_open", by=count)
    crossed: Snapshot = json.loads(json.dumps(first.snapshot()))
    found = samples(crossed, second.snapshot())
    assert found["core_http_requests_total", "method=GET,route=/,status=200"] == 3
    assert found["core_websockets_open", ""] == 3
    assert found["core_http_request_duration_seconds_bucket", "le=0.025,method=GET,route=/"] == 1
    assert found["core_http_request_duration_seconds_bucket", "le=0.05,method=GET,route=/"] == 2
    assert found["core_http_request_duration_seconds_sum", "method=GET,route=/"] == pytest.approx(0.06)
    left = samples(add_up([crossed], gauges=False))
    assert left["core_http_requests_total", "method=GET,route=/,status=200"] == 1
    assert ("core_websockets_open", "") not in left


def test_a_label_may_hold_any_text() -> None:
    meter = Meter()
    meter.add("core_http_requests", "GET", 'a"b\\c\nd', "200")
    ((name, labels),) = samples(meter.snapshot())
    assert (name, labels) == ("core_http_requests_total", 'method=GET,route=a"b\\c\nd,status=200')


def test_the_page_has_every_metric_with_its_type_and_labels() -> None:
    suffix = {"counter": "_total", "info": "_info"}
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [row[:3] for row in rows] == [
        (family.name + suffix.get(family.type, ""), family.type, ", ".join(f"`{label}`" for label in family.labels))
        for family in FAMILIES.values()
    ]
    assert [row[3] for row in rows] == [family.help for family in FAMILIES.values()]


def test_names_follow_the_conventions_of_the_format() -> None:
    for name, family in FAMILIES.items():
        assert name == family.name
        assert re.fullmatch(r"core(_[a-z]+)+", name)
        assert not name.endswith(("_total", "_info", "_count", "_sum", "_bucket"))
        if "duration" in name or "age" in name.split("_"):
            assert name.endswith("_seconds")


def all_families() -> Snapshot:
    meter: Any = Meter()
    for family in FAMILIES.values():
        labels = ["x"] * len(family.labels)
        if family.type == "histogram":
            meter.observe(family.name, *labels, seconds=1.0)
        elif family.type == "counter":
            meter.add(family.name, *labels)
        else:
            meter.set(family.name, *labels, to=1)
    return dict(meter.snapshot())


def test_every_family_is_read_by_the_parser_of_the_format() -> None:
    assert openmetrics.families(exposition([all_families()])) == {
        family.name: family.type for family in FAMILIES.values()
    }
