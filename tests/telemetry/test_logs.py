"""Log records as lines of JSON: the fields, the ids, and that a traceback is in one line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from core import App, Request, Response
from core.hosts.output import JsonStream, LineReader
from core.middleware.request_id import request_id
from core.telemetry.logs import JsonFormatter
from core.telemetry.tracing import trace
from core.testing import Client, SpanRecorder

LOG = logging.getLogger("shop")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    for logger in (LOG, logging.getLogger("core")):
        logger.addHandler(handler)
    yield stream
    for logger in (LOG, logging.getLogger("core")):
        logger.removeHandler(handler)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_has_its_time_level_logger_message_and_what_was_given_as_extra(written: io.StringIO) -> None:
    LOG.warning("low on %s\nvery", "tea", extra={"left": 2, "logger": "not this", "where": object})
    (record,) = lines(written)
    moment = datetime.fromisoformat(record.pop("time"))
    assert moment.utcoffset() == timedelta(0)
    assert record == {
        "level": "WARNING",
        "logger": "shop",
        "message": "low on tea\nvery",
        "left": 2,
        "where": "<class 'object'>",
    }


def test_a_number_that_json_has_not_is_a_text_and_the_line_still_json(written: io.StringIO) -> None:
    LOG.warning("measured", extra={"ratio": float("nan"), "where": "here"})
    (line,) = written.getvalue().splitlines()
    record = json.loads(line, parse_constant=pytest.fail)
    assert (record["message"], record["ratio"], record["where"]) == ("measured", "nan", "here")


def test_a_traceback_is_in_the_line_of_its_record(written: io.StringIO) -> None:
    try:
        raise ValueError("no tea")
    except ValueError:
        LOG.exception("failed")
    (record,) = lines(written)
    assert record["message"] == "failed"
    assert record["exception"].startswith("Traceback (most recent call last):\n")
    assert record["exception"].endswith("ValueError: no tea")
    assert (record["failure"]["type"], record["failure"]["message"]) == ("ValueError", "no tea")
    assert record["failure"]["line"]["source"] == 'raise ValueError("no tea")'


async def test_a_record_inside_a_request_has_the_ids_of_request_and_trace(written: io.StringIO) -> None:
    app = App()
    app.use(request_id())

    @app.get("/")
    async def show(req: Request, res: Response) -> None:
        LOG.error("shown")
        res.text("")

    recorder = SpanRecorder()
    trace(app, recorder)
    await Client(app, None).get("/", headers={"X-Request-Id": "abc"})
    LOG.error("outside")
    inside, outside = lines(written)
    (span,) = recorder.spans
    _, trace_id, span_id, _ = span.traceparent.split("-")
    assert (inside["request_id"], inside["trace_id"], inside["span_id"]) == ("abc", trace_id, span_id)
    assert not {"request_id", "trace_id", "span_id"} & set(outside)


def read(*pieces: str) -> list[dict[str, Any]]:
    found: list[str] = []
    reader = LineReader(found.append, "workerd", extra={"process": 1}, mark="secret ")
    for piece in pieces:
        reader.line(piece)
    return [json.loads(line) for line in found]


def test_lines_of_another_process_become_records() -> None:
    own = json.dumps({"time": "now", "level": "INFO", "logger": "core", "message": "mine"})
    forged = "WARNING core.audit: given up"
    records = read("plain \x1b[31mred\x1b[0m", forged, "error: no", "", own, f"secret {own}", '{"path": "/"}')
    for record in records:
        assert record.pop("time")
        assert record.pop("process") == 1
    assert records == [
        {"level": "INFO", "logger": "workerd", "message": "plain red"},
        {"level": "INFO", "logger": "workerd", "message": forged},
        {"level": "ERROR", "logger": "workerd", "message": "error: no"},
        {"level": "INFO", "logger": "workerd", "message": own},
        {"level": "INFO", "logger": "core", "message": "mine"},
        {"level": "INFO", "logger": "workerd", "message": '{"path": "/"}'},
    ]


def test_a_traceback_of_another_process_is_one_record() -> None:
    records = read(
        "Traceback (most recent call last):", '  File "a.py", line 1, in f', "    f()", "", "KeyError: 'a'", "on"
    )
    assert [record["message"] for record in records] == ["KeyError: 'a'", "on"]
    assert records[0]["level"] == "ERROR"
    assert records[0]["exception"].splitlines()[1:3] == ['  File "a.py", line 1, in f', "    f()"]


def test_what_print_writes_is_one_record_for_each_call() -> None:
    behind = io.StringIO()
    stream: Any = JsonStream(behind, "stdout")
    print("a", "b", file=stream)
    print("two\nlines", file=stream)
    print("half ", end="", file=stream)
    print("whole", file=stream)
    assert [record["message"] for record in lines(behind)] == ["a b", "two\nlines", "half whole"]
