"""A statement of every engine, the values that it binds, and the words for those that none takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypeVar

from core.bindings.calls import Hookable
from core.bindings.d1 import D1PreparedStatement
from core.bindings.numbers import MAX_SAFE_INTEGER, MIN_SAFE_INTEGER
from core.errors import D1TypeError

R = TypeVar("R", default=dict[str, Any])
S = TypeVar("S")


class D1Statement(Hookable, D1PreparedStatement[R]):
    """A statement of either engine, of a session or a database: the text as it was written and as it runs, the values,
    and the type of its rows.
    """

    def __init__(
        self, source: Any, sql: str, values: tuple[Any, ...] = (), type_: object = None, written: str | None = None
    ) -> None:
        self._source = source
        self._hook = source._hook
        self.sql: str = sql
        self.values: tuple[Any, ...] = values
        self.type: Any = type_
        self._written = sql if written is None else written

    def _call_target(self) -> tuple[object, ...]:
        return self.sql, *self.values


def check_sql(sql: object) -> str:
    if isinstance(sql, str):
        return sql
    raise D1TypeError(f"SQL must be a str, not {type(sql).__name__}")


def check_statements(statements: object, kind: type[S]) -> Sequence[S]:
    """The statements of a batch, which are of this engine's `kind`. Raises D1TypeError for anything else."""
    given: Any = statements  # not narrowed by what follows
    if not isinstance(statements, Sequence) or isinstance(statements, str | bytes):
        raise D1TypeError(f"batch() takes a list of statements, not {type(statements).__name__}")
    for statement in given:
        if not isinstance(statement, kind):
            raise D1TypeError(f"batch() takes statements, as prepare() gives them, not {type(statement).__name__}")
    checked: Sequence[S] = given
    return checked


def bindable(value: Any) -> str | float | bytes | None:
    """A value as every engine binds it: a number is a REAL, a list of bytes a blob. Raises D1TypeError for others."""
    given = value  # not narrowed by what follows
    match value:
        case None | str() | bytes():
            return value
        case bool() | float():
            return float(value) if math.isfinite(value) else None
        case int():
            if MIN_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                return float(value)
        case bytearray() | memoryview():
            return bytes(given)
        case Sequence():
            if all(type(number) in (int, float) and 0 <= number < 256 for number in given):
                return bytes([int(number) for number in given])
        case _:
            pass
    raise _unfit(given)


def _unfit(value: object) -> D1TypeError:
    """The error of a value that no statement takes. A whole number is one where JavaScript has no such number."""
    if isinstance(value, int):
        message = f"{value} is beyond 2**53 - 1, which no number of the platform can hold. Bind it as a string"
    else:
        kind = "function" if callable(value) else "object"
        message = f"Type '{kind}' not supported for value '{_js_string(value)}'"
    error = D1TypeError(f"D1_TYPE_ERROR: {message}")
    error.cause_message = message
    return error


def _js_string(value: object) -> str:
    """Return a value as JavaScript writes it in a message."""
    given: Any = value  # not narrowed by what follows
    match value:
        case Mapping():
            return "[object Object]"
        case list() | tuple():
            return ",".join("" if item is None else _js_string(item) for item in given)
        case bool():
            return str(value).lower()
        case _:
            return str(value)
