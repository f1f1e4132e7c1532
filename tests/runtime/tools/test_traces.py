"""One order through request, D1, queue, consumer, object and KV: one trace, with the same names in every place."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.collector import Collector
from tests.support.commands import Command, ask, until

from core.bindings.queue import MessageBatch
from core.testing import Client, FakeDurableObjectNamespace, FakeExecutionContext, FakeQueue, SpanRecorder, env

TOML = """\
name = "orders"
main = "main.py"
compatibility_date = "2026-04-01"

[[kv_namespaces]]
binding = "KV"
id = "kv"

[[d1_databases]]
binding = "DB"
database_id = "db"

[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[[queues.consumers]]
queue = "jobs"
max_batch_timeout = 0

[[durable_objects.bindings]]
name = "STOCK"
class_name = "Stock"
"""

MAIN = """\
import attrs

from core import Bindings, D1Database, DurableObject, DurableObjectNamespace, KVNamespace, Queue, create_app
from core.spans import span


class Stock(DurableObject["Env"]):
    async def take(self, note: str) -> None:
        with span("count"):
            await self.env.KV.put(f"secret-{note}", note)

    async def remind(self) -> None:
        await self.ctx.storage.set_alarm(1)

    async def alarm(self, info: object = None) -> None:
        await self.env.KV.put("reminded", "yes")


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    JOBS: Queue[str]
    STOCK: DurableObjectNamespace[Stock]


app = create_app(Env)


@app.post("/orders/:id")
async def order(req, res):
    note = await req.text()
    await req.env.DB.prepare("SELECT ? AS note").bind(note).run()
    await req.env.STOCK.get_by_name("secret").take(note)
    await req.env.STOCK.get_by_name("secret").remind()
    await req.env.JOBS.send(note)
    res.status(201).send()


@app.queue("jobs")
async def work(batch, env, ctx):
    for message in batch.messages:
        await env.STOCK.get_by_name("secret").take(message.body)
"""

TREE = """\
POST /orders/:id
  d1_run
  durable_object_subrequest
    count
      kv_put
  durable_object_subrequest
  queue_send
    queue jobs
      durable_object_subrequest
        count
          kv_put"""

ALARM = """\
alarm Stock
  kv_put"""

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PLACES = {
    "core dev": ["dev", "--port", "0"],
    "core serve --python": ["serve", "--python", "--port", "0", "--health", "127.0.0.1:0", "--workers", "2"],
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return write_orders(tmp_path)


def write_orders(folder: Path) -> Path:
    """The application, in a folder."""
    (folder / "wrangler.toml").write_text(TOML)
    (folder / "main.py").write_text(MAIN)
    return folder


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


async def test_an_order_on_the_fakes(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("orders_main", orders / "main.py")
    assert spec is not None
    assert spec.loader is not None
    main: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "orders_main", main)
    spec.loader.exec_module(main)
    queue = FakeQueue[str]("jobs")
    stock = FakeDurableObjectNamespace[Any](main.Stock)
    client = Client[Any](main.app, env(main.Env, JOBS=queue, STOCK=stock))
    stock.objects.env = client.env
    recorder = SpanRecorder()
    recorder.attach(client.app, client.env)
    assert (await client.post("/orders/7?q=secret", body=b"secret", headers={"traceparent": PARENT})).status == 201

    async def consume(batch: MessageBatch[str]) -> None:
        await client.app.consume(batch, client.env, FakeExecutionContext())

    await queue.deliver(consume)
    recorder.detach()
    await stock.close()
    assert recorder.tree() == TREE
    assert {span.trace_id for span in recorder.spans} == {PARENT[3:35]}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")
@pytest.mark.parametrize("place", PLACES)
def test_an_order_over_real_processes(orders: Path, collector: Collector, place: str) -> None:
    lines = order_is_traced(orders, collector, *PLACES[place])
    if place == "core dev":  # whose log has each event with what it called
        logged = sorted(line.split(" ms ")[0].split()[1] + line.split(" ms")[1] for line in lines if " ms " in line)
        assert logged == ["ALARM KV×1", "POST DB×1  STOCK×2  KV×1  JOBS×1", "QUEUE STOCK×1  KV×1"]


def order_is_traced(orders: Path, collector: Collector, *arguments: str) -> list[str]:
    """Give one order to a command that serves, and see what arrives at the collector; the command's lines."""
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    served = Command(*arguments, folder=orders, env=settings)
    try:
        port = int(served.until(r"http://(?:127\.0\.0\.1|localhost):(\d+)")[1])
        answer = ask(port, "/orders/7?q=secret", "POST", "secret", headers={"traceparent": PARENT})
        assert answer.status == 201
        trace = bytes.fromhex(PARENT[3:35])
        assert until(lambda: collector.tree(trace), lambda tree: tree.count("\n") >= TREE.count("\n")) == TREE
        (alarm,) = until(lambda: {span.trace_id for span in collector.spans} - {trace}, bool)
        assert until(lambda: collector.tree(alarm), lambda tree: "\n" in tree) == ALARM
        assert collector.tree(trace) == TREE
        assert b"secret" not in b"".join(span.SerializeToString() for span in collector.spans)
    finally:
        served.finish()
    return served.lines
