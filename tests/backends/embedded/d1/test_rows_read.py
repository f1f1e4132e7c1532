"""The rows that a statement reads: as workerd has recorded them, and as its plan visits them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from core.errors import D1Error
from core.testing import FakeClock, FakeD1Database

RECORDED = Path(__file__).parents[3] / "traces" / "data" / "d1.json"

# Rows that SQLite reads for itself: its schema, what RETURNING, UNION and recursions hold, foreign keys, json_each.
OF_THEIR_OWN = (
    "ALTER ",
    "CREATE ",
    "DROP ",
    "INSERT INTO c VALUES (1, 1)",
    "PRAGMA ",
    "SELECT 'b' AS x UNION",
    "SELECT name FROM sqlite_master",
    "WITH RECURSIVE",
)


async def recorded() -> AsyncIterator[tuple[str, int, int]]:
    """Every statement whose reads were recorded: its text, the rows that it read there, and those that it reads here."""
    traces: list[dict[str, Any]] = json.loads(RECORDED.read_text())["programs"]
    for trace in traces:
        if '"rows_read": {"$advisory"' not in json.dumps(trace):
            continue
        db = FakeD1Database()
        for step in trace["steps"]:
            if step.get("binding") != "DB" or step["op"] not in ("all", "run", "exec", "batch", "first", "raw"):
                continue
            target: Any = db
            for name, arguments in step.get("chain", ()):
                target = getattr(target, name)(*arguments)
            try:
                answer = await getattr(target, step["op"])(*[_given(db, argument) for argument in step["args"]])
            except (D1Error, KeyError, TypeError):
                continue
            if step["op"] in ("all", "run"):
                meta = cast("dict[str, dict[str, int]]", step["expect"]["value"]["meta"])
                yield step["chain"][0][1][0], meta["rows_read"]["$advisory"], answer.meta.rows_read


def _given(db: FakeD1Database, argument: Any) -> Any:
    """An argument of a recorded call: a list of statements, or a value."""
    if not isinstance(argument, list):
        return argument
    items = cast("list[dict[str, Any]]", argument)
    return [db.prepare(item["$sql"]).bind(*item.get("bind", ())) for item in items]


async def test_the_count_is_that_of_the_recordings() -> None:
    seen = [case async for case in recorded()]
    assert len(seen) >= 35
    known = [
        case
        for case in seen
        if not case[0].startswith(OF_THEIR_OWN) and not any(word in case[0] for word in ("RETURNING", "json_each("))
    ]
    assert len(known) >= 60
    assert [case for case in known if case[1] != case[2]] == []


@pytest.fixture
async def db() -> FakeD1Database:
    db = FakeD1Database(clock=FakeClock(0))
    await db.exec("CREATE TABLE songs (id INTEGER PRIMARY KEY, title TEXT, genre INTEGER)")
    await db.exec("CREATE TABLE plays (day TEXT PRIMARY KEY, song INTEGER) WITHOUT ROWID")
    await db.exec("CREATE INDEX songs_genre ON songs (genre)")
    await db.batch(
        [db.prepare("INSERT INTO songs (title, genre) VALUES (?, ?)").bind(f"n{i}", i % 3) for i in range(10)]
    )
    await db.batch([db.prepare("INSERT INTO plays VALUES (?, ?)").bind(f"n{i}", i + 1) for i in range(4)])
    return db


@pytest.mark.parametrize(
    ("sql", "values", "read"),
    [
        ("SELECT * FROM songs", (), 10),
        ("SELECT * FROM songs LIMIT 2", (), 2),
        ("SELECT * FROM songs WHERE id = ?", (3,), 1),
        ("SELECT * FROM songs WHERE id = ?", (99,), 1),
        ("SELECT * FROM songs WHERE genre = ?", (1,), 3),
        ("SELECT * FROM songs WHERE title = ?1 OR title = ?1", ("n1",), 10),
        ("SELECT count(*) FROM songs", (), 10),
        ("SELECT max(id) FROM songs", (), 1),
        ("SELECT * FROM songs ORDER BY title LIMIT 2", (), 20),
        ("SELECT * FROM songs ORDER BY id LIMIT 2", (), 2),
        ("SELECT rowid FROM songs WHERE genre > ?", (1,), 3),
        ("SELECT replace(title, 'n', 'm') FROM songs JOIN plays ON plays.song = songs.id", (), 8),
        ("SELECT * FROM plays LEFT JOIN songs ON songs.id = plays.song + 8", (), 6),
        ("SELECT (SELECT count(*) FROM plays) AS n FROM songs", (), 14),
        ("WITH some AS (SELECT * FROM songs WHERE genre = 0) SELECT count(*) FROM some", (), 4),
        ("UPDATE songs SET title = ? WHERE genre = ?", ("x", 1), 3),
        ("UPDATE songs SET title = day FROM plays WHERE song = songs.id", (), 8),
        ("UPDATE OR IGNORE songs AS s SET title = 'y' WHERE s.id = 2 RETURNING id", (), 1),
        ("DELETE FROM songs WHERE title = ?", ("n1",), 10),
        ("DELETE FROM songs", (), 0),
        ("INSERT INTO songs (id, title) VALUES (100, 'q'), (101, (SELECT 'r'))", (), 2),
        ("INSERT INTO songs (title) VALUES ('q')", (), 0),
        ("INSERT INTO songs (title) SELECT day FROM plays", (), 4),
        ("SELECT datetime('now')", (), 0),
        ("EXPLAIN QUERY PLAN SELECT * FROM songs", (), 0),
    ],
)
async def test_the_rows_that_a_plan_visits_are_counted(
    db: FakeD1Database, sql: str, values: tuple[str | int, ...], read: int
) -> None:
    before = db.rows_read
    statement = db.prepare(sql)
    result = await (statement.bind(*values) if values else statement).run()
    assert result.meta.rows_read == read
    assert db.rows_read - before == read


async def test_what_an_earlier_statement_of_a_batch_wrote_is_there(db: FakeD1Database) -> None:
    everything = db.prepare("SELECT * FROM songs")
    results = await db.batch([everything, db.prepare("INSERT INTO songs (title) VALUES ('z')"), everything])
    assert [result.meta.rows_read for result in results] == [10, 0, 11]
    with pytest.raises(D1Error):
        await db.batch([db.prepare("DELETE FROM songs"), db.prepare("SELECT * FROM nowhere")])
    assert (await everything.run()).meta.rows_read == 11


CRASHES = """
import asyncio
from core.testing import FakeD1Database


async def main():
    db = FakeD1Database()
    for number in range(8):
        await db.exec(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY, list TEXT NOT NULL, more TEXT)")
    await db.exec("CREATE VIEW words AS SELECT value FROM t1, json_each(list)")
    for number in range(300):
        table = f"t{number % 8}"
        await db.prepare(f"INSERT INTO {table} (list, more) VALUES (?, ?)").bind('["a"]', "x" * number * 40).run()
        for name in (table, "t1"):
            await db.prepare(f"SELECT value FROM {name}, json_each(list) GROUP BY value ORDER BY count(*)").all()
        await db.prepare("SELECT value FROM words ORDER BY value").all()
        await db.prepare("SELECT name FROM pragma_table_info('t1')").all()
        await db.prepare(f"DELETE FROM {table} WHERE id % 3 = 1").run()


asyncio.run(main())
"""


def test_functions_of_tables_survive_what_is_written_between() -> None:
    """SQLite crashes on a copy that takes the place of another one, once such a function was used there."""
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", CRASHES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
