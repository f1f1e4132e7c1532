"""The runtime's own SQL database, spoken to through its JavaScript object.

Rows cross as one JSON text, so that a thousand of them cost two crossings and leave no proxy. SQLite's blobs are
JavaScript arrays of numbers there, the only arrays a row can have, and become bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from core.backends.workerd.conversion import (
    bridge,
    call_js,
    is_null,
    js_bytes,
    js_number,
    none_of,
    rows_of,
    translated,
    unwrap,
)
from core.bindings.d1 import D1ExecResult, D1Meta, D1Result, D1Row, D1Value
from core.bindings.numbers import MAX_SAFE_INTEGER
from core.calls import BoundHook, Hookable, binding_call
from core.errors import BindingError, D1Error, D1TypeError

__all__ = ["WorkerdD1Database", "WorkerdD1PreparedStatement", "WorkerdD1Session"]

T = TypeVar("T")


class WorkerdD1PreparedStatement(Hookable):
    """`D1PreparedStatement` over the runtime's."""

    __slots__ = ("_hook", "_statement", "sql", "values")

    def __init__(self, statement: Any, sql: str, values: tuple[D1Value, ...], hook: BoundHook | None) -> None:
        self._statement = statement
        self._hook = hook
        self.sql: str = sql
        self.values: tuple[D1Value, ...] = values

    def _call_target(self) -> tuple[Any, ...]:
        return self.sql, *self.values

    def bind(self, *values: D1Value) -> WorkerdD1PreparedStatement:
        """Return a new statement with `values`. See `D1PreparedStatement.bind`."""
        outgoing = [_bindable(value) for value in values]
        try:
            return WorkerdD1PreparedStatement(self._statement.bind(*outgoing), self.sql, values, self._hook)
        except bridge().JsException as error:
            raise translated(error, _error) from None

    @binding_call
    async def first(self, what: Any = None, /) -> Any:
        """Return the first row, its column, or the row as a `T`. See `D1PreparedStatement.first`."""
        if isinstance(what, str):
            value = await call_js(_error, self._statement.first, what)
            return _cell(rows_of(value) if not is_null(value) else None)
        row = await call_js(_error, self._statement.first)
        if is_null(row):
            return None
        found = _row(rows_of(row))
        if what is None:
            return found
        from core.structure import structure_row

        return structure_row(found, what)

    @binding_call
    async def all(self, type_: Any = None, /) -> Any:
        """Return every row. See `D1PreparedStatement.all`."""
        result = _result(await call_js(_error, self._statement.all))
        if type_ is None:
            return result
        from core.structure import structure_rows

        return D1Result(structure_rows(result.results, type_), result.meta, result.success)

    @binding_call
    async def run(self) -> D1Result[D1Row]:
        """Run the statement. See `D1PreparedStatement.run`."""
        return _result(await call_js(_error, self._statement.run))

    @binding_call
    async def raw(self, column_names: bool = False) -> list[list[Any]]:
        """Return every row as a list of its values. See `D1PreparedStatement.raw`."""
        rows: list[list[Any]] = rows_of(await call_js(_error, self._statement.raw, columnNames=bool(column_names)))
        if column_names:
            return [rows[0], *([_cell(value) for value in row] for row in rows[1:])]
        return [[_cell(value) for value in row] for row in rows]


class WorkerdD1Session(Hookable):
    """`D1DatabaseSession` over the runtime's."""

    def __init__(self, database: Any) -> None:
        self._database = unwrap(database)

    def prepare(self, sql: str, /) -> WorkerdD1PreparedStatement:
        """Return a statement for `sql`. See `D1Database.prepare`."""
        if not isinstance(sql, str):
            raise D1TypeError(f"prepare() takes the text of a statement, not {type(sql).__name__}")
        return WorkerdD1PreparedStatement(self._database.prepare(sql), sql, (), self._hook)

    @binding_call
    async def batch(self, statements: Sequence[Any], /) -> list[D1Result[D1Row]]:
        """Run statements in one transaction. See `D1Database.batch`."""
        outgoing: list[Any] = []
        for statement in statements:
            if not isinstance(statement, WorkerdD1PreparedStatement):
                raise D1TypeError(f"batch() takes statements, as prepare() gives them, not {type(statement).__name__}")
            outgoing.append(statement._statement)
        results = await call_js(_error, self._database.batch, bridge().to_js(outgoing))
        return [_result_of(result) for result in rows_of(results)]

    def get_bookmark(self) -> str | None:
        """Return where the session is, or None. See `D1DatabaseSession.get_bookmark`."""
        bookmark: str | None = none_of(self._database.getBookmark())
        return bookmark


class WorkerdD1Database(WorkerdD1Session):
    """`D1Database` over the object that the runtime has under the binding's name."""

    @binding_call
    async def exec(self, sql: str, /) -> D1ExecResult:
        """Run a text line by line. See `D1Database.exec`."""
        result = rows_of(await call_js(_error, self._database.exec, sql))
        return D1ExecResult(result["count"], result["duration"])

    def with_session(self, constraint_or_bookmark: str | None = None, /) -> WorkerdD1Session:
        """Return a session. See `D1Database.with_session`."""
        given = () if constraint_or_bookmark is None else (constraint_or_bookmark,)
        session = WorkerdD1Session(self._database.withSession(*given))
        session._hook = self._hook
        return session


# Values out -----------------------------------------------------------------------------------------------------------


def _bindable(value: D1Value) -> Any:
    match value:
        case None:
            # None alone would cross as undefined, which the platform refuses.
            return bridge().jsnull
        case bool() | float() | str():
            return value
        case int():
            if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                raise D1TypeError(
                    f"D1_TYPE_ERROR: {value} is beyond 2**53 - 1, which no number of the platform can hold. "
                    "Bind it as a text"
                )
            return js_number(value)
        case bytes() | bytearray() | memoryview():
            # The runtime binds an ArrayBuffer or an array of numbers, and takes a view for its whole buffer.
            return js_bytes(value).buffer
        case Sequence():
            numbers = list(value)
            if all(type(number) is int and 0 <= number <= 255 for number in numbers):
                return bridge().to_js(numbers)
    raise D1TypeError(f"D1_TYPE_ERROR: Type '{_js_type(value)}' not supported for value '{_js_text(value)}'")


def _js_type(value: object) -> str:
    return "function" if callable(value) else "object"


def _js_text(value: object) -> str:
    """Return the value as JavaScript writes it in its message."""
    match value:
        case Mapping():
            return "[object Object]"
        case list() | tuple():
            return ",".join(str(item) for item in cast("list[object]", value))
        case _:
            return str(value)


# Values in ------------------------------------------------------------------------------------------------------------


def _cell(value: Any) -> Any:
    return bytes(cast("list[int]", value)) if type(value) is list else value


def _row(row: Mapping[str, Any]) -> D1Row:
    return {name: bytes(cast("list[int]", value)) if type(value) is list else value for name, value in row.items()}


def _result(result: Any) -> D1Result[D1Row]:
    return _result_of(rows_of(result))


def _result_of(result: Mapping[str, Any]) -> D1Result[D1Row]:
    return D1Result([_row(row) for row in result["results"] or ()], _meta(result["meta"]), result["success"])


_META: Final = (
    "duration",
    "changes",
    "last_row_id",
    "changed_db",
    "size_after",
    "rows_read",
    "rows_written",
    "served_by_region",
    "served_by_primary",
    "total_attempts",
    "timings",
)
_ZERO: Final = {"duration": 0, "changes": 0, "last_row_id": 0, "size_after": 0, "rows_read": 0, "rows_written": 0}


def _meta(meta: Mapping[str, Any]) -> D1Meta:
    given: dict[str, Any] = {**_ZERO, "changed_db": False}
    given |= {name: meta[name] for name in _META if meta.get(name) is not None}
    return D1Meta(served_by=meta.get("served_by") or "", **given)


def _error(name: str, message: str) -> BindingError:
    if message.startswith("D1_TYPE_ERROR"):
        return D1TypeError(message)
    return D1Error(message)
