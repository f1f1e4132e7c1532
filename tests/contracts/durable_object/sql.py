"""The promises of a Durable Object's own SQL database."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.contracts.contract import refused
from tests.contracts.durable_object.subject import Pair, Subject, Subjects, case, contract

from core.errors import DurableObjectError, DurableObjectTypeError
from core.validation.mistakes import StructureError

# ---------------------------------------------------------------------- SQL


@case()
async def sql_has_rows_and_bindings(one: Subject) -> None:
    await one.sql("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c BLOB)")
    await one.sql("INSERT INTO t VALUES (?, ?, ?), (?, ?, ?)", 1, "x", b"\x00", 2, None, None)
    assert await one.sql("SELECT * FROM t ORDER BY a") == [
        {"a": 1, "b": "x", "c": b"\x00"},
        {"a": 2, "b": None, "c": None},
    ]
    assert await one.sql("SELECT a FROM t WHERE b = ?", "x") == [{"a": 1}]
    assert await one.sql_one("SELECT count(*) AS n FROM t") == {"n": 2}
    none = "Expected exactly one result from SQL query, but got no results."
    await refused(one.sql_one("SELECT a FROM t WHERE a > 9"), DurableObjectError, none)
    many = "Expected exactly one result from SQL query, but got multiple results."
    await refused(one.sql_one("SELECT a FROM t"), DurableObjectError, many)


@contract.case()
async def a_cursor_goes_on_where_it_stopped(subjects: Subjects) -> None:
    assert await subjects.get_by_name("one").sql_cursor() == 2


@case()
async def rows_of_sql_are_of_a_class_where_one_is_named(one: Subject) -> None:
    await one.sql("CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL), (3, 'z')")
    assert await one.sql_typed("SELECT b, a FROM t ORDER BY a") == [Pair(1, "x"), Pair(2), Pair(3, "z")]
    assert await one.sql_typed_one("SELECT * FROM t WHERE a = 2") == Pair(2)
    many = "Expected exactly one result from SQL query, but got multiple results."
    await refused(one.sql_typed_one("SELECT * FROM t"), DurableObjectError, many)
    error = await refused(one.sql_typed_one("SELECT b AS a, a AS b FROM t WHERE a = 3"), StructureError)
    assert error.issues == [
        {"path": "a", "message": "must be an integer"},
        {"path": "b", "message": "must be a string"},
    ]


@case()
async def sql_is_in_transactions_too(one: Subject) -> None:
    await one.sql("CREATE TABLE t (a, b)")
    assert await one.sql_transaction() == [0, None]


@case()
async def sql_binds_numbers_as_d1_does(one: Subject) -> None:
    query = "SELECT typeof(?1) AS type, ?1 AS value, 'n' || ?1 AS text"
    for bound, kind, value, text in (
        (True, "real", 1, "n1.0"),
        (False, "real", 0, "n0.0"),
        (5, "real", 5, "n5.0"),
        (-2.5, "real", -2.5, "n-2.5"),
        (2**40, "real", 2**40, "n1099511627776.0"),
        (float("inf"), "real", float("inf"), "nInf"),
        (float("-inf"), "real", float("-inf"), "n-Inf"),
        (float("nan"), "null", None, None),
        (None, "null", None, None),
        ("é😀", "text", "é😀", "né😀"),
        ("a\ud800b", "text", "a\ufffdb", "na\ufffdb"),
    ):
        assert await one.sql(query, bound) == [{"type": kind, "value": value, "text": text}], bound
    assert await one.sql("SELECT ? / ? AS quotient", 7, 2) == [{"quotient": 3.5}]
    assert await one.sql("SELECT ? AS most", 2**53 - 1) == [{"most": 2**53 - 1}]
    await one.sql("CREATE TABLE t (a INTEGER, b TEXT)")
    await one.sql("INSERT INTO t VALUES (?, ?)", 5, 5)
    assert await one.sql("SELECT typeof(a) AS a, b FROM t") == [{"a": "integer", "b": "5.0"}]
    for number in (2**53, -(2**53), 2**60, 2**70):
        error = await refused(one.sql(query, number), DurableObjectTypeError)
        assert str(error).startswith(f"{number} is beyond 2**53 - 1")
    for unfit in ([1, 2], {"a": 1}, {1}, datetime(2026, 1, 1, tzinfo=UTC)):
        await refused(one.sql(query, unfit), DurableObjectTypeError)


@case()
async def sql_gives_numbers_and_texts_as_they_are(one: Subject) -> None:
    assert await one.sql("SELECT 9e999 AS a, -9e999 AS b, 1e20 AS c, 3.0 AS d, 2.5 AS e, x'00' AS f, NULL AS g") == [
        {"a": float("inf"), "b": float("-inf"), "c": 1e20, "d": 3, "e": 2.5, "f": b"\x00", "g": None}
    ]
    # Text that is no UTF-8, read and written back.
    assert await one.sql("SELECT CAST(x'61ff62' AS TEXT) AS t") == [{"t": "a\ufffdb"}]
    await one.sql("CREATE TABLE t (a TEXT)")
    assert await one.sql("INSERT INTO t VALUES (CAST(x'ff' AS TEXT)) RETURNING a") == [{"a": "\ufffd"}]
    assert await one.sql("SELECT a, count(*) AS n FROM t") == [{"a": "\ufffd", "n": 1}]


@case()
async def a_text_of_several_statements_keeps_what_it_did_before_one_that_fails(one: Subject) -> None:
    await one.sql("CREATE TABLE t (a UNIQUE)")
    for text, message in (
        ("INSERT INTO t VALUES (1); INSERT INTO nope VALUES (2); INSERT INTO t VALUES (3)", "no such table: nope"),
        ("INSERT INTO t VALUES (4); INSERT INTO t VALUES (5), (1); INSERT INTO t VALUES (6)", "UNIQUE constraint"),
        ("INSERT INTO t VALUES (7); INSERT INTO t VALUES (?); SELECT 1", "When executing multiple SQL statements"),
        ("INSERT INTO t VALUES (8); BAD", 'near "BAD": syntax error'),
    ):
        error = await refused(one.sql(text), DurableObjectError)
        assert str(error).startswith(message), error
    assert await one.sql("SELECT a FROM t ORDER BY a") == [{"a": 1}, {"a": 4}, {"a": 7}, {"a": 8}]
    for text in ("", ";", "SELECT 1;;", "SELECT 1; -- done"):
        await refused(one.sql(text), DurableObjectError, "SQL code did not contain a statement.")


@case()
async def sql_errors_are_sqlites(one: Subject) -> None:
    error = await refused(one.sql("SELECT * FROM nope"), DurableObjectError)
    assert str(error).startswith("no such table: nope")
    await one.sql("CREATE TABLE t (a UNIQUE)")
    await one.sql("INSERT INTO t VALUES (1)")
    error = await refused(one.sql("INSERT INTO t VALUES (1)"), DurableObjectError)
    assert "UNIQUE constraint failed: t.a" in str(error)
    for statement in ("BEGIN", "COMMIT", "SAVEPOINT a", "ATTACH 'x' AS y", "SELECT * FROM _cf_KV"):
        await refused(one.sql(statement), DurableObjectError)
    assert await one.sql("SELECT a FROM t") == [{"a": 1}]


@case()
async def what_is_kept_of_a_row_does_not_depend_on_the_time_of_day(one: Subject) -> None:
    await one.sql("CREATE TABLE t (a, b AS (date(a, 'start of month')) STORED)")
    message = "non-deterministic use of date() in a generated column: SQLITE_ERROR"
    for sql in ("INSERT INTO t (a) VALUES ('now')", "INSERT INTO t (a) VALUES ('2024-01-01'), ('now')"):
        error = await refused(one.sql(sql), DurableObjectError)
        assert str(error) == message, error
    await one.sql("INSERT INTO t (a) VALUES (date('now'))")
    assert await one.sql("SELECT count(*) AS n FROM t") == [{"n": 1}]
