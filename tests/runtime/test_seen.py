"""`core serve` of a bundle seen while it runs: the numbers and spans of its isolates, and its lines as JSON."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.runtime.conftest import Make, make_of
from tests.runtime.tools.test_traces import order_is_traced, write_orders
from tests.support.collector import Collector
from tests.support.commands import Command, ask, until
from tests.support.openmetrics import samples

from core.runtime.bundle import Bundle
from core.runtime.project import open_project


@pytest.fixture
def serve(tmp_path: Path, bundle: Bundle) -> Iterator[Callable[..., Command]]:
    """Start `core serve` on free ports; it is stopped at the end of the test."""
    started: list[Command] = []

    def serve(*options: str, env: Mapping[str, str] = {}) -> Command:
        where = ["--port", "0", "--health", "127.0.0.1:0"]
        started.append(Command("serve", str(bundle.folder), *where, *options, folder=tmp_path, env=env))
        return started[-1]

    yield serve
    for command in started:
        if command.process.poll() is None:
            command.finish()


def numbers(health: int) -> dict[tuple[str, str], float]:
    return samples(ask(health, "/metrics").text)


def test_requests_bindings_and_restarts_are_counted_and_every_line_is_json(serve: Callable[..., Command]) -> None:
    served = serve("--metrics", "--log-format", "json")
    port, health = served.ports()
    assert ask(port, "/kv/kept", "PUT", "yes").status == 204
    assert ask(port, "/kv/kept").json() == "yes"
    found = numbers(health)
    routes = {labels: value for (name, labels), value in found.items() if name == "core_http_requests_total"}
    assert routes["method=PUT,route=/kv/:key,status=204"] == 1
    # The cron of each minute puts a value too, and gets none.
    assert found["core_binding_calls_total", "binding=KV,kind=kv,method=get,outcome=ok"] == 1
    assert found["core_http_request_duration_seconds_count", "method=GET,route=/kv/:key"] == 1
    assert found["core_process_resident_memory_bytes", "process=0"] > 50e6
    assert found["core_process_restarts_total", "process=0"] == 0
    queues = [labels for name, labels in found if name == "core_queue_messages"]
    assert queues == ["queue=JOBS"]

    (killed,) = served.children()
    os.kill(killed, signal.SIGKILL)
    served.until("starting it again")
    after = until(lambda: numbers(health), lambda now: now["core_process_restarts_total", "process=0"] == 1)
    assert after["core_http_requests_total", "method=PUT,route=/kv/:key,status=204"] == 1
    assert ask(port, "/kv/kept").json() == "yes"
    assert served.finish() == 0
    for line in served.lines:
        assert {"time", "level", "logger", "message"} <= set(json.loads(line))


def test_requests_are_counted_where_they_are_traced_too(serve: Callable[..., Command]) -> None:
    collector = Collector()
    try:
        served = serve(
            "--metrics", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        )
        port, health = served.ports()
        assert ask(port, "/kv/kept", "PUT", "yes").status == 204
        assert numbers(health)["core_http_requests_total", "method=PUT,route=/kv/:key,status=204"] == 1
        until(lambda: {span.name for span in collector.spans}, lambda names: {"PUT /kv/:key", "kv_put"} <= names)
    finally:
        collector.close()


def test_a_failed_request_is_one_line_of_json_with_its_traceback(serve: Callable[..., Command]) -> None:
    served = serve("--log-format", "json")
    port, health = served.ports()
    assert ask(port, "/fail").status == 500
    assert ask(health, "/metrics").status == 404
    served.until("Traceback")
    served.finish()
    (record,) = [json.loads(line) for line in served.lines if "Traceback" in line]
    assert record["level"] == "ERROR"
    assert record["logger"] == "core"


@pytest.mark.parametrize("command", ["dev", "serve"])
def test_an_order_in_workerd_is_one_trace_with_the_names_of_every_other_place(
    tmp_path: Path, make: Make, command: str
) -> None:
    orders, collector = write_orders(tmp_path), Collector()
    try:
        if command == "serve":
            bundle = make_of(make, open_project(orders / "wrangler.toml")).folder
            order_is_traced(orders, collector, "serve", str(bundle), "--port", "0", "--health", "127.0.0.1:0")
        else:
            order_is_traced(orders, collector, "dev", "--runtime", "workerd", "--port", "0")
    finally:
        collector.close()
