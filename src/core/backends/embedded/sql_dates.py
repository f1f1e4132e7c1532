"""SQL's own dates from a test's clock: `CURRENT_TIMESTAMP`, `datetime('now')` and their like, and where SQLite has
none.

SQLite refuses the time of day in a CHECK, a generated column and an index, since their result for a row must not change
with time: not when the table is made, but when a row is written. It knows by who calls; a function of ours cannot. So
the schema's text is read after each change, and writes to a table with an expression that always asks are denied. Where
a row decides (`date(a)`, with 'now' in `a`), the rows are looked at after a write that asked, and it is taken back. One
difference remains: an expression that would not have been evaluated (`x IS NULL OR x < date('now')`) is denied as well.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from weakref import ref

from core.context import Clock
from core.sql.connection import ClosingConnection
from core.statements.tokens import Token, enclosed, outside, quoted, tokens_of

# The places among its arguments where each function takes a time; without the last of them it takes the present.
_TIMES_AT: Final = {
    **dict.fromkeys(("date", "time", "datetime", "julianday", "unixepoch"), (0,)),
    "strftime": (1,),
    "timediff": (0, 1),
}
# Times that are the present, and modifiers that ask for the machine's time zone, which changes as well.
_PRESENT: Final = ("now", "subsec", "subsecond")
_ZONES: Final = ("localtime", "utc")


class Dates:
    """The clock of a connection's SQL. `denied` is SQLite's message for the write that was denied last."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self.denied: str | None = None
        self._connection = connection
        self._refusals: dict[str, str] = {}
        # SQLite's message and a query for the rows that it is about, for expressions that a row may have ask.
        self.suspects: list[tuple[str, str]] = []
        # True once a function was asked for the present.
        self.asked = False
        _follow(connection, clock, self)
        self.judge()

    def judge(self) -> str | None:
        """Read the schema anew. Gives SQLite's message for an expression that a row there is already cannot have."""
        schema = self._connection.execute(
            "SELECT type, tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL"
        ).fetchall()
        refusals: dict[str, str] = {}
        self.suspects = []
        for kind, table, sql in schema:
            for message, condition in _findings(kind, sql):
                if condition is None:
                    refusals.setdefault(table.lower(), message)
                else:
                    self.suspects.append((message, f"SELECT 1 FROM {quoted(table)} WHERE {condition} LIMIT 1"))
        new, self._refusals = refusals.keys() - self._refusals.keys(), refusals
        for table in new:
            if self._connection.execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1").fetchone() is not None:
                return refusals.pop(table)
        return self.found()

    def found(self) -> str | None:
        """SQLite's message for a row there is that cannot be."""
        for message, query in self.suspects:
            if self._connection.execute(query).fetchone() is not None:
                return message
        return None

    def allow(self, table: str) -> int:
        """Answer SQLite, which asks whether a table may be written."""
        refusal = self._refusals.get(table.lower())
        if refusal is None:
            return sqlite3.SQLITE_OK
        self.denied = refusal
        return sqlite3.SQLITE_DENY


def _findings(kind: str, sql: str) -> Iterator[tuple[str, str | None]]:
    """SQLite's message for each expression in a table's or an index's SQL that depends on the time of day, and the
    condition for rows that have it do so; None is every row.
    """
    words = tokens_of(sql)
    if words[1].text.upper() == "VIRTUAL":
        return
    for place, expression in _expressions(kind, words):
        for name, condition in _asking(sql, expression):
            yield f"non-deterministic use of {name}() in {place}", condition


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
            yield place, enclosed(words, at)


def _asking(sql: str, words: Sequence[Token]) -> Iterator[tuple[str, str | None]]:
    """The functions that may be asked for the present or the time zone, and the condition of each."""
    for at in range(len(words) - 1):
        name = (words[at].name or "").lower()
        if name not in _TIMES_AT or words[at + 1].text != "(":
            continue
        places = _TIMES_AT[name]
        arguments = _arguments(words, at + 1)
        if len(arguments) <= places[-1]:
            yield name, None
        for index, argument in enumerate(arguments):
            if not argument or index < places[0]:
                continue
            asks = _PRESENT if index in places else _ZONES
            texts = [word.text[1:-1].lower() for word in argument if word.text not in ("(", ")")]
            if len(texts) == 1 and texts[0] in asks:
                yield name, None
            elif any(word.kind not in ("string", "number", "symbol") for word in argument):
                text = sql[argument[0].start : argument[-1].end]
                yield name, f"lower({text}) IN ({', '.join(repr(word) for word in asks)})"


def _arguments(words: Sequence[Token], opening: int) -> list[Sequence[Token]]:
    """Return the arguments between the parenthesis at `opening` and its end, divided at their commas."""
    given = enclosed(words, opening)
    ends = [*(at for at, word in outside(given) if word.text == ","), len(given)]
    return [given[begin:end] for begin, end in zip([0, *(at + 1 for at in ends)], ends, strict=False) if given]


def _follow(connection: sqlite3.Connection, clock: Clock, dates: Dates) -> None:
    """Let SQL's own dates come from a test's clock: `CURRENT_TIMESTAMP`, `datetime('now')` and their like."""
    # Closed with the connection that calls it: that holds the functions below, and they hold this.
    machine = ClosingConnection(":memory:", check_same_thread=False)
    # A connection holds its functions where no garbage collector looks: they must not hold the connection.
    asked = ref(dates)

    def now() -> str:
        note()
        moment = dt.datetime.fromtimestamp(clock.time(), dt.UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"

    def note() -> None:
        if (found := asked()) is not None:
            found.asked = True

    def function(name: str) -> Callable[..., Any]:
        places = _TIMES_AT[name]

        def call(*args: object) -> object:
            given = list(args) + ["now"] * (places[-1] + 1 - len(args))
            for place, value in enumerate(given):
                word = value.lower() if isinstance(value, str) else ""
                if place in places and word in _PRESENT:
                    given[place] = now()
                    if word != "now":
                        given.insert(place + 1, word)
                        break
                elif place > places[-1] and word in _ZONES:
                    note()
            marks = ", ".join("?" * len(given))
            try:
                return machine.execute(f"SELECT {name}({marks})", given).fetchone()[0]
            except sqlite3.Error:
                return None

        return call

    for name in _TIMES_AT:
        if name != "timediff" or sqlite3.sqlite_version_info >= (3, 43):
            connection.create_function(name, -1, function(name), deterministic=True)
    for name, source in (("current_date", "date"), ("current_time", "time"), ("current_timestamp", "datetime")):
        # SQLite's own are none of the deterministic ones either: an index and a generated column refuse them at once.
        connection.create_function(name, 0, function(source))
