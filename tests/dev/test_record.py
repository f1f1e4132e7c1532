"""The recorder: every call of a binding is recorded in the exchange that made it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import pytest

from core import Bindings, D1Database, D1Error, KVNamespace, Queue, R2Bucket
from core.bindings.calls import add_hook
from core.dev.exchange import MOST_BYTES, current
from core.dev.journal import Journal
from core.dev.record import LONGEST_DETAIL, MOST_CALLS, Recorder
from core.env import inject
from core.testing import FakeD1Database, FakeKVNamespace, FakeQueue, FakeR2Bucket


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    FILES: R2Bucket
    JOBS: Queue[Any]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def env(recorder: Recorder) -> Env:
    fakes = {
        "KV": (FakeKVNamespace({"a": "1"}), "kv"),
        "DB": (FakeD1Database(), "d1"),
        "FILES": (FakeR2Bucket(), "r2"),
        "JOBS": (FakeQueue[Any](), "queue"),
    }
    for name, (fake, kind) in fakes.items():
        add_hook(fake, recorder.hook, name=name, kind=kind)
    return inject(Env, {name: fake for name, (fake, _) in fakes.items()})


async def test_each_call_is_noted_with_its_arguments_and_its_time(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    try:
        assert await env.KV.get("a") == "1"
        await env.FILES.put("file", b"12345")
        await env.JOBS.send({"text": "hello"}, delay_seconds=5)
        statement = env.DB.prepare("SELECT ? + ? AS sum").bind(1, 2)
        assert await statement.first("sum") == 3
        results = await env.DB.batch([env.DB.prepare("SELECT 1 AS one"), statement])
    finally:
        current.reset(token)
    recorder.end(exchange)

    assert [row.results for row in results] == [[{"one": 1}], [{"sum": 3}]]
    assert [(call.binding, call.method, call.detail) for call in exchange.calls] == [
        ("KV", "get", "'a'"),
        ("FILES", "put", "'file', 5 bytes"),
        ("JOBS", "send", "{'text': 'hello'}, delay_seconds=5"),
        ("DB", "first", "SELECT ? + ? AS sum  ← 1, 2"),
        ("DB", "batch", "[SELECT 1 AS one, SELECT ? + ? AS sum  ← 1, 2]"),
    ]
    assert all(call.duration is not None and call.duration >= 0 for call in exchange.calls)
    assert exchange.as_json()["calls"][0]["binding"] == "KV"


async def test_an_error_is_noted_and_comes_out_as_it_was(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    try:
        with pytest.raises(D1Error, match="no such table"):
            await env.DB.prepare("SELECT * FROM nowhere").all()
    finally:
        current.reset(token)

    assert exchange.calls[0].error is not None
    assert "no such table" in exchange.calls[0].error


async def test_work_in_the_background_belongs_to_the_request_that_began_it(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    task = asyncio.ensure_future(env.KV.put("b", "2"))
    current.reset(token)
    recorder.end(exchange)
    await task

    (call,) = exchange.calls
    assert (call.method, call.background) == ("put", True)


async def test_calls_outside_of_every_exchange_are_made_all_the_same(env: Env) -> None:
    assert await env.KV.get("a") == "1"


async def test_what_is_noted_stays_small(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    for _ in range(MOST_CALLS + 3):
        await env.KV.get("a")
    current.reset(token)
    other = recorder.begin("request", "GET", "/")
    token = current.set(other)
    await env.DB.prepare(f"SELECT '{'x' * 5000}'").first()
    current.reset(token)

    assert len(exchange.calls) == MOST_CALLS
    assert exchange.left_out == 3
    assert exchange.as_json()["equal"] == {"KV.get": MOST_CALLS + 3}  # those that are not kept are counted
    assert len(other.calls[0].detail) == LONGEST_DETAIL


async def test_the_first_list_says_that_changes_are_followed() -> None:
    recorder = Recorder()
    following = aiter(recorder.follow())

    async with asyncio.timeout(10):
        assert await anext(following) == []
        exchange = recorder.begin("request", "GET", "/")
        assert await anext(following) == [exchange]


async def test_who_follows_hears_of_every_change_and_the_slow_miss_the_oldest() -> None:
    recorder, heard = Recorder(), list[int]()

    async def follow() -> None:
        async for exchanges in recorder.follow():
            heard.extend(int(exchange.key.partition("-")[2]) for exchange in exchanges)

    following = asyncio.ensure_future(follow())
    await asyncio.sleep(0)
    for _ in range(5100):  # more than wait, before the follower runs again
        recorder.begin("request", "GET", "/")
    await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert heard == [*range(101, 5101)]


async def test_the_same_statement_again_and_again_is_marked_and_rows_are_counted(recorder: Recorder, env: Env) -> None:
    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    for number in range(6):
        await env.DB.prepare("SELECT ? AS n").bind(number).all()
    current.reset(token)

    assert exchange.repeated == {"what": "DB.all SELECT ? AS n", "times": 6}
    assert exchange.calls[0].statements == ["SELECT ? AS n"]
    assert (exchange.calls[0].rows_read, exchange.calls[0].rows_returned) == (0, 1)  # it is in no table
    assert exchange.summary()["repeated"]


async def test_a_row_with_a_column_that_is_called_as_a_part_of_a_result_is_counted_as_a_row(
    recorder: Recorder, env: Env
) -> None:
    @attrs.frozen
    class Page:
        meta: str

    exchange = recorder.begin("request", "GET", "/")
    token = current.set(exchange)
    assert await env.DB.prepare("SELECT 'draft' AS meta").one(Page) == Page("draft")
    assert await env.DB.prepare("SELECT 'draft' AS meta").first(Page) == Page("draft")
    current.reset(token)

    assert [call.rows_returned for call in exchange.calls] == [1, 1]


async def test_the_rows_that_a_request_reads_are_those_that_its_database_counts(recorder: Recorder) -> None:
    db = FakeD1Database()
    await db.exec("CREATE TABLE cats (id INTEGER PRIMARY KEY, name TEXT)")
    await db.batch([db.prepare("INSERT INTO cats (name) VALUES (?)").bind(name) for name in "abcdefgh"])
    add_hook(db, recorder.hook, name="DB", kind="d1")
    before, exchange, other = db.rows_read, recorder.begin("request", "GET", "/"), recorder.begin("request", "GET", "/")

    async def ask() -> None:
        await db.prepare("SELECT * FROM cats ORDER BY name LIMIT 1").first()
        await db.batch([db.prepare("SELECT * FROM cats WHERE id = 1"), db.prepare("DELETE FROM cats WHERE id < 3")])
        for _ in range(MOST_CALLS):
            await db.prepare("SELECT name FROM cats WHERE id = 5").raw()

    async def look() -> None:
        current.set(other)
        await db.prepare("SELECT * FROM cats WHERE id = 4").one()
        await db.prepare("PRAGMA table_info(cats)").all()

    current.set(exchange)
    await asyncio.gather(asyncio.create_task(ask()), asyncio.create_task(look()))
    assert [call.rows_read for call in exchange.calls[:3]] == [16, 3, 1]
    assert [call.rows_returned for call in exchange.calls[:3]] == [1, 1, 1]
    assert exchange.left_out == 2
    assert (exchange.rows.rows, other.rows.rows) == (16 + 3 + MOST_CALLS, 1 + 2)
    assert db.rows_read - before == exchange.rows.rows + other.rows.rows
    assert (exchange.as_json()["rowsRead"], exchange.as_json()["rowsExact"]) == (519, True)
    assert (other.calls[1].rows_read, other.calls[1].rows_exact, other.rows.exact) == (2, False, False)


async def test_an_exchange_outlives_its_process_in_the_journal(tmp_path: Path, env: Env) -> None:
    file = tmp_path / "explorer.sqlite"
    journal = Journal(file)
    recorder = Recorder(journal=journal)
    exchange = recorder.begin("request", "POST", "/")
    exchange.request.add(b"body")
    assert recorder.page(None, 10)[0] == [exchange.summary()]  # while it runs
    recorder.end(exchange)
    journal.note_failure(["m1"], "ValueError: no", exchange.key)
    journal.note_name("ROOM", "lobby")
    journal.close()

    after = Recorder(journal=Journal(file, fresh=False))
    (summary,), more = after.page(None, 10)
    assert (summary, more) == (exchange.summary(), None)
    found = after.find(exchange.key)
    assert found is not None
    assert found["request"]["text"] == "body"
    assert file.stat().st_mode & 0o077 == 0

    fresh = Journal(file)
    assert fresh.page(None, 10) == ([], None)
    # What is about messages and objects that are still there stays.
    assert fresh.failures(["m1", "m2"]) == {"m1": ("ValueError: no", exchange.key)}
    assert fresh.names("ROOM") == ["lobby"]


async def test_the_journal_keeps_the_latest_and_goes_through_them_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.dev.journal.KEPT", 150)
    recorder = Recorder(journal=Journal(None))
    for number in range(400):
        recorder.end(recorder.begin("request", "GET", f"/{number}"))

    first, after = recorder.page(None, 100)
    second, _ = recorder.page(after, 100)
    assert [one["path"] for one in first + second] == [f"/{number}" for number in range(399, 249, -1)]


async def test_a_body_that_is_long_is_kept_in_part_and_says_so(recorder: Recorder) -> None:
    exchange = recorder.begin("request", "POST", "/")
    for _ in range(3):
        exchange.request.add(b"x" * 40_000)
    exchange.response.add(b"\xff\x00")

    request, response = exchange.request.as_json(), exchange.response.as_json()
    assert (request["size"], request["cut"], len(request["text"])) == (120_000, True, MOST_BYTES)
    assert (response["text"], response["base64"]) == (None, "/wA=")


@pytest.mark.parametrize(
    ("method", "body", "called"),
    [
        ("POST", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"note"}}', "tools/call note"),
        ("POST", b'{"jsonrpc":"2.0","method":"resources/read","params":{"uri":"a:b"}}', "resources/read a:b"),
        ("POST", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "ping"),
        ("POST", b'[{"jsonrpc":"2.0"}]', ""),
        ("POST", b'{"jsonrpc":"2.0","params":[1]}', ""),
        ("POST", b'{"jsonrpc":"2.0', ""),
        ("POST", b"{}", ""),
        ("PUT", b'{"jsonrpc":"2.0","method":"ping"}', ""),
    ],
)
def test_an_mcp_request_is_shown_by_what_it_calls(recorder: Recorder, method: str, body: bytes, called: str) -> None:
    exchange = recorder.begin("request", method, "/mcp")
    exchange.request.add(body)
    assert exchange.summary()["called"] == called
