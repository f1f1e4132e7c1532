"""The errors of D1: how its messages begin, and SQLite's name for each."""

from __future__ import annotations

import sqlite3

from core.errors import D1Error


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
