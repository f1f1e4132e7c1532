"""A page of a long list: sorted, searched and counted by SQLite, so that no browser gets a hundred thousand rows.

Reading happens in a thread, on a connection of its own that cannot write: neither the application nor a request waits
for somebody who scrolls, and nothing is read on for somebody who left.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from core.backends.embedded.disk import StoreError
from core.dev.explorer.places import Places
from core.errors import CoreError
from core.http.json import JsonObject
from core.request import Request

T = TypeVar("T")

_MOST: Final = 500
_LOOK: Final = 0.1
"""Seconds between two looks whether the caller is still there."""

STEPS: Final = 100_000
"""Steps of SQLite's machine between two looks whether a statement is to stop: a few milliseconds."""
_DIGITS: Final = 15
"""Digits of a number that JavaScript and SQLite have exactly."""


@attrs.frozen
class Asked:
    """The part of a list that the page asks for."""

    offset: int = 0
    limit: int = 100
    sort: str = ""
    descending: bool = False
    search: str = ""

    @classmethod
    def of(cls, req: Request[Places]) -> Asked:
        """The query of a request. A value that is not a number is refused."""
        return cls(
            number_of(req, "offset") or 0,
            min(number_of(req, "limit") or 100, _MOST),
            req.query.get("sort") or "",
            req.query.get("descending") == "true",
            req.query.get("search") or "",
        )


def number_of(req: Request[Places], name: str) -> int | None:
    """A whole number in the query of a request, from 0 on; None where there is none. Any other text is refused."""
    text = req.query.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise CoreError(400, f"`{name}` is a number from 0 on, of at most {_DIGITS} digits")
    return int(text)


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
        """The WHERE of a search, and its values."""
        if not search or not self.search:
            return self.where, [*self.values]
        found = " OR ".join(f"instr(lower(CAST({one} AS TEXT)), lower(?)) > 0" for one in self.search)
        return f"({self.where}) AND ({found})", [*self.values, *(search for _ in self.search)]

    async def read(self, req: Request[Places], file: Path | None) -> tuple[list[JsonObject], int]:
        """Return the part that a request asks for, its rows by column; an empty one where there is no file yet."""
        asked = Asked.of(req)
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
    """Run `action` in a thread, on a connection that only reads unless `mode` is "rw". Returns None where there is no
    file yet.
    """
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
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stop = stop or threading.Event()

    def tell(settle: Callable[[object], None], outcome: object) -> None:
        if not done.done():
            settle(outcome)

    def run() -> None:
        settle: Callable[[Any], None] = done.set_result
        outcome: object
        try:
            outcome = work(stop)
        except BaseException as error:  # the one who waits raises it
            settle, outcome = done.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(tell, settle, outcome)

    threading.Thread(target=run, name="core-explorer", daemon=True).start()
    try:
        while not (await asyncio.wait((done,), timeout=_LOOK))[0]:
            if req.env.recorder.closed or await req.is_disconnected():
                stop.set()
        return await done
    finally:
        stop.set()
