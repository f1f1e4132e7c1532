"""The quick reading of plain statements says what the whole way says, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.sql.catalog import migrate
from core.sql.schema import Schema

MIGRATION = """
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, "order" TEXT, score REAL);
CREATE TABLE posts (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id), title TEXT, likes NUMERIC);
CREATE TABLE tags (post_id INTEGER, name TEXT NOT NULL, x INTEGER GENERATED ALWAYS AS (post_id + 1) VIRTUAL);
CREATE VIEW recent AS SELECT id, title FROM posts;
"""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    folder = tmp_path_factory.mktemp("migrations")
    (folder / "0001_init.sql").write_text(MIGRATION)
    made = Schema(migrate(folder))
    assert made.known
    return made


PLAIN = [
    "SELECT id, name FROM users",
    "select U.Email AS address from Users u where u.id = ?",
    "SELECT * FROM users WHERE email IS NOT NULL",
    "SELECT p.*, u.name author FROM posts p JOIN users u ON u.id = p.user_id WHERE p.id = ?1 OR p.title = ?1",
    "SELECT u.id, p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE u.name = ? ORDER BY p.id LIMIT ?",
    "SELECT u.id, p.title FROM users u LEFT OUTER JOIN posts p ON p.user_id = u.id WHERE p.title LIKE 'a%'",
    "SELECT COUNT(*) AS n, MAX(p.id) AS newest FROM posts p GROUP BY p.user_id",
    "SELECT DISTINCT t.name FROM tags AS t, posts WHERE t.post_id = posts.id",
    "SELECT CASE WHEN score > 1 THEN 'a' ELSE 'b' END AS kind, x FROM users CROSS JOIN tags",
    "INSERT INTO users (name, email) VALUES (?, ?)",
    "UPDATE users SET email = ?2 WHERE id = ?1",
    "DELETE FROM posts WHERE user_id = ? AND title IN ('a', 'b')",
]


@pytest.mark.parametrize("sql", PLAIN)
def test_common_statements_are_read_at_once_and_alike(schema: Schema, sql: str) -> None:
    assert schema.analyse_simple([sql])
    assert schema.analyse_simple([sql])[sql] == schema.analyse_fully(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM recent",
        "SELECT id FROM users WHERE id IN (SELECT user_id FROM posts)",
        'SELECT "order" FROM users',
        "SELECT id FROM users; SELECT 1 FROM posts",
        "SELECT id FROM nowhere",
        "SELECT nothing FROM users",
        "SELECT id FROM users, posts",
        "SELECT COUNT(*) FROM users",
        "SELECT (id) AS id FROM users",
        "SELECT id ISNULL FROM users",
        "SELECT id FROM users WHERE name = 'unfinished",
        "SELECT id FROM users -- all of them",
        "SELECT rowid FROM users",
        "SELECT name FROM users WHERE id = :id",
        "SELECT load_extension('x') AS y FROM users",
        "INSERT INTO users (name) VALUES ('a') RETURNING id",
        "UPDATE users SET nothing = 1",
        "SELECT main.users.id AS id FROM users",
        "SELECT id FROM users WHERE id = ?0",
        "SELECT id FROM users WHERE " + " AND ".join("id = ?" for _ in range(101)),
        "SELECT id FROM users WHERE name = 'é'",
        "SELECT",
        "",
    ],
)
def test_what_is_not_plain_is_left_to_the_whole_way(schema: Schema, sql: str) -> None:
    assert schema.analyse_simple([sql]) == {}
    assert schema.analyse(sql) == schema.analyse_fully(sql)


def test_nothing_is_read_at_once_without_migrations(tmp_path: Path) -> None:
    assert Schema(migrate(tmp_path)).analyse_simple(["SELECT id FROM users"]) == {}


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


@settings(max_examples=3000)
@given(sql=statements())
@example("SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id AND p.title = ? WHERE u.id = 1")
@example("SELECT u.email end FROM users u")
@example("SELECT id FROM users u WHERE u.id = ? AND p.title IS .")
@example("SELECT u.email AS Email, * FROM users u")
def test_both_ways_say_the_same_of_every_statement(schema: Schema, sql: str) -> None:
    read = schema.analyse_simple([sql]).get(sql)
    assert read is None or read == schema.analyse_fully(sql)
