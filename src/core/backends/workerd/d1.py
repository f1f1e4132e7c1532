"""The runtime's own SQL database, spoken to through its JavaScript object.

Rows cross as one JSON text, so that a thousand of them cost two crossings and leave no proxy. SQLite's blobs are
JavaScript arrays of numbers there, the only arrays a row can have, and become bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from typing_extensions import TypeForm, TypeVar

from core.backends.d1 import D1Statement, bindable, check_sql, check_statements
from core.backends.workerd.conversion import js_bytes, rows_of
from core.backends.workerd.engine import JsBacked, JsEngine, JsMethod, js_call
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
from core.errors import CoreError, D1Error
from core.http.streams import well_formed

if TYPE_CHECKING:
    from core.validation.unset import Unset

T = TypeVar("T")
R = TypeVar("R", default=dict[str, Any])


class WorkerdD1PreparedStatement(D1Statement[R], JsBacked):
    _errors = D1Error

    def __init__(self, source: WorkerdD1Session, js: object, sql: str, *given: Any) -> None:
        super().__init__(source, sql, *given)
        self._js = js

    def bind(self, *values: D1Value | Unset) -> WorkerdD1PreparedStatement[R]:
        sql, given = self._written, cast("tuple[D1Value, ...]", values)
        # A value is UNSET only where something has loaded its module.
        unset = sys.modules.get("core.validation.unset")
        if unset is not None and unset.UNSET in values:
            from core.statements.given import only_given

            sql, given = only_given(sql, values)
        js = self._js if sql == self.sql else self._source._js.prepare(well_formed(sql))
        bound: WorkerdD1PreparedStatement[R]
        bound = WorkerdD1PreparedStatement(self._source, js, sql, given, self.type, self._written)
        bound._js = bound._now("bind", *map(_outgoing, given))
        return bound

    def as_(self, type_: TypeForm[T], /) -> D1PreparedStatement[T]:
        return WorkerdD1PreparedStatement(self._source, self._js, self.sql, self.values, type_, self._written)

    async def _first(self, column_or_type: object = None, /) -> object:
        row = await self._call("first")
        return None if row is None else self._read(_row(rows_of(row)), column_or_type)

    async def _one(self, column_or_type: object = None, /, *, error: Exception | None = None) -> object:
        row = await self._call("first")
        if row is None:
            raise CoreError(404, "Not Found") if error is None else error
        return self._read(_row(rows_of(row)), column_or_type)

    def _read(self, row: D1Row, column_or_type: Any) -> object:
        type_ = self.type if column_or_type is None else column_or_type
        if type_ is None:
            return row
        if isinstance(type_, str):
            if type_ not in row:
                raise D1Error(f"D1_COLUMN_NOTFOUND: Column not found ({type_})")
            return row[type_]
        from core.validation.rows import structure_row

        return structure_row(row, type_)

    async def _all(self, type_: object = None, /) -> object:
        return _result(rows_of(await self._call("all")), self.type if type_ is None else type_)

    async def _run(self) -> D1Result[R]:
        return _result(rows_of(await self._call("run")), self.type)

    async def _raw(self, column_names: bool = False) -> list[list[object]]:
        rows: list[list[Any]] = rows_of(await self._call("raw", column_names=bool(column_names)))
        return [[bytes(value) if value.__class__ is list else value for value in row] for row in rows]


class WorkerdD1Session(JsEngine, D1DatabaseSession):
    _errors = D1Error
    get_bookmark: JsMethod = js_call(D1DatabaseSession.get_bookmark)

    def prepare(self, sql: str, /) -> WorkerdD1PreparedStatement:
        return WorkerdD1PreparedStatement(self, self._js.prepare(well_formed(check_sql(sql))), sql)

    async def _batch(self, statements: Sequence[object], /) -> object:
        checked = check_statements(statements, WorkerdD1PreparedStatement)
        outgoing = [statement._js for statement in checked]
        types = [statement.type for statement in checked if statement.sql.strip()]
        found = rows_of(await self._call("batch", outgoing))
        # The platform leaves blank statements out.
        typed = types if len(types) == len(found) else [None] * len(found)
        results = [_result(result, type_) for result, type_ in zip(found, typed, strict=True)]
        return tuple(results) if isinstance(statements, tuple) else results


class WorkerdD1Database(WorkerdD1Session, D1Database):
    async def _exec(self, sql: str, /) -> D1ExecResult:
        result = rows_of(await self._call("exec", sql))
        return D1ExecResult(result["count"], result["duration"])

    def with_session(self, constraint_or_bookmark: str | None = None, /) -> WorkerdD1Session:
        given = () if constraint_or_bookmark is None else (constraint_or_bookmark,)
        return WorkerdD1Session(self._now("withSession", *given), self._hook)


# Values out -----------------------------------------------------------------------------------------------------------


def _outgoing(value: object) -> object:
    bound = bindable(value)
    if isinstance(bound, bytes):
        # The runtime binds an ArrayBuffer, and takes a view for its whole buffer.
        return js_bytes(bound).buffer
    return well_formed(bound) if isinstance(bound, str) else bound


# Values in ------------------------------------------------------------------------------------------------------------


def _row(row: Mapping[str, Any]) -> D1Row:
    return {name: bytes(value) if value.__class__ is list else value for name, value in row.items()}


def _result(result: Mapping[str, Any], type_: Any) -> D1Result[Any]:
    rows: list[Any] = [_row(row) for row in result["results"] or ()]
    if type_ is not None:
        from core.validation.rows import structure_rows

        rows = structure_rows(rows, type_)
    return D1Result(rows, _meta(result["meta"]), result["success"])


_META: Final = [name for name in D1Meta.__annotations__ if name != "served_by"]
_ZERO: Final = {"duration": 0, "changes": 0, "last_row_id": 0, "size_after": 0, "rows_read": 0, "rows_written": 0}


def _meta(meta: Mapping[str, Any]) -> D1Meta:
    given: dict[str, Any] = {**_ZERO, "changed_db": False}
    given |= {name: meta[name] for name in _META if meta.get(name) is not None}
    return D1Meta(served_by=meta.get("served_by") or "", **given)
