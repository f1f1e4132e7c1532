"""SQL's own dates from a test's clock: `CURRENT_TIMESTAMP`, `datetime('now')` and their like,
and where SQLite has none.

SQLite refuses the time of day in a CHECK, a generated column and an index, since their result for a row must not change
with time: not when the table is made, but when a row is written. It knows by who calls; a function of ours cannot. So
the schema's text is read after each change, and writes to a table with such an expression are denied. One difference
remains: an expression that would not have been evaluated (`x IS NULL OR x < date('now')`) is denied as well.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from core.context import Clock
from core.sql.tokens import Token, tokens_of

__all__ = ["Dates"]

# The place among its arguments from which each function takes a time; without that one it takes the present.
_TIME_AT: Final = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1}


class Dates:
    """The clock of a connection's SQL. `denied` is SQLite's message for the write that was denied last."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self.denied: str | None = None
        self._connection = connection
        self._refusals: dict[str, str] = {}
        _follow(connection, clock)
        self.judge()

    def judge(self) -> str | None:
        """Read the schema anew. Gives SQLite's message for an expression that a row there is already cannot have."""
        schema = self._connection.execute(
            "SELECT type, tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL"
        ).fetchall()
        refusals: dict[str, str] = {}
        for kind, table, sql in schema:
            refusal = _refusal(kind, sql)
            if refusal is not None:
                refusals.setdefault(table.lower(), refusal)
        new, self._refusals = refusals.keys() - self._refusals.keys(), refusals
        for table in new:
            quoted = table.replace('"', '""')
            if self._connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 1').fetchone() is not None:
                return refusals.pop(table)
        return None

    def allow(self, table: str) -> int:
        """Answer SQLite, which asks whether a table may be written."""
        refusal = self._refusals.get(table.lower())
        if refusal is None:
            return sqlite3.SQLITE_OK
        self.denied = refusal
        return sqlite3.SQLITE_DENY


def _refusal(kind: str, sql: str) -> str | None:
    """Return SQLite's message for the first expression in a table's or an index's SQL that depends on the time
    of day.
    """
    words = tokens_of(sql)
    if words[1].text.upper() == "VIRTUAL":
        return None
    for place, expression in _expressions(kind, words):
        name = _present(expression)
        if name is not None:
            return f"non-deterministic use of {name}() in {place}"
    return None


def _expressions(kind: str, words: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    for at in range(1, len(words)):
        if words[at].text != "(":
            continue
        if kind == "index":
            # Its columns, and the WHERE behind them.
            yield "an index", words[at:]
            return
        before = words[at - 1]
        place = {"CHECK": "a CHECK constraint", "AS": "a generated column"}.get(before.text.upper())
        if place is not None and before.kind == "word":
            yield place, [word for argument in _arguments(words, at) for word in argument]


def _present(words: Sequence[Token]) -> str | None:
    """The function that is asked for the present, if one is."""
    for at in range(len(words) - 1):
        name = (words[at].name or "").lower()
        if name not in _TIME_AT or words[at + 1].text != "(":
            continue
        arguments = _arguments(words, at + 1)
        if len(arguments) <= _TIME_AT[name]:
            return name
        told = [word.text.lower() for word in arguments[_TIME_AT[name]] if word.text not in ("(", ")")]
        if told == ["'now'"]:
            return name
    return None


def _arguments(words: Sequence[Token], opening: int) -> list[list[Token]]:
    """Return the arguments between the parenthesis at `opening` and its end, divided at their commas."""
    arguments: list[list[Token]] = []
    depth = 0
    for word in words[opening:]:
        depth += (word.text == "(") - (word.text == ")")
        if depth == 0:
            break
        if depth == 1 and word.text in ("(", ","):
            if word.text == ",":
                arguments.append([])
            continue
        if not arguments:
            arguments.append([])
        arguments[-1].append(word)
    return arguments


class _Scratch(sqlite3.Connection):
    """A connection that closes with its last user; Python 3.13 warns of one that is only forgotten."""

    def __del__(self) -> None:
        self.close()


def _follow(connection: sqlite3.Connection, clock: Clock) -> None:
    """Let SQL's own dates come from a test's clock: `CURRENT_TIMESTAMP`, `datetime('now')` and their like."""
    # Closed with the connection that calls it: that holds the functions below, and they hold this.
    machine = _Scratch(":memory:", check_same_thread=False)

    def now() -> str:
        moment = dt.datetime.fromtimestamp(clock.time(), dt.UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"

    def function(name: str, least: int) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            given = list(args) + ["now"] * (least - len(args))
            given = [now() if isinstance(value, str) and value.lower() == "now" else value for value in given]
            marks = ", ".join("?" * len(given))
            try:
                return machine.execute(f"SELECT {name}({marks})", given).fetchone()[0]
            except sqlite3.Error:
                return None

        return call

    for name, least in (("date", 1), ("time", 1), ("datetime", 1), ("julianday", 1), ("unixepoch", 1), ("strftime", 2)):
        connection.create_function(name, -1, function(name, least), deterministic=True)
    for name, source in (("current_date", "date"), ("current_time", "time"), ("current_timestamp", "datetime")):
        # SQLite's own are none of the deterministic ones either: an index and a generated column refuse them at once.
        connection.create_function(name, 0, function(source, 1))
