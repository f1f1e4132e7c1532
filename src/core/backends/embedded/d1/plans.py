"""Facts about SQL before it runs: its statements, their parameters, and whether they only read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from core.backends.embedded.d1.values import Refused
from core.sql.rules import MAX_PARAMETERS, MAX_SQL_BYTES, WRONG_COUNT, absent_tables, refused_default
from core.statements.tokens import StatementText, Token, number_of, numbered, outside, statements_of, words

# These begin and end their own transaction in SQLite. Everything else runs inside one of ours, so that a PRAGMA
# or VACUUM does the same as inside the platform's.
_ALONE: Final = words("SELECT VALUES INSERT REPLACE UPDATE DELETE WITH")

_READING: Final = words("SELECT VALUES EXPLAIN")

_SPACE: Final = " \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"

WHITE_SPACE: Final = "".join(chr(code) for code in range(0x2000, 0x200B)) + _SPACE.replace("\u2000-\u200a", "")

_COMMENT_LINE: Final = re.compile(rf"(?:^|(?<=[\r\u2028\u2029]))[{_SPACE}]+--[^\n\r\u2028\u2029]*", re.MULTILINE)


class Step:
    """One statement of a string, ready to run."""

    __slots__ = ("empty", "keys", "order", "piece", "plain", "sql", "unchecked")

    def __init__(self, piece: StatementText) -> None:
        self.piece: StatementText = piece
        self.empty: bool = not piece.tokens
        self.sql: str = piece.text
        # Python's sqlite3 takes a sequence for plain question marks alone, from 3.14 on at the latest, and a dict where
        # every parameter has a name or a number. A statement that mixes them is run with question marks, each given its
        # value.
        self.order: list[int] | None = None
        self.keys: list[str] | None = None
        if any(token.text != "?" for token in piece.parameters) and not _has_number_out_of_range(piece):
            order = [number - 1 for _, number in numbered(piece.tokens)]
            keys = {place: token.text[1:] for place, token in zip(order, piece.parameters, strict=True)}
            if "" in keys.values() or len(keys) <= max(order) or len(set(keys.values())) < len(keys):
                # Blanks keep the text as long as it was, so that its places stay right.
                self.sql, self.order = _rewritten(piece, lambda token, number: "?".ljust(len(token.text))), order
            else:
                self.keys = [keys[place] for place in range(len(keys))]
        self.plain: bool = self.order is None and self.keys is None
        # None of our own statements begins with a blank, so that the sqlite3 module never takes one of ours, which the
        # authorizer let pass ("COMMIT"), for the application's: it keeps what it prepared, by the exact text.
        self.sql = f" {self.sql}"
        # Nothing about it has to be looked up in the schema, or refused, before it runs.
        self.unchecked: bool = not (
            self.empty or piece.keyword == "ALTER" or absent_tables(piece) or refused_default(piece)
        )

    def bindings(self, values: tuple[Any, ...]) -> Any:
        """`values` as the sqlite3 module wants them."""
        if self.keys is not None:
            if len(values) != len(self.keys):
                raise Refused(WRONG_COUNT)
            return dict(zip(self.keys, values, strict=True))
        if self.order is None:
            return values
        if len(values) != max(self.order) + 1:
            raise Refused(WRONG_COUNT)
        return tuple([values[place] for place in self.order])

    def named(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The names of the columns: SQLite names one by its expression, and here saw question marks in it."""
        text, sql = self.piece.text, self.sql[1:]
        spans = iter(_result_columns(self.piece))
        # A column without an alias is named by the whole of its expression.
        return tuple(
            [
                next((text[start:end] for start, end in spans if sql[start:end].rstrip() == column), column)
                if "?" in column
                else column
                for column in columns
            ]
        )


class Plan:
    """Facts about SQL before it runs."""

    __slots__ = ("alone", "blank", "reading", "steps", "too_long")

    def __init__(self, sql: str) -> None:
        self.blank: bool = not _COMMENT_LINE.sub("", sql).strip(WHITE_SPACE)
        self.too_long: bool = len(sql) * 4 > MAX_SQL_BYTES and len(sql.encode("utf-8", "replace")) > MAX_SQL_BYTES
        pieces = [] if self.blank or self.too_long else statements_of(sql)
        self.steps: list[Step] = [Step(piece) for piece in pieces]
        keywords = {piece.keyword for piece in pieces}
        said = {token.text.upper() for piece in pieces for token in piece.tokens}
        self.reading: bool = bool(pieces) and {piece.verb for piece in pieces} <= _READING
        # OR FAIL keeps what it did before it failed (Engine._keeps_rows knows of the schema's), and a row that cannot
        # be decoded is read twice: both need a transaction to take the rest back.
        self.alone: bool = len(pieces) == 1 and keywords <= _ALONE and not said & {"FAIL", "RETURNING"}


def _has_number_out_of_range(piece: StatementText) -> bool:
    """Return True if a parameter has a number that SQLite refuses, in words of its own."""
    numbers = [number_of(token) for token in piece.parameters if token.text[0] == "?" and token.text != "?"]
    return any(not 1 <= number <= MAX_PARAMETERS for number in numbers)


def _rewritten(piece: StatementText, write: Callable[[Token, int], str]) -> str:
    """A statement with every parameter as `write` gives it for its token and its number."""
    parts: list[str] = []
    end = 0
    for token, number in numbered(piece.tokens):
        parts += (piece.text[end : token.start], write(token, number))
        end = token.end
    return "".join(parts) + piece.text[end:]


def with_names(piece: StatementText) -> str:
    """A statement with a name for every parameter, `:v1`, so that each part of it can be run with all of the values."""
    return _rewritten(piece, lambda token, number: f":v{number}")


_AFTER_RESULT: Final = words("FROM WHERE GROUP HAVING WINDOW UNION EXCEPT INTERSECT ORDER LIMIT")


def _result_columns(piece: StatementText) -> list[tuple[int, int]]:
    """Return the position of each expression that gives a column: behind RETURNING, or in the first SELECT outside
    parentheses.
    """
    bare = [*outside(piece.tokens)]
    begins = [[at for at, token in bare if token.word == word] for word in ("RETURNING", "SELECT")]
    begin = next((found[0] for found in begins if found), len(piece.tokens))
    stop = next((at for at, token in bare if at > begin and token.word in _AFTER_RESULT), len(piece.tokens))
    commas = [at for at, token in bare if begin < at < stop and token.text == ","]
    spans: list[tuple[int, int]] = []
    for before, after in pairwise([begin, *commas, stop]):
        inner = [token for token in piece.tokens[before + 1 : after] if token.word not in ("DISTINCT", "ALL")]
        if inner:
            spans.append((inner[0].start, inner[-1].end))
    return spans
