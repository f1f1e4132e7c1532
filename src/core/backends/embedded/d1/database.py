"""The binding of a database: statements, batches and sessions, and the errors that their callers get."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from typing_extensions import TypeForm, TypeVar

from core.backends.d1 import D1Statement, bindable, check_sql, check_statements
from core.backends.embedded.d1.engine import Answer, Engine, Numbers, engine_of
from core.backends.embedded.d1.plans import WHITE_SPACE
from core.backends.embedded.d1.values import Refused, d1_error
from core.backends.embedded.disk import StoreError, store_error
from core.backends.embedded.store import Database, Store, is_busy
from core.bindings.calls import Hookable
from core.bindings.d1 import (
    D1Database,
    D1DatabaseSession,
    D1ExecResult,
    D1Meta,
    D1PreparedStatement,
    D1Result,
    D1Row,
    D1Value,
)
from core.bindings.numbers import MAX_SAFE_INTEGER, MIN_SAFE_INTEGER
from core.errors import CoreError
from core.statements.given import only_given
from core.validation.rows import read_rows, row_reader
from core.validation.unset import UNSET, Unset

T = TypeVar("T")
R = TypeVar("R", default=D1Row)

SERVED_BY: Final = "core.embedded"

_new: Final[Callable[[Any], Any]] = object.__new__

_put: Final = object.__setattr__


class EmbeddedD1PreparedStatement(D1Statement[R]):
    """A statement of an embedded database. See `D1PreparedStatement`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sql!r} {self.values!r}>"

    def bind(self, *values: D1Value | Unset) -> EmbeddedD1PreparedStatement[R]:
        sql = self._written
        if UNSET in values:
            sql, values = only_given(sql, values)
        bound: list[object] = []
        value: Any
        for value in values:
            # The most usual kinds first: this runs before every query.
            kind = value.__class__
            if kind is str or value is None:
                bound.append(value)
            elif kind is int and MIN_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                bound.append(float(value))
            else:
                bound.append(bindable(value))
        return EmbeddedD1PreparedStatement(self._source, sql, tuple(bound), self.type, self._written)

    def as_(self, type_: TypeForm[T], /) -> EmbeddedD1PreparedStatement[T]:
        return EmbeddedD1PreparedStatement(self._source, self.sql, self.values, type_, self._written)

    async def _first(self, column_or_type: object = None, /) -> object:
        columns, rows, _ = await self._source.answer(self)
        return self._row(columns, rows[0], column_or_type) if rows else None

    async def _one(self, column_or_type: object = None, /, *, error: Exception | None = None) -> object:
        columns, rows, _ = await self._source.answer(self)
        if not rows:
            raise CoreError(404, "Not Found") if error is None else error
        return self._row(columns, rows[0], column_or_type)

    def _row(self, columns: tuple[str, ...], values: tuple[object, ...], column_or_type: object) -> object:
        type_ = self.type if column_or_type is None else column_or_type
        if type_ is not None and not isinstance(type_, str):
            return row_reader(type_, columns)(values)
        row = dict(zip(columns, values, strict=True))
        if type_ is None:
            return row
        if type_ not in row:
            raise d1_error("", f"D1_COLUMN_NOTFOUND: Column not found ({type_})", cause="Column not found")
        return row[type_]

    async def _all(self, type_: object = None, /) -> object:
        return self._result(await self._source.answer(self), self.type if type_ is None else type_)

    def _result(self, answer: Answer, type_: Any) -> D1Result[Any]:
        columns, rows, numbers = answer
        result: D1Result[Any] = _new(D1Result)
        results: list[object] = []
        if rows:  # most writes have none
            if type_ is None:
                results = [dict(zip(columns, row, strict=True)) for row in rows]
            else:
                results = read_rows(columns, rows, type_)
        # The meta is made when somebody asks for it.
        _put(result, "__dict__", {"results": results, "success": True, "_meta": (_meta_of, numbers)})
        return result

    async def _run(self) -> D1Result[Any]:
        return self._result(await self._source.answer(self), self.type)

    async def _raw(self, column_names: bool = False) -> list[list[object]]:
        columns, rows, _ = await self._source.answer(self)
        lists = [list(row) for row in rows]
        return [list(columns), *lists] if column_names else lists


class EmbeddedD1Session(Hookable, D1DatabaseSession):
    """A session of an embedded database, which has one copy and is never behind. See `D1DatabaseSession`."""

    def __init__(self, database: EmbeddedD1Database, bookmark: str | None) -> None:
        self._database = database
        self._hook = database._hook
        self._bookmark = bookmark

    def prepare(self, sql: str, /) -> D1PreparedStatement:
        return EmbeddedD1PreparedStatement(self, check_sql(sql))

    async def _batch(self, statements: Sequence[object], /) -> object:
        results = await self._database._batch(statements)
        self._moved()
        return results

    async def answer(self, statement: EmbeddedD1PreparedStatement[Any]) -> Answer:
        """Run a statement of the session."""
        answer = await self._database.answer(statement)
        self._moved()
        return answer

    def get_bookmark(self) -> str | None:
        return self._bookmark

    def _moved(self) -> None:
        self._bookmark = self._database.engine.next_bookmark()


class EmbeddedD1Database(Hookable, D1Database):
    """The database `name` of `store`. Two objects of one name are one database."""

    def __init__(self, store: Store, name: str) -> None:
        self._clock = store.clock
        self._database: Database = store.database("d1", name)
        self.engine: Engine = engine_of(self._database, store.clock)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._database.location}>"

    def prepare(self, sql: str, /) -> D1PreparedStatement:
        return EmbeddedD1PreparedStatement(self, sql if sql.__class__ is str else check_sql(sql))

    async def _batch(self, statements: Sequence[object], /) -> object:
        checked = check_statements(statements, EmbeddedD1PreparedStatement)
        given = [statement for statement in checked if not self.engine.plan(statement.sql).blank]
        queries = [(statement.sql, statement.values) for statement in given]
        answers = await self.perform(lambda: self.engine.transaction(queries))
        results = [statement._result(answer, statement.type) for statement, answer in zip(given, answers, strict=True)]
        return tuple(results) if isinstance(statements, tuple) else results

    async def _exec(self, sql: str, /) -> D1ExecResult:
        lines = check_sql(sql).strip(WHITE_SPACE).split("\n")
        prefix = f"D1_EXEC_ERROR: Error in line 1: {lines[0]}: "
        answers = await self.perform(lambda: self.engine.transaction([(line, ()) for line in lines]), prefix)
        return D1ExecResult(len(answers), sum(numbers[0] for _, _, numbers in answers))

    def with_session(self, constraint_or_bookmark: str | None = None, /) -> EmbeddedD1Session:
        start = "" if constraint_or_bookmark is None else check_sql(constraint_or_bookmark).strip(WHITE_SPACE)
        return EmbeddedD1Session(self, None if start in ("", "first-primary", "first-unconstrained") else start)

    async def dump(self) -> bytes:
        """Fail, as on the platform, where this is gone; it is not part of `D1Database`."""
        raise d1_error("", "D1_DUMP_ERROR: Status + 404", cause="Status 404")

    async def answer(self, statement: EmbeddedD1PreparedStatement[Any]) -> Answer:
        """Run a statement."""
        try:
            return self.engine.single(statement.sql, statement.values)
        except (Refused, sqlite3.Error) as error:
            if isinstance(error, Refused):
                raise d1_error("D1_ERROR: ", str(error)) from None
            if not is_busy(error) and store_error(self._database.location, error) is None:
                raise d1_error("D1_ERROR: ", self.engine.explain(error)) from error
            # Only another process stood in its way.
            return await self.perform(lambda: self.engine.single(statement.sql, statement.values))

    async def perform(self, action: Callable[[], T], prefix: str = "D1_ERROR: ") -> T:
        """Do it as soon as other processes let us; every failure becomes the platform's."""
        try:
            return await self._database.patiently(action)
        except StoreError as error:
            raise d1_error(prefix, f"{error.reason}: {error.code}. {error}") from error
        except Refused as refused:
            raise d1_error(prefix, str(refused)) from None
        except sqlite3.Error as error:
            raise d1_error(prefix, self.engine.explain(error)) from error


def _meta_of(numbers: Numbers) -> D1Meta:
    return D1Meta(SERVED_BY, *numbers, None, True)
