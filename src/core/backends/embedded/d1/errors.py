"""The errors of D1: how its messages begin, and SQLite's names for its codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from core.errors import D1Error

__all__ = ["CODES", "NEWER_CODES", "Refused", "d1_error"]

# Python 3.11 calls it unknown.
NEWER_CODES: Final[Mapping[int, str]] = {sqlite3.SQLITE_CONSTRAINT | 12 << 8: "SQLITE_CONSTRAINT_DATATYPE"}

CODES: Final[Mapping[int, str]] = {
    code: f"SQLITE_{name}"
    for code, name in enumerate(
        [
            "ERROR",
            "INTERNAL",
            "PERM",
            "ABORT",
            "BUSY",
            "LOCKED",
            "NOMEM",
            "READONLY",
            "INTERRUPT",
            "IOERR",
            "CORRUPT",
            "NOTFOUND",
            "FULL",
            "CANTOPEN",
            "PROTOCOL",
            "EMPTY",
            "SCHEMA",
            "TOOBIG",
            "CONSTRAINT",
            "MISMATCH",
            "MISUSE",
            "NOLFS",
            "AUTH",
            "FORMAT",
            "RANGE",
            "NOTADB",
        ],
        start=1,
    )
}


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
