"""Findings about generated statements hold when SQLite really runs them over rows of every kind."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.sql.catalog import migrate
from core.sql.connection import ClosingConnection
from core.sql.schema import Schema
from core.statements.tokens import parameter_count, statements_of, tokens_of

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
    connection = ClosingConnection(":memory:")
    for table in made:
        connection.execute(table.sql)
        table.fill(connection)
    return connection


def schema_for(made: tuple[Made, Made], folder: Path) -> Schema:
    for index, table in enumerate(made):
        (folder / f"{index}.sql").write_text(table.sql)
    return Schema(migrate(folder))


STORAGE = {int: "integer", float: "real", str: "text", bytes: "blob"}


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


MIGRATION = """
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, "order" TEXT, score REAL);
CREATE TABLE posts (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id), title TEXT, likes NUMERIC);
CREATE TABLE tags (post_id INTEGER, name TEXT NOT NULL, x INTEGER GENERATED ALWAYS AS (post_id + 1) VIRTUAL);
CREATE VIEW recent AS SELECT id, title FROM posts;
"""

PLAIN_TABLES = ClosingConnection(":memory:")
PLAIN_TABLES.executescript(MIGRATION)
LISTED = st.sampled_from(
    [
        *("id", "u.id", "p.id", "u.name", "name AS x", "p.title t", "u.email AS Email", "*", "u.*", "p.*", "users.id"),
        *("COUNT(*) AS n", "COUNT(*)", "max(u.score) AS id", "u.id + 1 AS more", "-u.score AS minus", "+u.id AS plus"),
        *("CAST(u.id AS TEXT) AS text", "(u.email) AS inner_", "likely(u.email) AS l", "p.likes || '' AS l", "?"),
        *("CASE WHEN u.id THEN u.email END AS c", "NOT u.id AS no", "u.email ISNULL", "NULL AS nothing", "'a' AS a"),
        *("u.email IS DISTINCT FROM p.title AS d", "main.u.id AS m", "x", "t.x", "1.5e3 AS number", "x'ab' AS blob"),
        *("DISTINCT u.id", "ALL u.id", "u.id AS 'quoted'", "COUNT(DISTINCT u.email) AS n", "u.order AS o"),
        *("group_concat(u.name, ', ') AS names", "u.rowid AS r", "tags.name", "t.name left", "left", "u.email end"),
    ]
)
SOURCES = st.sampled_from(
    [
        *("users u", "users AS u", "users", "users u, posts p", "users u, posts p, tags t", "recent p", "main.users u"),
        *("users u JOIN posts p ON p.user_id = u.id", "users u INNER JOIN posts p ON u.id = p.user_id"),
        *("users u LEFT JOIN posts p ON p.user_id = u.id", "users u LEFT JOIN posts p ON (p.user_id = u.id)"),
        *("users u LEFT OUTER JOIN posts p ON p.user_id = u.id AND p.title = ?", "posts p LEFT JOIN users u"),
        *("users u LEFT JOIN posts p ON p.user_id = u.id LEFT JOIN tags t ON t.post_id = p.id", "users u LEFT posts p"),
        *(
            "users u LEFT JOIN posts p ON p.user_id = u.id JOIN tags t ON t.post_id = p.id",
            "users u CROSS JOIN posts p",
        ),
        *("users u LEFT JOIN posts p ON p.user_id = u.id, tags t", "users u RIGHT JOIN posts p ON p.user_id = u.id"),
        *("users u NATURAL JOIN posts p", "users u LEFT JOIN posts p USING (id)", "(users u JOIN posts p)"),
        *("users u FULL JOIN posts p ON p.id = u.id", "users u JOIN users p ON p.id = u.id", "users NOT INDEXED"),
        *("posts p LEFT JOIN tags t ON t.post_id = p.id LEFT JOIN users u ON u.id = p.user_id", "users 'u'"),
    ]
)
CONDITIONS = st.sampled_from(
    [
        *(
            "u.id = ?",
            "u.email IS NOT NULL",
            "p.title IS NOT NULL",
            "p.title IS NULL",
            "email = ?1",
            "title LIKE '%a%'",
        ),
        *("lower(u.email) = ?", "(p.id = 1 OR u.id = 2)", "u.id IN (1, 2, ?)", "u.id BETWEEN 1 AND 2", "p.likes > 1.5"),
        *("u.email = 'it''s'", "EXISTS (SELECT 1 FROM tags)", "u.name GLOB 'a*' ESCAPE '!'", "NOT (p.title = 'b')"),
        *(
            "u.email IS NOT DISTINCT FROM ?",
            "CAST(u.email AS INTEGER) = 1",
            "(u.id, u.name) = (1, 'a')",
            "t.name = 'x'",
        ),
        *("u.order = 1", "users.email = 1", "main.users.email = 1", "x > 1", "p.title COLLATE NOCASE = ?", "title"),
    ]
)
TAILS = st.sampled_from(
    [
        *("", "", "", " ORDER BY u.id", " GROUP BY u.id", " LIMIT 10", " LIMIT ? OFFSET ?", " ORDER BY 1 DESC LIMIT 5"),
        *(" GROUP BY u.id HAVING count(*) > 1", " UNION SELECT 1", ";", " -- end", " ORDER BY p.title COLLATE NOCASE"),
    ]
)
WORDS = st.sampled_from(
    [
        *("(", ")", ",", ".", "u", "p", "id", "AS", "LEFT", "JOIN", "ON", "WHERE", "FROM", "SELECT", "NULL", "AND"),
        *("NOT", "?", "?2", "'", "'a'", "1", "*", "||", "--", ";", "x", "ORDER", "GROUP", "LIMIT", "SET", "USING"),
    ]
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A SELECT made of pieces; of some of them a word is put in, taken away or put in the place of another."""
    sql = f"SELECT {', '.join(draw(st.lists(LISTED, min_size=1, max_size=3)))} FROM {draw(SOURCES)}"
    conditions = draw(st.lists(CONDITIONS, max_size=2))
    if conditions:
        sql += " WHERE " + draw(st.sampled_from([" AND ", " OR "])).join(conditions)
    sql += draw(TAILS)
    if draw(st.integers(0, 2)) == 0:
        parts = sql.split(" ")
        at = draw(st.integers(0, len(parts) - 1))
        parts[at : at + draw(st.integers(0, 1))] = draw(st.lists(WORDS, max_size=1))
        sql = " ".join(parts)
    return sql


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    folder = tmp_path_factory.mktemp("migrations")
    (folder / "0001_init.sql").write_text(MIGRATION)
    made = Schema(migrate(folder))
    assert made.migrated.trusted
    return made


@pytest.mark.slow
@given(sql=statements())
@example("SELECT u.email end, (SELECT name FROM users WHERE id = u.id) FROM users u")
@example("SELECT u.email AS Email, * FROM users u")
@example("SELECT ?, u.id + ? FROM users u WHERE u.id = ? AND p.title IS .")
@example("SELECT id AS id FROM users UNION SELECT rowid FROM posts")
@example("SELECT name AS x FROM ( users u ORDER BY p.title COLLATE NOCASE")
def test_columns_are_named_as_those_of_sqlite(schema: Schema, sql: str) -> None:
    read = schema.analyse(sql)
    if not read.problems:
        described = PLAIN_TABLES.execute(sql, (1,) * (read.takes or 0)).description
        assert read.columns is not None
        assert [column.name for column in read.columns] == [column[0] for column in described]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@given(parts=st.lists(FRAGMENTS, min_size=1, max_size=8))
def test_parameters_are_counted_as_sqlite_counts_them(parts: list[str]) -> None:
    sql = "SELECT " + ", ".join(
        f"({part} IS NULL)" if not part.startswith(("-", "/")) else f"{part} 1" for part in parts
    )
    sql += " FROM (SELECT 1 AS x, 2 AS `?`)"
    connection = ClosingConnection(":memory:")
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


@pytest.mark.slow
@given(text=st.text(alphabet=st.sampled_from(list("SELECTFROMWHER abc?:;'\"`[]()*-/\n.,=<>|\0é1")), max_size=60))
def test_no_text_at_all_breaks_the_analysis(text: str) -> None:
    schema = Schema(migrate(Path("/nonexistent")))
    schema.analyse(text)
    schema.analyse(f"SELECT {text} FROM t")
    assert all(text[token.start : token.end] == token.text for token in tokens_of(text))
