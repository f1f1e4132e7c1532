"""SQL as tokens: where statements end, how many values they want, where an error is."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sql.connection import ClosingConnection
from core.sql.location import locate
from core.statements.tokens import numbered, parameter_count, statements_of, tokens_of


@pytest.mark.parametrize(
    ("sql", "pieces"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1;"]),
        ("SELECT 1; SELECT 2", ["SELECT 1;", "SELECT 2"]),
        ("SELECT 1;\n\tSELECT 2;\r\n", ["SELECT 1;", "SELECT 2;"]),
        ("SELECT ';'; SELECT \";\"; SELECT [;], `;`", ["SELECT ';';", 'SELECT ";";', "SELECT [;], `;`"]),
        ("SELECT 1 /* ; */; -- ;\nSELECT 2", ["SELECT 1 /* ; */;", "-- ;\nSELECT 2"]),
        ("SELECT 'it''s;';SELECT 2", ["SELECT 'it''s;';", "SELECT 2"]),
        (";;SELECT 1;", [";;SELECT 1;"]),
        ("SELECT 1;;", ["SELECT 1;", ";"]),
        ("SELECT 1; -- done", ["SELECT 1;", "-- done"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("/* open; SELECT 1", ["/* open; SELECT 1"]),
        (
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; SELECT 3; END; SELECT 4",
            ["CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; SELECT 3; END;", "SELECT 4"],
        ),
        (
            "EXPLAIN CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN SELECT 3; END",
            ["EXPLAIN CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN SELECT 3; END"],
        ),
        ("", [""]),
    ],
)
def test_statements_end_where_sqlite_ends_them(sql: str, pieces: list[str]) -> None:
    assert [piece.text for piece in statements_of(sql)] == pieces


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT 1", 0),
        ("SELECT ?, ?", 2),
        ("SELECT ?1, ?1", 1),
        ("SELECT ?3", 3),
        ("SELECT ?3, ?", 4),
        ("SELECT :a, :b, :a, @a, $a", 4),
        ("SELECT ?, :a, ?", 3),
        ("SELECT '?', 1 AS \"?\", 2 AS [?], /* ? */ 1 -- ?", 0),
        ("SELECT $a::b(c)", 1),
    ],
)
def test_parameters_are_counted_as_sqlite_counts_them(sql: str, count: int) -> None:
    assert statements_of(sql)[0].parameter_count == count
    connection = ClosingConnection(":memory:")
    try:
        if count:
            with pytest.raises(sqlite3.ProgrammingError, match=f"uses {count}, and there are 0"):
                connection.execute("EXPLAIN " + sql)
        else:
            connection.execute("EXPLAIN " + sql).close()
    finally:
        connection.close()


@given(st.text("SELECT'\"`[];:?$@ab1 \n-/*éX", max_size=60))
def test_no_text_is_lost_between_tokens(sql: str) -> None:
    pieces = statements_of(sql)
    assert "".join("".join(piece.text.split()) for piece in pieces) == "".join(sql.split())
    for token in tokens_of(sql):
        assert sql[token.start : token.start + len(token.text)] == token.text


@pytest.mark.parametrize(
    ("sql", "message", "offset"),
    [
        ("SELEC 1", 'near "SELEC": syntax error', 0),
        ("SELECT 1 1", 'near "1": syntax error', 9),
        ("SELECT FROM t WHERE FROM", 'near "FROM": syntax error', 7),
        ("SELECT a FROM t WHERE FROM = 1", 'near "FROM": syntax error', 22),
        ("EXPLAIN SELEC", 'near "SELEC": syntax error', 8),
        ("SELECT 'open", 'unrecognized token: "\'open"', 7),
        ("SELECT 'nope', nope FROM t", "no such column: nope", 15),
        ("SELECT a AS nope, t.nope FROM t", "no such column: t.nope", 18),
        ("UPDATE t SET nope = 1", "no such column: nope", None),
        ("UPDATE t SET a = nope", "no such column: nope", 17),
        ("UPDATE t SET a = 1, nope = 2 WHERE nope = 3", "no such column: nope", 35),
        ("SELECT foo(1), foo FROM t", "no such function: foo", 7),
        ("SELECT foo, foo (1) FROM t", "no such function: foo", 12),
        ("SELECT 1 FROM nope", "no such table: nope", None),
        ("SELECT ?1, ?101", "variable number must be between ?1 and ?100", 11),
        (f"SELECT ?{'9' * 5000}", "variable number must be between ?1 and ?100", 7),
        ("SELECT \ud800 FROM FROM t", 'near "FROM": syntax error', 14),
        ("SELECT " + ",".join("?" * 101), "too many SQL variables", 207),
    ],
)
def test_the_place_of_an_error_is_found(sql: str, message: str, offset: int | None) -> None:
    token = locate(statements_of(sql)[0], message)
    assert (None if token is None else token.start) == offset


def test_a_parameter_has_the_number_that_sqlite_gives_it() -> None:
    tokens = tokens_of("SELECT ?2, :1, ?, @a, :1, ?1, $a, ?")
    assert [number for _, number in numbered(tokens)] == [2, 3, 4, 5, 3, 1, 6, 7]
    assert parameter_count(tokens) == 7
    assert parameter_count(tokens_of("SELECT ?0007, ?")) == 8
