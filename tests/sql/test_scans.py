"""Plans that read without an index, with the index that helps; and exempt ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.sql.catalog import migrate
from core.sql.schema import Schema

TABLES = """
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE, age INTEGER);
CREATE TABLE posts (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id), title TEXT, at TEXT);
CREATE INDEX posts_user ON posts (user_id);
CREATE TABLE kinds ( -- core: small
  name TEXT);
CREATE VIRTUAL TABLE docs USING fts5(body);
CREATE VIEW recent AS SELECT title FROM posts WHERE at > '2026';
"""
ALLOW = "; or say why it may: -- core: scan ok, <reason>"
NO_INDEX = "Add a condition that an index serves, or a LIMIT, or say why it may: -- core: scan ok, <reason>"


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    (tmp_path / "1.sql").write_text(TABLES)
    return Schema(migrate(tmp_path))


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        ("SELECT id FROM users WHERE name = ?", "users_name ON users (name)"),
        ("SELECT id FROM users WHERE name = ?1 AND age > ?2", "users_name_age ON users (name, age)"),
        ("SELECT id FROM users WHERE age IN (1, 2) AND name = ?", "users_age_name ON users (age, name)"),
        ("SELECT id FROM posts ORDER BY at LIMIT 5", "posts_at ON posts (at)"),
        ("SELECT u.name FROM users u JOIN posts p ON p.title = u.name WHERE u.id = 1", "posts_title ON posts (title)"),
        (
            "SELECT id FROM users u WHERE u.id = ? AND EXISTS (SELECT 1 FROM posts p WHERE p.title = u.name)",
            "posts_title ON posts (title)",
        ),
        ("DELETE FROM posts WHERE at < ?", "posts_at ON posts (at)"),
        ("UPDATE users SET age = 1 WHERE name = ?", "users_name ON users (name)"),
    ],
)
def test_a_scan_is_told_with_the_index_that_takes_it_away(schema: Schema, sql: str, index: str) -> None:
    (told,) = schema.scans(sql)
    assert told.endswith(f"Make an index: CREATE INDEX {index}{ALLOW}")
    schema.migrated.connection.set_authorizer(None)
    schema.migrated.connection.execute(f"CREATE INDEX {index}")
    assert schema.scans(sql) == ()


def test_a_sort_without_an_index_is_told(schema: Schema) -> None:
    assert schema.scans("SELECT * FROM posts WHERE user_id = ? ORDER BY at DESC LIMIT 20") == (
        f"the rows of posts are sorted without an index. Make one: CREATE INDEX posts_user_id_at ON posts (user_id, at){ALLOW}",
    )


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("SELECT count(*) FROM users", "users"),
        ("UPDATE users SET age = 1", "users"),
        ("SELECT id FROM users WHERE lower(name) = ?", "users"),
        ("SELECT title FROM recent", "posts"),
        ("WITH w AS (SELECT id FROM users) SELECT count(*) FROM w", "users"),
    ],
)
def test_where_no_index_helps_none_is_proposed(schema: Schema, sql: str, table: str) -> None:
    assert schema.scans(sql) == (f"every row of {table} is read. {NO_INDEX}",)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM users WHERE id = ?",
        "SELECT id FROM users WHERE email = ?1 OR id = ?1",
        "SELECT * FROM posts ORDER BY id DESC LIMIT 20",
        "SELECT name FROM users WHERE id > ? ORDER BY id LIMIT ?",
        "SELECT * FROM kinds ORDER BY name",
        "SELECT body FROM docs WHERE docs MATCH ?",
        "SELECT id FROM users WHERE id IN (SELECT value FROM json_each(?))",
        "SELECT u.name, p.title FROM users u JOIN posts p ON p.user_id = u.id WHERE u.email = ?",
        "INSERT INTO users (name) VALUES (?) ON CONFLICT (email) DO UPDATE SET name = excluded.name",
        "SELECT count(*) FROM users -- core: scan ok, once a night",
        "SELECT nothing FROM users",
        "CREATE TABLE later (a)",
        "SELECT 1",
    ],
)
def test_what_reads_little_or_is_allowed_is_not_told(schema: Schema, sql: str) -> None:
    assert schema.scans(sql) == ()


def test_an_allowance_has_a_reason_and_is_needed(schema: Schema) -> None:
    assert schema.scans("SELECT id FROM users WHERE id = ? -- core: scan ok, small still") == (
        "the plan reads no table whole: -- core: scan ok is no longer needed. Remove it",
    )
    assert schema.scans("SELECT count(*) FROM users -- core: scan ok") == (
        "-- core: scan ok has no reason. Write it behind a comma",
    )


def test_looking_for_an_index_leaves_none_behind(schema: Schema) -> None:
    schema.scans("SELECT id FROM users WHERE name = ?")
    schema.migrated.connection.set_authorizer(None)
    found = schema.migrated.connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'core%'").fetchall()
    assert found == []
