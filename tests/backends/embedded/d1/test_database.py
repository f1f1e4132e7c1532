"""The embedded database beyond its contract: Python's own values, time, two connections, what is kept."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import pickle
import sqlite3
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.embedded.d1 import EmbeddedD1Database, Refused, engine_of
from core.backends.embedded.store import Store
from core.bindings.d1 import D1Database, D1DatabaseSession, D1PreparedStatement, D1Result
from core.context import system_clock
from core.errors import D1Error, D1TypeError
from core.testing.clock import FakeClock


@pytest.fixture
def db() -> EmbeddedD1Database:
    return EmbeddedD1Database(Store(), "db")


async def value(db: EmbeddedD1Database, sql: str, *values: Any) -> Any:
    return (await db.prepare(sql).bind(*values).raw())[0][0]


def test_it_is_a_d1_database(db: EmbeddedD1Database) -> None:
    database: D1Database = db
    statement: D1PreparedStatement = database.prepare("SELECT 1")
    session: D1DatabaseSession = database.with_session()
    assert isinstance(database, D1Database)
    assert isinstance(statement, D1PreparedStatement)
    assert isinstance(session, D1DatabaseSession)
    assert repr(db) == "<EmbeddedD1Database :memory:>"
    assert repr(db.prepare("SELECT ?").bind(1)) == "<EmbeddedD1PreparedStatement 'SELECT ?' (1.0,)>"


async def test_two_objects_of_one_name_are_one_database() -> None:
    with Store() as store:
        one, two = EmbeddedD1Database(store, "db"), EmbeddedD1Database(store, "db")
        await one.prepare("CREATE TABLE t (a)").run()
        assert (await two.prepare("SELECT * FROM t").all()).results == []


async def test_the_sql_must_be_text(db: EmbeddedD1Database) -> None:
    with pytest.raises(D1TypeError, match="SQL must be a str, not int"):
        db.prepare(cast("Any", 1))
    with pytest.raises(D1TypeError, match="SQL must be a str, not NoneType"):
        await db.exec(cast("Any", None))
    for given_batch in (None, "SELECT 1", 5, [None]):
        with pytest.raises(D1TypeError, match="batch\\(\\) takes"):
            await db.batch(cast("Any", given_batch))


async def test_named_parameters_are_bound_in_order_of_appearance(db: EmbeddedD1Database) -> None:
    assert await db.prepare("SELECT :a, @b, :a").bind("x", "y").raw() == [["x", "y", "x"]]
    assert await db.prepare("SELECT :a, @a, $a").bind("x", "y", "z").raw() == [["x", "y", "z"]]
    assert await db.prepare("SELECT ?, :a, ?, :a").bind("x", "y", "z").raw() == [["x", "y", "z", "y"]]
    assert await db.prepare("SELECT ?2, ?1, :a").bind("x", "y", "z").raw(True) == [["?2", "?1", ":a"], ["y", "x", "z"]]
    assert await db.prepare("SELECT ?2, :a").bind("x", "y", "z").raw() == [["y", "z"]]
    with pytest.raises(D1Error, match="Wrong number of parameter bindings"):
        await db.prepare("SELECT :a").bind("x", "y").run()


async def test_text_that_is_no_utf8_reads_with_replacement_characters(db: EmbeddedD1Database) -> None:
    assert await value(db, "SELECT CAST(x'ff41' AS TEXT)") == "\ufffdA"
    await db.prepare("CREATE TABLE t (a TEXT)").run()
    inserted = await db.prepare("INSERT INTO t VALUES (CAST(x'ff' AS TEXT)) RETURNING a").all()
    assert inserted.results == [{"a": "\ufffd"}]
    assert await value(db, "SELECT count(*) FROM t") == 1
    assert await value(db, "SELECT 'é'") == "é"


# Recorded of workerd.
@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT ?AS a, ?2", {"a": "x", "?2": "y"}),
        ("SELECT ?1AS a, ?", {"a": "x", "?": "y"}),
        ("SELECT ?1 AS a, ?COLLATE NOCASE", {"a": "x", "?COLLATE NOCASE": "y"}),
    ],
)
async def test_a_word_may_stand_right_behind_a_parameter(db: EmbeddedD1Database, sql: str, row: object) -> None:
    assert await db.prepare(sql).bind("x", "y").first() == row


async def test_half_a_surrogate_pair_is_bound_as_the_platform_does(db: EmbeddedD1Database) -> None:
    assert await value(db, "SELECT ?", "\ud800x") == "\ufffdx"
    assert await value(db, "SELECT '\ud800x'") == "\ufffdx"


async def test_sqls_own_time_follows_the_clock() -> None:
    clock = FakeClock(dt.datetime(2026, 1, 2, 3, 4, 5, 678000, dt.UTC).timestamp())
    with Store(clock=clock) as store:
        db = EmbeddedD1Database(store, "db")
        await db.exec("CREATE TABLE t (at TEXT DEFAULT CURRENT_TIMESTAMP, n INTEGER)")
        await db.prepare("INSERT INTO t (n) VALUES (1)").run()
        clock.advance(86400)
        await db.prepare("INSERT INTO t (n) VALUES (2)").run()
        assert await db.prepare("SELECT at FROM t ORDER BY n").raw() == [
            ["2026-01-02 03:04:05"],
            ["2026-01-03 03:04:05"],
        ]
        sql = (
            "SELECT date('now'), time(), datetime('NOW', '-1 day'), strftime('%Y-%f', 'now'), unixepoch(), CURRENT_DATE"
        )
        assert await db.prepare(sql).raw() == [
            ["2026-01-03", "03:04:05", "2026-01-02 03:04:05", "2026-05.678", 1767409445, "2026-01-03"]
        ]
        assert await value(db, "SELECT datetime('2020-02-28', '+2 days')") == "2020-03-01 00:00:00"
        assert await value(db, "SELECT datetime('nonsense')") is None
        await db.exec("CREATE INDEX by_day ON t (date(at))")


async def test_a_statement_that_fails_halfway_leaves_nothing(db: EmbeddedD1Database) -> None:
    await db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with pytest.raises(D1Error, match="UNIQUE"):
        await db.prepare("INSERT OR FAIL INTO t VALUES (1), (2), (1)").run()
    assert await value(db, "SELECT count(*) FROM t") == 0


async def test_a_database_is_usable_after_every_kind_of_failure(db: EmbeddedD1Database) -> None:
    await db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)")
    await db.prepare("INSERT INTO t VALUES (1)").run()
    for sql in ("INSERT INTO t VALUES (1)", "BEGIN", "SELECT nope", "ATTACH 'x' AS y", "SELECT ?", "VACUUM", "\x00"):
        with pytest.raises(D1Error):
            await db.batch([db.prepare("SELECT 1"), db.prepare(sql)])
        with pytest.raises(D1Error):
            await db.prepare(sql).run()
        assert await value(db, "SELECT count(*) FROM t") == 1


@pytest.mark.parametrize("write", ["", "INSERT INTO t "])
async def test_a_statement_without_an_end_is_ended_and_leaves_nothing(db: EmbeddedD1Database, write: str) -> None:
    await db.exec("CREATE TABLE t (n INTEGER)")
    endless = f"{write}WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT count(*) FROM up"
    db.engine.seconds = 0.01
    for work in (
        db.prepare(endless).all,
        lambda: db.batch([db.prepare("INSERT INTO t VALUES (1)"), db.prepare(endless)]),
    ):
        with pytest.raises(D1Error, match=r"interrupted after 0\.01 s.*needs a LIMIT: SQLITE_INTERRUPT"):
            await work()
    db.engine.seconds = 30.0
    await db.prepare("INSERT INTO t VALUES (7)").run()
    assert await value(db, "SELECT group_concat(n) FROM t") == "7"


@pytest.mark.parametrize(("value", "megabytes"), [("n", 1), ("zeroblob(2000000)", 50)])
async def test_rows_without_an_end_are_ended_before_they_fill_the_memory(
    db: EmbeddedD1Database, value: str, megabytes: int
) -> None:
    assert db.engine.megabytes == 50
    db.engine.megabytes = megabytes
    endless = f"WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT {value} AS v FROM up"
    words = rf"D1 DB's isolate exceeded its memory limit and was reset\. A result has {megabytes} MB at most.*LIMIT"
    for work in (db.prepare(endless).all, lambda: db.batch([db.prepare(endless)])):
        with pytest.raises(D1Error, match=words) as raised:
            await work()
        assert not raised.value.retryable
    if value == "n":
        assert await db.prepare(f"{endless} LIMIT 12345").raw() == [[n] for n in range(1, 12346)]


def test_the_rows_of_an_object_s_sql_are_ended_as_its_memory_is() -> None:
    with Store() as store:
        engine = engine_of(store.database("durable_object", "x"), store.clock, of_object=True)
        endless = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT zeroblob(2000000) FROM up"
        with pytest.raises(Refused, match=r"^Durable Object's isolate exceeded .* 128 MB"):
            engine.inside(endless, ())


async def test_a_name_in_double_quotes_is_a_string_once_its_column_is_gone(db: EmbeddedD1Database) -> None:
    await db.exec("CREATE TABLE t (a, b)")
    await db.prepare("INSERT INTO t VALUES ('x', 'y')").run()
    statement = db.prepare('SELECT "b" AS b FROM t')
    assert await statement.first("b") == "y"
    await db.exec("ALTER TABLE t DROP COLUMN b")
    assert await statement.first("b") == "b"


async def test_the_cause_of_an_error_has_no_prefix(db: EmbeddedD1Database) -> None:
    with pytest.raises(D1Error) as caught:
        await db.prepare("SELECT * FROM nope").run()
    assert caught.value.cause_message == "no such table: nope: SQLITE_ERROR"
    with pytest.raises(D1Error) as caught:
        await db.exec("BAD")
    assert caught.value.cause_message == 'Error in line 1: BAD: near "BAD": syntax error at offset 0: SQLITE_ERROR'
    with pytest.raises(D1Error) as caught:
        db.prepare("SELECT ?").bind(cast("Any", {}))
    assert caught.value.cause_message == "Type 'object' not supported for value '[object Object]'"
    with pytest.raises(D1Error, match=r"D1_DUMP_ERROR: Status \+ 404"):
        await db.dump()


async def test_a_change_of_another_connection_is_seen(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        db = EmbeddedD1Database(store, "db")
        await db.exec("CREATE TABLE t (a)")
        statement = db.prepare("SELECT * FROM t")
        assert (await statement.all()).results == []
        other = sqlite3.connect(tmp_path / "d1" / "db.sqlite", isolation_level=None)
        other.execute("ALTER TABLE t ADD COLUMN b DEFAULT 'new'")
        other.execute("INSERT INTO t (a) VALUES (1)")
        other.close()
        assert (await statement.all()).results == [{"a": 1, "b": "new"}]


async def test_plans_do_not_pile_up(db: EmbeddedD1Database) -> None:
    for index in range(1100):
        await db.prepare(f"SELECT {index}").first()
    assert len(db.engine._plans) == 1000


async def test_the_size_of_the_database_grows(db: EmbeddedD1Database) -> None:
    await db.exec("CREATE TABLE t (a)")
    before = (await db.prepare("SELECT 1").run()).meta.size_after
    for _ in range(100):
        await db.prepare("INSERT INTO t VALUES (?)").bind("x" * 1000).run()
    assert (await db.prepare("SELECT 1").run()).meta.size_after > before


async def test_bookmarks_of_a_session_go_up(db: EmbeddedD1Database) -> None:
    session = db.with_session("first-primary")
    seen: list[str | None] = []
    for _ in range(20):
        await session.prepare("SELECT 1").run()
        seen.append(session.get_bookmark())
    assert seen == sorted(set(cast("list[str]", seen)))
    assert db.with_session(seen[-1]).get_bookmark() == seen[-1]


plain = st.none() | st.booleans() | st.floats() | st.text(st.characters(exclude_categories=["Cs"])) | st.binary()
values = plain | st.integers(-(2**53) + 1, 2**53 - 1)


@given(values)
def test_every_value_comes_back_equal(given_value: Any) -> None:
    async def run() -> None:
        with Store() as store:
            found = await value(EmbeddedD1Database(store, "db"), "SELECT ?", given_value)
            if isinstance(given_value, float) and not abs(given_value) < float("inf"):
                assert found is None
            else:
                assert found == given_value

    asyncio.run(run())


async def test_a_meta_that_nobody_asked_for_yet_is_there_for_whatever_reads_the_result(db: EmbeddedD1Database) -> None:
    result = await db.prepare("SELECT 1 AS one").run()
    assert copy.deepcopy(result) == pickle.loads(pickle.dumps(result)) == result
    assert D1Result([{"one": 1}], result.meta) == result
    assert attrs.asdict(await db.prepare("SELECT 1 AS one").run())["meta"]["served_by"] == "core.embedded"
    assert "D1Meta(served_by='core.embedded'" in repr(await db.prepare("SELECT 1 AS one").run())
    assert attrs.evolve(await db.prepare("SELECT 1 AS one").run(), results=[]).meta.rows_read == 1
    with pytest.raises(AttributeError, match="'D1Result' object has no attribute 'nope'"):
        _ = result.nope  # type: ignore[attr-defined]  # that is what is asked


# ---------------------------------------------------------------------- all or nothing


@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE t (n UNIQUE ON CONFLICT FAIL)",
        "CREATE TABLE t (n NOT NULL ON CONFLICT FAIL, CHECK (n <> 2)); CREATE UNIQUE INDEX u ON t (n)",
        "CREATE TABLE t (n); CREATE TRIGGER g AFTER INSERT ON t WHEN new.n IN (3, NULL) BEGIN SELECT raise ( fail, 'x'); END",
    ],
)
async def test_a_statement_that_fails_keeps_none_of_its_rows(tmp_path: Path, place: str, schema: str) -> None:
    with Store(tmp_path if place == "disk" else None) as store:
        db = EmbeddedD1Database(store, "n")
        # Before and after the schema says FAIL: what is known of it must not be old.
        await db.exec("CREATE TABLE other (n)")
        await db.prepare("INSERT INTO other VALUES (1)").run()
        await db.prepare(schema).run()
        for sql in ("INSERT INTO t VALUES (1), (3), (3), (NULL)", "INSERT INTO t SELECT 1 UNION ALL VALUES (3), (3)"):
            with pytest.raises(D1Error):
                await db.prepare(sql).run()
            assert await db.prepare("SELECT count(*) AS n FROM t").first("n") == 0


async def test_a_schema_that_another_process_brought_keeps_no_rows_either(tmp_path: Path) -> None:
    with Store(tmp_path) as one, Store(tmp_path) as two:
        here, there = EmbeddedD1Database(one, "n"), EmbeddedD1Database(two, "n")
        await here.exec("CREATE TABLE t (n)")
        await here.prepare("INSERT INTO t VALUES (1), (2)").run()
        await there.exec("CREATE TRIGGER g AFTER INSERT ON t WHEN new.n = 3 BEGIN SELECT RAISE(FAIL, 'three'); END")
        with pytest.raises(D1Error, match="three"):
            await here.prepare("INSERT INTO t VALUES (1), (2), (3)").run()
        assert await here.prepare("SELECT count(*) AS n FROM t").first("n") == 2


# ---------------------------------------------------------------------- a test's clock

DATED = [
    [
        "CREATE TABLE t (a CHECK (a < datetime('now')))",
        "INSERT INTO t VALUES ('2020')",
        "INSERT OR IGNORE INTO t VALUES (1)",
    ],
    ["CREATE TABLE t (a CHECK (a < current_timestamp))", "INSERT INTO t VALUES ('2020')"],
    ['CREATE TABLE t (a, CHECK (a < "datetime"()))', "INSERT INTO t VALUES ('2020')"],
    ["CREATE TABLE t (a CHECK (a < strftime('%s')))", "INSERT INTO t VALUES ('2020')", "SELECT * FROM t"],
    [
        "CREATE TABLE t (a CHECK (strftime('%s', a) > '0' AND date(a, '+1 day') > ''))",
        "INSERT INTO t VALUES ('2020-01-01')",
    ],
    ["CREATE TABLE t (a, b AS (datetime( ('NOW') )))", "INSERT INTO t (a) VALUES (1)", "SELECT a FROM t"],
    ["CREATE TABLE t (a, b AS (unixepoch('now')) STORED)", "INSERT INTO t (a) VALUES (1)"],
    ["CREATE TABLE t (a, b AS (current_timestamp) STORED)", "SELECT * FROM t"],
    ["CREATE TABLE t (a, b AS (date(a)))", "INSERT INTO t (a) VALUES ('2020-01-01 10:00:00')", "SELECT b FROM t"],
    [
        "CREATE TABLE t (a)",
        "INSERT INTO t VALUES (1)",
        "CREATE INDEX i ON t (datetime('now'))",
        "INSERT INTO t VALUES (2)",
    ],
    ["CREATE TABLE t (a)", "CREATE INDEX i ON t (a, julianday('now'))", "INSERT INTO t VALUES (1)", "DROP INDEX i"],
    ["CREATE TABLE t (a)", "CREATE INDEX i ON t (a) WHERE a > time('now')", "INSERT INTO t VALUES (1)"],
    ["CREATE TABLE t (a)", "CREATE INDEX i ON t (current_date)", "INSERT INTO t VALUES (1)"],
    ["CREATE TABLE t (a)", "CREATE INDEX i ON t (date(a))", "INSERT INTO t VALUES ('2020-01-01')"],
    ["CREATE TABLE t (a, at TEXT DEFAULT (datetime('now')), b CHECK (a > 0))", "INSERT INTO t (a) VALUES (1)"],
    ["CREATE TABLE t (a, at DEFAULT CURRENT_TIMESTAMP)", "INSERT INTO t (a) VALUES (date('now'))"],
    [
        "CREATE TABLE t (a CHECK (a > date('now')))",
        "CREATE TABLE u (a)",
        "CREATE TRIGGER g AFTER INSERT ON u BEGIN INSERT INTO t VALUES (new.a); END",
        "INSERT INTO u VALUES ('2020')",
    ],
    ["CREATE TABLE t (a CHECK (a > date('now')))", "DROP TABLE t", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)"],
    ["CREATE TABLE t (a)", "ALTER TABLE t ADD COLUMN b CHECK (b > date('now'))", "INSERT INTO t VALUES (1, 2)"],
    ["CREATE VIRTUAL TABLE t USING fts5 (date, note)", "INSERT INTO t VALUES ('a', 'b')", "SELECT note FROM t"],
]


@pytest.mark.parametrize("script", DATED, ids=lambda script: script[0])
async def test_a_tests_clock_changes_no_refusal(script: list[str]) -> None:
    said: list[list[str]] = []
    for clock in (system_clock, FakeClock()):
        answers: list[str] = []
        with Store(clock=clock) as store:
            db = EmbeddedD1Database(store, "n")
            for sql in script:
                try:
                    result = await db.prepare(sql).all()
                    answers.append("" if "now" in sql or "CURRENT" in sql else str(result.results))
                except D1Error as error:
                    # SQLite's words for what is never deterministic depend on its version.
                    answers.append(str(error).replace(" index expressions", " indexes"))
        said.append(answers)
    assert said[0] == said[1]


async def test_the_present_is_refused_however_a_row_asks_for_it() -> None:
    # What Python's own SQLite does not know yet is refused as well, as on the platform.
    with Store(clock=FakeClock()) as store:
        db = EmbeddedD1Database(store, "db")
        await db.exec("CREATE TABLE t (a, z, b AS (strftime('%Y', a, z)) STORED)")
        for a, z in (("now", "+1 day"), ("SUBSEC", "+1 day"), ("subsecond", "+1 day"), ("2024-02-10", "UTC")):
            with pytest.raises(D1Error, match=r"non-deterministic use of strftime\(\) in a generated column"):
                await db.prepare("INSERT INTO t (a, z) VALUES (?, ?)").bind(a, z).run()
        for wrong in ("date(a, 'localtime')", "strftime('%Y')", "date('subsec')"):
            await db.exec(f"CREATE TABLE w (a CHECK ({wrong} > '1'))")
            with pytest.raises(D1Error, match="non-deterministic use of"):
                await db.exec("INSERT INTO w VALUES ('2024-02-10')")
            await db.exec("DROP TABLE w")
        # A format is none of the times.
        assert await db.prepare("SELECT strftime('now', '2024-02-10') AS t").first("t") == "now"


async def test_a_column_of_the_present_cannot_be_added_to_rows() -> None:
    # SQLite takes it, and refuses every SELECT of it from then on. The fake refuses it at once.
    with Store(clock=FakeClock()) as store:
        db = EmbeddedD1Database(store, "n")
        await db.exec("CREATE TABLE t (a)")
        await db.prepare("INSERT INTO t VALUES (1)").run()
        with pytest.raises(D1Error, match=r"non-deterministic use of date\(\) in a generated column: SQLITE_ERROR"):
            await db.exec("ALTER TABLE t ADD COLUMN b AS (date('now'))")
        assert await db.prepare("SELECT * FROM t").first() == {"a": 1}


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT ?1, ?1, ?2", ["?1", "?1", "?2"]),
        ("SELECT ?2, ?1", ["?2", "?1"]),
        ("SELECT ?1, ?", ["?1", "?"]),
        ("SELECT ':_p0' || ?1, ?", ["':_p0' || ?1", "?"]),
        ("SELECT ':_p0:_pp1' || ?1, ?", ["':_p0:_pp1' || ?1", "?"]),
        ("SELECT ?2", ["?2"]),
        ("SELECT :a, @a", [":a", "@a"]),
        ("SELECT DISTINCT ?1 AS a, ? b, ?2", ["a", "b", "?2"]),
        (
            "SELECT ?1 || '(?', (SELECT ? LIMIT 1) IS NULL, max(?2, 1)",
            ["?1 || '(?'", "(SELECT ? LIMIT 1) IS NULL", "max(?2, 1)"],
        ),
        ("WITH c AS (SELECT ?1) SELECT ?, ?1 FROM c UNION SELECT ?2, 3", ["?", "?1"]),
        ("SELECT *, ?1, ? FROM (SELECT 1 AS a, 2 AS b)", ["a", "b", "?1", "?"]),
        ("INSERT INTO t SELECT ?1, ? RETURNING a, ?2, ?1 + 1", ["a", "?2", "?1 + 1"]),
    ],
)
async def test_a_column_without_a_name_is_named_by_its_expression(sql: str, names: list[str]) -> None:
    with Store() as store:
        db = EmbeddedD1Database(store, "x")
        await db.exec("CREATE TABLE t (a, b)")
        assert (await db.prepare(sql).bind(1, 2).raw(True))[0] == names


async def test_a_strict_table_says_by_which_rule_it_refuses() -> None:
    with Store() as store:
        db = EmbeddedD1Database(store, "x")
        await db.exec("CREATE TABLE t (a INTEGER) STRICT")
        with pytest.raises(D1Error, match=r"SQLITE_CONSTRAINT \(extended: SQLITE_CONSTRAINT_DATATYPE\)$"):
            await db.prepare("INSERT INTO t VALUES ('x')").run()
