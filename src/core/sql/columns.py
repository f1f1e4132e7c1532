"""Columns of results: their names, and which storage classes a declared type stands for."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache

from core.sql.catalog import TableColumn
from core.sql.statement import Storage

__all__ = ["affinity", "column_names", "storage_of", "view_columns"]


def view_columns(connection: sqlite3.Connection, text: str) -> list[tuple[int, str, str]]:
    """Return the rows of `PRAGMA table_info` for a view over `text`."""
    connection.execute(f"CREATE TEMP VIEW core_result AS {text}")
    try:
        return [row[:3] for row in connection.execute("PRAGMA temp.table_info(core_result)")]
    finally:
        # SQLite looks through all views when it makes one, so none may be left.
        connection.execute("DROP VIEW temp.core_result")


def column_names(given: Sequence[str]) -> list[str]:
    """The names as a query has them: a view adds `:1` to the second column of a name, in whatever case."""
    names: list[str] = []
    seen: set[str] = set()
    for name in given:
        base, colon, number = name.rpartition(":")
        names.append(base if colon and number.isdigit() and base.lower() in seen else name)
        seen.add(names[-1].lower())
    return names


def affinity(declared: str) -> str:
    """SQLite's rules (https://www.sqlite.org/datatype3.html#determination_of_column_affinity), as a word for each."""
    upper = declared.upper()
    if "INT" in upper:
        return "INT"
    if "CHAR" in upper or "CLOB" in upper or "TEXT" in upper:
        return "TEXT"
    if "BLOB" in upper or not upper:
        return "BLOB"
    if "REAL" in upper or "FLOA" in upper or "DOUB" in upper:
        return "REAL"
    return "NUM"


def storage_of(column: TableColumn) -> frozenset[Storage]:
    """The storage classes that a column's values have, where its declared type says so; else nothing."""
    return _storage_of(column.declared)


@lru_cache(256)
def _storage_of(declared: str) -> frozenset[Storage]:
    upper = declared.upper()
    match affinity(upper):
        case "INT":
            return frozenset(["integer"])
        case "TEXT":
            return frozenset(["text"])
        case "REAL":
            return frozenset(["real"])
        case "BLOB" if upper:
            return frozenset(["blob"])
        case "NUM" if "BOOL" in upper:
            return frozenset(["integer"])
        case "NUM" if "DEC" in upper or "NUMERIC" in upper:
            return frozenset(["integer", "real"])
        case _:
            return frozenset()  # no type at all, ANY, or DATE, which people keep texts and numbers in
