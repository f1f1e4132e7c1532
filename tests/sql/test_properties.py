"""Findings about generated statements hold when SQLite really runs them over rows of every kind."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.sql.catalog import migrate
from core.sql.schema import Schema
from core.sql.tokens import parameter_count, statements_of, tokens_of

TYPES = {"INTEGER": (0, 1), "TEXT": ("x", "y"), "REAL": (0.5, 1.5), "BLOB": (b"x", b"y")}


@attrs.frozen
class Made:
    """A table: its columns by name, each with a type and whether it is NOT NULL. The key is `id`."""

    name: str
    columns: tuple[tuple[str, str, bool], ...]

    @property
    def sql(self) -> str:
        columns = "".join(f", {name} {kind}{' NOT NULL' if full else ''}" for name, kind, full in self.columns)
        return f"CREATE TABLE {self.name} (id INTEGER PRIMARY KEY, link INTEGER{columns});"

    def fill(self, connection: sqlite3.Connection) -> None:
        """Rows of every kind: each column with each of its values and NULL, in every combination."""
        choices: list[tuple[Any, ...]] = [
            (None, *range(1, 41), 999)
        ]  # so that each row is linked to, and one is missed
        choices += [TYPES[kind] if full else (None, *TYPES[kind]) for _, kind, full in self.columns]
        names = ", ".join(["link", *(name for name, _, _ in self.columns)])
        marks = ", ".join("?" * len(choices))
        connection.executemany(f"INSERT INTO {self.name} ({names}) VALUES ({marks})", list(itertools.product(*choices)))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Made, Made]:
    def one(name: str) -> Made:
        names = draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=2, unique=True))
        return Made(
            name,
            tuple((column, draw(st.sampled_from(sorted(TYPES))), draw(st.booleans())) for column in names),
        )

    return one("t"), one("u")


@st.composite
def queries(draw: st.DrawFn, made: tuple[Made, Made]) -> tuple[str, int]:
    """A SELECT over one or two tables, and how many values it takes."""
    t, u = made
    joined = draw(st.sampled_from(["", "JOIN", "LEFT JOIN", "SELF"]))
    right = t if joined == "SELF" else u

    def column(alias: str, table: Made) -> str:
        return f"{alias}.{draw(st.sampled_from(['id', 'link', *(name for name, _, _ in table.columns)]))}"

    def any_column() -> str:
        return column("x", t) if not joined or draw(st.booleans()) else column("y", right)

    source = "t AS x"
    if joined:
        word = "LEFT JOIN" if joined == "SELF" else joined
        source += f" {word} {right.name} y ON y.id = x.link"
    listed = [f"{any_column()} AS r{index}" for index in range(draw(st.integers(1, 3)))]
    sql = f"SELECT {', '.join(listed)} FROM {source}"
    takes = 0
    conditions: list[str] = []
    for _ in range(draw(st.integers(0, 2))):
        name = any_column()
        form = draw(st.sampled_from(["{} IS NOT NULL", "{} IS NULL", "{} = {}", "coalesce({}, 0) = 0", "{} = ? OR 1"]))
        conditions.append(form.format(name, name) if form.count("{}") == 2 else form.format(name))
        takes += form.count("?")
    if conditions:
        sql += " WHERE " + draw(st.sampled_from([" AND ", " OR "])).join(f"({c})" for c in conditions)
    if draw(st.booleans()):
        sql += f" ORDER BY {any_column()}"
    wrap = draw(
        st.sampled_from(
            [
                "{}",
                "{}",
                "WITH w AS ({}) SELECT * FROM w",
                "SELECT * FROM ({})",
                "WITH w AS ({}) SELECT * FROM w WHERE r0 = r0",
            ]
        )
    )
    return wrap.format(sql), takes


def database(made: tuple[Made, Made]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for table in made:
        connection.execute(table.sql)
        table.fill(connection)
    return connection


def schema_for(made: tuple[Made, Made], folder: Path) -> Schema:
    for index, table in enumerate(made):
        (folder / f"{index}.sql").write_text(table.sql)
    return Schema(migrate(folder))


STORAGE = {int: "integer", float: "real", str: "text", bytes: "blob"}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_names_types_and_nulls_are_those_of_real_rows(tmp_path: Path, data: st.DataObject) -> None:
    made = data.draw(tables())
    sql, takes = data.draw(queries(made))
    statement = schema_for(made, tmp_path).analyse(sql)
    assert statement.problems == ()
    assert statement.takes == takes
    cursor = database(made).execute(sql, (0,) * takes)
    rows = cursor.fetchall()
    assert statement.columns is not None
    assert [column.name for column in statement.columns] == [column[0] for column in cursor.description]
    for index, column in enumerate(statement.columns):
        values = [row[index] for row in rows]
        if column.storage:
            assert {STORAGE[type(value)] for value in values if value is not None} <= column.storage
        if column.null and rows:
            # What is said to be NULL at times is NULL for one of the rows, since there are rows of every kind.
            assert None in values, column


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(["a", "b", "c", "d", "id", "link", "nope"]))
def test_a_name_is_refused_exactly_where_sqlite_refuses_it(tmp_path: Path, data: st.DataObject, name: str) -> None:
    made = data.draw(tables())
    sql = data.draw(
        st.sampled_from(
            [
                f"SELECT {name} FROM t",
                f"SELECT id FROM u WHERE {name} = 1",
                f"UPDATE t SET {name} = 1",
                f"SELECT 1 FROM {name}",
            ]
        )
    )
    statement = schema_for(made, tmp_path).analyse(sql)
    refusal = ""
    try:
        database(made).execute(sql)
    except sqlite3.OperationalError as error:
        refusal = str(error)
    except sqlite3.IntegrityError:
        pass
    assert [problem.message.startswith(refusal) for problem in statement.problems] == ([True] if refusal else [])


FRAGMENTS = st.sampled_from(
    [
        "?",
        "?1",
        "?3",
        "?07",
        ":a",
        "@b",
        "$c",
        "'?'",
        "'it''s'",
        '"?"',
        "[?]",
        "`?`",
        "-- ?\n",
        "/* ? */",
        "x",
        "1",
        "1e5",
    ]
)


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(FRAGMENTS, min_size=1, max_size=8))
def test_parameters_are_counted_as_sqlite_counts_them(parts: list[str]) -> None:
    sql = "SELECT " + ", ".join(
        f"({part} IS NULL)" if not part.startswith(("-", "/")) else f"{part} 1" for part in parts
    )
    sql += " FROM (SELECT 1 AS x, 2 AS `?`)"
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"EXPLAIN {sql}")
        wanted = 0
    except sqlite3.ProgrammingError as error:
        wanted = int(str(error).split("uses ")[1].split(",")[0])
    assert parameter_count(tokens_of(sql)) == wanted


def alone(sql: str) -> str:
    return sql


def in_a_trigger(sql: str) -> str:
    return f"CREATE TRIGGER g AFTER INSERT ON t BEGIN {sql}; SELECT 1; END"


@pytest.mark.parametrize("wrap", [alone, in_a_trigger])
@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(["SELECT 1", "SELECT ';'", "/* ; */ SELECT 2", "SELECT [;]", "SELECT 3 -- ;\n"]), min_size=1
    )
)
def test_a_string_is_cut_where_sqlite_cuts_it(wrap: Callable[[str], str], parts: list[str]) -> None:
    parts = [wrap(part) for part in parts]
    found = [statement.text.removesuffix(";").strip() for statement in statements_of("; ".join(parts) + ";")]
    assert found == [part.strip() for part in parts]
    assert all(sqlite3.complete_statement(text + "\n;") for text in found)


@settings(max_examples=400, deadline=None)
@given(text=st.text(alphabet=st.sampled_from(list("SELECTFROMWHER abc?:;'\"`[]()*-/\n.,=<>|\0é1")), max_size=60))
def test_no_text_at_all_breaks_the_analysis(text: str) -> None:
    schema = Schema(migrate(Path("/nonexistent")))
    schema.analyse(text)
    schema.analyse(f"SELECT {text} FROM t")
    assert all(text[token.start : token.end] == token.text for token in tokens_of(text))
