"""The promises of every SQL database. The wording of the errors is the platform's and SQLite's."""

# mypy: disable-error-code="core-sql"
# Refused statements are written here on purpose; our own plugin would tell it beforehand.

from __future__ import annotations

import datetime as dt
from typing import Any, cast

import attrs
from tests.contracts.contract import Contract, refused

from core import UNSET, conflict
from core.bindings.d1 import D1Database, D1PreparedStatement
from core.errors import CoreError, D1Error, D1TypeError, ValidationError
from core.validation.mistakes import StructureError

TRANSACTION = "D1_ERROR: To execute a transaction, please use the state.storage.transaction()"
DENIED = "D1_ERROR: not authorized: SQLITE_AUTH"
WRONG_COUNT = "D1_ERROR: Wrong number of parameter bindings for SQL query."
USERS = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE, age INTEGER)"


async def clean(db: D1Database) -> None:
    """Drop everything that was made."""
    found = await db.prepare(
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND sql IS NOT NULL ORDER BY type DESC"
    ).raw()
    if found:
        drops = [db.prepare(f'DROP {kind} IF EXISTS "{name}"') for kind, name in found]
        await db.batch([db.prepare("PRAGMA defer_foreign_keys = ON"), *drops])


contract: Contract[D1Database] = Contract("d1", clean)


@attrs.frozen
class User:
    """A row of the users."""

    id: int
    name: str
    email: str | None = None


@attrs.frozen
class Known:
    """A part of a user."""

    name: str
    age: int | None
    email: str | None


@attrs.frozen
class Place:
    """A part of a JSON text."""

    city: str
    open: bool = False


@attrs.frozen
class Document:
    """A row with JSON texts in it."""

    tags: list[str]
    counts: dict[str, int]
    place: Place
    places: list[Place] | None


@attrs.frozen
class Author:
    """A class whose columns have a name with a dot."""

    name: str
    place: Place | None


@attrs.frozen
class Post:
    """A row with a class in it."""

    title: str
    author: Author | None


@attrs.frozen
class Typed:
    """A class for the values of a row."""

    flag: bool
    ratio: float
    moment: dt.datetime
    data: bytes
    missing: str | None


async def with_users(db: D1Database) -> None:
    """Three users."""
    await db.exec(USERS)
    await db.prepare(
        "INSERT INTO users VALUES (1, 'Ann', 'ann@x.test', 30), (2, 'Bob', 'bob@x.test', NULL), (3, 'Cyd', NULL, 41)"
    ).run()


async def made(db: D1Database, sql: str, *values: Any) -> D1PreparedStatement:
    """A statement with values."""
    return db.prepare(sql).bind(*values)


async def one(db: D1Database, sql: str, *values: Any) -> Any:
    """The value of a query that gives one."""
    statement: D1PreparedStatement = db.prepare(sql)
    return (await (statement.bind(*values) if values else statement).raw())[0][0]


# ---------------------------------------------------------------------- rows


@contract.case()
async def first_gives_a_row_a_column_or_a_type(db: D1Database) -> None:
    await with_users(db)
    by_id = db.prepare("SELECT id, name, email FROM users WHERE id = ?")
    assert await by_id.bind(1).first() == {"id": 1, "name": "Ann", "email": "ann@x.test"}
    assert await by_id.bind(1).first("name") == "Ann"
    assert await by_id.bind(3).first("email") is None
    assert await by_id.bind(3).first(User) == User(3, "Cyd")
    assert await by_id.bind(4).first() is None
    assert await by_id.bind(4).first("nope") is None
    assert await by_id.bind(4).first(User) is None


@contract.case()
async def a_missing_column_is_an_error_where_there_is_a_row(db: D1Database) -> None:
    statement = db.prepare("SELECT 1 AS id")
    await refused(statement.first("nope"), D1Error, "D1_COLUMN_NOTFOUND: Column not found (nope)")
    await refused(statement.first("ID"), D1Error, "D1_COLUMN_NOTFOUND: Column not found (ID)")


@contract.case()
async def all_and_run_give_rows_and_meta(db: D1Database) -> None:
    await with_users(db)
    statement = db.prepare("SELECT id, name FROM users WHERE id < 3 ORDER BY id")
    for result in (await statement.all(), await statement.run()):
        assert result.results == [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]
        assert result.success is True
        assert result.meta.changes == 0
        assert result.meta.changed_db is False
        assert result.meta.duration >= 0
        assert result.meta.size_after > 0
        assert result.meta.served_by
    typed = await statement.all(User)
    assert typed.results == [User(1, "Ann"), User(2, "Bob")]


@contract.case()
async def rows_are_structured_strictly(db: D1Database) -> None:
    sql = "SELECT 1 AS flag, 2 AS ratio, '2026-01-02 03:04:05' AS moment, x'00ff' AS data, NULL AS missing"
    expected = Typed(True, 2.0, dt.datetime(2026, 1, 2, 3, 4, 5), b"\x00\xff", None)
    assert await db.prepare(sql).first(Typed) == expected
    wrong = db.prepare("SELECT 1 AS id, 'Ann' AS name UNION ALL SELECT 'x', NULL")
    error = await refused(wrong.all(User), StructureError)
    assert sorted(issue["path"] for issue in error.issues) == ["results[1].id", "results[1].name"]


@contract.case()
async def one_gives_a_row_that_has_to_be_there(db: D1Database) -> None:
    await with_users(db)
    by_id = db.prepare("SELECT id, name, email FROM users WHERE id = ?")
    assert await by_id.bind(1).one() == {"id": 1, "name": "Ann", "email": "ann@x.test"}
    assert await by_id.bind(3).one("email") is None
    assert await by_id.bind(3).one(User) == User(3, "Cyd")
    error = await refused(by_id.bind(4).one(User), CoreError, "Not Found")
    assert error.status == 404
    await refused(by_id.bind(4).one("email"), CoreError)
    await refused(by_id.bind(4).one(error=KeyError("user 4")), KeyError, "'user 4'")
    await refused(by_id.bind(1).one("nope"), D1Error, "D1_COLUMN_NOTFOUND: Column not found (nope)")


@contract.case()
async def a_statement_says_what_its_rows_become(db: D1Database) -> None:
    await with_users(db)
    by_id = db.prepare("SELECT id, name FROM users WHERE id = ?").as_(User)
    assert await by_id.bind(1).first() == User(1, "Ann")
    assert await by_id.bind(1).first("name") == "Ann"
    assert await by_id.bind(9).first() is None
    assert await by_id.bind(2).one() == User(2, "Bob")
    assert (await by_id.bind(2).all()).results == [User(2, "Bob")]
    assert (await by_id.bind(2).run()).results == [User(2, "Bob")]
    assert await by_id.bind(2).raw() == [[2, "Bob"]]
    count = db.prepare("SELECT count(*) AS n FROM users")
    users, counted = await db.batch((db.prepare("SELECT id, name FROM users WHERE id < 3").as_(User), count))
    assert users.results == [User(1, "Ann"), User(2, "Bob")]
    assert counted.results == [{"n": 3}]
    assert [result.results for result in await db.batch([by_id.bind(1), by_id.bind(9)])] == [[User(1, "Ann")], []]
    error = await refused(db.batch([db.prepare("SELECT 'x' AS id, 'y' AS name").as_(User)]), StructureError)
    assert [issue["path"] for issue in error.issues] == ["results[0].id"]


@contract.case()
async def json_text_fills_lists_and_classes(db: D1Database) -> None:
    statement = db.prepare(
        "SELECT json_array('a', 'b') AS tags, '{\"a\": 1}' AS counts, json_object('city', 'Bonn', 'open', json('true'))"
        " AS place, ? AS places"
    )
    expected = Document(["a", "b"], {"a": 1}, Place("Bonn", True), None)
    assert await statement.bind(None).one(Document) == expected
    assert await statement.bind('[{"city": "Ulm"}]').one(Document) == attrs.evolve(expected, places=[Place("Ulm")])
    error = await refused(statement.bind('[{"city": 1}, {}]').one(Document), StructureError)
    assert [issue["path"] for issue in error.issues] == ["places[0].city", "places[1].city"]
    error = await refused(statement.bind("not JSON").one(Document), StructureError)
    assert error.issues == [{"path": "places", "message": "must be an array, as JSON text"}]


@contract.case()
async def columns_with_a_dot_fill_classes(db: D1Database) -> None:
    await with_users(db)
    sql = """
        SELECT title, u.name AS "author.name", city AS "author.place.city", open AS "author.place.open"
        FROM (SELECT 1 AS by, 'one' AS title, 'Bonn' AS city, 1 AS open UNION ALL SELECT 2, 'two', NULL, NULL
              UNION ALL SELECT 9, 'three', NULL, NULL)
        LEFT JOIN users u ON u.id = by ORDER BY by
    """
    one, two = Post("one", Author("Ann", Place("Bonn", True))), Post("two", Author("Bob", None))
    statement = db.prepare(sql).as_(Post)
    assert (await statement.all()).results == [one, two, Post("three", None)]
    assert await statement.first() == await statement.one() == one
    assert [result.results[1] for result in await db.batch([statement, statement])] == [two, two]
    assert await statement.first("author.place.city") == "Bonn"
    wrong = db.prepare('SELECT \'x\' AS title, 1 AS "author.name", NULL AS "author.place.city"')
    error = await refused(wrong.all(Post), StructureError)
    assert error.issues == [{"path": "results[0].author.name", "message": "must be a string"}]


@contract.case()
async def many_rows_arrive_as_they_were_put(db: D1Database) -> None:
    await db.prepare("CREATE TABLE many (id INTEGER PRIMARY KEY, word TEXT, number REAL, data BLOB)").run()
    put = [(n, f"Zoë {n} \U0001f600", n / 4, bytes([n])) for n in range(99)]
    insert = db.prepare("INSERT INTO many (id, word, number, data) VALUES (?, ?, ?, ?)")
    await db.batch([insert.bind(99, None, None, None), *(insert.bind(*row) for row in put)])
    rows: list[tuple[Any, ...]] = [*put, (99, None, None, None)]
    select = db.prepare("SELECT * FROM many ORDER BY id")
    columns = ["id", "word", "number", "data"]
    assert (await select.all()).results == [dict(zip(columns, row, strict=True)) for row in rows]
    assert await select.raw(column_names=True) == [columns, *map(list, rows)]


@contract.case()
async def raw_gives_lists(db: D1Database) -> None:
    await with_users(db)
    statement = db.prepare("SELECT id, name FROM users WHERE id < ? ORDER BY id")
    assert await statement.bind(3).raw() == [[1, "Ann"], [2, "Bob"]]
    assert await statement.bind(3).raw(column_names=True) == [["id", "name"], [1, "Ann"], [2, "Bob"]]
    assert await statement.bind(0).raw(True) == [["id", "name"]]
    assert await db.prepare("UPDATE users SET age = 1").raw() == []
    assert await db.prepare("UPDATE users SET age = 1").raw(column_names=True) == [[]]


@contract.case()
async def of_two_columns_of_one_name_the_last_wins(db: D1Database) -> None:
    statement = db.prepare("SELECT 1 AS a, 2 AS b, 3 AS a")
    assert await statement.first() == {"a": 3, "b": 2}
    assert await statement.raw(True) == [["a", "b", "a"], [1, 2, 3]]


# ---------------------------------------------------------------------- values


@contract.case()
async def every_number_is_bound_as_real(db: D1Database) -> None:
    assert await one(db, "SELECT typeof(?)", 42) == "real"
    assert await one(db, "SELECT typeof(?)", True) == "real"
    assert await one(db, "SELECT 7 / ?", 2) == 3.5
    assert await one(db, "SELECT 'n' || ?", 5) == "n5.0"
    await db.exec("CREATE TABLE t (i INTEGER, x TEXT)")
    await db.prepare("INSERT INTO t VALUES (?, ?)").bind(42, 5).run()
    assert await db.prepare("SELECT i, typeof(i) AS t, x FROM t").first() == {"i": 42, "t": "integer", "x": "5.0"}


@contract.case()
async def values_come_back_as_they_went_in(db: D1Database) -> None:
    for value in (None, 0, -1, 1.5, 1e308, 2**53 - 1, "", 'it\'s "x" \\ ? ;--', "é😀", "a\x00b", b"", b"\x00\xff"):
        assert await one(db, "SELECT ?", value) == value, value
    assert await one(db, "SELECT ?", True) == 1
    assert await one(db, "SELECT ?", [1, 2, 255]) == b"\x01\x02\xff"
    assert await one(db, "SELECT ?", bytearray(b"ab")) == b"ab"
    assert await one(db, "SELECT ?", float("nan")) is None
    assert await one(db, "SELECT ?", float("inf")) is None
    assert await one(db, "SELECT 9e999") is None


@contract.case()
async def whole_numbers_come_back_as_int(db: D1Database) -> None:
    assert type(await one(db, "SELECT 3.0")) is int
    assert type(await one(db, "SELECT 3.5")) is float
    assert await one(db, "SELECT 9007199254740993") == 9007199254740992


@contract.case()
async def half_a_surrogate_pair_in_a_value_is_replaced(db: D1Database) -> None:
    assert await one(db, "SELECT ?", "a\ud800é") == "a\ufffdé"
    assert await one(db, "SELECT 'a\ud800é'") == "a\ufffdé"


@contract.case()
async def other_kinds_of_values_are_refused_at_bind(db: D1Database) -> None:
    def binding(value: Any) -> str:
        try:
            db.prepare("NOT SQL").bind(value)
        except TypeError as refusal:
            return str(refusal) if isinstance(refusal, D1TypeError) else repr(refusal)
        raise AssertionError(f"{value!r} was bound")

    assert binding({"a": 1}) == "D1_TYPE_ERROR: Type 'object' not supported for value '[object Object]'"
    assert binding(["a", "b"]) == "D1_TYPE_ERROR: Type 'object' not supported for value 'a,b'"
    assert binding([256]) == "D1_TYPE_ERROR: Type 'object' not supported for value '256'"
    large = "is beyond 2**53 - 1, which no number of the platform can hold. Bind it as a string"
    assert binding(2**53) == f"D1_TYPE_ERROR: 9007199254740992 {large}"
    assert binding(-(2**60)) == f"D1_TYPE_ERROR: {-(2**60)} {large}"
    assert binding(dt.datetime(2026, 1, 1)).startswith("D1_TYPE_ERROR: ")
    assert binding(object()).startswith("D1_TYPE_ERROR: ")


@contract.case()
async def bind_makes_a_new_statement(db: D1Database) -> None:
    statement = db.prepare("SELECT ? AS a")
    x, y = statement.bind("x"), statement.bind("y")
    assert await x.first("a") == "x"
    assert await y.first("a") == "y"
    assert await x.bind("z").first("a") == "z"
    await refused(statement.first(), D1Error, WRONG_COUNT)


@contract.case()
async def an_update_leaves_out_what_is_unset(db: D1Database) -> None:
    await with_users(db)
    update = db.prepare("UPDATE users SET name = ?, age = ?, email = ? WHERE id = ? RETURNING name, age, email").as_(
        Known
    )
    before = await update.bind("ada", 36, "a@x", 1).one()
    assert await update.bind(UNSET, UNSET, UNSET, 1).one() == before
    assert await update.bind("eve", UNSET, None, 1).one() == Known("eve", 36, None)
    # Bound anew it is the whole statement again.
    assert await update.bind(UNSET, 1, UNSET, 1).bind("ada", 2, "b@x", 1).one() == Known("ada", 2, "b@x")
    one, two = await db.batch((update.bind(UNSET, 3, UNSET, 1), update.bind(UNSET, UNSET, "c@x", 1)))
    assert (one.results, two.results) == ([Known("ada", 3, "b@x")], [Known("ada", 3, "c@x")])
    kept = db.with_session().prepare("UPDATE users SET name = ?, age = ? WHERE id = 1 RETURNING name, age, email")
    assert await kept.bind(UNSET, 4).one(Known) == Known("ada", 4, "c@x")
    for sql in ("DELETE FROM users WHERE id = ?", "INSERT INTO users (name) VALUES (?)", "SELECT ?"):
        assert "value 1 is UNSET" in str(await refused(made(db, sql, UNSET), D1TypeError))
    assert await db.prepare("SELECT count(*) AS n FROM users WHERE id = 1").first("n") == 1


@contract.case()
async def parameters_are_counted(db: D1Database) -> None:
    await refused(db.prepare("SELECT ?, ?").bind(1).first(), D1Error, WRONG_COUNT)
    await refused(db.prepare("SELECT ?").bind(1, 2).first(), D1Error, WRONG_COUNT)
    await refused(db.prepare("SELECT ?3").bind(1).first(), D1Error, WRONG_COUNT)
    assert await db.prepare("SELECT ?2 AS a, ?1 AS b, ?2 AS c").bind("x", "y").raw() == [["y", "x", "y"]]
    assert await db.prepare("SELECT '?' AS a, ? AS b /* ? */ -- ?").bind("x").raw() == [["?", "x"]]


@contract.case()
async def a_hundred_values_are_bound_and_no_more(db: D1Database) -> None:
    hundred = ", ".join("?" * 100)
    row = await db.prepare(f"SELECT 1 IN ({hundred}) AS found").bind(*[0] * 99, 1).first("found")
    assert row == 1
    error = await refused(db.prepare(f"SELECT 1 IN ({hundred}, ?)").bind(*[0] * 101).first(), D1Error)
    assert str(error).startswith("D1_ERROR: too many SQL variables")
    error = await refused(db.prepare("SELECT ?101").bind(1).first(), D1Error)
    assert str(error).startswith("D1_ERROR: variable number must be between ?1 and ?100")


# ---------------------------------------------------------------------- statements


@contract.case()
async def errors_are_sqlites_in_the_platforms_words(db: D1Database) -> None:
    await with_users(db)
    for sql, message in (
        ("SELEC 1", 'near "SELEC": syntax error at offset 0: SQLITE_ERROR'),
        ("SELECT * FROM", "incomplete input: SQLITE_ERROR"),
        ("SELECT * FROM nope", "no such table: nope: SQLITE_ERROR"),
        ("SELECT nope FROM users", "no such column: nope at offset 7: SQLITE_ERROR"),
        ("UPDATE users SET nope = 1", "no such column: nope: SQLITE_ERROR"),
        ("SELECT sqlite_version()", "not authorized to use function: sqlite_version at offset 7: SQLITE_ERROR"),
        (
            "INSERT INTO users (name, email) VALUES ('x', 'ann@x.test')",
            "UNIQUE constraint failed: users.email: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
        ),
        (
            "INSERT INTO users (id) VALUES (9)",
            "NOT NULL constraint failed: users.name: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
        ),
        ("SELECT 1 LIMIT 1.5", "datatype mismatch: SQLITE_MISMATCH"),
        ("", "No SQL statements detected."),
        (";", "SQL code did not contain a statement."),
        ("SELECT 1;;", "SQL code did not contain a statement."),
        ("SELECT 1; -- done", "SQL code did not contain a statement."),
    ):
        error = await refused(db.prepare(sql).run(), D1Error, f"D1_ERROR: {message}")
        assert error.cause_message in (None, message)


@contract.case()
async def an_error_says_which_constraint_was_broken(db: D1Database) -> None:
    for sql in (
        "CREATE TABLE parents (id INTEGER PRIMARY KEY, a TEXT, b TEXT, UNIQUE (a, b))",
        "CREATE TABLE words (word TEXT)",
        "CREATE UNIQUE INDEX lowered ON words (lower(word))",
        "INSERT INTO words VALUES ('x')",
        "CREATE TABLE t (k TEXT PRIMARY KEY, n TEXT NOT NULL, c INTEGER CHECK (c > 0), p REFERENCES parents (id))",
        "CREATE TRIGGER tr BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'UNIQUE constraint failed: t.k'); END",
        "INSERT INTO parents VALUES (1, 'x', 'y')",
        "INSERT INTO t VALUES ('k', 'n', 1, 1)",
    ):
        await db.prepare(sql).run()
    cases: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
        ("INSERT INTO parents (a, b) VALUES ('x', 'y')", "UNIQUE", ("parents.a", "parents.b")),
        ("INSERT INTO words VALUES ('X')", "UNIQUE", ()),
        ("INSERT INTO parents (id) VALUES (1)", "PRIMARY KEY", ("parents.id",)),
        ("INSERT INTO t VALUES ('k', 'n', 1, 1)", "PRIMARY KEY", ("t.k",)),
        ("INSERT INTO t (k) VALUES ('l')", "NOT NULL", ("t.n",)),
        ("INSERT INTO t VALUES ('l', 'n', 0, 1)", "CHECK", ()),
        ("INSERT INTO t VALUES ('l', 'n', 1, 2)", "FOREIGN KEY", ()),
        ("DELETE FROM t", None, ()),
        ("INSERT INTO nope VALUES ('UNIQUE constraint failed: t.k')", None, ()),
    )
    for sql, constraint, columns in cases:
        error = await refused(db.prepare(sql).run(), D1Error)
        assert isinstance(error, D1Error)
        assert (sql, error.constraint, error.columns) == (sql, constraint, columns), str(error)
    error = await refused(db.exec("INSERT INTO t (k) VALUES ('UNIQUE constraint failed: t.k')"), D1Error)
    assert isinstance(error, D1Error)
    assert (error.constraint, error.columns) == ("NOT NULL", ("t.n",)), str(error)


@contract.case()
async def a_conflict_names_the_columns_that_may_be_told_and_no_value(db: D1Database) -> None:
    for sql in (
        USERS,
        "CREATE TABLE words (word TEXT, lang TEXT, UNIQUE (lang, word))",
        "CREATE TABLE lowered (word TEXT, lang TEXT)",
        "CREATE UNIQUE INDEX lower_words ON lowered (lower(word))",
        "CREATE TABLE t (k TEXT PRIMARY KEY)",
        "INSERT INTO lowered VALUES ('secret', 'en')",
        "INSERT INTO users (name, email) VALUES ('a', 'secret@x.test')",
        "INSERT INTO words VALUES ('secret', 'en')",
        "INSERT INTO t VALUES ('secret')",
    ):
        await db.prepare(sql).run()
    email = "INSERT INTO users (name, email) VALUES ('UNIQUE constraint failed: users.name', 'secret@x.test')"
    expression = "INSERT INTO lowered VALUES ('SECRET', 'de')"
    cases: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
        (email, ("email",), ("email",)),
        (email, ("name", "email"), ("email",)),
        (email, ("name",), ()),
        ("INSERT INTO words VALUES ('secret', 'en')", ("word", "lang"), ("word", "lang")),
        ("INSERT INTO words VALUES ('secret', 'en')", ("word",), ("word",)),
        (expression, ("word",), ("word",)),
        (expression, ("word", "lang"), ()),
        ("INSERT INTO t VALUES ('secret')", ("k",), ("k",)),
        ("INSERT INTO users (email) VALUES ('new@x.test')", ("name", "email"), ()),  # NOT NULL
        ("INSERT INTO nope VALUES ('UNIQUE constraint failed: users.email')", ("email",), ()),
    )

    async def stored(sql: str, columns: tuple[str, ...], *, batch: bool) -> None:
        with conflict(*columns):
            await (db.batch([db.prepare("SELECT 1"), db.prepare(sql)]) if batch else db.prepare(sql).run())

    for sql, columns, told in cases:
        for batch in (False, True):
            error = await refused(stored(sql, columns, batch=batch), ValidationError if told else D1Error)
            if isinstance(error, ValidationError):
                assert (error.status, [issue["path"] for issue in error.issues]) == (409, [*told]), sql
                assert "secret" not in str(error.body).lower()


@contract.case()
async def meta_counts_changes(db: D1Database) -> None:
    await db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    inserted = await db.prepare("INSERT INTO t (a) VALUES (1), (2)").run()
    assert (inserted.meta.changes, inserted.meta.last_row_id, inserted.meta.changed_db) == (2, 2, True)
    updated = await db.prepare("UPDATE t SET a = 3 WHERE id = 99").run()
    assert (updated.meta.changes, updated.meta.last_row_id, updated.meta.changed_db) == (0, 2, False)
    deleted = await db.prepare("DELETE FROM t").run()
    assert deleted.meta.changes == 2


@contract.case()
async def several_statements_run_all_or_nothing(db: D1Database) -> None:
    both = await db.prepare("CREATE TABLE t (a); INSERT INTO t VALUES (1); SELECT a + ? AS b FROM t").bind(1).all()
    assert both.results == [{"b": 2}]
    await refused(db.prepare("INSERT INTO t VALUES (2); INSERT INTO nope VALUES (3)").run(), D1Error)
    message = "When executing multiple SQL statements in a single call, only the last statement can have parameters."
    await refused(db.prepare("INSERT INTO t VALUES (?); SELECT 1").bind(1).run(), D1Error, f"D1_ERROR: {message}")
    assert await one(db, "SELECT count(*) FROM t") == 1


@contract.case()
async def a_trigger_is_one_statement(db: D1Database) -> None:
    await db.prepare("CREATE TABLE t (a)").run()
    await db.prepare(
        "CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE t SET a = CASE WHEN a > 1 THEN 9 ELSE a END; SELECT 1; END;"
    ).run()
    await db.prepare("INSERT INTO t VALUES (5)").run()
    assert await one(db, "SELECT a FROM t") == 9


@contract.case()
async def what_is_kept_of_a_row_does_not_depend_on_the_time_of_day(db: D1Database) -> None:
    for place, kept in (
        ("a generated column", "CREATE TABLE t (a, b AS (date(a, 'start of month')) STORED)"),
        ("a generated column", "CREATE TABLE t (a, b AS (date(lower(a))))"),
        ("a CHECK constraint", "CREATE TABLE t (a CHECK (date(a, 'start of month') > '2'))"),
        ("an index", "CREATE TABLE t (a); CREATE INDEX i ON t (date(a, 'start of month'))"),
        ("an index", "CREATE TABLE t (a); CREATE INDEX i ON t (a) WHERE date(a) > '2'"),
    ):
        message = f"D1_ERROR: non-deterministic use of date() in {place}: SQLITE_ERROR"
        await db.prepare("DROP TABLE IF EXISTS t").run()
        await db.prepare(kept).run()
        await db.prepare("INSERT INTO t (a) VALUES ('2024-02-10'), (date('now'))").run()
        for time in ("'now'", "'NOW'"):
            await refused(db.prepare(f"INSERT INTO t (a) VALUES ('2024-01-01'), ({time})").run(), D1Error, message)
            await refused(db.prepare(f"INSERT OR IGNORE INTO t (a) SELECT {time}").run(), D1Error, message)
            await refused(db.prepare(f"UPDATE t SET a = {time}").run(), D1Error, message)
        batch = [db.prepare("DELETE FROM t"), db.prepare("INSERT INTO t (a) VALUES (?)").bind("now")]
        await refused(db.batch(batch), D1Error, message)
        assert await db.prepare("SELECT a FROM t ORDER BY a").raw() == [
            ["2024-02-10"],
            [await one(db, "SELECT date()")],
        ]
    # The time of day of a statement's own is a value like any other; that of the machine's time zone is none.
    await db.prepare("DROP TABLE t").run()
    await db.prepare("CREATE TABLE t (a, z, b AS (datetime(a, z)) STORED)").run()
    await db.prepare("INSERT INTO t (a, z) VALUES (datetime('now', 'utc'), '+1 day')").run()
    message = "D1_ERROR: non-deterministic use of datetime() in a generated column: SQLITE_ERROR"
    await refused(db.prepare("INSERT INTO t (a, z) VALUES ('2024-02-10', 'localtime')").run(), D1Error, message)
    await db.exec("CREATE TABLE u (a); INSERT INTO u VALUES ('now')")
    message = "D1_ERROR: non-deterministic use of date() in an index: SQLITE_ERROR"
    await refused(db.prepare("CREATE INDEX j ON u (date(a))").run(), D1Error, message)
    assert await one(db, "SELECT count(*) FROM sqlite_master WHERE name = 'j'") == 0


@contract.case()
async def an_unknown_name_in_double_quotes_is_a_string(db: D1Database) -> None:
    await with_users(db)
    assert await one(db, 'SELECT "name" FROM "users" WHERE "id" = 1') == "Ann"
    assert await one(db, 'SELECT id FROM users WHERE name = "Ann"') == 1
    assert await db.prepare('SELECT "not a column" AS a').first() == {"a": "not a column"}
    await db.exec('CREATE TABLE t (a CHECK (a <> "no"), b DEFAULT "x", c AS (a || "y"))')
    await db.exec("INSERT INTO t (a) VALUES ('yes')")
    assert await db.prepare("SELECT * FROM t").first() == {"a": "yes", "b": "x", "c": "yesy"}
    error = await refused(db.exec("INSERT INTO t (a) VALUES ('no')"), D1Error)
    assert 'CHECK constraint failed: a <> "no"' in str(error)
    # Where only a name can stand, and in the other two ways to quote one, it is a name.
    for sql, told in (
        ('SELECT users."nope" FROM users', "no such column: users.nope at offset 7"),
        ("SELECT `nope` FROM users", "no such column: nope at offset 7"),
        ("SELECT [nope] FROM users", "no such column: nope at offset 7"),
        ('UPDATE users SET "nope" = 1', "no such column: nope"),
        ('INSERT INTO users ("nope") VALUES (1)', "table users has no column named nope"),
        ('SELECT * FROM "nope"', "no such table: nope"),
    ):
        await refused(db.prepare(sql).run(), D1Error, f"D1_ERROR: {told}: SQLITE_ERROR")


@contract.case()
async def foreign_keys_are_on(db: D1Database) -> None:
    await db.exec("CREATE TABLE p (id INTEGER PRIMARY KEY)\nCREATE TABLE c (p INTEGER REFERENCES p(id))")
    message = "D1_ERROR: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)"
    await db.prepare("PRAGMA foreign_keys = OFF").run()
    await refused(db.prepare("INSERT INTO c VALUES (99)").run(), D1Error, message)
    assert await db.prepare("PRAGMA foreign_keys").first("foreign_keys") == 1
    deferred = [db.prepare("PRAGMA defer_foreign_keys = ON"), db.prepare("INSERT INTO c VALUES (1)")]
    await db.batch([*deferred, db.prepare("INSERT INTO p VALUES (1)")])
    assert await one(db, "SELECT count(*) FROM c") == 1


@contract.case()
async def transactions_are_refused_in_sql(db: D1Database) -> None:
    for sql in ("BEGIN", "begin", "/* x */ COMMIT", "  ROLLBACK;", "END", "SAVEPOINT s", "RELEASE s"):
        error = await refused(db.prepare(sql).run(), D1Error)
        assert str(error).startswith(TRANSACTION), sql
    await db.prepare("CREATE TABLE t (a)").run()
    assert await one(db, "SELECT count(*) FROM t") == 0


@contract.case()
async def what_leaves_the_database_is_refused(db: D1Database) -> None:
    for sql in (
        "ATTACH DATABASE ':memory:' AS x",
        "DETACH DATABASE x",
        "CREATE TEMP TABLE t (a)",
        "PRAGMA journal_mode",
        "PRAGMA user_version = 5",
        "PRAGMA writable_schema = ON",
        "PRAGMA nope",
        "CREATE TABLE _cf_mine (a)",
    ):
        await refused(db.prepare(sql).run(), D1Error, DENIED)
    message = "D1_ERROR: cannot VACUUM from within a transaction: SQLITE_ERROR"
    await refused(db.prepare("VACUUM INTO 'x'").run(), D1Error, message)


@contract.case()
async def what_tells_of_the_schema_is_allowed(db: D1Database) -> None:
    await with_users(db)
    columns = await db.prepare("PRAGMA table_info(users)").all()
    assert [column["name"] for column in columns.results] == ["id", "name", "email", "age"]
    assert await db.prepare("PRAGMA quick_check").first("quick_check") == "ok"
    await db.prepare("PRAGMA optimize").run()


@contract.case()
async def text_is_searched(db: D1Database) -> None:
    await db.exec("CREATE VIRTUAL TABLE ft USING fts5(title, body)")
    await db.prepare("INSERT INTO ft VALUES (?, ?), (?, ?)").bind("hello world", "some", "bye", "hello again").run()
    found = db.prepare("SELECT title FROM ft WHERE ft MATCH ? ORDER BY title").bind("hello")
    assert await found.raw() == [["bye"], ["hello world"]]


@contract.case()
async def limits_are_the_platforms(db: D1Database) -> None:
    for sql, message in (
        ("SELECT 1 FROM (SELECT 'a' AS a) WHERE a LIKE '" + "a" * 51 + "'", "LIKE or GLOB pattern too complex"),
        (" UNION ALL ".join(["SELECT 1"] * 6), "too many terms in compound SELECT"),
        ("CREATE TABLE b (" + ", ".join(f"c{index}" for index in range(101)) + ")", "too many columns on b"),
        ("SELECT " + "+".join("1" * 102), "Expression tree is too large (maximum depth 100)"),
    ):
        await refused(db.prepare(sql).run(), D1Error, f"D1_ERROR: {message}: SQLITE_ERROR")
    at_limit = "SELECT 1 AS a --" + "x" * (100_000 - 16)
    assert await db.prepare(at_limit).first("a") == 1
    await refused(db.prepare(at_limit + "x").run(), D1Error, "D1_ERROR: statement too long: SQLITE_TOOBIG")


@contract.case(heavy=True)
async def a_text_or_blob_has_at_most_2000000_bytes(db: D1Database) -> None:
    await db.exec("CREATE TABLE t (a)")
    insert = db.prepare("INSERT INTO t VALUES (?) RETURNING length(a) AS n")
    message = "D1_ERROR: string or blob too big: SQLITE_TOOBIG"
    for part in ("x", b"x"):
        assert await insert.bind(part * 1_900_000).first("n") == 1_900_000
        await refused(insert.bind(part * 2_000_001).run(), D1Error, message)
    await refused(db.prepare("SELECT zeroblob(2000001) AS a").first(), D1Error, message)
    assert await one(db, "SELECT count(*) FROM t") == 2


# ---------------------------------------------------------------------- transactions


@contract.case()
async def a_batch_is_a_transaction(db: D1Database) -> None:
    await db.exec(USERS)
    insert = db.prepare("INSERT INTO users (name) VALUES (?) RETURNING id")
    results = await db.batch([insert.bind("A"), insert.bind("B"), db.prepare("SELECT count(*) AS n FROM users")])
    assert [result.results for result in results] == [[{"id": 1}], [{"id": 2}], [{"n": 2}]]
    assert [result.meta.changes for result in results] == [1, 1, 0]
    await refused(
        db.batch([db.prepare("CREATE TABLE t (a)"), insert.bind("C"), insert.bind(None)]),
        D1Error,
        "D1_ERROR: NOT NULL constraint failed: users.name: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
    )
    assert await one(db, "SELECT count(*) FROM users") == 2
    assert await one(db, "SELECT count(*) FROM sqlite_master WHERE name = 't'") == 0


@contract.case()
async def an_empty_batch_is_refused_and_blank_statements_left_out(db: D1Database) -> None:
    await refused(db.batch([]), D1Error, "D1_ERROR: No SQL statements detected.")
    results = await db.batch([db.prepare("  "), db.prepare("SELECT 1 AS a")])
    assert [result.results for result in results] == [[{"a": 1}]]
    await refused(cast("Any", db).batch(["SELECT 1"]), D1TypeError)


@contract.case(paired=True)
async def a_statement_runs_on_the_database_of_its_batch(db: D1Database, other: D1Database) -> None:
    await db.exec("CREATE TABLE t (a)")
    statement = db.prepare("SELECT * FROM t")
    await refused(other.batch([statement]), D1Error, "D1_ERROR: no such table: t: SQLITE_ERROR")
    assert (await db.batch([statement]))[0].results == []


@contract.case()
async def exec_runs_lines(db: D1Database) -> None:
    result = await db.exec(
        "\n\n  CREATE TABLE t (a)  \n\n  -- indented\n  INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)\n"
    )
    assert result.count == 2
    assert result.duration >= 0
    assert await one(db, "SELECT count(*) FROM t") == 2
    message = (
        'D1_EXEC_ERROR: Error in line 1: INSERT INTO t VALUES (3): near "BAD": syntax error at offset 0: SQLITE_ERROR'
    )
    await refused(db.exec("INSERT INTO t VALUES (3)\nBAD SQL"), D1Error, message)
    assert await one(db, "SELECT count(*) FROM t") == 2
    incomplete = "D1_EXEC_ERROR: Error in line 1: CREATE TABLE u (: incomplete input: SQLITE_ERROR"
    await refused(db.exec("CREATE TABLE u (\n  a)"), D1Error, incomplete)
    await refused(db.exec(" \n "), D1Error, "D1_EXEC_ERROR: Error in line 1: : No SQL statements detected.")


@contract.case()
async def a_session_has_a_bookmark_once_something_ran(db: D1Database) -> None:
    session = db.with_session()
    assert session.get_bookmark() is None
    assert await session.prepare("SELECT ? AS a").bind("x").first("a") == "x"
    first = session.get_bookmark()
    assert first
    results = await session.batch([session.prepare("SELECT 1 AS a")])
    assert results[0].results == [{"a": 1}]
    assert session.get_bookmark()
    assert db.with_session("first-primary").get_bookmark() is None
    assert db.with_session("first-unconstrained").get_bookmark() is None
    assert await db.with_session(first).prepare("SELECT 1 AS a").first("a") == 1


@contract.case()
async def a_session_never_goes_back_behind_what_it_saw_or_wrote(db: D1Database) -> None:
    await db.exec("CREATE TABLE t (n INTEGER)")
    session = db.with_session("first-primary")
    count = session.prepare("SELECT count(*) AS n FROM t")
    assert await count.first("n") == 0
    await db.prepare("INSERT INTO t VALUES (1)").run()
    await session.prepare("INSERT INTO t VALUES (2)").run()
    assert await count.first("n") == 2
    seen = 2
    for number in range(3):
        await db.prepare("INSERT INTO t VALUES (?)").bind(number).run()
        now = (await count.run()).results[0]["n"]
        assert isinstance(now, int)
        assert now >= seen
        seen = now


@contract.case()
async def a_bookmark_carries_a_session_on(db: D1Database) -> None:
    await db.exec("CREATE TABLE t (n INTEGER)")
    before = db.with_session()
    await before.batch([before.prepare("INSERT INTO t VALUES (1)")])
    after = db.with_session(before.get_bookmark())
    assert await after.prepare("SELECT count(*) AS n FROM t").first("n") == 1


@contract.case()
async def a_session_that_begins_at_the_primary_sees_every_write_before(db: D1Database) -> None:
    await db.exec("CREATE TABLE t (n INTEGER)")
    session = db.with_session("first-primary")
    await db.prepare("INSERT INTO t VALUES (1)").run()
    assert await session.prepare("SELECT count(*) AS n FROM t").first("n") == 1
