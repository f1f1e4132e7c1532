"""The rows that a statement reads: as workerd has recorded them, and as its plan visits them."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from core.assembly.embedded import embed
from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.d1.reads import Counted, counted
from core.backends.embedded.store import Store
from core.config.load import load
from core.context import Clock, system_clock
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
    """Every statement whose reads were recorded: its text, the rows that it read there,
    and those that it reads here.
    """
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


@pytest.fixture(params=["fake", "disk"])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedD1Database]:
    """The fake, and the database that `core dev` opens."""
    clock = FakeClock(0)
    with Store(tmp_path, clock=clock) as store:
        db = FakeD1Database(clock=clock) if request.param == "fake" else opened(tmp_path, store)
        await fill(db)
        yield db


def opened(folder: Path, store: Store) -> EmbeddedD1Database:
    """The database of a configuration, whose rows are counted."""
    (folder / "wrangler.toml").write_text(
        'name = "songs"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n[[d1_databases]]\nbinding = "DB"\ndatabase_id = "1"\n'
    )
    database = embed(load(folder / "wrangler.toml"), store, count_rows=True).values["DB"]
    assert isinstance(database, EmbeddedD1Database)
    return database


def total(db: EmbeddedD1Database) -> int:
    assert db.engine.reads is not None
    return db.engine.reads.total


async def fill(db: EmbeddedD1Database) -> None:
    await db.exec("CREATE TABLE songs (id INTEGER PRIMARY KEY, title TEXT, genre INTEGER)")
    await db.exec("CREATE TABLE plays (day TEXT PRIMARY KEY, song INTEGER) WITHOUT ROWID")
    await db.exec("CREATE INDEX songs_genre ON songs (genre)")
    await db.batch(
        [db.prepare("INSERT INTO songs (title, genre) VALUES (?, ?)").bind(f"n{i}", i % 3) for i in range(10)]
    )
    await db.batch([db.prepare("INSERT INTO plays VALUES (?, ?)").bind(f"n{i}", i + 1) for i in range(4)])


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
    db: EmbeddedD1Database, sql: str, values: tuple[str | int, ...], read: int
) -> None:
    before = total(db)
    statement = db.prepare(sql)
    result = await (statement.bind(*values) if values else statement).run()
    assert result.meta.rows_read == read
    assert total(db) - before == read


async def test_what_an_earlier_statement_of_a_batch_wrote_is_there(db: EmbeddedD1Database) -> None:
    everything = db.prepare("SELECT * FROM songs")
    results = await db.batch([everything, db.prepare("INSERT INTO songs (title) VALUES ('z')"), everything])
    assert [result.meta.rows_read for result in results] == [10, 0, 11]
    with pytest.raises(D1Error):
        await db.batch([db.prepare("DELETE FROM songs"), db.prepare("SELECT * FROM nowhere")])
    assert (await everything.run()).meta.rows_read == 11


async def test_a_table_that_a_batch_makes_is_counted_and_one_that_was_taken_back_is_not(
    db: EmbeddedD1Database,
) -> None:
    made = [
        db.prepare("CREATE TABLE moods (id INTEGER PRIMARY KEY, songs INTEGER)"),
        db.prepare("INSERT INTO moods (songs) SELECT id FROM songs"),
        db.prepare("SELECT * FROM moods"),
    ]
    with pytest.raises(D1Error):
        await db.batch([*made, db.prepare("SELECT * FROM nowhere")])
    results = await db.batch(made)
    if isinstance(db, FakeD1Database):
        assert [result.meta.rows_read for result in results][1:] == [10, 10]
    await db.prepare("DROP TABLE moods").run()
    await db.prepare("CREATE VIEW IF NOT EXISTS moods AS SELECT day, song AS moods FROM plays").run()
    assert (await db.prepare("SELECT * FROM moods").run()).meta.rows_read == 4


async def test_the_rowid_of_a_table_that_was_read_without_it_is_there(db: EmbeddedD1Database) -> None:
    texts = ("SELECT * FROM songs", "SELECT rowid, * FROM songs WHERE genre = 0", "SELECT * FROM songs WHERE genre = 1")
    assert [(await db.prepare(text).run()).meta.rows_read for text in texts] == [10, 4, 3]


async def test_on_disk_nobody_waits_for_a_count_and_a_count_for_nobody(tmp_path: Path) -> None:
    with Store(tmp_path) as store, Store(tmp_path) as other, Store(tmp_path, busy_timeout=0) as third:
        db = opened(tmp_path, store)
        await fill(db)
        everything = db.prepare("SELECT * FROM songs")
        assert (await everything.run()).meta.rows_read == 10
        # Another process is writing: what it has not committed is not read, and not counted.
        with other.database("d1", "1").transaction() as connection:
            connection.execute("INSERT INTO songs (title) VALUES ('z')")
            assert (await everything.run()).meta.rows_read == 10
        connection.execute("CREATE TABLE later AS SELECT id FROM songs")
        assert (await everything.run()).meta.rows_read == 11
        assert (await db.prepare("SELECT * FROM later").run()).meta.rows_read == 11
        # It writes at once after a count, and the log is its own again: no reader is left.
        third.database("d1", "1").connection.execute("DELETE FROM later")
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


async def test_a_statement_of_too_many_rows_is_not_counted_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.assembly.embedded._MOST_COUNTED", 50)
    with Store(tmp_path) as store:
        db = opened(tmp_path, store)
        await fill(db)
        counts = Counted()
        token = counted.set(counts)
        assert (await db.prepare("SELECT count(*) FROM songs a, songs b").run()).meta.rows_read == 1
        assert counts == Counted(1, 1, exact=False)
        await db.prepare("SELECT * FROM songs").run()
        assert counts == Counted(2, 11, exact=False)
        counted.reset(token)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("{} SELECT n FROM up", "exceeded its memory limit"),
        ("{} SELECT count(*) FROM up", "interrupted after"),
        ("INSERT INTO songs (title) {} SELECT n FROM up", "interrupted after"),
    ],
)
async def test_a_statement_without_an_end_is_ended_where_rows_are_counted(statement: str, words: str) -> None:
    db = FakeD1Database()
    await fill(db)
    db.engine.megabytes, db.engine.seconds = 1, 0.05 if "interrupted" in words else 30
    endless = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up)"
    with pytest.raises(D1Error, match=words):
        await db.prepare(statement.format(endless)).all()
    db.engine.seconds = 30
    assert await db.prepare("SELECT count(*) AS n FROM songs").first("n") == 10


async def test_what_follows_a_write_in_a_transaction_on_disk_is_not_counted(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        db = opened(tmp_path, store)
        await fill(db)
        count = db.prepare("SELECT count(*) FROM songs")
        counts = Counted()
        token = counted.set(counts)
        results = await db.batch([count, db.prepare("DELETE FROM songs WHERE id = 1"), count])
        counted.reset(token)
        assert [result.meta.rows_read for result in results] == [10, 1, 1]
        assert counts == Counted(3, 12, exact=False)
        assert (await count.run()).meta.rows_read == 9


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


@pytest.mark.parametrize("clock", [system_clock, FakeClock()], ids=["machine", "fake"])
async def test_a_copy_that_rows_are_counted_in_goes_with_its_database(clock: Clock) -> None:
    db = FakeD1Database(clock=clock)
    await db.exec("CREATE TABLE t (n INTEGER)")
    await db.prepare("SELECT n FROM t WHERE n > 1").all()
    copy = weakref.ref(db._reads._open)
    assert copy() is not None
    del db
    gc.collect()
    assert copy() is None
