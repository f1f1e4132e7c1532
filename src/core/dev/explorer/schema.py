"""What a database has: tables and views with their columns, keys, indexes and foreign keys, as SQLite tells."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from core.dev.explorer.values import cell
from core.http.json import JsonObject
from core.statements.tokens import quoted

_TABLES: Final = (
    "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
    "AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' ORDER BY name"
)


def tables_of(connection: sqlite3.Connection, *, counted: bool = True) -> list[JsonObject]:
    """The tables and views of a database with their columns, the key that finds a row again, their indexes and foreign
    keys, and the number of rows of each table if `counted`.
    """
    tables: list[JsonObject] = []
    for name, kind, sql in connection.execute(_TABLES).fetchall():
        described = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        columns = [
            {
                "name": column,
                "type": type_,
                "required": bool(required),
                "default": default,
                "key": position,
                "made": hidden > 1,
            }
            for _, column, type_, required, default, position, hidden in described
            if hidden != 1
        ]
        key = [one["name"] for one in sorted(columns, key=lambda one: one["key"]) if one["key"]]
        if not key and kind == "table" and "WITHOUT ROWID" not in (sql or "").upper():
            key = ["rowid"]
        # A view may take long, and need not end.
        counts = counted and kind == "table"
        rows = connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] if counts else None
        tables.append(
            {
                "name": name,
                "type": kind,
                "sql": sql,
                "columns": columns,
                "key": key,
                "rows": rows,
                "indexes": _indexes(connection, name),
                "references": _references(connection, name),
            }
        )
    _name_keys(tables)
    return tables


def key_of_row(table: JsonObject, row: tuple[Any, ...]) -> JsonObject | None:
    """The values that find a row again; None for a view, whose rows cannot be changed."""
    if table["type"] != "table" or not table["key"]:
        return None
    if table["key"] == ["rowid"]:
        return {"rowid": row[len(table["columns"])]}
    places = {column["name"]: index for index, column in enumerate(table["columns"])}
    return {name: cell(row[places[name]]) for name in table["key"]}


def _indexes(connection: sqlite3.Connection, table: str) -> list[JsonObject]:
    """The indexes beside the key, with their columns in order."""
    return [
        {
            "name": name,
            "unique": bool(unique),
            "partial": bool(partial),
            "columns": [
                f"{'an expression' if column is None else column}{' DESC' if descending else ''}"
                for _, _, column, descending, _, is_key in connection.execute(f"PRAGMA index_xinfo({quoted(name)})")
                if is_key
            ],
        }
        for _, name, unique, origin, partial in connection.execute(f"PRAGMA index_list({quoted(table)})").fetchall()
        if origin != "pk"
    ]


def _references(connection: sqlite3.Connection, table: str) -> list[JsonObject]:
    """The foreign keys: their `columns` name the columns `to` of a `table`."""
    found: dict[int, JsonObject] = {}
    for number, _, other, column, to, _, deleted, _ in connection.execute(
        f"PRAGMA foreign_key_list({quoted(table)})"
    ).fetchall():
        one = found.setdefault(number, {"table": other, "columns": [], "to": [], "onDelete": deleted})
        one["columns"].append(column)
        one["to"].append(to)
    return [found[number] for number in sorted(found, reverse=True)]


def _name_keys(tables: list[JsonObject]) -> None:
    """Write out what a foreign key leaves to SQLite: the other table's name as it is spelt there, and its key."""
    known = {one["name"].lower(): one for one in tables}
    for table in tables:
        for one in table["references"]:
            other = known.get(one["table"].lower())
            if other is None:
                one["to"] = []  # nothing is there to be led to
                continue
            one["table"] = other["name"]
            names = {column["name"].lower(): column["name"] for column in other["columns"]}
            to = other["key"] if None in one["to"] else [names.get(name.lower()) for name in one["to"]]
            one["to"] = to if len(to) == len(one["columns"]) and None not in to and to != ["rowid"] else []
