"""`first("name")`: mypy has the type of the column, and `core check` holds an annotation against it,
at the same lines.
"""

from __future__ import annotations

import re

from tests.mypy_plugin.conftest import Project

from core.analysis.program import Options, check_program
from core.config.load import load_all

PROGRAM = """
from core import D1Database

async def fits(db: D1Database) -> str | None:
    name: str | None = await db.prepare("SELECT name FROM users").first("name")
    number: int = await db.prepare("SELECT count(*) AS n FROM users").first("n")
    share: float = await db.prepare("SELECT count(*) AS n FROM users").first("n")
    most: int | None = await db.prepare("SELECT max(id) AS n FROM users").first("n")
    one: str = await db.prepare("SELECT name FROM users").one("name")
    made: int = await db.prepare("INSERT INTO users (name) VALUES ('a') RETURNING id").first("id")
    anything: object = await db.prepare("SELECT name FROM users").first("name")
    print(name, number, share, most, one, made, anything)
    return await db.prepare("SELECT name FROM users").first("name")

async def unknown(db: D1Database) -> None:
    value: int = await db.prepare("SELECT abs(?) AS n").bind(1).first("n")
    mail: str = await db.prepare("SELECT email FROM users WHERE email > 'a'").one("email")
    name = "id"
    name += "s"
    other: str = await db.prepare("SELECT id FROM users").first(name)
    print(value, mail, other)

async def differs(db: D1Database) -> str:
    name: int | None = await db.prepare("SELECT name FROM users").first("name")
    #^ first("name") is str | None, which int | None cannot hold. Make it str | None
    missing: str = await db.prepare("SELECT name FROM users").first("name")
    #^ first("name") is str | None, which str cannot hold. Make it str | None, or call one("name")
    most: int = await db.prepare("SELECT max(id) AS n FROM users").one("n")
    #^ one("n") is int | None, which int cannot hold. Make it int | None
    score: int = await db.prepare("SELECT score FROM users").one("score")
    #^ one("score") is float, which int cannot hold. Make it float
    made: int = await db.prepare("INSERT OR IGNORE INTO users (name) VALUES ('a') RETURNING id").first("id")
    #^ first("id") is int | None, which int cannot hold. Make it int | None, or call one("id")
    kept: int = await db.prepare("INSERT INTO users (name) VALUES ('a') ON CONFLICT DO NOTHING RETURNING id").first("id")
    #^ first("id") is int | None, which int cannot hold. Make it int | None, or call one("id")
    print(name, missing, most, score, made, kept)
    return await db.prepare("SELECT id FROM users").one("id")
    #^ one("id") is int, which str cannot hold. Make it int
"""


def test_the_value_of_a_column_is_known_to_mypy_and_held_against_annotations_by_core_check(project: Project) -> None:
    project.usual().write("app.py", PROGRAM)
    lines = (project.root / "app.py").read_text().splitlines()
    expected = {
        number: match[1] for number, line in enumerate(lines, 0) if (match := re.match(r" *#\^ (.*)", line)) is not None
    }
    told = project.mypy()
    assert [int(line.split(":")[1]) for line in told] == list(expected)
    assert {line.rpartition("[")[2] for line in told} == {"assignment]", "return-value]"}
    found = check_program(load_all(project.root / "wrangler.toml"), Options(paths=[project.root]))
    assert {finding.line: finding.message for finding in found} == {
        line: f"DB: {message}" for line, message in expected.items()
    }


def test_the_type_is_not_changed_where_the_code_is_off(project: Project) -> None:
    project.usual().write("app.py", PROGRAM)
    path = project.root / "wrangler.toml"
    path.write_text(path.read_text() + '\n[core.checks]\ncore-sql = "off"\n')
    assert [line for line in project.mypy() if "no-any-return" not in line] == []
