"""Spans as a collector of OpenTelemetry receives them, from a process that serves for real."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.support.collector import Collector

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

PROGRAM = """
import asyncio, sys
from core import App
from core.hosts.asgi import asgi
from core.testing import FakeKVNamespace

class Env:
    def __init__(self):
        self.CACHE = FakeKVNamespace()

app = App()

@app.get("/users/:id")
async def show(req, res):
    await req.env.CACHE.get("secret-key")
    with req.ctx.span("greet"):
        res.text("hello")

@app.get("/fails")
async def fails(req, res):
    raise ValueError("secret-message")

serve = asgi(app, Env())

async def ask(path):
    async def receive():
        return {"type": "http.request", "body": b""}
    async def send(message):
        pass
    await serve(
        {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"q=secret-query",
         "root_path": "", "headers": [(b"host", b"example.test"), (b"traceparent", b"%PARENT%")], "scheme": "https",
         "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "http_version": "1.1", "extensions": {}},
        receive, send)

asyncio.run(ask("/users/secret-id"))
asyncio.run(ask("/fails"))
print("opentelemetry" in sys.modules)
""".replace("%PARENT%", PARENT)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def run(**environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


def test_a_collector_gets_every_span_before_the_process_ends(collector: Collector) -> None:
    run(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server.server_port}", OTEL_SERVICE_NAME="users")
    spans = {span.name: span for span in collector.spans}
    assert set(spans) == {"GET /users/:id", "kv_get", "greet", "GET /fails"}
    request = spans["GET /users/:id"]
    assert request.trace_id.hex() == PARENT[3:35]
    assert request.parent_span_id.hex() == PARENT[36:52]
    assert spans["kv_get"].parent_span_id == spans["greet"].parent_span_id == request.span_id
    attributes = {attribute.key: attribute.value for attribute in request.attributes}
    assert attributes["http.route"].string_value == "/users/:id"
    assert attributes["http.response.status_code"].int_value == 200
    failed = spans["GET /fails"]
    assert {attribute.key: attribute.value.string_value for attribute in failed.attributes}[
        "error.type"
    ] == "ValueError"
    assert failed.status.code == 2
    assert b"secret" not in b"".join(span.SerializeToString() for span in collector.spans)


def test_unset_nothing_of_it_is_imported() -> None:
    assert run() == "False\n"


def test_a_missing_extra_is_told_with_its_installation() -> None:
    program = "import sys; sys.modules['opentelemetry'] = None; import core.hosts.otel"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "pip install 'core-edge[otel]'" in done.stderr.splitlines()[-1]
