"""The statements that `core check` says it has not read: nothing that was not read counts as compared."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from core.config.load import load_all
from core.program.module_rules import Memory
from core.program.proof import Options, Proof, prove

WRANGLER = 'name = "shop"\nmain = "app.py"\n[[d1_databases]]\nbinding = "DB"\ndatabase_name = "shop"\n'
LOG = '[[d1_databases]]\nbinding = "LOG"\ndatabase_name = "log"\nmigrations_dir = "log"\n'
TABLES = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);"
HEAD = """\
import attrs
from core import Bindings, D1Database, Request, Response, create_app

@attrs.frozen
class Env(Bindings):
    DB: D1Database

app = create_app(Env)
"""


def proved(
    root: Path, body: str, *, wrangler: str = WRANGLER, tables: str = TABLES, memory: Memory | None = None
) -> Proof:
    (root / "migrations").mkdir(exist_ok=True)
    if tables:
        (root / "migrations" / "0001.sql").write_text(tables)
    (root / "wrangler.toml").write_text(wrangler)
    (root / "app.py").write_text(HEAD + textwrap.dedent(body))
    return prove(load_all(root / "wrangler.toml"), Options(paths=[root]), memory)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("async def f(db: D1Database, sql: str):\n    await db.prepare(sql).all()\n", "its text is not known"),
        ("async def f(db):\n    await db.prepare('SELECT nope FROM users').all()\n", "its database is not known"),
        ("async def f(db: D1Database):\n    await db.prepare('SELECT ?', 1).all()\n", "prepare() is given more"),
    ],
)
def test_a_statement_that_is_not_known_is_not_read(body: str, why: str, tmp_path: Path) -> None:
    proof = proved(tmp_path, body)
    [unread] = proof.unread
    assert (unread.file, unread.line) == (str(tmp_path / "app.py"), HEAD.count("\n") + 2)
    assert why in unread.why
    assert (proof.findings, proof.statements) == ([], 0)


REPOSITORY = """\
@attrs.frozen
class User:
    id: int
    name: str

    @classmethod
    async def load(cls, env: Env) -> "User | None":
        return await env.DB.prepare("SELECT id FROM users").first(cls)

class Kept:
    row = User

    async def first(self, env: Env) -> User:
        return await env.DB.prepare("SELECT id FROM users").one(self.row)

T = TypeVar("T")

class Repository(Generic[T]):
    row: type[T]

    async def first(self, env: Env) -> T:
        return await env.DB.prepare("SELECT id FROM users").one(self.row)

async def find(env: Env, row: type[T], name: Literal["id"], other: str) -> T:
    print(await env.DB.prepare("SELECT id FROM users").first(name))
    return await env.DB.prepare("SELECT id FROM users").bind().one(row)
"""


def test_rows_are_compared_with_what_is_known_or_not_read(tmp_path: Path) -> None:
    proof = proved(tmp_path, f"from typing import Generic, Literal, TypeVar\n{REPOSITORY}")
    texts = (tmp_path / "app.py").read_text().splitlines()
    missing = [(texts[one.line - 1].split(".")[-1], one.code) for one in proof.findings]
    assert missing == [("first(cls)", "core-sql"), ("row)", "core-sql")]
    assert {one.why for one in proof.unread} == {"what its rows are read as is not known"}
    left = [texts[one.line - 1].rpartition(".")[2] for one in sorted(proof.unread)]
    assert left == ["row)", "first(name))", "one(row)"]
    assert proof.statements == 2


OF_ENV = "async def f(env: Env):\n    await env.DB.prepare('SELECT id FROM users').all()\n"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tables": ""}, "no migrations make the tables of DB"),
        ({"tables": "CREATE TABLE users (id;"}, "a migration of DB that makes users fails"),
        ({"body": OF_ENV + "MAKE = 'CREATE TABLE IF NOT EXISTS mine (id)'\n"}, ""),
        (
            {"body": OF_ENV.replace("FROM users", "FROM mine") + "MAKE = 'CREATE TABLE IF NOT EXISTS mine (id)'\n"},
            "the table mine is made by the program itself",
        ),
        (
            {
                "body": OF_ENV.replace("env: Env", "db: D1Database").replace("env.DB", "db"),
                "wrangler": WRANGLER + LOG,
            },
            "",
        ),
        (
            {
                "body": OF_ENV.replace("env: Env", "db: D1Database").replace("env.DB", "db").replace("users", "lines"),
                "wrangler": WRANGLER + LOG,
            },
            "it may be for one database or another",
        ),
    ],
)
def test_a_statement_whose_tables_are_not_known_is_not_read(given: dict[str, str], why: str, tmp_path: Path) -> None:
    wrangler, tables = given.get("wrangler", WRANGLER), given.get("tables", TABLES)
    proof = proved(tmp_path, given.get("body", OF_ENV), wrangler=wrangler, tables=tables)
    assert [unread.why for unread in proof.unread] == ([why] if why else [])
    assert proof.statements == (0 if why else 1)


def test_what_asks_no_database_is_no_statement(tmp_path: Path) -> None:
    body = """\
    class Payment:
        def prepare(self, text: str): ...
    async def f(env: Env, payment: Payment, other):
        payment.prepare("SELECT" + "a seat")
        other.prepare("the table")
        await env.DB.prepare("SELECT id FROM users").all()
    """
    proof = proved(tmp_path, body)
    assert (proof.unread, proof.statements) == ([], 1)


def test_a_second_look_says_it_again(tmp_path: Path) -> None:
    memory = Memory()
    body = "async def f(db: D1Database, sql: str):\n    await db.prepare(sql).all()\n"
    first, second = (proved(tmp_path, body, memory=memory) for _ in range(2))
    assert first.unread == second.unread != []


def test_every_statement_of_the_examples_is_read() -> None:
    configured = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*/wrangler.*"))
    assert configured
    for path in configured:
        assert [f"{re.sub('.*examples/', '', u.file)}:{u.line}: {u.why}" for u in prove(load_all(path)).unread] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('"DELETE FROM users"', {}),
        ('"DELETE FROM users\\n\\nPRAGMA foreign_keys = ON; SELECT id FROM users;\\n"', {}),
        ('"SELECT nope FROM users"', {1: "no such column: nope"}),
        ("\"\"\"DELETE FROM users\nDELETE FROM user\n  UPDATE users\n  SET name = 'a'\"\"\"", {
            2: "no such table: user. Did you mean users?",
            3: "the statement breaks off. Write its end. exec() runs each line by itself: write a statement on one line",
            4: "exec() runs each line by itself: write a statement on one line",
        }),
        ('"DELETE FROM users WHERE id = ?"', {1: "exec() binds no values. Write prepare(…).bind(…) in its place"}),
        ('""', {1: "the text holds no statement"}),
    ],
)  # fmt: skip
def test_exec_runs_a_statement_in_each_line(text: str, told: dict[int, str], tmp_path: Path) -> None:
    proof = proved(tmp_path, f"async def f(env: Env):\n    await env.DB.exec({text})\n")
    first = HEAD.count("\n") + 1
    found = {finding.line - first: finding.message for finding in proof.findings}
    assert found.keys() == told.keys()
    assert all(words in found[line] for line, words in told.items()), found
    assert (proof.statements, proof.unread) == (1, [])


def test_what_is_put_into_the_text_of_an_exec_is_told_and_not_read(tmp_path: Path) -> None:
    body = "async def f(env: Env, name: str):\n    await env.DB.exec(f\"DELETE FROM users WHERE name = '{name}'\")\n"
    proof = proved(tmp_path, body)
    [finding], [unread] = proof.findings, proof.unread
    assert finding.code == "core-sql"
    assert 'Bind it: prepare("DELETE FROM users WHERE name = ?").bind(name)' in finding.message
    assert proof.statements == 0
    assert "not known before it runs" in unread.why


def test_the_exec_of_a_durable_object_is_not_one_of_a_database(tmp_path: Path) -> None:
    body = "async def f(storage, env: Env):\n    storage.sql.exec('SELECT nope FROM mine')\n"
    proof = proved(tmp_path, body)
    assert (proof.findings, proof.unread, proof.statements) == ([], [], 0)


def test_names_of_python_are_known_behind_an_import_of_all_names_of_the_framework(tmp_path: Path) -> None:
    body = 'async def f(db: D1Database):\n    x: str = await db.prepare("SELECT email FROM users").first("email")\n'
    [found] = proved(tmp_path, f"from core import *\n{body}").findings
    assert found.message.startswith('DB: first("email") is str | None')
    assert proved(tmp_path, f"from core import *\nfrom shelve import *\n{body}").findings == []
