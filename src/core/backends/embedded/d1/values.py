"""Values on their way into SQLite and out of it, within the range of JavaScript's numbers, and D1's errors."""

from __future__ import annotations

import marshal
import math
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from core.bindings.numbers import MAX_SAFE_INTEGER, MIN_SAFE_INTEGER
from core.errors import D1Error

AT_ONCE: Final = 128
"""Rows that are taken at once; a result of fewer is taken as it is."""


def from_sqlite(rows: list[tuple[Any, ...]], infinite: bool) -> list[tuple[Any, ...]]:
    """Rows as the platform's numbers would give them: the same list, mostly, where nothing has to change.

    D1's rows are JSON, which has no infinity; those of a Durable Object are not, and may be `infinite`.
    """
    for row in rows:
        for value in row:
            kind = value.__class__
            if kind is float or (kind is int and not MIN_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER):
                return [tuple([_number(value, infinite) for value in row]) for row in rows]
    return rows


def _number(value: Any, infinite: bool) -> Any:
    kind = value.__class__
    if kind is float:
        if value.is_integer():
            # A number has no kind there: 3.0 is written 3, until it is too long to be written out.
            return int(value) if abs(value) < 1e21 else value
        return value if infinite or math.isfinite(value) else None
    if kind is int and not MIN_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return int(float(value))
    return value


def further_rows(
    cursor: sqlite3.Cursor, part: list[tuple[Any, ...]], megabytes: int, owner: str
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows behind `part`, the first ones, some at a time, for as long as a result may be: one without an end fills
    the memory.
    """
    # About as long as they are in JSON.
    size, names = 0, sum(len(column[0]) + 12 for column in cursor.description)
    while part:
        size += names * len(part) + len(marshal.dumps(part, 2))  # the shortest way through them all
        if size > megabytes * 1_000_000:
            raise Refused(
                f"{owner}'s isolate exceeded its memory limit and was reset. A result has {megabytes} MB at most: one "
                "that has no end needs a LIMIT"
            )
        part = cursor.fetchmany(AT_ONCE)
        yield part


def name_of(error: sqlite3.Error) -> str:
    """SQLite's name for the extended code of one of its errors."""
    # Python 3.11 has none for this one.
    newer = error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT | 12 << 8
    return "SQLITE_CONSTRAINT_DATATYPE" if newer else error.sqlite_errorname


class Refused(Exception):
    """A statement was refused, with the platform's message, before or instead of by SQLite."""


def d1_error(prefix: str, message: str, *, cause: str | None = None) -> D1Error:
    """The error of a call: `prefix` is the code that begins it; `cause`, by default, the rest of the message."""
    error = D1Error(prefix + message)
    # The message without the code that begins it; of an exec, the rest of the message.
    if cause is None:
        cause = prefix.partition(": ")[2] + message
    error.cause_message = cause
    return error
