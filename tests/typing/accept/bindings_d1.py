"""A SQL database, every method of it, with the type of every result."""

# mypy: disable-error-code="core-sql"
# Types are what is tested here: the statements are stand-ins, which our own plugin sees through.

from typing import Any, Literal, assert_type

import attrs
from typing_extensions import TypedDict

from core.bindings.d1 import (
    D1Database,
    D1DatabaseSession,
    D1ExecResult,
    D1Meta,
    D1PreparedStatement,
    D1Result,
)
from core.errors import D1Error


@attrs.frozen
class User:
    id: int
    name: str


class Named(TypedDict):
    name: str


async def statements(db: D1Database) -> None:
    statement = db.prepare("SELECT id, name FROM users WHERE id = ?")
    assert_type(statement, D1PreparedStatement[dict[str, Any]])
    bound = statement.bind(1, 1.5, "text", True, None, b"blob", bytearray(b"blob"), memoryview(b"blob"), [0, 255])
    assert_type(bound, D1PreparedStatement[dict[str, Any]])
    assert_type(await bound.first(), dict[str, Any] | None)
    assert_type(await bound.first("name"), Any)
    assert_type(await bound.first(User), User | None)
    assert_type(await bound.first(Named), Named | None)
    assert_type(await bound.all(), D1Result[dict[str, Any]])
    assert_type(await bound.all(User), D1Result[User])
    assert_type(await bound.run(), D1Result[dict[str, Any]])
    assert_type(await bound.raw(), list[list[Any]])
    assert_type(await bound.raw(column_names=True), list[list[Any]])


async def rows_have_a_type(db: D1Database) -> None:
    users = db.prepare("SELECT id, name FROM users WHERE id = ?").as_(User)
    assert_type(users, D1PreparedStatement[User])
    assert_type(users.bind(1), D1PreparedStatement[User])
    assert_type(await users.first(), User | None)
    assert_type(await users.first("name"), Any)
    assert_type(await users.first(Named), Named | None)
    assert_type(await users.one(), User)
    assert_type(await users.one(error=KeyError("user")), User)
    assert_type((await users.all()).results, list[User])
    assert_type(await users.run(), D1Result[User])
    plain = db.prepare("SELECT id, name FROM users WHERE id = ?")
    assert_type(await plain.one(), dict[str, Any])
    assert_type(await plain.one(User), User)
    assert_type(await plain.one("name"), Any)


async def a_batch_has_types(db: D1Database) -> None:
    users = db.prepare("SELECT id, name FROM users").as_(User)
    named = db.prepare("SELECT name FROM users").as_(Named)
    plain = db.prepare("DELETE FROM users")
    assert_type(await db.batch((users, named)), tuple[D1Result[User], D1Result[Named]])
    first, second, third = await db.batch((users, plain, named.bind(1)))
    assert_type(first.results, list[User])
    assert_type(second.results, list[dict[str, Any]])
    assert_type(third.results[0], Named)
    assert_type(await db.batch([users, users.bind(1)]), list[D1Result[User]])
    fourth, _, _, last = await db.with_session().batch((users, plain, plain, named))
    assert_type(fourth, D1Result[User])
    assert_type(last, D1Result[Named])


async def results(db: D1Database) -> None:
    result = await db.prepare("SELECT id, name FROM users").all(User)
    assert_type(result.results, list[User])
    assert_type(result.results[0].name, str)
    assert_type(result.success, bool)
    assert_type(result.meta, D1Meta)
    assert_type(result.meta.served_by, str)
    assert_type(result.meta.duration, float)
    assert_type(result.meta.changes, int)
    assert_type(result.meta.last_row_id, int)
    assert_type(result.meta.changed_db, bool)
    assert_type(result.meta.size_after, int)
    assert_type(result.meta.rows_read, int)
    assert_type(result.meta.rows_written, int)
    assert_type(result.meta.served_by_region, str | None)
    assert_type(result.meta.served_by_primary, bool | None)
    assert_type(result.meta.total_attempts, int | None)


async def several(db: D1Database) -> None:
    statement = db.prepare("SELECT 1")
    assert_type(await db.batch([statement, statement.bind(1)]), list[D1Result[dict[str, Any]]])
    done = await db.exec("CREATE TABLE t (a)")
    assert_type(done, D1ExecResult)
    assert_type(done.count, int)
    assert_type(done.duration, float)


async def sessions(db: D1Database) -> None:
    session = db.with_session("first-primary")
    assert_type(session, D1DatabaseSession)
    assert_type(session.prepare("SELECT 1"), D1PreparedStatement[dict[str, Any]])
    assert_type(await session.batch([session.prepare("SELECT 1")]), list[D1Result[dict[str, Any]]])
    assert_type(session.get_bookmark(), str | None)
    db.with_session(session.get_bookmark())
    db.with_session()


def errors(error: D1Error) -> None:
    assert_type(error.constraint, Literal["UNIQUE", "PRIMARY KEY", "NOT NULL", "CHECK", "FOREIGN KEY"] | None)
    assert_type(error.columns, tuple[str, ...])
