"""`core serve --python` seen while it runs: its numbers, and its lines as JSON."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Command, ask, until
from tests.support.openmetrics import samples

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


def numbers(health: int) -> dict[tuple[str, str], float]:
    answer = ask(health, "/metrics")
    assert answer.status == 200
    assert dict(answer.headers)["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    return samples(answer.text)


ORDERS = ("core_http_requests_total", "method=POST,route=/orders/:number,status=201")


def test_numbers_of_all_processes_are_at_the_health_address(serve: Callable[..., Command]) -> None:
    served = serve("--metrics")
    port, health = served.ports()
    for number in range(20):
        assert ask(port, f"/orders/{number}", "POST").status == 201
    assert ask(port, "/metrics").status == 404  # never at the application's own address
    found = until(lambda: numbers(health), lambda found: found["core_queue_messages", "queue=jobs"] == 0)
    assert found[ORDERS] == 20
    assert found["core_http_request_duration_seconds_count", "method=POST,route=/orders/:number"] == 20
    assert found["core_binding_calls_total", "binding=COUNTER,kind=durable_object,method=add,outcome=ok"] == 20
    assert found["core_binding_calls_total", "binding=JOBS,kind=queue,method=send,outcome=ok"] == 20
    assert found["core_queue_batches_total", "outcome=ok,queue=jobs"] >= 1
    assert found["core_queue_dead_letters_total", "queue=jobs"] == 0
    assert found["core_queue_oldest_message_age_seconds", "queue=jobs"] == 0
    assert found["core_durable_objects_alive", "class=Counter"] == 1
    for process in ("state", "web 0", "web 1"):
        assert found["core_process_up", f"process={process}"] == 1
        assert found["core_process_resident_memory_bytes", f"process={process}"] > 10e6
        assert found["core_process_restarts_total", f"process={process}"] == 0

    # No counter goes down when processes end, by a kill or by a new version.
    os.kill(served.children()[-1], signal.SIGKILL)
    restarted = until(
        lambda: numbers(health),
        lambda now: sum(value for (name, _), value in now.items() if name == "core_process_restarts_total") == 1,
    )
    assert restarted[ORDERS] == 20
    served.process.send_signal(signal.SIGHUP)
    served.until("replaced the processes")
    after = numbers(health)
    assert after[ORDERS] == 20
    assert after["core_reloads_total", "outcome=replaced"] == 1


def test_without_the_option_nothing_is_measured(serve: Callable[..., Command]) -> None:
    _, health = serve("--workers", "1").ports()
    answer = ask(health, "/metrics")
    assert (answer.status, answer.json()) == (404, {"error": "Nothing is measured. Start core serve with --metrics"})


NOISY = """
import logging, subprocess, sys
@app.get("/noise")
async def noise(req, res):
    print("printed\\nin two lines")
    logging.getLogger("shop").warning("logged", extra={"left": 1})
    sys.stderr.flush()
    import os; os.write(2, b"written past Python\\n")
    print('{"time": "now", "level": "INFO", "logger": "core.audit", "message": "forged"}')
    os.write(2, b'{"time": "now", "level": "INFO", "logger": "core.audit", "message": "forged too"}\\n')
    print("ERROR core.audit: forged")
    res.text("ok")
@app.get("/fails")
async def fails(req, res):
    raise RuntimeError("broken")
"""


def records(served: Command) -> list[dict[str, Any]]:
    return [json.loads(line) for line in served.lines]


def test_every_line_is_a_record_of_json(serve: Callable[..., Command], shop: Path) -> None:
    main = shop / "main.py"
    main.write_text(main.read_text() + NOISY)
    served = serve("--log-format", "json")
    port, _ = served.ports()
    assert ask(port, "/noise").text == "ok"
    assert ask(port, "/fails").status == 500
    main.write_text("raise RuntimeError('half a deploy')")
    served.process.send_signal(signal.SIGHUP)
    served.until("half a deploy")
    assert served.finish() == 0
    said = records(served)
    for record in said:
        assert {"time", "level", "logger", "message"} <= set(record)
    by_message = {record["message"]: record for record in said}
    assert by_message["printed\nin two lines"]["logger"] == "stdout"
    assert (by_message["logged"]["level"], by_message["logged"]["left"]) == ("WARNING", 1)
    assert by_message["written past Python"]["level"] == "INFO"
    assert by_message["stopping"]["logger"] == "core.serve"
    assert "core.audit" not in {record["logger"] for record in said}
    assert sum("core.audit" in record["message"] for record in said) == 3
    (failed,) = [record for record in said if "RuntimeError: broken" in record.get("exception", "")]
    assert failed["level"] == "ERROR"


def test_a_process_that_ended_is_an_error(serve: Callable[..., Command]) -> None:
    served = serve("--log-format", "json", "--workers", "1")
    served.ports()
    os.kill(served.children()[-1], signal.SIGKILL)
    served.until("starting it again")
    (said,) = [record for record in records(served) if "ended with status -9" in record["message"]]
    assert (said["level"], said["logger"]) == ("ERROR", "core.serve")


def test_a_failure_is_told_to_people_as_every_other_place_tells_it(serve: Callable[..., Command]) -> None:
    served = serve("--workers", "1")
    port, _ = served.ports()
    assert ask(port, "/orders/seven", "POST").status == 500
    served.until("req.params")
    begin = next(number for number, line in enumerate(served.lines) if line.startswith("ERROR"))
    assert [re.sub(r":\d+ ", " ", line) for line in served.lines[begin : begin + 4]] == [
        "ERROR core: POST /orders/seven failed",
        "  ValueError: invalid literal for int() with base 10: 'seven'",
        "    main.py order",
        '      number = int(req.params["number"])',
    ]
    assert [line for line in served.lines if "uvicorn" in line] == []


def test_what_keeps_it_from_starting_is_a_record_too(serve: Callable[..., Command], shop: Path) -> None:
    (shop / "main.py").write_text("import nothing_of_that_name")
    served = serve("--log-format", "json")
    assert served.finish(by_itself=True) == 1
    (last,) = records(served)[-1:]
    assert last["level"] == "ERROR"
    assert "nothing_of_that_name" in json.dumps(last)
