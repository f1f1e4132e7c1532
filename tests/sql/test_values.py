"""Types of expressions: a hundred cases from SQLite's documentation,
and a property that SQLite itself holds them to.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.sql.catalog import add_functions, migrate
from core.sql.connection import ClosingConnection
from core.sql.functions import AGGREGATES, FUNCTIONS, OPERATORS, WINDOWS, storages
from core.sql.rules import FUNCTIONS as ALLOWED
from core.sql.schema import Schema
from core.sql.statement import Column

MIGRATION = """\
CREATE TABLE users (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, age INTEGER, score REAL NOT NULL DEFAULT 0, avatar BLOB
);
CREATE TABLE posts (
  id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id), editor INTEGER REFERENCES users,
  title TEXT NOT NULL, note TEXT, tags TEXT NOT NULL DEFAULT '[]'
);
CREATE TABLE codes (code TEXT PRIMARY KEY, label TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE kinds (id INTEGER PRIMARY KEY, kind TEXT DEFAULT 'draft' CHECK (kind IN ('draft', 'public')));
CREATE VIEW titles AS SELECT upper(title) AS title, lower(note) AS note, count(*) AS n FROM posts GROUP BY id;
"""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    folder = tmp_path_factory.mktemp("migrations")
    (folder / "1.sql").write_text(MIGRATION)
    made = Schema(migrate(folder))
    assert made.migrated.trusted
    return made


def column_of(schema: Schema, sql: str) -> Column:
    """The first column of a statement; a string that begins with no word of a statement is an expression over users."""
    statement = schema.analyse(_whole(sql))
    assert statement.problems == (), sql
    assert statement.columns, sql
    return statement.columns[0]


def _whole(sql: str) -> str:
    first = sql.split(maxsplit=1)[0]
    return (
        sql
        if first in ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "VALUES")
        else f"SELECT {sql} AS v FROM users"
    )


NEVER = [
    ("SELECT count(CASE WHEN age > 1 THEN 1 END) FROM users GROUP BY name", "i"),
    ("SELECT coalesce(max(email), '') FROM users GROUP BY name", "t"),
    ("INSERT INTO posts (user_id, title) VALUES (1, 'a') RETURNING tags", "t"),
    # literals and operators: https://www.sqlite.org/lang_expr.html
    ("1", "i"),
    ("1.5e3", "r"),
    ("'a'", "t"),
    ("x'00'", "b"),
    ("CURRENT_TIMESTAMP", "t"),
    ("TRUE", "i"),
    ("name || '!'", "t"),
    ("id + 1", "i"),
    ("score * 2", "r"),
    ("-id", "i"),
    ("id / 2", "i"),
    ("id % 2.5", "r"),
    ("name = 'a'", "i"),
    ("name LIKE 'a%' ESCAPE '!'", "i"),
    ("email IS NULL", "i"),
    ("email IS NOT age", "i"),
    ("email NOTNULL", "i"),
    ("email IS DISTINCT FROM name", "i"),
    ("id IN (1, 2)", "i"),
    ("id NOT BETWEEN 1 AND 5", "i"),
    ("NOT (id > 1 AND score < 2.5)", "i"),
    ("EXISTS (SELECT 1 FROM posts)", "i"),
    ("CASE WHEN age > 1 THEN 'old' ELSE 'young' END", "t"),
    ("CASE id WHEN 1 THEN 1 WHEN 2 THEN 2.5 ELSE 0 END", "ir"),
    ("CAST(name AS INTEGER)", "i"),
    ("CAST(id AS TEXT) COLLATE NOCASE", "t"),
    # functions of one row: https://www.sqlite.org/lang_corefunc.html
    ("coalesce(email, name)", "t"),
    ("ifnull(age, 0)", "i"),
    ("iif(age > 1, 'a', 'b')", "t"),
    ("upper(trim(name))", "t"),
    ("length(name)", "i"),
    ("quote(email)", "t"),
    ("typeof(age)", "t"),
    ("hex(avatar)", "t"),
    ("substr(name, 1, 2)", "t"),
    ("replace(name, 'a', 'b')", "t"),
    ("max(id, 5)", "i"),
    ("abs(id)", "i"),
    ("random()", "i"),
    ("json_array(email)", "t"),
    ("json_object('a', email)", "t"),
    ("hex(email)", "t"),
    ("typeof(email)", "t"),
    # aggregates: https://www.sqlite.org/lang_aggfunc.html
    ("count(*)", "i"),
    ("count(email)", "i"),
    ("total(age)", "r"),
    ("json_group_array(email)", "t"),
    ("coalesce(max(id), 0)", "i"),
    ("SELECT max(user_id) FROM posts GROUP BY title", "i"),
    ("SELECT group_concat(title) FROM posts GROUP BY user_id", "t"),
    # windows: https://www.sqlite.org/windowfunctions.html
    ("row_number() OVER (ORDER BY id)", "i"),
    ("percent_rank() OVER (ORDER BY id)", "r"),
    ("sum(id) OVER (ORDER BY id)", "i"),
    ("lag(id, 1, 0) OVER (ORDER BY id)", "i"),
    ("first_value(name) OVER (ORDER BY id)", "t"),
    # queries: https://www.sqlite.org/lang_select.html
    ("(SELECT count(*) FROM posts WHERE posts.user_id = users.id)", "i"),
    ("SELECT (SELECT u.name FROM users u WHERE u.id = p.user_id) FROM posts p", "t"),
    ("SELECT name FROM users UNION ALL SELECT title FROM posts", "t"),
    ("SELECT u.name FROM posts p LEFT JOIN users u ON u.id = p.user_id", "t"),
    ("SELECT w.n FROM (SELECT count(*) AS n FROM posts) w", "i"),
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT i FROM n", "i"),
    ("SELECT title FROM titles", "t"),
    ("SELECT n FROM titles", "i"),
    ("SELECT type FROM json_each('[1]')", "t"),
    ("SELECT rowid FROM users", "i"),
    ("VALUES (1), (2)", "i"),
    ("SELECT code FROM codes", "t"),
    ("INSERT INTO users (name) VALUES ('a') RETURNING id", "i"),
    ("UPDATE users SET email = NULL RETURNING upper(name)", "t"),
]

NULLABLE = [
    ("upper(email)", "users.email can be NULL"),
    ("email || '!'", "users.email can be NULL"),
    ("age + 1", "users.age can be NULL"),
    ("-age", "users.age can be NULL"),
    ("age > 18", "users.age can be NULL"),
    ("age IN (1, 2)", "users.age can be NULL"),
    ("CAST(age AS TEXT)", "users.age can be NULL"),
    ("length(email)", "users.email can be NULL"),
    ("coalesce(email, age)", "users.age can be NULL"),
    ("max(id, age)", "users.age can be NULL"),
    ("nullif(name, '')", "nullif(name, '') is NULL where both of its values are equal"),
    ("NULL", "NULL stands in the result"),
    ("CASE WHEN score > 1 THEN name ELSE NULL END", "NULL stands in the result"),
    ("iif(score > 1, name, email)", "users.email can be NULL"),
    ("max(id)", "max(id) is NULL where no row is found"),
    ("sum(score)", "sum(score) is NULL where no row is found"),
    ("avg(id) + 1", "avg(id) + 1 is NULL where no row is found"),
    ("group_concat(name)", "group_concat(name) is NULL where no row is found"),
    ("SELECT name, count(*) FROM users", "users.name is NULL where no row is found"),
    ("sum(id) FILTER (WHERE score > 1)", "sum(id) FILTER (WHERE score > 1) is NULL where the filter leaves no row"),
    ("lag(id) OVER (ORDER BY id)", "lag(id) OVER (ORDER BY id) is NULL where there is no such row"),
    (
        "(SELECT title FROM posts WHERE posts.user_id = users.id)",
        "(SELECT title FROM posts WHERE posts.user_id = users.id) is NULL where no row is found",
    ),
    (
        "SELECT (SELECT name FROM users WHERE id = p.editor) FROM posts p",
        "(SELECT name FROM users WHERE id = p.editor) is NULL where no row is found",
    ),
    ("SELECT name FROM users UNION ALL SELECT note FROM posts", "posts.note can be NULL"),
    ("SELECT name FROM users UNION SELECT NULL", "NULL stands in the result"),
    ("SELECT u.name FROM posts p LEFT JOIN users u ON u.id = p.editor", "users.name is NULL where the outer join of u"),
    ("SELECT upper(p.title) FROM users u LEFT JOIN posts p ON p.user_id = u.id", "posts.title is NULL where the outer"),
    (
        "SELECT u.name FROM users u RIGHT JOIN posts p ON p.editor = u.id",
        "users.name is NULL where the outer join of u",
    ),
    ("SELECT p.title FROM users u FULL JOIN posts p ON p.editor = u.id", "posts.title is NULL where the outer join of"),
    ("SELECT note FROM titles", "posts.note can be NULL"),
    ("WITH w AS (SELECT lower(email) AS e FROM users) SELECT e FROM w", "users.email can be NULL"),
    ("SELECT m FROM (SELECT max(age) AS m FROM users)", "max(age) is NULL where no row is found"),
    ("UPDATE users SET name = 'a' RETURNING upper(email)", "users.email can be NULL"),
    ("SELECT max(email) FROM users GROUP BY name", "max(email) is NULL where all of its values are"),
    ("SELECT sum(age) + 1 FROM users GROUP BY name", "sum(age) + 1 is NULL where all of its values are"),
    ("sum(age) OVER (PARTITION BY name)", "sum(age) OVER (PARTITION BY name) is NULL where all of its values are"),
    ("CASE WHEN score > 9 THEN 1 END", "CASE WHEN score > 9 THEN 1 END is NULL where no WHEN holds"),
    ("CASE name WHEN 'nobody' THEN upper(name) END || '!'", "CASE name WHEN 'nobody' THEN upper(name) END || '!' is"),
    (
        "SELECT sum(CASE WHEN score > 9 THEN 1 END) FROM users GROUP BY id",
        "sum(CASE WHEN score > 9 THEN 1 END) is NULL",
    ),
    ("INSERT INTO users (name) VALUES ('a') RETURNING email", "users.email can be NULL"),
    ("REPLACE INTO users (name) VALUES ('a') RETURNING lower(email)", "users.email can be NULL"),
]

NOT_SAID = [
    "?",
    "? + 1",
    "json_extract(name, '$.a')",
    "name ->> '$.a'",
    "id / score",
    "email LIKE ?",
    "SELECT CASE WHEN age > 1 THEN 'a' WHEN age <= 1 THEN 'b' END FROM users WHERE age > 0",
    "SELECT CASE p.kind WHEN 'draft' THEN 1 WHEN 'public' THEN 2 END FROM kinds p",
    "INSERT INTO users (name) VALUES ('a') ON CONFLICT DO UPDATE SET email = ? RETURNING email",
    "INSERT INTO kinds (id) VALUES (1) RETURNING kind",
    "date(name)",
    "datetime('now', '-7 days', 'start of day')",
    "unicode(name)",
    "sqrt(score)",
    "email = 'a' OR 1",
    "nth_value(id, 2) OVER (ORDER BY id)",
    "sum(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "SELECT upper(email) FROM users WHERE email IS NOT NULL",
    "SELECT upper(email) AS e FROM users WHERE e > ''",
    "CASE WHEN email IS NOT NULL THEN email ELSE name END",
    "SELECT max(id) FROM users HAVING count(*) > 0",
    "SELECT upper(p.title) FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE p.id > 0",
    "SELECT w.t FROM (SELECT p.id AS i, p.title AS t FROM users u LEFT JOIN posts p ON p.user_id = u.id) w WHERE w.i > 0",
    "SELECT max(email) FROM users WHERE email > '' GROUP BY name",
    "SELECT max(email) FROM users GROUP BY name HAVING count(email) > 0",
    "SELECT group_concat(email) OVER (ORDER BY id ROWS 2 PRECEDING) FROM users",
    "SELECT email FROM users EXCEPT SELECT NULL",
    "INSERT INTO users (name, email) VALUES ('a', ?) RETURNING upper(email)",
    "UPDATE users SET email = ? RETURNING upper(email)",
    "SELECT value FROM json_each('[1]')",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT nullif(i, 5) FROM n LIMIT 9) SELECT i + 0 FROM n WHERE i < 9",
]


def test_there_are_a_hundred_cases_and_half_of_them_are_proven() -> None:
    cases = [sql for sql, _ in NEVER] + [sql for sql, _ in NULLABLE] + NOT_SAID
    assert len(cases) == len(set(cases)) >= 100
    assert len(NEVER) >= len(cases) / 2


@pytest.mark.parametrize(("sql", "storage"), NEVER)
def test_what_is_never_null_is_proven(schema: Schema, sql: str, storage: str) -> None:
    column = column_of(schema, sql)
    assert (column.never, column.null) == (True, "")
    assert column.storage == storages(storage)


@pytest.fixture(scope="module")
def databases() -> list[sqlite3.Connection]:
    """Without a row, and with rows that have a NULL wherever the tables take one."""
    empty, full = ClosingConnection(":memory:"), ClosingConnection(":memory:")
    for connection in (empty, full):
        add_functions(connection)
        connection.executescript(MIGRATION)
    full.executescript(
        """
        INSERT INTO users (id, name, email, age, score, avatar) VALUES
          (1, 'ada', 'a@b', 36, 2.5, x'01'), (2, 'bob', NULL, NULL, 0, NULL), (3, '', '', 7, 1.5, x'');
        INSERT INTO posts (id, user_id, editor, title, note) VALUES
          (1, 1, 1, 'one', 'n'), (2, 1, NULL, 'two', NULL), (3, 2, 1, 'two', NULL);
        INSERT INTO codes VALUES ('x', 'X');
        """
    )
    return [empty, full]


def values_of(databases: Sequence[sqlite3.Connection], sql: str) -> list[Any]:
    """The values of the first column in both databases, which stay as they are."""
    found: list[Any] = []
    for connection in databases:
        found += [row[0] for row in connection.execute(_whole(sql))]
        connection.rollback()
    return found


@pytest.mark.parametrize(("sql", "storage"), NEVER)
def test_sqlite_gives_no_null_where_none_is_proven(databases: list[sqlite3.Connection], sql: str, storage: str) -> None:
    found = values_of(databases, sql)
    assert found
    assert None not in found
    assert {CLASSES[type(value)] for value in found} <= (storages(storage) or frozenset())


@pytest.mark.parametrize("sql", [sql for sql, _ in NULLABLE])
def test_sqlite_gives_a_null_where_one_is_said(databases: list[sqlite3.Connection], sql: str) -> None:
    assert None in values_of(databases, sql)


@pytest.mark.parametrize(("sql", "why"), NULLABLE)
def test_what_can_be_null_is_said_with_the_reason(schema: Schema, sql: str, why: str) -> None:
    column = column_of(schema, sql)
    assert f"{column.about} {column.null}".startswith(why)
    assert not column.never


@pytest.mark.parametrize("sql", NOT_SAID)
def test_what_is_not_certain_is_not_said(schema: Schema, sql: str) -> None:
    column = column_of(schema, sql)
    assert (column.null, column.never) == ("", False)


def test_a_view_over_an_aggregate_keeps_what_it_knows(schema: Schema) -> None:
    statement = schema.analyse("SELECT * FROM titles")
    assert [column.never for column in statement.columns or ()] == [True, False, True]


def test_the_tables_name_only_functions_that_d1_has() -> None:
    assert {*FUNCTIONS, *AGGREGATES, *WINDOWS} <= ALLOWED
    assert all(name.isupper() or not name.isalpha() for name in OPERATORS)


# Against SQLite -----------------------------------------------------------------------------------------------------

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, j INTEGER NOT NULL, x TEXT, y TEXT NOT NULL, r REAL, s REAL NOT NULL, b BLOB)"
CLASSES = {int: "integer", float: "real", str: "text", bytes: "blob"}


def filled(table: str) -> sqlite3.Connection:
    connection = ClosingConnection(":memory:")
    add_functions(connection)
    connection.execute(table)
    rows = itertools.product(
        (None, 0, 3), (1, 2), (None, "", "2x"), ("a", "[1]"), (None, 1.5), (0.0, 2.5), (None, b"\1")
    )
    connection.executemany("INSERT INTO t (i, j, x, y, r, s, b) VALUES (?, ?, ?, ?, ?, ?, ?)", list(rows))
    return connection


LEAVES = st.sampled_from(
    ["id", "i", "j", "x", "y", "r", "s", "b", "1", "0", "2.5", "'a'", "NULL", "CURRENT_DATE", "x'41'"]
)
FORMS = st.sampled_from(
    [
        *("({} + {})", "({} - {})", "({} * {})", "({} / 2)", "({} % {})", "(-{})", "(~{})", "({} || {})", "(NOT {})"),
        *("({} = {})", "({} < {})", "({} IS {})", "({} ISNULL)", "({} AND {})", "({} OR {})", "({} LIKE {})"),
        *("({} IN ({}, 2))", "({} BETWEEN {} AND 5)", "({} & {})", "({} << 1)", "(+{})", "({} COLLATE NOCASE)"),
        *("CAST({} AS TEXT)", "CAST({} AS INTEGER)", "CAST({} AS REAL)", "CAST({} AS BLOB)", "CAST({} AS NUMERIC)"),
        *("coalesce({}, {})", "ifnull({}, {})", "iif({}, {}, {})", "nullif({}, {})", "max({}, {})", "min({}, {})"),
        *("abs({})", "round({})", "length({})", "upper({})", "trim({})", "substr({}, 1, 1)", "replace({}, 'a', {})"),
        *("hex({})", "quote({})", "typeof({})", "instr({}, {})", "unicode({})", "sign({})", "printf('%s', {})"),
        *("ceil({})", "date({})", "julianday({})", "unixepoch({})", "json_quote(typeof({}))", "json_array(hex({}))"),
        *("CASE WHEN {} THEN {} ELSE {} END", "CASE {} WHEN 1 THEN {} END", "(SELECT {})", "EXISTS (SELECT {} FROM t)"),
    ]
)
AGGREGATED = st.sampled_from(
    ["count({})", "sum({})", "avg({})", "total({})", "max({})", "min({})", "group_concat({})", "count(*)", "{}"]
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(LEAVES)
    form = draw(FORMS)
    return form.format(*(draw(expressions(depth - 1)) for _ in range(form.count("{}"))))


@st.composite
def queries(draw: st.DrawFn) -> str:
    expression = draw(expressions())
    form = draw(st.integers(0, 5))
    if form == 0:
        return f"SELECT {draw(AGGREGATED).format(expression)} FROM t"
    if form == 1:
        return f"SELECT {draw(AGGREGATED).format(expression)} FROM t GROUP BY {draw(LEAVES)}"
    if form == 2:
        return f"SELECT {expression} AS v FROM t UNION ALL SELECT {draw(expressions(2))} FROM t"
    if form == 3:
        return f"SELECT v FROM (SELECT {expression} AS v, j FROM t) WHERE j = 1"
    if form == 4:
        return f"SELECT {expression} FROM t LEFT JOIN (SELECT id AS k FROM t WHERE id < 5) u ON u.k = t.id"
    return f"SELECT {expression} FROM t"


def values(connections: Sequence[sqlite3.Connection], sql: str) -> list[Any]:
    found: list[Any] = []
    for connection in connections:
        try:
            found += [row[0] for row in connection.execute(sql)]
        except sqlite3.Error:
            return []  # an integer that is too large, or JSON that is malformed
    return found


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> tuple[Schema, list[sqlite3.Connection]]:
    folder = tmp_path_factory.mktemp("one")
    (folder / "1.sql").write_text(f"{TABLE};")
    empty = ClosingConnection(":memory:")
    add_functions(empty)
    empty.execute(TABLE)
    sparse = ClosingConnection(":memory:")  # NULL wherever the table takes one, so that it is all that an aggregate has
    add_functions(sparse)
    sparse.execute(TABLE)
    sparse.execute("INSERT INTO t (j, y, s) VALUES (1, 'a', 0.0), (2, '[1]', 2.5)")
    return Schema(migrate(folder)), [filled(TABLE), empty, sparse]


@pytest.mark.slow
@given(sql=queries())
def test_sqlite_gives_no_value_that_was_said_not_to_be(
    judge: tuple[Schema, list[sqlite3.Connection]], sql: str
) -> None:
    schema, connections = judge
    statement = schema.analyse(sql)
    if statement.problems or not statement.columns:
        return  # sign() and its like are missing in a SQLite built without them
    (column,) = statement.columns
    found = values(connections, sql)
    if column.never:
        assert None not in found, column
    if column.storage:
        assert {CLASSES[type(value)] for value in found if value is not None} <= column.storage, column
    if column.null and found and not any(word in sql for word in ("CASE", "iif", "nullif", "SELECT v FROM")):
        assert None in found, column


COLUMNS = st.lists(
    st.tuples(
        st.sampled_from(["INTEGER", "TEXT"]), st.booleans(), st.sampled_from(["", " DEFAULT 7", " DEFAULT NULL"])
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=COLUMNS, data=st.data())
def test_returning_gives_null_for_what_an_insert_leaves_out(
    columns: list[tuple[str, bool, str]], data: st.DataObject, tmp_path: Path
) -> None:
    declared = [f"c{at} {kind}{' NOT NULL' * full}{default}" for at, (kind, full, default) in enumerate(columns)]
    table = f"CREATE TABLE t (id INTEGER PRIMARY KEY, {', '.join(declared)})"
    (tmp_path / "1.sql").write_text(f"{table};")
    given = data.draw(st.lists(st.sampled_from([f"c{at}" for at in range(len(columns))]), min_size=1, unique=True))
    sql = f"INSERT INTO t ({', '.join(given)}) VALUES ({', '.join('1' for _ in given)}) RETURNING *"
    statement = Schema(migrate(tmp_path)).analyse(sql)
    connection = ClosingConnection(":memory:")
    connection.execute(table)
    try:
        row = connection.execute(sql).fetchone()
    except sqlite3.IntegrityError:  # NOT NULL
        assert statement.problems
        return
    assert statement.problems == ()
    assert statement.columns is not None
    for column, value in zip(statement.columns, row, strict=True):
        assert (value is None) == bool(column.null), column
        assert not (column.never and value is None)
