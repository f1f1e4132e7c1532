"""The value of a name, the database it belongs to, and the tables there are, as both front ends follow them."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project

HEAD = """
from __future__ import annotations

from typing import Annotated, Generic, TypeAlias, TypeVar
import attrs
from core import App, D1Database, DurableObject, Request, Response, create_app
from env import Env

app = create_app(Env)
"""


def test_a_name_that_may_hold_another_text_is_not_taken_for_one(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        HEAD
        + """
async def given(db: D1Database, sql: str, more: bool) -> None:
    if more:
        sql = "SELECT nope FROM users"
    await db.prepare(sql).all()

async def defaulted(db: D1Database, sql: str = "SELECT nope FROM users") -> None:
    await db.prepare(sql).all()

async def walrus(db: D1Database, other: str) -> None:
    sql = "SELECT nope FROM users"
    if (sql := other) != "":
        await db.prepare(sql).all()

async def matched(db: D1Database, other: tuple[str, str]) -> None:
    sql = "SELECT nope FROM users"
    match other:
        case (sql, _):
            pass
    await db.prepare(sql).all()

async def starred(db: D1Database, other: list[str]) -> None:
    rest = "SELECT nope FROM users"
    [first, rest] = other
    await db.prepare(rest).all()
    await db.prepare(first).all()

async def once(db: D1Database) -> None:
    sql = "SELECT nope FROM users"
    await db.prepare(sql).all()
    #^ core-sql: DB: no such column: nope. users has id, name, email, score
""",
    )
    project.check()


LOG = """
[[d1_databases]]
binding = "LOG"
database_name = "log"
database_id = "c"
migrations_dir = "log"
"""


def test_only_an_env_has_the_databases_of_the_configuration(project: Project) -> None:
    project.usual()
    project.write("log/0001_init.sql", "CREATE TABLE events (id INTEGER PRIMARY KEY);\n")
    project.write("wrangler.toml", project.root.joinpath("wrangler.toml").read_text() + LOG)
    project.edit("env.py", "    DB: D1Database\n", "    DB: D1Database\n    LOG: D1Database\n")
    project.write(
        "app.py",
        HEAD
        + """
@attrs.frozen
class Repository:
    DB: D1Database  # whichever it was given
    env: Env

    async def count(self) -> None:
        await self.DB.prepare("SELECT id FROM events").all()
        await self.DB.prepare("SELECT").all()
        #^ core-sql: DB: the statement breaks off. Write its end
        await self.env.DB.prepare("SELECT id FROM events").all()
        #^ core-sql: DB: no such table: events. The migrations make posts, users

@app.get("/")
async def show(req: Request[Env], res: Response) -> None:
    repository = Repository(req.env.LOG, req.env)
    await repository.DB.prepare("SELECT id FROM events").all()
    await req.env.LOG.prepare("SELECT id FROM users").all()
    #^ core-sql: LOG: no such table: users. The migrations make events
""",
    )
    project.check()


def test_tables_that_the_program_makes_are_there(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        HEAD
        + """
async def make(env: Env) -> None:
    await env.DB.exec("CREATE TABLE IF NOT EXISTS Scratch (id INTEGER)")
    await env.DB.prepare("SELECT id FROM scratch").all()
    await env.DB.prepare("SELECT id FROM scrath").all()
    #^ core-sql: DB: no such table: scrath. The migrations make posts, users
""",
    )
    project.check()


def test_a_database_and_an_env_are_followed_through_annotations(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        HEAD
        + """
Req: TypeAlias = Request[Env]
Quoted = Request["Env"]
E = TypeVar("E", bound=Env)

async def quoted(req: "Request[Env]", res: Response) -> None:
    await req.env.DB.prepare("SELECT a FROM users").all()
    #^ core-sql: DB: no such column: a. users has id, name, email, score

async def aliased(req: Req, res: Response) -> None:
    await req.env.DB.prepare("SELECT b FROM users").all()
    #^ core-sql: DB: no such column: b. users has id, name, email, score

async def both(req: "Quoted", res: Response) -> None:
    await req.env.DB.prepare("SELECT c FROM users").all()
    #^ core-sql: DB: no such column: c. users has id, name, email, score

async def annotated(req: Annotated[Request[Env], "x"], res: Response) -> None:
    await req.env.DB.prepare("SELECT d FROM users").all()
    #^ core-sql: DB: no such column: d. users has id, name, email, score

async def variable(env: E) -> E:
    await env.DB.prepare("SELECT e FROM users").all()
    #^ core-sql: DB: no such column: e. users has id, name, email, score
    return env

async def over_a_variable(req: Request[E], res: Response) -> None:
    await req.env.DB.prepare("SELECT f FROM users").all()
    #^ core-sql: DB: no such column: f. users has id, name, email, score

def get() -> Env: ...  # type: ignore[empty-body]

async def from_elsewhere() -> None:
    env: Env = get()
    await env.DB.prepare("SELECT g FROM users").all()
    #^ core-sql: DB: no such column: g. users has id, name, email, score
    db: D1Database = get().DB
    await db.prepare("SELECT h FROM users").all()
    #^ core-sql: DB: no such column: h. users has id, name, email, score

class Users:
    def __init__(self, db: D1Database, other: D1Database) -> None:
        self.db = db
        self.other: D1Database = other

    async def all(self) -> None:
        await self.db.prepare("SELECT i FROM users").all()
        #^ core-sql: DB: no such column: i. users has id, name, email, score
        await self.other.prepare("SELECT j FROM users").all()
        #^ core-sql: DB: no such column: j. users has id, name, email, score

@attrs.define
class Declared:
    db: D1Database

    async def all(self) -> None:
        async with get_lock() as lock:
            statement = self.db.prepare("SELECT k FROM users")
            #^ core-sql: DB: no such column: k. users has id, name, email, score
            await statement.all()
            lock.close()

class Lock:
    async def __aenter__(self) -> "Lock": ...  # type: ignore[empty-body]
    async def __aexit__(self, *args: object) -> None: ...
    def close(self) -> None: ...

def get_lock() -> Lock: ...  # type: ignore[empty-body]
""",
    )
    project.check()


def test_constants_of_classes_and_f_strings_of_constants_are_read(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        HEAD
        + """
from typing import Final

COLUMNS: Final = "id, nope"
TABLE = "users"

class Queries:
    ALL = "SELECT nope FROM users"
    ONE: Final = "SELECT nop FROM users WHERE id = ?"

def order() -> str: ...  # type: ignore[empty-body]

async def show(env: Env) -> None:
    await env.DB.prepare(Queries.ALL).all()
    #^ core-sql: DB: no such column: nope. users has id, name, email, score
    await env.DB.prepare(Queries.ONE).bind(1).all()
    #^ core-sql: DB: no such column: nop. users has id, name, email, score
    await env.DB.prepare(f"SELECT {COLUMNS} FROM {TABLE}").all()
    #^ core-sql: DB: no such column: nope. users has id, name, email, score
    await env.DB.prepare(f"SELECT {COLUMNS} FROM {TABLE} ORDER BY {order()}").all()
    await env.DB.prepare(f"SELECT {COLUMNS!r} FROM {TABLE:>9}").all()
""",
    )
    project.check()
