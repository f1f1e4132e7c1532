"""Findings about a statement, and silence about others, against migrations that the tests write."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from core.errors import D1Error
from core.sql.classes import check_row
from core.sql.connection import ClosingConnection
from core.sql.migrations import migration_files
from core.sql.rows import Given, RowField, check_column, check_parameter, check_values
from core.sql.schema import Schema, schema_of
from core.sql.statement import Statement
from core.testing import FakeD1Database

MIGRATION = """\
-- people and what they write
CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT UNIQUE,
  manager_id INTEGER REFERENCES users(id),
  score REAL NOT NULL DEFAULT 0,
  avatar BLOB,
  is_admin BOOLEAN NOT NULL DEFAULT 0,
  born DATE,
  anything
);
CREATE TABLE posts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL,
  title TEXT NOT NULL,
  body TEXT
) STRICT;
CREATE INDEX posts_user ON posts(user_id);
CREATE VIEW authors AS SELECT DISTINCT u.id, u.name, u.email FROM users u JOIN posts p ON p.user_id = u.id;
CREATE TRIGGER count_posts AFTER INSERT ON posts BEGIN
  UPDATE users SET score = score + 1 WHERE id = new.user_id;
END;
INSERT INTO users (name) VALUES ('a;b');
"""


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    (tmp_path / "0001_init.sql").write_text(MIGRATION)
    return schema_of(tmp_path)


def said(statement: Statement) -> list[str]:
    return [problem.message for problem in statement.problems]


def shape(statement: Statement) -> dict[str, tuple[str, str]]:
    assert statement.problems == ()
    assert statement.columns is not None
    return {column.name: (column.source, column.null) for column in statement.columns}


@pytest.mark.parametrize(
    "name",
    [
        "EXISTS (SELECT 1 FROM posts WHERE user_id = ?)",
        "(SELECT count(*) FROM posts p)",
        "name || ?",
        "coalesce( email,NULL, ?2 )",
    ],
)
def test_an_expression_without_a_name_is_named_as_it_is_written(schema: Schema, name: str) -> None:
    statement = schema.analyse(f"SELECT id, {name}, score FROM users")
    assert list(shape(statement)) == ["id", name, "score"]
    assert check_column(statement, name) is None


# Mistakes


UPSERT = "INSERT INTO users (id, name) VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM usrs", "no such table: usrs. Did you mean users?"),
        (
            "SELECT * FROM zebra",
            "no such table: zebra. The migrations make authors, posts, users",
        ),
        ("SELECT nmae FROM users", "no such column: nmae. Did you mean name?"),
        ("SELECT u.nmae FROM users u", "no such column: u.nmae. Did you mean name?"),
        ("SELECT qqq FROM posts", "no such column: qqq. posts has id, user_id, title, body"),
        ("SELECT usr.name FROM users usrs", "no such column: usr.name. Did you mean usrs.name?"),
        ("SELECT x.name FROM users u JOIN posts p", "no such column: x.name. The statement reads u, p"),
        ("SELECT x.y FROM users", "no such column: x.y. The statement reads users"),
        (
            "WITH newest AS (SELECT id FROM users) SELECT newset.id FROM newest",
            "no such column: newset.id. Did you mean newest.id?",
        ),
        (
            "SELECT totl.n FROM (SELECT count(*) AS n FROM users) AS total",
            "no such column: totl.n. Did you mean total.n?",
        ),
        (f"{UPSERT} name = exluded.name", "no such column: exluded.name. Did you mean excluded.name?"),
        (f"{UPSERT} name = excluded.nmae", "no such column: excluded.nmae. Did you mean name?"),
        (f"{UPSERT} name = user.name", "no such column: user.name. Did you mean users.name?"),
        (
            "SELECT users.id, users.titel FROM users JOIN posts",
            "no such column: users.titel. users has id, name, email, manager_id, score, avatar, is_admin, born, anything",
        ),
        (
            'SELECT id FROM users WHERE name = "bob"',
            "no such column: bob. SQLite takes it for a text: write that as 'bob'",
        ),
        ("INSERT INTO users (nam) VALUES (?)", "table users has no column named nam. Did you mean name?"),
        ("UPDATE users SET nam = ?", "no such column: nam. Did you mean name?"),
        ("SELECT * FORM users", 'near "FORM": syntax error. Correct the statement there'),
        ("SELECT id FROM users WHERE id IN (?, ?", "the statement breaks off. Write its end"),
        ("SELECT lenght(name) FROM users", "no such function: lenght. Did you mean length?"),
        ("SELECT length() FROM users", "wrong number of arguments to function length()"),
        (
            "SELECT id FROM users, posts",
            "ambiguous column name: id. Name its table too, as in users.id",
        ),
        ("INSERT INTO posts VALUES (?, ?)", "table posts has 4 columns but 2 values were supplied"),
        ("BEGIN", "D1 refuses BEGIN. Run the statements together with batch(), which is a transaction"),
        ("savepoint x", "D1 refuses SAVEPOINT. Run the statements together with batch(), which is a transaction"),
        ("ATTACH 'x' AS y", "D1 does not authorize ATTACH"),
        ("VACUUM INTO 'x'", "D1 does not authorize VACUUM"),
        ("PRAGMA journal_mode = wal", "D1 does not authorize PRAGMA journal_mode"),
        ("PRAGMA main.user_version", "D1 does not authorize PRAGMA user_version"),
        ("SELECT sqlite_version()", "D1 does not authorize the function sqlite_version()"),
        (
            "CREATE TEMP TABLE x (a)",
            "D1 does not authorize temporary tables. Use WITH for a table of one statement",
        ),
        (
            "SELECT id FROM users WHERE id = :id",
            "D1 does not support named parameters: write ? or ?1 in place of :id, and bind the values in that order",
        ),
        (
            f"SELECT id FROM users WHERE id IN ({', '.join('?' * 101)})",
            "the statement takes 101 values. D1 takes 100 at most",
        ),
        (" UNION ALL ".join(["SELECT 1"] * 6), "too many terms in compound SELECT"),
        ("", "the text holds no statement. Write one"),
        ("-- nothing", "the text holds no statement. Write one"),
        (
            "SELECT 1; -- done",
            (
                "D1 takes the text after a semicolon for another statement, and finds none there. Leave out the comment or "
                "the second semicolon"
            ),
        ),
        (
            "DELETE FROM posts WHERE id = ?; DELETE FROM users WHERE id = ?",
            (
                "of several statements in one text, only the last may have parameters. Prepare each by itself, and run "
                "them with batch()"
            ),
        ),
        ("SELECT 1\0", "the text has a NUL character. Leave it out"),
        ("SELECT '" + "x" * 100_000 + "'", "the text has 100009 bytes. D1 takes 100000 at most"),
    ],
)
def test_a_mistake_is_told_once_with_the_way_out(schema: Schema, sql: str, message: str) -> None:
    assert said(schema.analyse(sql)) == [message]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM users;",
        "SELECT 1; SELECT id FROM users WHERE id = ?",
        "SELECT concat(name, '!') AS n, string_agg(name, ',') FROM users GROUP BY id",
        "SELECT json_extract(value, '$.a') FROM json_each(?)",
        "SELECT name FROM users WHERE email IS NOT DISTINCT FROM ?",
        "INSERT INTO users (name, email) VALUES (?1, ?2) ON CONFLICT (email) DO UPDATE SET name = excluded.name",
        "REPLACE INTO users (id, name) VALUES (?, ?)",
        "DELETE FROM users WHERE id = ? RETURNING *",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10) SELECT i FROM n",
        "SELECT row_number() OVER (PARTITION BY user_id ORDER BY id) AS nth FROM posts",
        "CREATE TABLE IF NOT EXISTS later (a)",
        "PRAGMA table_info(users)",
        "EXPLAIN QUERY PLAN SELECT * FROM users WHERE id = ?",
        "SELECT * FROM sqlite_master",
        "SELECT name FROM d1_migrations",
        "SELECT 'it''s', x'00', \"name\", [email], `score` FROM users -- all right",
        "SELECT /* a ; and a ? */ id FROM users WHERE name <> ';'",
        "SELECT * FROM pragma_table_info('users')",
    ],
)
def test_nothing_is_said_about_a_statement_that_d1_takes(schema: Schema, sql: str) -> None:
    assert said(schema.analyse(sql)) == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM (SELECT nam FROM users ORDER BY id)", "no such column: nam. Did you mean name?"),
        ("SELECT id FROM users WHERE id IN (SELECT idd FROM posts ORDER BY id LIMIT 1)", "no such column: idd."),
        ("SELECT sum(id) OVER (PARTITION BY nam ORDER BY id) FROM users", "no such column: nam. Did you mean name?"),
        ("SELECT * FROM (SELECT id FROM user ORDER BY id)", "no such table: user. Did you mean users?"),
        ("SELECT * FROM (SELECT id FROM users ORDER BY)", 'near ")": syntax error. Correct the statement there'),
        ("SELECT anything -> '$.a' FROM user", "no such table: user. Did you mean users?"),
    ],
)
def test_a_mistake_beside_what_an_old_sqlite_does_not_know_is_told(schema: Schema, sql: str, message: str) -> None:
    (told,) = said(schema.analyse(sql))
    assert told.startswith(message)


def test_what_is_new_to_an_old_sqlite_alone_is_no_mistake(schema: Schema) -> None:
    assert said(schema.analyse("SELECT group_concat(name ORDER BY id) FROM users")) == []
    assert said(schema.analyse("SELECT group_concat(name, ',' order by (id)) FROM users")) == []
    assert said(schema.analyse("SELECT 1_000")) == []


@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 46), reason="this SQLite knows it")
@pytest.mark.parametrize("sql", ["SELECT 1_000 FROM users", "SELECT 1; SELECT 1_000 FROM users"])
def test_what_is_new_to_this_sqlite_is_said_with_the_version_that_it_needs(schema: Schema, sql: str) -> None:
    statement = schema.analyse_lines(sql.replace("; ", "\n")) if ";" in sql else schema.analyse(sql)
    assert (said(statement), statement.newer) == ([], "3.46")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id,\n  !nmae\nFROM users",
        "SELECT id FROM users\nWHERE id = 1 AND id = 2\nAND !AND id = 3",
        "SELECT id FROM users; SELECT 1; SELECT u.id, !x.id FROM users u",
        "SELECT u.name FROM users u WHERE u.id = 1 AND !n.name = 2",
        "SELECT id, title FROM posts UNION SELECT title, id FROM !title",
        "SELECT 'nmae', name AS nmae, !nmae FROM users",
        "INSERT INTO users (name, !nam) VALUES (?, ?)",
        "SELECT 1; !/* nothing */;",
        "!SELECT ?; SELECT ?; SELECT 1",
    ],
)
def test_a_mistake_knows_its_place_within_the_text(sql: str, schema: Schema) -> None:
    statement = schema.analyse(sql.replace("!", ""))
    assert statement.problems
    plain = [match.start() - number for number, match in enumerate(re.finditer("!", sql))]
    assert statement.problems[0].at in plain


def test_a_user_s_statement_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text("CREATE TABLE t (a);")
    schema = schema_of(tmp_path)
    for sql in ("DROP TABLE t", "INSERT INTO t VALUES (1)", "CREATE TABLE u (a)", "ALTER TABLE t RENAME TO v"):
        assert said(schema.analyse(sql)) == []
    assert said(schema.analyse("SELECT a FROM t")) == []
    assert schema.migrated.connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n"
    assert said(schema.analyse(endless)) == []


# How many values


@pytest.mark.parametrize(
    ("sql", "takes"),
    [
        ("SELECT 1", 0),
        ("SELECT id FROM users WHERE id = ?", 1),
        ("SELECT id FROM users WHERE id = ?1 OR manager_id = ?1", 1),
        ("SELECT id FROM users WHERE id = ?3", 3),
        ("SELECT id FROM users WHERE id = ?2 OR id = ?", 3),
        ("SELECT id FROM users WHERE name = '?' OR name = \"email\" -- ?", 0),
        ("SELECT id FROM users LIMIT ? OFFSET ?", 2),
        ("SELECT 1; SELECT ?", 1),
        ("INSERT INTO users (name) VALUES (?), (?), (?)", 3),
    ],
)
def test_the_number_of_values_is_known(schema: Schema, sql: str, takes: int) -> None:
    assert schema.analyse(sql).takes == takes


def test_a_wrong_number_of_values_is_told(schema: Schema) -> None:
    two = schema.analyse("SELECT id FROM users WHERE id = ? AND name = ?")
    assert check_values(two, 2) is None
    assert check_values(two, 1) == (
        "the statement takes 2 values, but bind() gives 1. Give one for each ? of the statement"
    )
    assert check_values(two, None) == "the statement takes 2 values, and nothing was bound. Call bind() with them"
    none = schema.analyse("SELECT id FROM users")
    assert check_values(none, None) is None
    assert check_values(none, 0) is None
    assert check_values(none, 1) == (
        "the statement takes no values, but bind() gives 1. Write a ? for each, or leave bind() out"
    )
    assert check_values(schema.analyse("PRAGMA table_info(users)"), 3) is None


# What the rows hold


def test_columns_have_their_names_and_where_they_come_from(schema: Schema) -> None:
    assert shape(schema.analyse("SELECT id, name AS n, email, count(*) FROM users GROUP BY id ORDER BY n")) == {
        "id": ("users.id", ""),
        "n": ("users.name", ""),
        "email": ("users.email", "can be NULL"),
        "count(*)": ("", ""),
    }
    assert shape(schema.analyse("SELECT p.* FROM posts p LIMIT ?")) == {
        "id": ("posts.id", ""),
        "user_id": ("posts.user_id", ""),
        "title": ("posts.title", ""),
        "body": ("posts.body", "can be NULL"),
    }


def test_an_expression_over_a_column_is_not_the_column(schema: Schema) -> None:
    assert shape(schema.analyse("SELECT coalesce(email, '') AS email, email || '' AS e FROM users")) == {
        "email": ("", ""),
        "e": ("", "can be NULL"),
    }


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT email FROM users", "can be NULL"),
        ("SELECT email FROM users ORDER BY email", "can be NULL"),
        ("SELECT email FROM users WHERE id = ? ORDER BY email LIMIT 1", "can be NULL"),
        ("SELECT email FROM users WHERE email = ?", ""),
        ("SELECT email FROM users WHERE email IS NOT NULL", ""),
        ("SELECT u.email FROM users u JOIN users v ON v.email = u.email", ""),
        ("SELECT email AS mail FROM users WHERE (id > 1 AND (mail LIKE ?))", ""),
        ("SELECT email FROM (SELECT email FROM users WHERE email <> '')", ""),
        ("WITH w AS (SELECT email AS e FROM users) SELECT e FROM w WHERE e IS NOT NULL", ""),
        ("WITH w AS (SELECT email AS e FROM users) SELECT e AS f FROM w WHERE w.e IS NOT NULL", ""),
        ("WITH w AS (SELECT id, email FROM users) SELECT email FROM w", "can be NULL"),
        ("SELECT email FROM users UNION SELECT name FROM users", "can be NULL"),
        ("SELECT email FROM users EXCEPT SELECT NULL", ""),
        ("SELECT email FROM authors", "can be NULL"),
        ("SELECT email FROM users NATURAL JOIN posts", "can be NULL"),
        ("INSERT INTO users (name, email) VALUES (?, ?) RETURNING email", ""),
        ("UPDATE users SET email = ? RETURNING email", ""),
        ("UPDATE users SET name = ? RETURNING email", "can be NULL"),
        ("DELETE FROM users WHERE id = ? RETURNING email", "can be NULL"),
    ],
)
def test_a_column_that_can_be_null_is_known_unless_a_condition_may_drop_it(schema: Schema, sql: str, why: str) -> None:
    statement = schema.analyse(sql)
    assert said(statement) == []
    assert statement.columns is not None
    assert statement.columns[0].null == why


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id", "outer join of p finds no row"),
        ("SELECT posts.title FROM users LEFT JOIN posts ON user_id = users.id", "the outer join finds no row"),
        (
            "SELECT p.title FROM users u LEFT OUTER JOIN posts AS p ON p.user_id = u.id WHERE u.id = ?",
            "outer join of p finds no row",
        ),
        ("SELECT m.name FROM users u LEFT JOIN users m ON m.id = u.manager_id WHERE u.id = ?", "outer join of m finds"),
        ("SELECT u.name FROM users u LEFT JOIN users m ON m.id = u.manager_id", ""),
        ("SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE p.id IS NOT NULL", ""),
        ("SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE coalesce(p.id, 0) > 0", ""),
        ("SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE title = ?", ""),
        ("SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id JOIN users v ON v.id = p.user_id", ""),
        (
            "SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id LEFT JOIN users v ON v.id = p.user_id",
            "outer join of p finds no row",
        ),
        ("SELECT p.title FROM posts p JOIN users u ON u.id = p.user_id", ""),
        ("SELECT p.title FROM posts p, users u WHERE u.id = p.user_id", ""),
        (
            "SELECT u.id, p.title, count(*) FROM users u LEFT JOIN posts p ON p.user_id = u.id GROUP BY u.id ORDER BY 1",
            "outer join of p finds no row",
        ),
        (
            "SELECT l.t FROM users u LEFT JOIN (SELECT user_id, title AS t FROM posts) l ON l.user_id = u.id",
            "outer join of l finds no row",
        ),
        (
            (
                "SELECT l.t FROM users u LEFT JOIN (SELECT user_id, title AS t FROM posts) l ON l.user_id = u.id "
                "WHERE l.user_id > 0"
            ),
            "",
        ),
    ],
)
def test_a_column_of_an_outer_join_can_be_null(schema: Schema, sql: str, why: str) -> None:
    statement = schema.analyse(sql)
    assert said(statement) == []
    column = next(c for c in statement.columns or () if c.name in ("title", "name", "t"))
    assert bool(column.null) == bool(why)
    assert why in column.null


def test_statements_without_rows_have_no_columns(schema: Schema) -> None:
    assert schema.analyse("DELETE FROM users").columns == ()
    assert schema.analyse("INSERT INTO users (name) VALUES (?)").columns == ()
    assert schema.analyse("CREATE TABLE x (a)").columns == ()
    assert schema.analyse("PRAGMA table_info(users)").columns is None


# Against a class


def of(name: str, shown: str, *kinds: str, required: bool = True) -> RowField:
    return RowField(name, shown, frozenset(kinds), required)  # type: ignore[arg-type]  # kinds are Literals


def test_every_field_that_a_row_cannot_fill_is_told(schema: Schema) -> None:
    rows = schema.analyse("SELECT id, name, email, score, avatar, is_admin, born, anything FROM users WHERE id = ?")
    fields = [
        of("id", "str", "str"),
        of("name", "int", "int"),
        of("email", "str", "str"),
        of("score", "int", "int"),
        of("avatar", "bytes", "bytes"),
        of("is_admin", "str", "str"),
        of("born", "date", "date"),
        of("anything", "str", "str"),
        of("zip", "str", "str"),
        of("city", "str", "str", required=False),
    ]
    assert check_row(rows, "UserRow", fields) == [
        ("id", "UserRow.id: str cannot hold users.id, which is INTEGER. Make it int"),
        ("name", "UserRow.name: int cannot hold users.name, which is TEXT. Make it str"),
        ("email", "UserRow.email: str cannot hold NULL, but users.email can be NULL. Make it str | None"),
        ("score", "UserRow.score: int cannot hold users.score, which is REAL. Make it float"),
        ("avatar", "UserRow.avatar: bytes cannot hold NULL, but users.avatar can be NULL. Make it bytes | None"),
        ("is_admin", "UserRow.is_admin: str cannot hold users.is_admin, which is BOOLEAN. Make it bool"),
        ("born", "UserRow.born: date cannot hold NULL, but users.born can be NULL. Make it date | None"),
        ("anything", "UserRow.anything: str cannot hold NULL, but users.anything can be NULL. Make it str | None"),
        (
            "zip",
            (
                "UserRow.zip is not in the result. It has id, name, email, score, avatar, is_admin, born, anything: "
                "select it, or give the field a default"
            ),
        ),
    ]


def test_a_column_of_several_kinds_is_told_with_a_type_that_can_be_written(schema: Schema) -> None:
    either = "SELECT name AS v FROM users UNION SELECT id FROM users"
    for sql, shown in ((either, "int | str"), (f"{either} UNION SELECT email FROM users", "int | str | None")):
        [(_, message)] = check_row(schema.analyse(sql), "Row", [of("v", "bytes", "bytes")])
        assert message.endswith(f"Make it {shown}")
        assert check_row(schema.analyse(sql), "Row", [of("v", shown, "int", "str", "none")]) == []


def test_what_a_column_can_fill_is_not_told(schema: Schema) -> None:
    rows = schema.analyse("SELECT id, name, email, score, is_admin, born, count(*) AS n FROM users GROUP BY id")
    fields = [
        of("id", "float", "float"),
        of("name", "datetime", "date"),
        of("email", "str | None", "str", "none"),
        of("score", "int | float", "int", "float"),
        of("is_admin", "bool", "bool"),
        of("born", "Any", "any"),
        of("n", "int", "int"),
    ]
    assert check_row(rows, "UserRow", fields) == []


def test_a_type_and_null_are_told_together(schema: Schema) -> None:
    rows = schema.analyse("SELECT email FROM users")
    assert check_row(rows, "R", [of("email", "int", "int")]) == [
        ("email", "R.email: int cannot hold users.email, which is TEXT. Make it str | None")
    ]


def test_a_near_name_is_suggested(schema: Schema) -> None:
    rows = schema.analyse("SELECT id, user_id FROM posts")
    assert check_row(rows, "Post", [of("userid", "int", "int")]) == [
        ("userid", "Post.userid is not in the result. Did you mean user_id?")
    ]
    assert check_column(rows, "user_id") is None
    assert check_column(rows, "ID") == 'the result has no column "ID". Did you mean id?'
    assert check_column(rows, "title") == 'the result has no column "title". It has id, user_id'


def test_rows_are_asked_of_a_statement_that_has_none(schema: Schema) -> None:
    gone = schema.analyse("DELETE FROM users")
    assert check_row(gone, "User", [of("id", "int", "int")]) == [
        ("", "User is read from rows, but the statement gives none. Add RETURNING, or call run()")
    ]
    assert check_column(gone, "id") == (
        'first("id") asks for a column, but the statement gives no rows. Add RETURNING, or call run()'
    )


# Migrations


def test_a_broken_migration_is_a_problem_with_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "0001_good.sql").write_text("CREATE TABLE a (x INTEGER);\n")
    (tmp_path / "0002_bad.sql").write_text(
        "-- first\nCREATE TABLE b (y);\n\nCREATE TABLE c (\n  z TEXT,\n  FORM bad bad,,\n);\nDROP TABLE nope;\n"
    )
    (tmp_path / "0003_bad.sql").write_text("BEGIN;\nPRAGMA journal_mode = wal;\nATTACH 'x' AS y;\nCOMMIT;\nSELECT 1;")
    schema = schema_of(tmp_path)
    assert [(p.file.name, p.line, p.message) for p in schema.migrated.problems] == [
        ("0002_bad.sql", 6, 'near ",": syntax error'),
        ("0002_bad.sql", 8, "no such table: nope"),
        (
            "0003_bad.sql",
            1,
            "D1 refuses BEGIN: it runs every migration in a transaction of its own. Leave the statement out",
        ),
        ("0003_bad.sql", 2, "D1 does not authorize PRAGMA journal_mode. Leave the statement out"),
        ("0003_bad.sql", 3, "D1 does not authorize ATTACH. Leave the statement out"),
        (
            "0003_bad.sql",
            4,
            "D1 refuses COMMIT: it runs every migration in a transaction of its own. Leave the statement out",
        ),
    ]
    assert said(schema.analyse("SELECT * FROM c")) == []  # what the broken one would have made is not known
    assert schema.analyse("SELECT * FROM c").unknown == "c"
    assert said(schema.analyse("SELECT y FROM a")) == ["no such column: y. a has x"]  # and the others are
    assert said(schema.analyse("SELECT 1 FROM cc")) == ["no such table: cc. The migrations make a, b"]
    assert said(schema.analyse("SELECT * FORM c")) == ['near "FORM": syntax error. Correct the statement there']


def test_a_dump_is_a_migration(tmp_path: Path) -> None:
    dump = (
        "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE a (x INTEGER);\nINSERT INTO a VALUES(1);\nCOMMIT;\n"
    )
    (tmp_path / "0001_dump.sql").write_text(dump)
    schema = schema_of(tmp_path)
    assert schema.migrated.problems == ()
    assert said(schema.analyse("SELECT y FROM a")) == ["no such column: y. a has x"]


@pytest.mark.parametrize(
    ("broken", "unknown", "known"),
    [
        ("CREATE TABLE IF NOT EXISTS main.Broken (a REFERENCES fine,, b);", "broken", "fine"),
        ("CREATE VIRTUAL TABLE broken USING fts4(a);", "broken", "fine"),
        ("CREATE TABLE broken (a; CREATE VIEW seen AS SELECT * FROM broken;", "seen", "fine"),
        (
            "CREATE TABLE broken (a; CREATE TRIGGER g AFTER INSERT ON fine BEGIN DELETE FROM broken; END;",
            "broken",
            "fine",
        ),
        ("ALTER TABLE fine ADD COLUMN b UNIQUE;", "fine", "other"),
        ("CREATE UNIQUE INDEX i ON fine (no);", "fine", "other"),
        ("CRAETE TABLE broken (a);", "broken", "fine"),
    ],
)
def test_a_table_that_cannot_be_made_is_one_mistake(broken: str, unknown: str, known: str, tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text(f"CREATE TABLE fine (a); CREATE TABLE other (a); {broken}")
    schema = schema_of(tmp_path)
    assert len(schema.migrated.problems) == 1
    for sql in (f"SELECT z FROM {unknown}", f"INSERT INTO {unknown.upper()} (z) VALUES (?)"):
        statement = schema.analyse(sql)
        assert (said(statement), statement.unknown, statement.columns) == ([], unknown, None)
    assert said(schema.analyse(f"SELECT z FROM {known}")) == [f"no such column: z. {known} has a"]


def test_without_migrations_only_the_grammar_and_the_number_of_values_count(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        schema = schema_of(folder)
        assert not schema.migrated.trusted
        assert said(schema.analyse("SELECT a FROM b WHERE c = ?")) == []
        assert schema.analyse("SELECT a FROM b WHERE c = ?").takes == 1
        assert schema.analyse("SELECT a FROM b").columns is None
        assert said(schema.analyse("SELECT a FORM b")) == ['near "b": syntax error. Correct the statement there']


def test_migrations_are_applied_by_number_and_then_by_name(tmp_path: Path) -> None:
    for name in ("10_c.sql", "9_b.sql", "0001_a.sql", "zz.sql", "0001_b.sql", "notes.txt"):
        (tmp_path / name).write_text("SELECT 1;")
    (tmp_path / "11_folder.sql").mkdir()
    assert [f.name for f in migration_files(tmp_path)] == ["0001_a.sql", "0001_b.sql", "9_b.sql", "10_c.sql", "zz.sql"]


def test_a_schema_is_kept_until_a_migration_changes(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text("CREATE TABLE t (a);")
    first = schema_of(tmp_path)
    assert schema_of(tmp_path) is first
    (tmp_path / "1.sql").write_text("CREATE TABLE t (b);")
    assert said(first.analyse("SELECT a FROM t")) == []
    assert said(schema_of(tmp_path).analyse("SELECT a FROM t")) == ["no such column: a. t has b"]


def test_a_foreign_key_that_refers_to_nothing_is_a_problem_where_it_is_written(tmp_path: Path) -> None:
    """SQLite makes such a table, and refuses every row of it."""
    (tmp_path / "1.sql").write_text(
        "CREATE TABLE later (a INTEGER REFERENCES users);\nCREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);\n"
        "CREATE TABLE notes (id INTEGER PRIMARY KEY,\n  user_id INTEGER NOT NULL REFERENCES usres (id));\n"
        "CREATE TABLE likes (name TEXT REFERENCES users (name));\n"
        "CREATE TABLE tags (a INTEGER REFERENCES everything);\n"
        "CREATE TABLE lost (a INTEGER REFERENCES unmade);\nCREATE TABLE unmade (a,,);\n"
    )
    (tmp_path / "2.sql").write_text(
        "CREATE TABLE old (b INTEGER REFERENCES users (nmae));\n\nALTER TABLE old RENAME TO fresh;\n"
        "CREATE TABLE triggered (b REFERENCES users);\n"
        "CREATE TRIGGER wrong BEFORE INSERT ON triggered BEGIN SELECT nmae FROM users; END;\n"
        "CREATE TABLE dropped (b REFERENCES absent);\nDROP TABLE dropped;\n"
    )
    schema = schema_of(tmp_path)
    unique = "Refer to its primary key, or to a UNIQUE column"
    assert [(p.file.name, p.line, p.message) for p in schema.migrated.problems if p.tables is None] == [
        ("1.sql", 3, "no such table: usres, so no row can be written into notes. Did you mean users?"),
        (
            "1.sql",
            5,
            f'foreign key mismatch - "likes" referencing "users", so no row can be written into likes. {unique}',
        ),
        ("1.sql", 6, "no such table: everything, so no row can be written into tags. Create it"),
        (
            "2.sql",
            3,
            f'foreign key mismatch - "fresh" referencing "users", so no row can be written into fresh. {unique}',
        ),
    ]
    assert [p.message for p in schema.migrated.problems if p.tables is not None] == ['near ",": syntax error']
    assert said(schema.analyse("SELECT user_id FROM notes")) == []


def test_a_later_migration_changes_what_an_earlier_one_made(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text("CREATE TABLE users (id INTEGER PRIMARY KEY, fullname TEXT, old);")
    (tmp_path / "2.sql").write_text(
        "ALTER TABLE users RENAME COLUMN fullname TO name; ALTER TABLE users DROP COLUMN old;"
        "ALTER TABLE users ADD COLUMN age INTEGER NOT NULL DEFAULT 0; ALTER TABLE users RENAME TO people;"
    )
    schema = schema_of(tmp_path)
    assert schema.migrated.problems == ()
    assert shape(schema.analyse("SELECT * FROM people")) == {
        "id": ("people.id", ""),
        "name": ("people.name", "can be NULL"),
        "age": ("people.age", ""),
    }


@pytest.mark.slow
def test_a_migration_that_never_ends_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text(
        "CREATE TABLE n AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT max(i) AS i FROM c;"
    )
    assert [p.message for p in schema_of(tmp_path).migrated.problems] == ["takes too long to run"]


def test_generated_and_checked_columns_are_not_said_to_be_null(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text(
        "CREATE TABLE t (a INTEGER NOT NULL, b INTEGER AS (a + 1), c TEXT CHECK (c IS NOT NULL), k TEXT PRIMARY KEY);"
        "CREATE VIRTUAL TABLE docs USING fts5(title);"
    )
    schema = schema_of(tmp_path)
    assert {name: null for name, (_, null) in shape(schema.analyse("SELECT * FROM t")).items()} == {
        "a": "",
        "b": "",
        "c": "",
        "k": "",
    }
    assert shape(schema.analyse("SELECT title FROM docs WHERE docs MATCH ? ORDER BY rank")) == {
        "title": ("docs.title", "")
    }


def test_columns_that_a_virtual_table_has_for_itself_are_in_no_star(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text("CREATE VIRTUAL TABLE docs USING fts5(title, body);")
    schema = schema_of(tmp_path)
    for star in ("*", "docs.*", "d.*"):
        source = "docs d" if star == "d.*" else "docs"
        assert list(shape(schema.analyse(f"SELECT {star} FROM {source} WHERE docs MATCH 'x'"))) == ["title", "body"]
    assert list(shape(schema.analyse("SELECT *, rank FROM docs"))) == ["title", "body", "rank"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM users WHERE count(*) > 1",
        "SELECT max(count(*)) FROM users",
        "SELECT id FROM users GROUP BY count(*)",
        "SELECT id FROM users GROUP BY 9",
        "SELECT id FROM users ORDER BY 9",
        "SELECT id FROM users ORDER BY nope",
        "SELECT id FROM users WHERE (id, name) = 1",
        "SELECT (id, name) FROM users",
        "SELECT id FROM users WHERE id IN (1, (2,3))",
        "SELECT id FROM users LIMIT id",
        "SELECT id FROM users LIMIT nope",
        "SELECT * FROM users JOIN posts USING (nope)",
        "SELECT * FROM users JOIN posts ON nope = 1",
        "SELECT id FROM users u, users u",
        "SELECT u.id FROM users u, users u",
        "SELECT length(1,2) FROM users",
        "SELECT group_concat(name, ',' , 1) FROM users",
        "SELECT raise(abort, 'x') FROM users",
        "SELECT id FROM users WHERE name LIKE 'a' ESCAPE 'bb'",
        "SELECT cast(id AS) FROM users",
        "SELECT DISTINCT count(DISTINCT id, name) FROM users",
        "SELECT id AS a, a FROM users",
        "SELECT *",
        "SELECT * FROM json_each('[1]', '$', 3)",
        "SELECT * FROM pragma_table_info('x')",
        "SELECT x.* FROM users",
        "SELECT id FROM authors",
        "SELECT rank FROM docs",
        "SELECT docs FROM docs",
        "SELECT id FROM main.users",
        "SELECT id FROM temp.users",
        "SELECT main.users.id FROM users",
        "SELECT id FROM users NOT INDEXED",
        "SELECT id FROM users CROSS JOIN posts",
        "SELECT users.id FROM users AS u",
        "SELECT id FROM users WHERE id = ?101",
        "SELECT id FROM users WHERE id = ?0",
        "SELECT id FROM users WHERE 1 = 1 = nope",
        "SELECT id FROM (users)",
        "SELECT name FROM users AS name WHERE name.name = 1",
        "SELECT total FROM (users) t",
        "SELECT new.id FROM users",
        "SELECT nullif(1) FROM users",
        "SELECT coalesce(1) FROM users",
        "SELECT id FROM users WHERE EXISTS users",
        "SELECT likelihood(1, 2) FROM users",
        "SELECT id FROM sqlite_master",
        "SELECT name FROM sqlite_schema",
        "SELECT 'a' 'b' FROM users",
        "SELECT id FROM core_result",
        "SELECT id -> 'a' FROM users",
    ],
)
def test_a_plain_select_is_judged_as_by_sqlite_itself(schema: Schema, sql: str) -> None:
    connection = ClosingConnection(":memory:")
    connection.executescript(MIGRATION)
    refusal = ""
    try:
        connection.execute(f"EXPLAIN {sql}", (1,) * (schema.analyse(sql).takes or 0))
    except sqlite3.Error as error:
        refusal = str(error)
    assert bool(said(schema.analyse(sql))) == bool(refusal), refusal


@pytest.mark.parametrize("table", ["dbstat", "sqlite_stmt", "users JOIN sqlite_dbpage", "users, fts3tokenize"])
async def test_tables_that_d1s_sqlite_is_built_without_are_nowhere(tmp_path: Path, table: str) -> None:
    (tmp_path / "0001.sql").write_text("CREATE TABLE users (id INTEGER PRIMARY KEY);")
    name = table.split()[-1]
    problems = schema_of(tmp_path).analyse(f"SELECT * FROM {table}").problems
    assert [p.message for p in problems] == [f"no such table: {name}. SQLite may have it, and D1 is built without"]
    with pytest.raises(D1Error, match=f"D1_ERROR: no such table: {name}: SQLITE_ERROR"):
        await FakeD1Database(migrations=tmp_path).prepare(f"SELECT * FROM {table}").all()


async def test_a_table_of_the_programs_own_may_have_such_a_name(tmp_path: Path) -> None:
    (tmp_path / "0001.sql").write_text("CREATE TABLE dbstat (id INTEGER PRIMARY KEY);")
    assert schema_of(tmp_path).analyse("SELECT id FROM dbstat").problems == ()
    assert (await FakeD1Database(migrations=tmp_path).prepare("SELECT id FROM dbstat").all()).results == []


# A CHECK that allows some texts

STATES = """\
CREATE TABLE posts (
  id INTEGER PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('draft', 'public', 'it''s')), title TEXT NOT NULL,
  mood TEXT CHECK ("mood" in ('good', 'bad')), size INTEGER NOT NULL CHECK (size IN ('1', '2')),
  note TEXT CHECK (note IN ('a', 'b') OR title = ''), kind TEXT CHECK (kind NOT IN ('a', 'b'))
);
CREATE TABLE codes (code TEXT NOT NULL COLLATE NOCASE CHECK (code IN ('a', 'b')));
CREATE VIEW drafts AS SELECT id, state FROM posts WHERE state = 'draft';
"""
ALLOWED = "its CHECK allows 'draft', 'public', 'it''s'."


@pytest.fixture
def states(tmp_path: Path) -> Schema:
    (tmp_path / "0001_init.sql").write_text(STATES)
    return schema_of(tmp_path)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT id FROM posts WHERE state = 'drft'", f"posts.state is never 'drft': {ALLOWED} Did you mean draft?"),
        (
            "SELECT id FROM posts p WHERE 'x' <> p.state",
            f"posts.state is never 'x': {ALLOWED} Correct it, or the CHECK",
        ),
        ("SELECT id FROM posts WHERE state IN ('draft', 'x')", f"posts.state is never 'x': {ALLOWED}"),
        ("SELECT CASE state WHEN 'x' THEN 1 ELSE 2 END FROM posts", f"posts.state is never 'x': {ALLOWED}"),
        ("UPDATE posts SET state = 'x'", f"posts.state is never 'x': {ALLOWED}"),
        ("INSERT INTO posts (state, title, size) VALUES ('x', '', 1)", f"posts.state is never 'x': {ALLOWED}"),
        ("DELETE FROM posts WHERE mood IS 'sad'", "posts.mood is never 'sad': its CHECK allows 'good', 'bad'."),
    ],
)
def test_a_text_that_a_check_does_not_allow_is_told_where_it_stands(states: Schema, sql: str, message: str) -> None:
    [problem] = states.analyse(sql).problems
    assert problem.message.startswith(message)
    assert sql[problem.at :].startswith(("'drft'", "'x'", "'sad'"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM posts WHERE state = 'it''s' AND state IN ('draft', 'public') AND state > 'c'",
        "SELECT id FROM posts WHERE state LIKE 'd%' OR state || '' = 'x' OR upper(state) = 'X'",
        "SELECT id FROM posts WHERE state = 'DRAFT' COLLATE NOCASE",
        "SELECT id FROM posts WHERE size = '3' OR note = 'c' OR kind = 'c' OR title = 'x' OR mood IS NULL",
        "SELECT 1 FROM codes WHERE code = 'A'",
        "SELECT id FROM posts WHERE state BETWEEN 'c' AND 'e'",
    ],
)
def test_what_a_check_may_allow_is_not_told(states: Schema, sql: str) -> None:
    assert said(states.analyse(sql)) == []


@pytest.mark.parametrize(
    ("sql", "given", "message"),
    [
        ("SELECT id FROM posts WHERE state = ?", "x", f"posts.state is never 'x': {ALLOWED} Correct it, or the CHECK"),
        ("UPDATE posts SET state = ?", "x", f"posts.state is never 'x': {ALLOWED} Correct it, or the CHECK"),
        ("UPDATE posts SET state = ?", "public", None),
        ("SELECT id FROM posts WHERE state < ?", "x", None),
        ("UPDATE posts SET state = ?", None, None),
        ("SELECT id FROM posts WHERE ?1 = '' OR state = ?1", "", None),
        ("SELECT id FROM posts WHERE state = ? COLLATE NOCASE", "DRAFT", None),
        ("SELECT id FROM posts WHERE CASE ?1 WHEN '' THEN 1 ELSE state = ?1 END", "", None),
    ],
)
def test_a_text_that_is_bound_is_one_that_the_check_allows(
    states: Schema, sql: str, given: str | None, message: str | None
) -> None:
    assert check_parameter(1, states.analyse(sql).slots, Given(frozenset(["str"]), given)) == message


@pytest.mark.parametrize(
    ("sql", "lacking"),
    [
        ("SELECT state FROM posts", "'public', 'it''s'"),
        ("SELECT p.state FROM posts p JOIN codes ON code = p.title", "'public', 'it''s'"),
        ("SELECT state FROM posts WHERE title = ''", "'public', 'it''s'"),
        ("SELECT state FROM posts WHERE state = 'draft'", None),
        ("SELECT state FROM drafts", None),
        ("SELECT state AS s FROM posts WHERE s = 'draft'", None),
        ("SELECT x.state FROM (SELECT state FROM posts) x WHERE x.state = 'draft'", None),
        ("SELECT lower(state) AS state FROM posts", None),
        ("SELECT max(state) AS state FROM posts GROUP BY id", None),
        ("INSERT INTO posts (state, title, size) VALUES ('draft', '', 1) RETURNING state", None),
        ("UPDATE posts SET title = '' RETURNING state", "'public', 'it''s'"),
    ],
)
def test_a_literal_holds_all_that_the_check_of_its_column_allows(states: Schema, sql: str, lacking: str | None) -> None:
    statement = states.analyse(sql)
    name = (statement.columns or ())[0].name
    field = RowField(name, 'Literal["draft"]', frozenset(["str", "none"]), texts=frozenset(["draft"]))
    told = f'Row.{name}: Literal["draft"] cannot hold {lacking}, which the CHECK of posts.state allows. Add it'
    assert check_row(statement, "Row", [field]) == ([] if lacking is None else [(name, told)])


def test_a_case_gives_a_value_where_its_whens_are_all_that_the_check_allows(states: Schema) -> None:
    whole = states.analyse(
        "SELECT CASE state WHEN 'draft' THEN 1 WHEN 'public' THEN 2 WHEN 'it''s' THEN 3 END AS a FROM posts"
    )
    part = states.analyse("SELECT CASE state WHEN 'draft' THEN 1 WHEN 'public' THEN 2 END AS a FROM posts")
    other = states.analyse(
        "SELECT CASE state COLLATE NOCASE WHEN 'DRAFT' THEN 1 WHEN 'PUBLIC' THEN 2 END AS a FROM posts"
    )
    assert (whole.columns or ())[0].null == (other.columns or ())[0].null == ""
    assert (part.columns or ())[0].null == "is NULL where no WHEN holds"
