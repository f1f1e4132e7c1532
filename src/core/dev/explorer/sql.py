"""The panel "SQL": the schema, the rows of a table, and statements on a connection of their own, which can be stopped.

Statements run as D1 runs them, with its rules and its words for errors, in a thread: the server goes on answering while
one takes its time. One that only reads takes no lock of the application's, and each ends with whoever asked for it.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final

import attrs

from core.assembly.embedded import d1_name
from core.assembly.project import migrations_of
from core.backends.embedded import migrations
from core.backends.embedded.d1 import engine_of
from core.backends.embedded.d1.values import Refused
from core.backends.embedded.store import Store
from core.dev.explorer.places import Places, binding_of, file_of, json_of
from core.dev.explorer.rows import STEPS, Asked, Listing, Page, cell, from_cell, key_of_row, run_on, tables_of, wait_for
from core.errors import CoreError
from core.http.json import JsonObject
from core.request import Request
from core.response import Response
from core.router import Router
from core.sql.migrations import Migration
from core.statements.tokens import StatementText, quoted, statements_of

_READS: Final = frozenset({"SELECT", "VALUES"})
_SHOWN_ROWS: Final = 200


@attrs.frozen
class Script:
    """Statements to run. `id` is for stopping them; those that destroy something run once they are `confirmed`."""

    sql: str
    id: str = ""
    confirmed: bool = False
    offset: int = 0


@attrs.frozen
class RowChange:
    """A change of the row that `key` finds, to `values`. Without `key` it is new, without `values` it goes."""

    table: str
    key: JsonObject | None = None
    values: JsonObject | None = None


api: Router[Places] = Router()

# -- tables and migrations


@api.get("/d1/:binding")
async def _schema(req: Request[Places], res: Response) -> None:
    tables = await run_on(req, file_of(req, "d1"), tables_of) or []
    database, files, table = _migrations(req)
    applied = await migrations.applied(database, table=table)
    pending = [file.name for file in await migrations.pending(database, files, table=table)]
    res.json({"tables": tables, "migrations": {"applied": applied, "pending": pending}})


def _migrations(req: Request[Places]) -> tuple[Any, list[Migration], str]:
    """The database that a request names, its migrations, and the table of those that were applied."""
    name, configuration = req.params["binding"], req.env.loaded.configuration
    table = configuration.bindings[name].entry.migrations_table
    return binding_of(req, "d1"), migrations_of(configuration, name), table


@api.post("/d1/:binding/migrate")
async def _migrate(req: Request[Places], res: Response) -> None:
    database, files, table = _migrations(req)
    done = await migrations.apply(database, files, table=table)
    res.json({"applied": [file.name for file in done]})


@api.get("/d1/:binding/rows/:table")
async def _rows(req: Request[Places], res: Response) -> None:
    asked, table = req.query.parse(Asked), req.params["table"]
    # The values that some columns of the rows have to have.
    wanted = json_of(req, "where", JsonObject, "an object")

    def page(connection: sqlite3.Connection) -> tuple[JsonObject, Page] | None:
        described = next((one for one in tables_of(connection, counted=False) if one["name"] == table), None)
        if described is None:
            return None
        names = [column["name"] for column in described["columns"]]
        shown = {name: quoted(name) for name in names}
        order = ", ".join(quoted(name) for name in described["key"]) or "1"
        hidden = {"\0rowid": "rowid"} if described["key"] == ["rowid"] else {}
        if unknown := wanted.keys() - {*names, *described["key"]}:
            raise CoreError(400, f"There is no column {min(unknown)}")
        listing = Listing({**shown, **hidden}, quoted(table), order, tuple(shown.values()), *_where(wanted))
        return described, listing.page(connection, asked)

    both = await run_on(req, file_of(req, "d1"), page)
    if both is None:
        raise CoreError(404, f"There is no table {table}, or no longer")
    described, (listed, total) = both
    width = len(described["columns"])
    res.json(
        {
            "columns": described["columns"],
            "key": described["key"],
            "rows": [[cell(value) for value in row[:width]] for row in listed],
            "keys": [key_of_row(described, row) for row in listed],
            "total": total,
        }
    )


@api.put("/d1/:binding/row")
async def _change(req: Request[Places], res: Response) -> None:
    change = await req.json(RowChange)
    table, key, values = quoted(change.table), change.key or {}, change.values or {}
    given = [from_cell(value) for value in values.values()]
    where, found = _where(key)
    names = [quoted(name) for name in values]
    if not key:
        row = f"({', '.join(names)}) VALUES ({', '.join('?' * len(names))})" if names else "DEFAULT VALUES"
        sql = f"INSERT INTO {table} {row}"
    elif names:
        sql = f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in names)} WHERE {where}"
    else:
        sql = f"DELETE FROM {table} WHERE {where}"
    result = await binding_of(req, "d1").prepare(sql).bind(*given, *found).run()
    if not result.meta.changes:
        raise CoreError(404, "That row is not there any more")
    res.json({"changes": result.meta.changes})


# -- statements


@api.post("/d1/:binding/query")
async def _query(req: Request[Places], res: Response) -> None:
    script = await req.json(Script)
    pieces = [piece for piece in statements_of(script.sql) if piece.tokens]
    if not pieces:
        raise CoreError(400, "There is no statement")
    asks = [piece.text.strip() for piece in pieces if _destroys(piece)]
    if asks and not script.confirmed:
        res.json({"asks": asks, "results": []})
        return
    binding_of(req, "d1")
    entry: Any = req.env.loaded.configuration.bindings[req.params["binding"]].entry
    path, name = req.env.loaded.store.path, d1_name(entry)
    stop = req.env.running[script.id] = threading.Event()
    try:
        results = await wait_for(req, lambda stop: _run(path, name, pieces, script, stop), stop)
    finally:
        if req.env.running.get(script.id) is stop:
            del req.env.running[script.id]
    res.json({"asks": [], "results": results})


def _run(
    path: Path | None, name: str, pieces: list[StatementText], script: Script, stop: threading.Event
) -> list[JsonObject]:
    """Run the statements one after the other, until one fails. In a thread, on a connection of its own."""
    results: list[JsonObject] = []
    with Store(path) as store:
        database = store.database("d1", name)
        engine = engine_of(database, store.clock)
        database.connection.set_progress_handler(stop.is_set, STEPS)
        for piece in pieces:
            text = piece.text.strip().rstrip(";").strip()
            if stop.is_set():
                results.append({"sql": text, "error": "Stopped", "stopped": True})
                break
            reads = piece.verb in _READS
            # SQLite holds it to that, whatever a statement turns out to be.
            database.connection.execute(f"PRAGMA query_only = {reads}")
            pages = reads and not piece.parameters
            sql = f"SELECT * FROM ({text}\n) LIMIT {_SHOWN_ROWS + 1} OFFSET {script.offset}" if pages else text
            started = monotonic()
            try:
                # In a transaction of its own a PRAGMA would find the database locked while the application writes.
                run = engine.inside if piece.verb == "PRAGMA" else engine.single
                columns, rows, numbers = run(sql, ())
            except (sqlite3.Error, Refused) as error:
                words = "Stopped" if stop.is_set() else _words(engine, text, error, wrapped=pages)
                results.append({"sql": text, "error": words, "stopped": stop.is_set()})
                break
            results.append(
                {
                    "sql": text,
                    "columns": [_plain(column, columns) for column in columns] if pages else columns,
                    "rows": [[cell(value) for value in row] for row in rows[:_SHOWN_ROWS]],
                    "more": len(rows) > _SHOWN_ROWS,
                    "pages": pages and len(pieces) == 1,
                    "offset": script.offset,
                    "changes": numbers[1],
                    "duration": (monotonic() - started) * 1000,
                }
            )
    return results


@api.post("/d1/:binding/cancel")
async def _cancel(req: Request[Places], res: Response) -> None:
    stop = req.env.running.get(await req.json(str, key="id"))
    if stop is not None:
        stop.set()
    res.json({"stopped": stop is not None})


@api.post("/d1/:binding/explain")
async def _explain(req: Request[Places], res: Response) -> None:
    pieces = [piece for piece in statements_of((await req.json(Script)).sql) if piece.tokens]
    plans = await run_on(req, file_of(req, "d1"), lambda one: [_plan(one, piece) for piece in pieces])
    res.json({"plans": plans or []})


def _where(wanted: JsonObject) -> tuple[str, tuple[object, ...]]:
    """The WHERE of the values that columns have to have, and the values."""
    return " AND ".join(f"{quoted(name)} IS ?" for name in wanted) or "1", tuple(map(from_cell, wanted.values()))


def _plan(connection: sqlite3.Connection, piece: StatementText) -> JsonObject:
    """The plan of a statement, and how many rows are in each table that it reads from end to end."""
    try:
        values = [None] * piece.parameter_count
        rows = connection.execute(f"EXPLAIN QUERY PLAN {piece.text}", values).fetchall()
    except sqlite3.Error as error:
        return {"sql": piece.text.strip(), "error": str(error), "steps": []}
    parents = {row[0]: row[1] for row in rows}
    steps: list[JsonObject] = []
    for number, _, _, text in rows:
        depth, above = 0, parents[number]
        while above in parents:
            depth, above = depth + 1, parents[above]
        scanned = re.match(r"SCAN (\S+)", text)
        count = None
        # An alias is not a table, and neither is a subquery.
        if scanned is not None and "USING" not in text:
            table = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?", (scanned[1],)
            ).fetchone()
            count = connection.execute(f"SELECT count(*) FROM {quoted(table[0])}").fetchone()[0] if table else None
        steps.append({"text": text, "depth": depth, "scans": count})
    return {"sql": piece.text.strip(), "error": None, "steps": steps}


def _destroys(piece: StatementText) -> bool:
    """Return True for a statement that deletes data without naming rows: DROP, and DELETE or UPDATE without WHERE."""
    found = {token.word for token in piece.tokens}
    if piece.keyword == "DROP":
        return True
    if piece.keyword == "ALTER":
        return "DROP" in found
    changes = {piece.keyword} if piece.keyword != "WITH" else found
    return not changes.isdisjoint(("DELETE", "UPDATE")) and "WHERE" not in found


def _words(engine: Any, text: str, error: sqlite3.Error | Refused, *, wrapped: bool) -> str:
    """The error as D1 words it, for the statement as it was written and not as it was wrapped for a page.

    Only a statement that was `wrapped`, and so reads, is run again: an INSERT that failed on a lock would succeed,
    unseen.
    """
    if wrapped and not isinstance(error, Refused):
        try:
            engine.single(text, ())
        except (sqlite3.Error, Refused) as own:
            error = own
    return f"D1_ERROR: {error if isinstance(error, Refused) else engine.explain(error)}"


def _plain(column: str, columns: Sequence[str]) -> str:
    """The name of a column as it was written: a subquery numbers those of the same name."""
    base, _, number = column.rpartition(":")
    return base if number.isdigit() and base in columns else column
