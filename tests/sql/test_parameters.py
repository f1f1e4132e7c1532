"""Values against the columns beside their parameters, and what `core check` alone can say of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mypy_plugin.conftest import ENV, MIGRATION, WRANGLER

from core.config.load import load_all
from core.program.proof import check_program
from core.sql.catalog import migrate
from core.sql.rows import Given, check_parameter
from core.sql.schema import Schema

TABLES = """
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT, n INTEGER, data BLOB, kind TEXT DEFAULT 'a' NOT NULL);
CREATE TABLE s (id TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
CREATE TABLE g (name TEXT NOT NULL ON CONFLICT IGNORE);
CREATE VIEW v AS SELECT * FROM t;
"""


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    (tmp_path / "1.sql").write_text(TABLES)
    return Schema(migrate(tmp_path))


NONE = Given(frozenset(["none"]))
TEXT = Given(frozenset(["str"]), "abc")
ANY_TEXT = Given(frozenset(["str"]))
NUMBER = Given(frozenset(["int"]))
LIST = Given(frozenset(["json"]))
UNSET = Given(frozenset(["unset"]))
DICT = Given(frozenset(["json"]), refused="dict")


@pytest.mark.parametrize(
    ("sql", "given", "message"),
    [
        ("INSERT INTO t (name) VALUES (?)", NONE, "t.name is NOT NULL, but the value is None. Bind another"),
        ("INSERT INTO t (id, name) VALUES (?, 'a')", NONE, None),
        ("INSERT INTO t (note, name) VALUES (?, 'a')", NONE, None),
        ("INSERT OR IGNORE INTO t (name) VALUES (?)", NONE, None),
        ("INSERT OR REPLACE INTO t (name, kind) VALUES ('a', ?)", NONE, None),
        ("INSERT INTO g (name) VALUES (?)", NONE, None),
        ("REPLACE INTO t (name) VALUES (?)", NONE, "t.name is NOT NULL, but the value is None. Bind another"),
        ("INSERT INTO t (name) SELECT ?", NONE, "t.name is NOT NULL, but the value is None. Bind another"),
        ("UPDATE t SET name = ?", NONE, "t.name is NOT NULL, but the value is None. Bind another"),
        ("UPDATE t SET name = coalesce(?, name)", NONE, None),
        (
            "INSERT INTO t (id, name) VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET name = ?",
            NONE,
            "t.name is NOT NULL, but the value is None. Bind another",
        ),
        ("SELECT 1 FROM t WHERE note = ?", NONE, "nothing is equal to NULL, t.note neither."),
        ("SELECT 1 FROM t WHERE note IS ?", NONE, None),
        ("SELECT 1 FROM t WHERE ? IS NULL OR note = ?1", NONE, None),
        ("SELECT 1 FROM t WHERE note = ? OR ?1 IS NULL", NONE, None),
        ("SELECT 1 FROM t WHERE id = ?", TEXT, 't.id is an INTEGER, but the value is the text "abc". Bind a number'),
        ("SELECT 1 FROM t WHERE n = ?", TEXT, None),
        ("SELECT 1 FROM s WHERE n BETWEEN ? AND 5", TEXT, 's.n is an INTEGER, but the value is the text "abc".'),
        ("SELECT 1 FROM t WHERE id = ?", ANY_TEXT, None),
        ("SELECT 1 FROM t WHERE id = ?", Given(frozenset(["str"]), " 12 "), None),
        ("SELECT 1 FROM t x JOIN s ON x.name = s.id WHERE s.id = ?", NUMBER, "s.id is TEXT, where a number arrives as"),
        ("DELETE FROM t WHERE lower(name) = ?", NUMBER, None),
        ("SELECT 1 FROM t WHERE data = ?", LIST, None),
        ("SELECT 1 FROM t WHERE id IN (?)", LIST, "a list is bound as one blob. Write a ? for each"),
        ("SELECT 1 FROM t WHERE id = ?", LIST, "a list is bound as one blob, which t.id is not."),
        (
            "SELECT 1 FROM t WHERE id = ?",
            DICT,
            "bind() takes no dict. Bind its values one by one, or json.dumps() of it",
        ),
        ("SELECT 1 FROM v WHERE id = ?", TEXT, None),
        ("SELECT 1 FROM (SELECT name AS n FROM t) WHERE n = ?", NUMBER, None),
        ("SELECT 1 FROM t LIMIT ?", NONE, "LIMIT takes a number, but the value is None."),
        (
            "SELECT 1 FROM t ORDER BY id LIMIT 5 OFFSET ?",
            TEXT,
            'LIMIT takes an integer, but the value is the text "abc".',
        ),
        ("SELECT 1 WHERE 1 = ?", Given(frozenset(), enum="Kind"), "bind() takes no Kind. Bind its value: .value"),
        ("SELECT 1 WHERE 1 = ?", Given(frozenset(["date"])), "bind() takes no dates, times and UUIDs."),
        ("SELECT 1 FROM t WHERE name = ?", Given(frozenset(["any"])), None),
        ("UPDATE t SET name = ?, note = ?", UNSET, None),
        (
            "UPDATE t SET name = ?, note = ?1 WHERE id = ?1",
            UNSET,
            "value 1 is UNSET, but the statement reads it outside",
        ),
        ("UPDATE t SET n = ?", Given(frozenset(["unset", "str"])), None),
        ("DELETE FROM t WHERE id = ?", Given(frozenset(["unset", "int"])), "value 1 may be UNSET"),
        ("INSERT INTO t (name) VALUES (?)", UNSET, "value 1 is UNSET"),
    ],
)
def test_only_what_can_never_work_is_told(schema: Schema, sql: str, given: Given, message: str | None) -> None:
    statement = schema.analyse(sql)
    assert statement.problems == ()
    told = check_parameter(1, statement.slots, given)
    assert (told or "").startswith(message or "")
    assert bool(told) == bool(message)


def test_core_check_tells_what_bind_refuses(tmp_path: Path) -> None:
    """mypy tells it by itself: the value is of no type that `bind` takes."""
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "1.sql").write_text(MIGRATION)
    (tmp_path / "wrangler.toml").write_text(WRANGLER)
    (tmp_path / "app.py").write_text(
        ENV
        + """
import datetime
import enum
from collections.abc import Sequence

class Kind(enum.Enum):
    ADMIN = 1

class Level(enum.IntEnum):
    HIGH = 1

async def f(env: Env, day: datetime.date, kind: Kind, level: Level, ids: list[int], parts: Sequence[int], either: list[int] | str, chosen: dict[str, int]) -> None:
    by = env.DB.prepare("SELECT id FROM users WHERE score > ?")
    await by.bind(Kind.ADMIN).all()
    await by.bind(Level.HIGH).all()
    await by.bind(day).all()
    await by.bind(kind).all()
    await by.bind(level).all()
    several = env.DB.prepare("SELECT id FROM users WHERE id IN (?)")
    await several.bind(ids).all()
    await several.bind(parts).all()
    await several.bind(either).all()
    await by.bind({"id": 1}).all()
    await by.bind({1, 2}).all()
    await by.bind(chosen).all()
"""
    )
    findings = check_program(load_all(tmp_path / "wrangler.toml"))
    assert [(finding.line, finding.message) for finding in findings if finding.code == "core-sql"] == [
        (24, "DB: bind() takes no Kind. Bind its value: .value"),
        (26, "DB: bind() takes no dates, times and UUIDs. Bind their text: str()"),
        (27, "DB: bind() takes no Kind. Bind its value: .value"),
        (
            30,
            (
                "DB: a list is bound as one blob. Write a ? for each of its values, or IN (SELECT value FROM json_each(?)) and "
                "bind json.dumps() of it"
            ),
        ),
        (33, "DB: bind() takes no dict. Bind its values one by one, or json.dumps() of it"),
        (34, "DB: bind() takes no set. Bind its values one by one"),
        (35, "DB: bind() takes no dict. Bind its values one by one, or json.dumps() of it"),
    ]
