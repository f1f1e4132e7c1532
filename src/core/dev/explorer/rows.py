"""What the panels show of databases: pages of long lists, tables, and stored values.

A list is sorted, searched and counted by SQLite, so that no browser gets a hundred thousand rows. Reading happens in a
thread, on a connection of its own that cannot write: neither the application nor a request waits for somebody who
scrolls, and nothing is read on for somebody who left.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import attrs
from attrs.validators import ge, le

from core.backends.embedded.clone import load
from core.backends.embedded.disk import StoreError
from core.dev.explorer.places import Places
from core.errors import CoreError
from core.http.json import JsonObject
from core.request import Request
from core.statements.tokens import quoted

T = TypeVar("T")

_MOST: Final = 500
_LOOK: Final = 0.1
"""Seconds between two looks whether the caller is still there."""

STEPS: Final = 100_000
"""Steps of SQLite's machine between two looks whether a statement is to stop: a few milliseconds."""

_THREADS: Final = ThreadPoolExecutor(64, "core-explorer")


@attrs.frozen
class Asked:
    """The part of a list that the page asks for, by the query of its request."""

    offset: int = attrs.field(default=0, validator=[ge(0), le(10**15)])
    limit: int = attrs.field(default=100, validator=[ge(0), le(_MOST)])
    sort: str = ""
    descending: bool = False
    search: str = ""


Page: TypeAlias = tuple[list[tuple[Any, ...]], int]
"""Rows in the order of the columns of their listing, and how many there are in all."""


@attrs.frozen
class Listing:
    """A list that SQLite has: `columns` are expressions by the name that the page sorts by, `order` is the usual order.

    `search` is the expressions that are searched for a string. `where` restricts all of it, with `values`.
    """

    columns: Mapping[str, str]
    source: str
    order: str = "key"
    search: tuple[str, ...] = ("key",)
    where: str = "1"
    values: tuple[Any, ...] = ()

    def condition(self, search: str) -> tuple[str, list[object]]:
        if not search or not self.search:
            return self.where, [*self.values]
        found = " OR ".join(f"instr(lower(CAST({one} AS TEXT)), lower(?)) > 0" for one in self.search)
        return f"({self.where}) AND ({found})", [*self.values, *(search for _ in self.search)]

    async def read(self, req: Request[Places], file: Path | None) -> tuple[list[JsonObject], int]:
        """Return the part that a request asks for, its rows by column; an empty one where there is no file yet."""
        asked = req.query.parse(Asked)
        rows, total = await run_on(req, file, lambda connection: self.page(connection, asked)) or ([], 0)
        return [dict(zip(self.columns, row, strict=True)) for row in rows], total

    def page(self, connection: sqlite3.Connection, asked: Asked) -> Page:
        where, values = self.condition(asked.search)
        (total,) = connection.execute(f"SELECT count(*) FROM {self.source} WHERE {where}", values).fetchone()
        order = self.order
        if asked.sort:
            if asked.sort not in self.columns:
                raise CoreError(400, f"There is no column {asked.sort} to sort by")
            order = f"{self.columns[asked.sort]} {'DESC' if asked.descending else 'ASC'}, {order}"
        columns = ", ".join(self.columns.values())
        rows = connection.execute(
            f"SELECT {columns} FROM {self.source} WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",
            [*values, asked.limit, asked.offset],
        ).fetchall()
        return rows, total


async def run_on(
    req: Request[Places], file: Path | None, action: Callable[[sqlite3.Connection], T], *, mode: str = "ro"
) -> T | None:
    """Run `action` in a thread, on a connection that reads, or with "rw" writes. None without a file."""
    if file is None:
        return None

    def work(stop: threading.Event) -> T | None:
        if not file.exists():
            return None
        address = f"{file.as_uri()}?mode={mode}"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=5, isolation_level=None)) as connection:
            connection.set_progress_handler(stop.is_set, STEPS)
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            return action(connection)

    try:
        return await wait_for(req, work)
    except (sqlite3.Error, StoreError) as error:
        raise CoreError(400, f"{error} ({file.name})") from error


async def wait_for(
    req: Request[Places], work: Callable[[threading.Event], T], stop: threading.Event | None = None
) -> T:
    """Return `work(stop)`, run in a thread. `stop` is set when nobody waits for the answer to `req` any more."""
    stop = stop or threading.Event()
    # Threads of its own: those of `asyncio.to_thread` are the application's.
    done = asyncio.get_running_loop().run_in_executor(_THREADS, work, stop)
    try:
        while not (await asyncio.wait((done,), timeout=_LOOK))[0]:
            if req.env.recorder.closed or await req.is_disconnected():
                stop.set()
        return await done
    finally:
        stop.set()


# -- stored values, as the page can show them

_LONGEST: Final = 20_000
_LARGEST_EXACT: Final = 2**53 - 1


def cell(value: Any) -> Any:
    """A value of a SQL row as JSON can say it. A number that JavaScript does not have is text."""
    given = value  # not narrowed by what follows
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(given)
        return {"base64": base64.b64encode(data[:_LONGEST]).decode(), "size": len(data)}
    if isinstance(value, str) and len(value) > _LONGEST:
        return {"text": value[:_LONGEST], "size": len(value)}
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return {"text": str(value), "size": 0}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"text": str(value), "size": 0}
    return value


def from_cell(value: object) -> object:
    """A value for SQL as the page sends it: base64 in a dict is bytes."""
    match value:
        case {"base64": str(text)}:
            return decoded(text)
        case {"text": str(text)}:
            return text
        case dict() | list():
            raise CoreError(400, 'A value is a string, a number, null, {"text": …} or {"base64": …}')
        case _:
            return value


def decoded(text: str) -> bytes:
    """The bytes of a text in base64. Any other text is refused."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise CoreError(400, f"The value is not base64: {error}") from None


def cloned(value: bytes) -> JsonObject:
    """A value that was stored by structured clone: as JSON where it can be edited as that, else as Python writes it."""
    loaded: Any = load(value)
    try:
        text = json.dumps(loaded, ensure_ascii=False, allow_nan=False, indent=2)
        # A tuple, a set or a key that is a number would come back as something else.
        if json.loads(text) == loaded and not isinstance(loaded, tuple) and len(text) <= _LONGEST:
            return {"json": text, "text": text}
    except (TypeError, ValueError):
        pass
    text = repr(cast("object", loaded))
    return {"json": None, "text": text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"}


# -- tables and views with their columns, keys, indexes and foreign keys, as SQLite tells

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
                "key": key,
                "made": made > 1,
            }
            for _, column, type_, required, default, key, made in described
            if made != 1  # hidden
        ]
        key = [one["name"] for one in sorted(columns, key=lambda one: one["key"]) if one["key"]]
        if not key and kind == "table" and "WITHOUT ROWID" not in (sql or "").upper():
            key = ["rowid"]
        # A view may take long, and need not end.
        counts = counted and kind == "table"
        rows = connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] if counts else None
        table = {"name": name, "type": kind, "sql": sql, "columns": columns, "key": key, "rows": rows}
        tables.append({**table, "indexes": _indexes(connection, name), "references": _references(connection, name)})
    _name_keys(tables)
    return tables


def key_of_row(table: JsonObject, row: tuple[object, ...]) -> JsonObject | None:
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
