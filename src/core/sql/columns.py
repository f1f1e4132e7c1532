"""Columns of results: where they come from, which storage classes they have, and why they may be NULL.

SQLite cannot be asked for the origin of a column through the standard library. So it is read from a copy of the schema
in which the declared type of every column is a tag that names the column: a tag goes through joins, subqueries, views
and WITH unharmed, and is lost as soon as a column becomes part of an expression.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from core.sql.catalog import Migrated, TableColumn, TableInfo
from core.sql.clauses import Clauses, Item, Reference
from core.sql.statement import Column, Storage
from core.sql.tokens import quoted
from core.values import frozen

__all__ = [
    "ColumnTag",
    "MissingRows",
    "SchemaReader",
    "affinity",
    "column_names",
    "storage_of",
    "view_columns",
]

_COLUMNS_KEPT: Final = 4096


class MissingRows:
    """The reasons why columns of a statement may be NULL, as far as its FROM clauses and conditions show."""

    def __init__(self, clauses: Clauses, tables: Mapping[str, TableInfo], common: frozenset[str] = frozenset()) -> None:
        self.clauses = clauses
        self.tables = tables
        self.judged: bool = clauses.understood and not clauses.compound & {"EXCEPT", "INTERSECT"}
        self.aliases: set[str] = {item.alias for item in clauses.items if item.name not in common}

    def null(self, name: str, table: TableInfo, declared: TableColumn, item: Item | None) -> str:
        """Return the reason why the column may be NULL, or an empty string if it is unknown."""
        if item is None or not self.judged:
            return ""
        if item.outer and not any(self.narrows(reference, item, table) for reference in self.clauses.references):
            join = "the outer join" if not item.aliased else f"the outer join of {item.alias}"
            return f"is NULL where {join} finds no row"
        if not declared.nullable:
            return ""
        spelt = (declared.name.lower(), name.lower())
        for reference in self.clauses.references:
            if reference.name in spelt and (
                not item.top or self.unclear(reference) or reference.qualifier == item.alias or not reference.top
            ):
                return ""
            if not item.top and reference.top and self.unclear(reference):
                return ""  # it may be the same column, renamed on its way out
        return "can be NULL"

    def unclear(self, reference: Reference) -> bool:
        """Return whether a name has no qualifier that names a table."""
        return reference.qualifier is None or reference.qualifier not in self.aliases

    def narrows(self, reference: Reference, item: Item, table: TableInfo) -> bool:
        """Return whether a condition may drop the rows in which an item is missing."""
        if not reference.drops or (item.enclosed and reference.scope == item.scope):
            return False  # in parentheses of its own it drops rows before they are joined
        if reference.qualifier == item.alias:
            return True
        if not self.unclear(reference):
            return False
        return (
            not item.top
            or reference.qualifier is not None
            or reference.name in table.places
            or not any(
                other is not item and (found := self.tables.get(other.name)) and reference.name in found.places
                for other in self.clauses.items
            )
        )


class SchemaReader:
    """Asks the database that the migrations made, and its copy with tags."""

    def __init__(self, migrated: Migrated) -> None:
        self.migrated = migrated
        self._shadow: _Shadow | None = None
        self._columns: dict[tuple[str, str, int, str], Column] = {}

    def refusal(self, text: str, values: tuple[None, ...] = ()) -> str | None:
        """Return SQLite's message about a string that begins with EXPLAIN, or None."""
        try:
            self.migrated.connection.execute(text, values)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            message = str(error)
            return None if message.startswith("Incorrect number of bindings") else message
        return None

    def column(self, name: str, table: TableInfo, at: int, null: str) -> Column:
        """A table's column as one of a result. The same few come again and again."""
        key = (name, table.name, at, null)
        column = self._columns.get(key)
        if column is None:
            declared = table.columns[at]
            if len(self._columns) >= _COLUMNS_KEPT:
                self._columns.clear()
            column = self._columns[key] = Column(
                name, f"{table.name}.{declared.name}", declared.declared, storage_of(declared), null
            )
        return column

    def origins(
        self, rewrite: Callable[[dict[int, str]], str], nulls: dict[int, str], clauses: Clauses, common: frozenset[str]
    ) -> tuple[list[str], list[ColumnTag | None]] | None:
        """Return the names of a SELECT's columns, and where each comes from; None where nobody can tell.

        `rewrite` gives the statement with other tokens, by their start.
        """
        if self._shadow is None:
            self._shadow = _Shadow(self.migrated)
        return self._shadow.columns(rewrite, nulls, clauses, common)


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


# The copy -----------------------------------------------------------------------------------------------------------


@frozen
class ColumnTag:
    """The origin of a column of a result: a table in lower case, its column, and the item of the FROM clause."""

    table: str
    column: int
    item: int | None


_TAG: Final = re.compile(r"core_(\d+)_(\d+)_(\d+|v)$")


class _Shadow:
    """The tables again, empty and without their constraints, as often as a statement names them."""

    def __init__(self, migrated: Migrated) -> None:
        self.connection: sqlite3.Connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        self.tables: list[tuple[str, TableInfo]] = list(migrated.tables.items())
        self.index: dict[str, int] = {name: index for index, (name, _) in enumerate(self.tables)}
        self.made: set[tuple[str, int]] = set()
        for name, table in self.tables:
            if table.view:
                try:
                    self.connection.execute(table.sql)
                except sqlite3.Error:
                    continue
            elif not name.startswith("sqlite_"):
                self._create(table.name, name, table, "v")

    def _create(self, as_name: str, key: str, table: TableInfo, item: str) -> None:
        if not table.columns:
            return
        columns = ", ".join(
            f"{quoted(column.name)} {affinity(column.declared)} core_{self.index[key]}_{index}_{item}"
            for index, column in enumerate(table.columns)
        )
        self.connection.execute(f"CREATE TABLE {quoted(as_name)} ({columns})")

    def columns(
        self, rewrite: Callable[[dict[int, str]], str], nulls: dict[int, str], clauses: Clauses, common: frozenset[str]
    ) -> tuple[list[str], list[ColumnTag | None]] | None:
        """The names of a SELECT's columns, and where each comes from: None for an expression,
        or where no one can tell.
        """
        replace = dict(nulls)
        for number, item in enumerate(clauses.items):
            name = item.name
            if name not in self.index or name in common or self.tables[self.index[name]][1].view:
                continue
            copy = f"core {number} {name}"
            if (name, number) not in self.made:
                self.made.add((name, number))
                self._create(copy, name, self.tables[self.index[name]][1], str(number))
            alias = "" if item.aliased else f" AS {quoted(item.table.name or '')}"
            replace[item.table.start] = quoted(copy) + alias
            if item.schema is not None:
                replace[item.schema.start] = "main"
        try:
            rows = view_columns(self.connection, rewrite(replace))
        except sqlite3.Error:
            return None
        tags: list[ColumnTag | None] = []
        for _, _, declared in rows:
            match = _TAG.search(declared or "")
            if match is None:
                tags.append(None)
            else:
                table, column, item_number = match.groups()
                tags.append(
                    ColumnTag(self.tables[int(table)][0], int(column), None if item_number == "v" else int(item_number))
                )
        return column_names([row[1] for row in rows]), tags


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
