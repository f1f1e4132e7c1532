"""`core-sql`: statements, their values and their rows, in a program."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project

HEAD = """\
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, Protocol, TypedDict
import attrs
from core import D1Database, Request, Response, create_app
from env import Env
"""


def test_a_statement_is_checked_where_it_is_prepared(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
BY_ID: Final = "SELECT id, name FROM users WHERE id = ?"
TABLE: Final = "usrs"

async def all_of_it(env: Env, db: D1Database) -> None:
    env.DB.prepare("SELECT nmae FROM users")
    #^ core-sql: DB: no such column: nmae. Did you mean name?
    env.DB.prepare("SELECT id FORM users")
    #^ core-sql: DB: near "users": syntax error. Correct the statement there
    env.DB.prepare("SELECT id FROM " + TABLE)
    #^ core-sql: DB: no such table: usrs. Did you mean users?
    env.DB.with_session().prepare("SELECT x FROM posts")
    #^ core-sql: DB: no such column: x. posts has id, user_id, title
    db.prepare("SELECT nmae FROM users")
    #^ core-sql: DB: no such column: nmae. Did you mean name?
    text = f"SELECT {env.ORIGIN} FROM nowhere"
    env.DB.prepare(text)
    env.DB.prepare(BY_ID)

async def of_a_session(session: D1DatabaseSession, either: D1Database | D1DatabaseSession | None) -> None:
    session.prepare("SELECT nmae FROM users")
    #^ core-sql: DB: no such column: nmae. Did you mean name?
    if either is not None:
        either.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
""".replace("async def all_of_it", "from core import D1DatabaseSession\n\nasync def all_of_it"),
    )
    project.check()


def test_a_mistake_in_a_long_text_is_told_at_its_line(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
async def long(env: Env) -> None:
    env.DB.prepare(
        '''
        SELECT id
        FROM users
        WHERE nmae = ?
        '''
    )
    env.DB.prepare("SELECT id "
                   "FROM usrs")
""",
    )
    assert project.mypy() == [
        "app.py:12: error: DB: no such column: nmae. Did you mean name?  [core-sql]",
        "app.py:16: error: DB: no such table: usrs. Did you mean users?  [core-sql]",
    ]


def test_values_are_counted(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
async def counted(env: Env, values: list[str]) -> None:
    two = env.DB.prepare("SELECT id FROM users WHERE id = ? AND name = ?")
    await two.bind(1, "a").run()
    await two.bind(1).run()
    #^ core-sql: DB: the statement takes 2 values, but bind() gives 1. Give one for each ? of the statement
    await two.bind(*values).run()
    await two.first()
    #^ core-sql: DB: the statement takes 2 values, and nothing was bound. Call bind() with them
    await env.DB.prepare("SELECT id FROM users").bind(1).all()
    #^ core-sql: DB: the statement takes no values, but bind() gives 1. Write a ? for each, or leave bind() out
    await env.DB.prepare("SELECT id FROM users WHERE id = ?").raw()
    #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it
    insert = env.DB.prepare("INSERT INTO posts (user_id, title) VALUES (?, ?)")
    await env.DB.batch([insert.bind(1, value) for value in values])
    await env.DB.batch([insert, insert.bind(1, "x")])
    #^ core-sql: DB: the statement takes 2 values, and nothing was bound. Call bind() with them
    statement = env.DB.prepare("SELECT id FROM users WHERE id = ?")
    if values:
        statement = statement.bind(1)
    await statement.first()
""",
    )
    project.check()


def test_values_are_checked_against_the_columns_beside_them(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
import json

async def bound(env: Env, key: str, age: int, nick: str | None, when: bytes) -> None:
    insert = env.DB.prepare("INSERT INTO users (id, name, email) VALUES (?, ?, ?)")
    await insert.bind(None, None, None).run()
    #^ core-sql: DB: users.name is NOT NULL, but the value is None. Bind another
    await insert.bind("abc", "a", None).run()
    #^ core-sql: DB: users.id is an INTEGER, but the value is the text "abc". Bind a number
    await insert.bind("12", "a", nick).run()
    await insert.bind(key, key, key).run()
    await insert.bind(1, age, "x").run()
    #^ core-sql: DB: users.name is TEXT, where a number arrives as "5.0". Bind its text: str()
    by = env.DB.prepare("SELECT id FROM users WHERE id IN (?) AND email = ?2 LIMIT ?3")
    await by.bind(1, None, 10).all()
    #^ core-sql: DB: nothing is equal to NULL, users.email neither. Write IS NULL in place of the comparison with None
    await by.bind([1, 2], "x", 10).all()
    #^ core-sql: DB: a list is bound as one blob. Write a ? for each of its values, or IN (SELECT value FROM json_each(?)) and bind json.dumps() of it
    await by.bind(1, "x", "many").all()
    #^ core-sql: DB: LIMIT takes an integer, but the value is the text "many". Bind a number
    await by.bind(1, nick or "", -1).all()
    await by.bind(when, when, 5).all()
    #^ core-sql: DB: users.id holds no blobs, but the value is bytes. Bind a text or a number
    several = env.DB.prepare("SELECT id FROM users WHERE id IN (SELECT value FROM json_each(?))")
    await several.bind(json.dumps([1, 2])).all()
    await several.bind([1, 2]).all()
    #^ core-sql: DB: json_each reads JSON text, but the value is a list or an object. Bind json.dumps() of it
    await env.DB.prepare("UPDATE posts SET title = coalesce(?, title) WHERE id = ?").bind(None, 1).run()
    await env.DB.prepare("UPDATE posts SET title = ? WHERE id IS ?").bind("x", None).run()
""",
    )
    project.check()


STATES = "CREATE TABLE states (id INTEGER PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('draft', 'public')));"


def test_a_type_that_can_be_none_does_not_fit_a_column_that_cannot(project: Project) -> None:
    """mypy alone: it knows where None was ruled out, and a text of a Literal or an Enum."""
    project.usual().write("migrations/0002_states.sql", STATES)
    project.write(
        "users.py",
        HEAD
        + """
import enum
from core import Unset

async def bound(env: Env, name: str | None) -> None:
    insert = env.DB.prepare("INSERT INTO users (name) VALUES (?)")
    await insert.bind(name).run()
    #^ core-sql: DB: users.name is NOT NULL, but the value may be None. Bind another
    if name is not None:
        await insert.bind(name).run()

class State(enum.StrEnum):
    DRAFT = "draft"
    GONE = "gone"

class Named(enum.StrEnum):
    DRAFT = enum.auto()

async def stated(env: Env, state: State, either: Literal["public", "gone"] | None, named: Named) -> None:
    some = env.DB.prepare("SELECT id FROM states WHERE state = ?")
    await some.bind(state).all()
    #^ core-sql: DB: states.state is never 'gone': its CHECK allows 'draft', 'public'. Correct it, or the CHECK
    await some.bind(either).all()
    #^ core-sql: DB: states.state is never 'gone': its CHECK allows 'draft', 'public'. Correct it, or the CHECK
    await some.bind(State.DRAFT).all()
    await some.bind(named).all()
    if state is not State.GONE and either != "gone":
        await some.bind(state).all()
        await some.bind(either).all()

class Grade(enum.IntEnum):
    LOW = 1

async def changed(env: Env, state: Literal["public", "gone"] | Unset, kept: Literal["public"] | Unset, grade: Grade) -> None:
    change = env.DB.prepare("UPDATE states SET state = ? WHERE id = 1")
    await change.bind(kept).run()
    await change.bind(state).run()
    #^ core-sql: DB: states.state is never 'gone': its CHECK allows 'draft', 'public'. Correct it, or the CHECK
    await change.bind(grade).run()
    #^ core-sql: DB: states.state is TEXT, where a number arrives as "5.0". Bind its text: str()
""",
    )
    project.check()


def test_the_values_of_a_starred_tuple_are_counted_and_checked(project: Project) -> None:
    """mypy alone: it knows how many there are. Statements of a list and its count share the values of a filter so."""
    project.usual().write(
        "users.py",
        HEAD
        + """
async def counted(env: Env, values: list[str], several: tuple[int, ...]) -> None:
    two = env.DB.prepare("SELECT id FROM users WHERE id = ? AND name = ?")
    pair = (1, None)
    await two.bind(*pair).run()
    #^ core-sql: DB: nothing is equal to NULL, users.name neither. Write IS NULL in place of the comparison with None
    await two.bind(*(1, "a")).run()
    await two.bind(*pair, 3).run()
    #^ core-sql: DB: the statement takes 2 values, but bind() gives 3. Give one for each ? of the statement
    await two.bind(*pair[:1], "a").run()
    await two.bind(*pair[:1]).run()
    #^ core-sql: DB: the statement takes 2 values, but bind() gives 1. Give one for each ? of the statement
    await two.bind(*(each for each in pair)).run()
    await two.bind(*values).run()
    await two.bind(*several).run()
""",
    )
    project.check()


def test_what_an_insert_leaves_out_or_writes_null_into_is_told(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
async def written(env: Env) -> None:
    await env.DB.prepare("INSERT INTO users (email) VALUES ('x')").run()
    #^ core-sql: DB: users.name is NOT NULL and has no default, but the INSERT leaves it out. Give it a value
    await env.DB.prepare("UPDATE users SET name = NULL WHERE id = 1").run()
    #^ core-sql: DB: users.name is NOT NULL, but NULL is written into it. Write a value
    await env.DB.prepare("INSERT OR IGNORE INTO users (email) VALUES ('x')").run()
    await env.DB.prepare("INSERT INTO users (name) VALUES ('x')").run()
    await env.DB.prepare("INSERT INTO posts SELECT NULL, id, name FROM users").run()
""",
    )
    project.check()


def test_a_statement_says_what_its_rows_become(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
@attrs.frozen
class User:
    id: int
    email: str

@attrs.frozen
class Tags:
    name: list[str]

async def rows(env: Env) -> None:
    by_id = env.DB.prepare("SELECT id, email FROM users WHERE id = ?")
    await by_id.as_(User).bind(1).first()
    #^ core-sql: DB: User.email: str cannot hold NULL, but users.email can be NULL. Make it str | None
    await by_id.bind(1).one(User)
    #^ core-sql: DB: User.email: str cannot hold NULL, but users.email can be NULL. Make it str | None
    await by_id.bind(1).one("nmae")
    #^ core-sql: DB: the result has no column "nmae". It has id, email
    await by_id.one()
    #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it
    await env.DB.prepare("SELECT name FROM users").as_(Tags).all()
    await env.DB.batch((by_id.bind(1), by_id))
    #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it
    await env.DB.batch([by_id.bind(1), by_id.bind(1, 2)])
    #^ core-sql: DB: the statement takes 1 value, but bind() gives 2. Give one for each ? of the statement
    await env.DB.prepare("SELECT count(*) AS id, max(email) AS email FROM users").first(User)
    #^ core-sql: DB: User.email: str cannot hold NULL, but max(email) is NULL where no row is found. Make it str | None
""",
    )
    project.check()


def test_rows_are_checked_against_the_class_they_become(project: Project) -> None:
    project.usual().write(
        "rows.py",
        HEAD
        + """
@attrs.frozen
class UserRow:
    id: int
    name: str
    email: str | None
    score: float = 0.0

@attrs.frozen
class Wrong:
    id: str
    email: str
    nick: str

class Typed(TypedDict):
    id: int
    title: str

class Pair(NamedTuple):
    id: int
    name: str
""",
    )
    project.write(
        "app.py",
        HEAD
        + """
from dataclasses import dataclass
from rows import Pair, Typed, UserRow, Wrong

@dataclass
class Author:
    name: str
    title: str

async def rows(env: Env) -> None:
    one = env.DB.prepare("SELECT id, name, email FROM users WHERE id = ?").bind(1)
    await one.first(UserRow)
    await one.first(Wrong)
    #^ core-sql: DB: Wrong.id: str cannot hold users.id, which is INTEGER. Make it int
    #^ core-sql: DB: Wrong.email: str cannot hold NULL, but users.email can be NULL. Make it str | None
    #^ core-sql: DB: Wrong.nick is not in the result. It has id, name, email: select it, or give the field a default
    await one.all(Typed)
    #^ core-sql: DB: Typed.title is not in the result. It has id, name, email: select it, or give the field a default
    await one.first("name")
    await one.first("nam")
    #^ core-sql: DB: the result has no column "nam". Did you mean name?
    await one.first(int)
    #^ core-sql: DB: a row is an object, and never int. Ask for one column by its name: first("column")
    await one.first(dict[str, Any])
    await one.first(tuple[int, str])
    #^ core-sql: DB: a row is an object, and tuple[int, str] is read from an array. Make it an attrs class, a dataclass or a TypedDict
    await one.first(Pair)
    #^ core-sql: DB: a row is an object, and Pair is read from an array. Make it an attrs class, a dataclass or a TypedDict
    await one.first()
    await env.DB.prepare("DELETE FROM users").first(UserRow)
    #^ core-sql: DB: UserRow is read from rows, but the statement gives none. Add RETURNING, or call run()
    joined = env.DB.prepare("SELECT u.name, p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id")
    await joined.all(Author)
    #^ core-sql: DB: Author.title: str cannot hold NULL, but posts.title is NULL where the outer join of p finds no row. Make it str | None
""",
    )
    project.check()


def test_literals_and_enums_hold_what_a_check_allows(project: Project) -> None:
    project.usual().write("migrations/0002_states.sql", STATES)
    project.write(
        "app.py",
        HEAD
        + """
import enum

class Half(enum.StrEnum):
    DRAFT = "draft"

class Whole(str, enum.Enum):
    DRAFT = "draft"
    PUBLIC = "public"

    @property
    def shown(self) -> str:
        return self.value.title()

class Lenient(enum.StrEnum):
    DRAFT = "draft"

    @classmethod
    def _missing_(cls, value: object) -> "Lenient":
        return cls.DRAFT

State = Literal["draft", "public"]

@attrs.frozen
class First:
    state: Half
    id: int = 0

@attrs.frozen
class Second:
    state: Whole | None

class Third(TypedDict):
    state: State

class Fourth(TypedDict):
    state: Literal["draft"] | str

@attrs.frozen
class Fifth:
    state: Lenient

class Sixth(TypedDict):
    state: Literal["public"]

class Number(enum.IntEnum):
    ONE = 1

class Lax(enum.StrEnum):
    @classmethod
    def _missing_(cls, value: object) -> "Lax":
        return cls("public")

class Softer(Lax):
    PUBLIC = "public"

@attrs.frozen
class Numbered:
    state: Number
    id: Number

@attrs.frozen
class Joined:
    state: Whole
    soft: Softer

async def kinds(env: Env) -> None:
    await env.DB.prepare("SELECT state, id FROM states").all(Numbered)
    #^ core-sql: DB: Numbered.state: Number cannot hold states.state, which is TEXT. Make it str
    joined = env.DB.prepare("SELECT s.state, s.state AS soft FROM users u LEFT JOIN states s ON s.id = u.id")
    await joined.all(Joined)
    #^ core-sql: DB: Joined.state: Whole cannot hold NULL, but states.state is NULL where the outer join of s finds no row. Make it Whole | None

async def rows(env: Env, half: Literal["drft"], several: Literal["public", "x"]) -> None:
    states = env.DB.prepare("SELECT state FROM states")
    await states.all(First)
    #^ core-sql: DB: First.state: Half cannot hold 'public', which the CHECK of states.state allows. Add it
    await states.all(Second)
    await states.all(Third)
    await states.all(Fourth)
    await states.all(Fifth)
    await states.all(Sixth)
    #^ core-sql: DB: Sixth.state: Literal["public"] cannot hold 'draft', which the CHECK of states.state allows. Add it
    some = env.DB.prepare("SELECT id FROM states WHERE state = ?")
    await some.bind("drft").all()
    #^ core-sql: DB: states.state is never 'drft': its CHECK allows 'draft', 'public'. Did you mean draft?
    await some.bind("public").all()
    await some.bind(several).all()
    await some.bind(half).all()
    #^ core-sql: DB: states.state is never 'drft': its CHECK allows 'draft', 'public'. Did you mean draft?
""",
    )
    project.check()


def test_without_migrations_only_the_grammar_counts(project: Project) -> None:
    project.usual()
    project.root.joinpath("migrations/0001_init.sql").unlink()
    project.write(
        "app.py",
        HEAD
        + """
async def f(env: Env) -> None:
    env.DB.prepare("SELECT anything FROM anywhere")
    env.DB.prepare("SELECT FROM anywhere")
    #^ core-sql: DB: near "FROM": syntax error. Correct the statement there
    await env.DB.prepare("SELECT anything FROM anywhere WHERE x = ?").first()
    #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it
""",
    )
    project.check()


def test_the_database_is_told_by_its_name(project: Project) -> None:
    project.usual()
    project.write(
        "wrangler.toml",
        project.root.joinpath("wrangler.toml").read_text()
        + '\n[[d1_databases]]\nbinding = "LOG"\ndatabase_name = "l"\ndatabase_id = "l"\nmigrations_dir = "log"\n',
    )
    project.edit("env.py", "    ORIGIN: str", "    ORIGIN: str\n    LOG: D1Database")
    project.write("log/1.sql", "CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT NOT NULL);")
    project.write(
        "app.py",
        HEAD
        + """
class HasLog(Protocol):
    @property
    def LOG(self) -> D1Database: ...

async def f(env: Env, other: HasLog, db: D1Database) -> None:
    env.DB.prepare("SELECT id FROM users")
    env.LOG.prepare("SELECT id FROM lines")
    other.LOG.prepare("SELECT id FROM users")
    #^ core-sql: LOG: no such table: users. The migrations make lines
    log = env.LOG
    log.prepare("SELECT id FROM line")
    #^ core-sql: LOG: no such table: line. Did you mean lines?
    db.prepare("SELECT id FROM lines")
    db.prepare("SELECT id FROM unknowable")
    #^ core-sql: DB: no such table: unknowable. The migrations make posts, users
    db.prepare("SELECT FROM x")
    #^ core-sql: DB: near "FROM": syntax error. Correct the statement there
""",
    )
    project.check()


def test_an_object_knows_the_databases_of_its_own_env(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
from core import DurableObject, DurableObjectState

class Room(DurableObject[Env]):
    async def read(self) -> None:
        await self.env.DB.prepare("SELECT nmae FROM users").all()
        #^ core-sql: DB: no such column: nmae. Did you mean name?
        env = self.env
        await env.DB.prepare("SELECT x FROM users").all()
        #^ core-sql: DB: no such column: x. users has id, name, email, score
        db = self.env.DB
        await db.prepare("SELECT id FROM users WHERE id = ?").all()
        #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it

class Hall(Room):
    async def more(self) -> None:
        self.env.DB.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?

class Service:
    def __init__(self, state: DurableObjectState, env: Env) -> None:
        self.state = state
        self.env = env

    def read(self) -> None:
        self.env.DB.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?

class Declared:
    env: "Env"

    def read(self) -> None:
        self.env.DB.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?

class Other:
    def __init__(self, env: object) -> None:
        self.env: Any = env

    def read(self) -> None:
        self.env.DB.prepare("SELECT nmae FROM users")
""",
    )
    project.check()


def test_the_rows_of_returning_behind_with_are_judged(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        import attrs
        from core import Request, Response
        from env import Env

        @attrs.frozen
        class Post:
            id: int
            title: str

        async def save(req: Request[Env], res: Response) -> None:
            await req.env.DB.prepare("WITH n AS (SELECT 1 AS i) UPDATE posts SET title = 'a' RETURNING id").all(Post)
            #^ core-sql: DB: Post.title is not in the result. It has id: select it, or give the field a default
            await req.env.DB.prepare("WITH n AS (SELECT 1 AS i) DELETE FROM posts RETURNING id, title").all(Post)
            await req.env.DB.prepare(
                "WITH n AS (SELECT 1 AS i) INSERT INTO posts (user_id, title) SELECT i, 'a' FROM n RETURNING *"
            ).all(Post)
        """,
    )
    project.check()


def test_statements_that_a_class_or_its_objects_keep_are_followed(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
from typing import ClassVar
from core import D1Database, Request, Response

FROM = "FROM users"

class Users:
    ALL = "SELECT nmae " + FROM
    ONE: ClassVar[str] = "SELECT name FROM users WHERE id = ?"

    def __init__(self, db: D1Database) -> None:
        self.db = db
        self.other = "SELECT x FROM users"
        self.find = db.prepare("SELECT id FROM users WHERE id = ?")

    async def read(self) -> None:
        self.db.prepare(self.ALL)
        #^ core-sql: DB: no such column: nmae. Did you mean name?
        self.db.prepare(f"{self.ONE} AND x = 1")
        #^ core-sql: DB: no such column: x. users has id, name, email, score
        await self.db.prepare(self.ONE).all()
        #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it
        self.db.prepare(self.other)
        #^ core-sql: DB: no such column: x. users has id, name, email, score
        await self.find.bind(1, 2).all()
        #^ core-sql: DB: the statement takes 1 value, but bind() gives 2. Give one for each ? of the statement
        statement = self.find
        await statement.all()
        #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it

class Pages:
    SQL = "SELECT nmae FROM users"

    async def show(self, req: Request[Env], res: Response) -> None:
        await req.env.DB.prepare(self.SQL).all()
        #^ core-sql: DB: no such column: nmae. Did you mean name?

class Base:
    SQL = ""

    async def read(self, db: D1Database) -> None:
        await db.prepare(self.SQL).all()

class Leaf(Base):
    SQL = "SELECT id FROM users"

    async def more(self, db: D1Database) -> None:
        await db.prepare(self.SQL).bind(1).all()
        #^ core-sql: DB: the statement takes no values, but bind() gives 1. Write a ? for each, or leave bind() out

class Changed:
    SQL = "SELECT nmae FROM users"

    def __init__(self, text: str, fast: bool) -> None:
        self.SQL = text
        self.mode = "SELECT nmae FROM users"
        if fast:
            self.mode = "SELECT name FROM users"
        self.own = "SELECT nmae FROM users"

    def turn(self) -> None:
        self.own = "SELECT name FROM users"

    async def read(self, db: D1Database) -> None:
        await db.prepare(self.SQL).all()
        await db.prepare(self.mode).all()
        await db.prepare(self.own).all()

@attrs.frozen
class Made:
    db: D1Database
    sql: str = "SELECT nmae FROM users"
    other: ClassVar[str] = "SELECT x FROM users"

    async def read(self) -> None:
        await self.db.prepare(self.sql).all()
        await self.db.prepare(self.other).all()
        #^ core-sql: DB: no such column: x. users has id, name, email, score
""",
    )
    project.check()


def test_a_statement_that_a_class_of_another_module_has_is_followed(project: Project) -> None:
    project.usual().write(
        "base.py",
        """
from typing import Final

class Base:
    ALL: Final = "SELECT nmae FROM users"
    ONE: Final[str] = "SELECT x FROM users"
""",
    )
    project.write(
        "app.py",
        HEAD
        + """
from base import Base
from core import D1Database

class Users(Base):
    def __init__(self, db: D1Database) -> None:
        self.db = db

    async def read(self) -> None:
        await self.db.prepare(self.ALL).all()
        #^ core-sql: DB: no such column: nmae. Did you mean name?
        await self.db.prepare(f"{self.ONE} LIMIT 1").all()
        #^ core-sql: DB: no such column: x. users has id, name, email, score
        await self.db.prepare(Base.ALL).all()
        #^ core-sql: DB: no such column: nmae. Did you mean name?

class Names(Users):
    async def more(self) -> None:
        await self.db.prepare(self.ALL).all()
        #^ core-sql: DB: no such column: nmae. Did you mean name?
""",
    )
    project.check()
    project.edit("app.py", "class Names", "\nclass Names")
    project.check()  # with base.py out of the cache, which has no values but those of Final


def test_a_database_or_an_env_that_a_with_gives_is_known(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import TracebackType
from typing_extensions import Self
from core import D1Database, Request, Response, create_app

app = create_app(Env)

@asynccontextmanager
async def database(env: Env) -> AsyncIterator[D1Database]:
    try:
        yield env.DB
    finally:
        pass

@contextmanager
def given(env: Env) -> Iterator[Env]:
    found = env
    yield found

@asynccontextmanager
async def either(env: Env, first: bool) -> AsyncGenerator[D1Database, None]:
    if first:
        yield env.DB
    else:
        yield env.DB

def made(env: Env) -> AbstractAsyncContextManager[D1Database]:
    return database(env)

@asynccontextmanager
async def again(env: Env) -> AsyncIterator[Any]:
    async with again(env) as db:
        yield db

@contextmanager
def text() -> Iterator[str]:
    yield "text"

class Session:
    def __init__(self, env: Env) -> None:
        self.env = env

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, a: type[BaseException] | None, b: BaseException | None, c: TracebackType | None) -> None:
        pass

    @asynccontextmanager
    async def database(self) -> AsyncIterator[D1Database]:
        yield self.env.DB

    async def read(self) -> None:
        async with self.database() as db:
            db.prepare("SELECT nmae FROM users")
            #^ core-sql: DB: no such column: nmae. Did you mean name?

class Opened(Session):
    async def __aexit__(self, a: type[BaseException] | None, b: BaseException | None, c: TracebackType | None) -> None:
        pass

class Base:
    def __init__(self, env: Env) -> None:
        self.db = env.DB

    def __enter__(self) -> "D1Database":
        return self.db

    def __exit__(self, a: type[BaseException] | None, b: BaseException | None, c: TracebackType | None) -> None:
        pass

@app.get("/")
async def show(req: Request[Env], res: Response) -> None:
    async with database(req.env) as db:
        db.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
        await db.prepare("SELECT name FROM users WHERE id = ?").all()
        #^ core-sql: DB: the statement takes 1 value, and nothing was bound. Call bind() with it
    with given(req.env) as env:
        env.DB.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
    async with either(req.env, True) as one, made(req.env) as other:
        one.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
        other.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
    async with again(req.env) as some:
        some.prepare("SELECT nmae FROM users")
    async with Session(req.env) as within, Opened(req.env) as opened:
        within.env.DB.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
        opened.env.DB.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
    session = Session(req.env)
    session.env.DB.prepare("SELECT nmae FROM users")
    #^ core-sql: DB: no such column: nmae. Did you mean name?
    with Base(req.env) as base:
        base.prepare("SELECT nmae FROM users")
        #^ core-sql: DB: no such column: nmae. Did you mean name?
    with text() as title:
        res.text(title)
    with open("x") as file, open("y") as file:
        res.text(file.read())
""",
    )
    project.check()


def test_a_column_that_clients_are_told_is_one_of_a_table(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
from core import conflict
from core.errors.conflicts import conflict as taken

async def told(env: Env, column: str) -> None:
    with conflict("email", "emial", message="has an account"):
        #^ core-sql: conflict("emial"): no table has such a column. Did you mean email?
        pass
    with taken("title"), taken(column), taken("nothing"):
        #^ core-sql: conflict("nothing"): no table has such a column
        pass
""",
    )
    project.check()
