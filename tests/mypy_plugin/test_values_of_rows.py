"""`first("name")`: mypy has the type of the column, and `core check` holds an annotation against it,
at the same lines.
"""

from __future__ import annotations

import re

from tests.mypy_plugin.conftest import Project

from core.config.load import load_all
from core.program.proof import Options, check_program

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
    absent: str = await db.prepare("SELECT email FROM users").first("email")
    #^ first("email") is str | None, which str cannot hold. Make it str | None
    most: int = await db.prepare("SELECT max(id) AS n FROM users").one("n")
    #^ one("n") is int | None, which int cannot hold. Make it int | None
    score: int = await db.prepare("SELECT score FROM users").one("score")
    #^ one("score") is float, which int cannot hold. Make it float
    made: int = await db.prepare("INSERT OR IGNORE INTO users (name) VALUES ('a') RETURNING id").first("id")
    #^ first("id") is int | None, which int cannot hold. Make it int | None, or call one("id")
    kept: int = await db.prepare("INSERT INTO users (name) VALUES ('a') ON CONFLICT DO NOTHING RETURNING id").first("id")
    #^ first("id") is int | None, which int cannot hold. Make it int | None, or call one("id")
    print(name, missing, absent, most, score, made, kept)
    return await db.prepare("SELECT id FROM users").one("id")
    #^ one("id") is int, which str cannot hold. Make it int
"""


def test_the_value_of_a_column_is_known_to_mypy_and_held_against_annotations_by_core_check(project: Project) -> None:
    project.usual().write("users.py", PROGRAM)
    lines = (project.root / "users.py").read_text().splitlines()
    expected = {
        number: match[1] for number, line in enumerate(lines, 0) if (match := re.match(r" *#\^ (.*)", line)) is not None
    }
    told = project.mypy()
    assert [int(line.split(":")[1]) for line in told] == list(expected)
    assert {line.rpartition("[")[2] for line in told} == {"assignment]", "return-value]"}
    found = check_program(load_all(project.root / "wrangler.toml"), Options(paths=[project.root]))
    assert {finding.line: finding.message for finding in found if finding.code == "core-sql"} == {
        line: f"DB: {message}" for line, message in expected.items()
    }


def test_the_type_is_not_changed_where_the_code_is_off(project: Project) -> None:
    project.usual().write("users.py", PROGRAM)
    path = project.root / "wrangler.toml"
    path.write_text(path.read_text() + '\n[core.checks]\ncore-sql = "off"\n')
    assert [line for line in project.mypy() if "no-any-return" not in line] == []


UPDATES = """
from core import UNSET, D1Database, Unset

async def change(db: D1Database, name: str | Unset, id: int | Unset) -> None:
    update = db.prepare("UPDATE users SET name = ? WHERE id = ?")
    await update.bind(name, 1).run()
    await update.bind(UNSET, 1).run()
    await update.bind("a", UNSET).run()
    await update.bind(name, id).run()
    if id is not UNSET:
        await update.bind(name, id).run()
    await db.prepare("DELETE FROM users WHERE id = ?").bind(UNSET).run()
"""


def test_unset_is_told_where_nothing_can_be_left_out(project: Project) -> None:
    project.usual().write("users.py", UPDATES)
    says = "UNSET, but the statement reads it outside of an assignment"
    told = [line for line in project.mypy() if says in line]
    assert [line.split(":")[1] for line in told] == ["7", "8", "11"]
    found = check_program(load_all(project.root / "wrangler.toml"), Options(paths=[project.root]))
    assert [one.line for one in found if says in one.message] == [7, 11]
