"""The storage classes that the declared type of a column stands for."""

from __future__ import annotations

from functools import lru_cache

from core.sql.catalog import TableColumn
from core.sql.statement import Storage

__all__ = ["affinity", "storage_of"]


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
