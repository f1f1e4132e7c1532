"""Statements of the explorer that run for ever: nobody waits for them, and they end with whoever asked for them."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.explorer.browser import call
from tests.support.running import RunningDev

WORKSHOP = Path(__file__).parent / "workshop"
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
READS = [
    f"{NUMBERS} SELECT count(*) FROM n",
    f"SELECT * FROM ({NUMBERS} SELECT max(i) FROM n)",
    f"EXPLAIN QUERY PLAN SELECT 1; {NUMBERS} SELECT count(*) FROM n",
    f"PRAGMA table_list; {NUMBERS} SELECT count(*) FROM n",
]
WRITE = f"{NUMBERS} INSERT INTO jobs (text) SELECT i FROM n WHERE i < 0"


_OPEN: list[http.client.HTTPConnection] = []


@pytest.fixture(autouse=True)
def _connections_are_closed() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[RunningDev]:
    with RunningDev(WORKSHOP, tmp_path / "state", "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        yield dev


def begin(dev: RunningDev, path: str, body: Any, method: str = "POST") -> http.client.HTTPConnection:
    """Ask the explorer, and do not wait for the answer."""
    token = re.search(r'name="core-token" content="([^"]+)"', dev.fetch("/_core/").text)
    assert token is not None
    connection = http.client.HTTPConnection(dev.address.removeprefix("http://"), timeout=120)
    _OPEN.append(connection)
    headers = {"X-Core-Token": token[1], "Content-Type": "application/json"}
    connection.request(method, f"/_core/api{path}", None if body is None else json.dumps(body), headers)
    return connection


def answer(connection: http.client.HTTPConnection) -> Any:
    with connection.getresponse() as response:
        return json.loads(response.read())


def write(dev: RunningDev) -> int:
    """A write through the application's own binding."""
    changes: int = call(dev, "PUT", "/d1/DB/row", {"table": "jobs", "values": {"text": "x"}})["changes"]
    return changes


def until_running(dev: RunningDev) -> None:
    """Wait until a statement that writes has the lock. It shows: a write beside it finds the database locked."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        told = answer(begin(dev, "/d1/DB/query", {"sql": "INSERT INTO jobs (text) VALUES ('beside')", "id": "beside"}))
        if "locked" in told["results"][0].get("error", ""):
            return
    raise AssertionError("it never ran")


@pytest.mark.parametrize("sql", READS)
def test_an_application_writes_while_a_read_of_the_panel_runs_for_ever(dev: RunningDev, sql: str) -> None:
    reading = begin(dev, "/d1/DB/query", {"sql": sql, "id": "endless"})
    for _ in range(20):
        assert write(dev) == 1
    assert call(dev, "POST", "/d1/DB/cancel", {"id": "endless"}) == {"stopped": True}
    assert answer(reading)["results"][-1]["stopped"] is True


def test_a_write_of_the_panel_that_runs_for_ever_ends_with_the_connection_that_asked_for_it(dev: RunningDev) -> None:
    writing = begin(dev, "/d1/DB/query", {"sql": WRITE, "id": "endless"})
    until_running(dev)
    writing.close()
    assert write(dev) == 1  # it waits for the lock, and no longer than any write does
    assert call(dev, "POST", "/d1/DB/cancel", {"id": "endless"}) == {"stopped": False}


def test_a_pragma_is_answered_while_another_statement_writes(dev: RunningDev) -> None:
    writing = begin(dev, "/d1/DB/query", {"sql": WRITE, "id": "endless"})
    until_running(dev)
    (told,) = call(dev, "POST", "/d1/DB/query", {"sql": "PRAGMA table_info(jobs)"})["results"]
    assert [row[1] for row in told.get("rows", [])] == ["id", "text"], told
    assert call(dev, "POST", "/d1/DB/cancel", {"id": "endless"}) == {"stopped": True}
    assert answer(writing)["results"][-1]["stopped"] is True


def test_statements_of_one_script_are_stopped_together(dev: RunningDev) -> None:
    running = begin(dev, "/d1/DB/query", {"sql": f"{WRITE}; {READS[0]}; SELECT 1", "id": "all"})
    until_running(dev)
    assert call(dev, "POST", "/d1/DB/cancel", {"id": "all"}) == {"stopped": True}
    results = answer(running)["results"]
    assert [one["stopped"] for one in results] == [True]


def test_a_view_that_never_ends_keeps_nobody_from_the_schema(dev: RunningDev) -> None:
    call(dev, "POST", "/d1/DB/query", {"sql": f"CREATE VIEW endless AS {NUMBERS} SELECT i FROM n"})
    tables = call(dev, "GET", "/d1/DB")["tables"]
    assert ("endless", None) in [(one["name"], one["rows"]) for one in tables]
    # More of them than the server has threads of its own, which the application needs: the pool of asyncio.
    for _ in range(min(32, (os.cpu_count() or 1) + 4) + 4):
        begin(dev, "/d1/DB/rows/endless", None, "GET")
    explained = [begin(dev, "/d1/DB/explain", {"sql": "SELECT * FROM endless"}) for _ in range(2)]
    assert [answer(one)["plans"][0]["error"] for one in explained] == [None, None]
    assert write(dev) == 1
    assert call(dev, "GET", "/configuration")["file"].endswith("wrangler.toml")  # read in a thread of the pool


@pytest.mark.parametrize("mode", ["--no-reload", None], ids=["one process", "reloading"])
@pytest.mark.parametrize("sql", [READS[0], WRITE], ids=["a read", "a write"])
def test_ctrl_c_ends_a_statement_at_once(tmp_path: Path, mode: str | None, sql: str) -> None:
    with RunningDev(WORKSHOP, tmp_path / "state", *([mode] if mode else [])) as dev:
        dev.until("Ctrl-C stops")
        begin(dev, "/d1/DB/query", {"sql": sql, "id": "endless"})
        begin(dev, "/d1/DB/query", {"sql": READS[0], "id": "another"})
        if sql is WRITE:
            until_running(dev)
        dev.interrupt()
        assert dev.wait() == 0, dev.output
        assert "Traceback" not in dev.output


def test_a_reload_ends_a_statement(tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(WORKSHOP, tmp_path / "workshop")
    with RunningDev(folder, tmp_path / "state") as dev:
        dev.until("Ctrl-C stops")
        begin(dev, "/d1/DB/query", {"sql": WRITE, "id": "endless"})
        until_running(dev)
        main = folder / "src" / "main.py"
        main.write_text(main.read_text() + "\n# changed\n")
        dev.until("reloaded")
        assert write(dev) == 1
