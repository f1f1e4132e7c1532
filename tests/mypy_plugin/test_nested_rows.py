"""`core-sql`: columns such as `author.username` against the classes that they fill."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project

HEAD = """\
from typing import Annotated, Any, Generic, NewType, TypedDict, TypeVar
import attrs
from core import D1Database, Unset, create_app
from env import Env

app = create_app(Env)
T = TypeVar("T")

@attrs.frozen
class Profile:
    name: str
    email: str | None
    known: bool = False

@attrs.frozen
class Post:
    id: int
    author: Profile

@attrs.frozen
class Draft:
    id: int
    author: Profile | None
"""


def test_columns_are_held_against_the_fields_of_inner_classes(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
async def rows(env: Env) -> None:
    await env.DB.prepare(
        'SELECT p.id, u.name AS "author.name", u.email AS "author.email" FROM posts p JOIN users u ON u.id = p.user_id'
    ).all(Post)
    posts = env.DB.prepare('SELECT p.id, u.id AS "author.name" FROM posts p JOIN users u ON u.id = p.user_id')
    await posts.all(Post)
    #^ core-sql: DB: Profile.name: str cannot hold users.id, which is INTEGER. Make it int
    #^ core-sql: DB: Profile.email is not in the result. It has author.name: select it as "author.email", or give the field a default
    await env.DB.prepare("SELECT id FROM posts").first(Post)
    #^ core-sql: DB: Post.author is not in the result. Select its columns: AS "author.name", or give the field a default
    near = env.DB.prepare('SELECT 1 AS id, name AS "author.nmae", email AS "author.email" FROM users')
    await near.first(Post)
    #^ core-sql: DB: Profile has no field nmae, which the column "author.nmae" is for. Did you mean name?
    far = env.DB.prepare('SELECT 1 AS id, name AS "author.name", email AS "author.email", 1 AS "author.zip" FROM users')
    await far.first(Post)
    #^ core-sql: DB: Profile has no field zip, which the column "author.zip" is for. It has name, email, known
    wrong = env.DB.prepare('SELECT 1 AS id, name AS "auther.name", email AS "auther.email" FROM users')
    await wrong.first(Post)
    #^ core-sql: DB: Post has no field auther, which the column "auther.name" is for. Did you mean author?
    await env.DB.prepare('SELECT 1 AS "id.x", 1 AS id, NULL AS author').first(Draft)
    #^ core-sql: DB: Draft.id: int is no class, which the column "id.x" is for. Name it without the dot
    whole = "SELECT 1 AS id, '{}' AS author, name AS \\"author.name\\" FROM users"
    await env.DB.prepare(whole).first(Post)
    #^ core-sql: DB: Post.author is a column of the result, and so is "author.name". Select it whole, or by its columns
    await env.DB.prepare("SELECT id, user_id AS author FROM posts").first(Post)
    #^ core-sql: DB: Post.author: Profile cannot hold posts.user_id, which is INTEGER. Make it int
""",
    )
    project.check()


def test_a_class_is_none_where_all_of_its_columns_are_null(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
JOINED = "posts p LEFT JOIN users u ON u.id = p.user_id"
PERSON = 'p.id, u.name AS "author.name", u.email AS "author.email"'

@attrs.frozen
class Strict:
    name: str
    email: str

@attrs.frozen
class Held:
    author: Strict | None

@attrs.frozen
class Mild:
    author: Annotated[Profile, "mild"]
    id: int = 0

@attrs.frozen
class Loose:
    email: str | None

@attrs.frozen
class OfLoose:
    author: Loose

async def rows(env: Env, db: D1Database) -> None:
    await env.DB.prepare(f"SELECT {PERSON} FROM {JOINED}").all(Draft)
    await env.DB.prepare(f"SELECT {PERSON} FROM {JOINED}").all(Post)
    #^ core-sql: DB: Post.author: Profile cannot hold NULL, but users.name is NULL where the outer join of u finds no row. Make it Profile | None
    known = f"SELECT {PERSON}, EXISTS (SELECT 1 FROM posts) AS \\"author.known\\" FROM {JOINED}"
    await env.DB.prepare(known).all(Draft)
    #^ core-sql: DB: Draft.author is None only if all of its columns are NULL, but "author.known" never is. Make it NULL with the others: CASE WHEN u.name IS NOT NULL THEN EXISTS (SELECT 1 FROM posts) END
    fixed = f"SELECT {PERSON}, CASE WHEN u.name IS NOT NULL THEN 1 END AS \\"author.known\\" FROM {JOINED}"
    await env.DB.prepare(fixed).all(Draft)
    # NULL by itself, where there is an author all the same.
    await env.DB.prepare(f"SELECT {PERSON} FROM {JOINED}").all(Held)
    #^ core-sql: DB: Strict.email: str cannot hold NULL, but users.email can be NULL. Make it str | None
    inner = f"SELECT {PERSON} FROM posts p JOIN users u ON u.id = p.user_id"
    await env.DB.prepare(inner).all(Held)
    #^ core-sql: DB: Strict.email: str cannot hold NULL, but users.email can be NULL. Make it str | None
    # It is the only column, so that there is no author then.
    await env.DB.prepare('SELECT email AS "author.email", NULL AS "author.name" FROM users').all(Held)
    await env.DB.prepare(f'SELECT u.email AS "author.email" FROM {JOINED}').all(OfLoose)
    await env.DB.prepare(f'SELECT p.title AS "author.name", u.email AS "author.email" FROM {JOINED}').all(Post)
    #^ core-sql: DB: Post.id is not in the result. It has author.name, author.email: select it, or give the field a default
    await env.DB.prepare(f"SELECT {PERSON} FROM {JOINED}").all(Mild)
    #^ core-sql: DB: Mild.author: Profile cannot hold NULL, but users.name is NULL where the outer join of u finds no row. Make it Profile | None
""",
    )
    project.check()


def test_classes_nest_deeper_and_what_is_not_known_is_not_judged(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
Who = NewType("Who", Profile)
Someone = Who | None

@attrs.frozen
class Book:
    draft: Draft
    by: Someone

@attrs.frozen
class Of(Generic[T]):
    value: T

class Half(TypedDict, total=False):
    name: str

class Whole(TypedDict):
    author: Profile | Unset
    half: Half

@attrs.frozen
class Either:
    author: Profile | Post
    anything: Any
    of: Of[Profile]

@attrs.frozen
class Converted:
    author: str = attrs.field(converter=str)

async def rows(env: Env) -> None:
    deep = 'SELECT name AS "draft.id", name AS "draft.author.nmae", email AS "draft.author.email", 1 AS "by.name" FROM users'
    await env.DB.prepare(deep).first(Book)
    #^ core-sql: DB: Draft.id: int cannot hold users.name, which is TEXT. Make it str
    #^ core-sql: DB: Profile has no field nmae, which the column "draft.author.nmae" is for. Did you mean name?
    #^ core-sql: DB: Profile.name: str cannot hold 1, which is an integer. Make it int
    #^ core-sql: DB: Profile.email is not in the result. It has by.name: select it as "by.email", or give the field a default
    either = 'SELECT 1 AS "author.x", 2 AS "anything.y", 3 AS "of.value.zip" FROM users'
    await env.DB.prepare(either).first(Either)
    await env.DB.prepare('SELECT 1 AS "author.x"').first(Converted)
    typed = 'SELECT name AS "author.name", email AS "author.email", 1 AS "half.x" FROM users'
    await env.DB.prepare(typed).first(Whole)
    await env.DB.prepare("SELECT users.id + 1, max(users.name), 1.5, u.id FROM users JOIN users u").all(Of)
    #^ core-sql: DB: Of.value is not in the result. It has users.id + 1, max(users.name), 1.5, id: select it, or give the field a default
    await env.DB.prepare('SELECT 1 AS "author.x"').all(dict)
""",
    )
    project.check()


def test_two_columns_of_one_name_are_told(project: Project) -> None:
    project.usual().write(
        "app.py",
        HEAD
        + """
@attrs.frozen
class Row:
    id: int

@attrs.frozen
class Title:
    title: str

async def rows(env: Env) -> None:
    both = "SELECT * FROM posts p JOIN users u ON u.id = p.user_id"
    await env.DB.prepare(both).all(Row)
    #^ core-sql: DB: Row.id: two columns are called "id", posts.id and users.id. Give each its own name, with AS
    await env.DB.prepare(both).all(Title)
    await env.DB.prepare("SELECT *, p.id FROM posts p").all(Row)
    await env.DB.prepare("SELECT p.id, u.id FROM posts p JOIN users u ON u.id = p.id").all(Row)
    await env.DB.prepare("SELECT p.id, u.id FROM posts p JOIN users u USING (id)").all(Row)
    await env.DB.prepare("SELECT count(*) AS id, max(id) AS id FROM posts HAVING count(*) > 0").all(Row)
    #^ core-sql: DB: Row.id: two columns are called "id", count(*) and max(id). Give each its own name, with AS
    twice = 'SELECT 1 AS id, u.name AS "author.name", p.title AS "author.name", u.email AS "author.email" FROM posts p JOIN users u'
    await env.DB.prepare(twice).all(Post)
    #^ core-sql: DB: Profile.name: two columns are called "author.name", users.name and posts.title. Give each its own name, with AS
""",
    )
    project.check()
