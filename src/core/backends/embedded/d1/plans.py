"""Facts about SQL before it runs: its statements, their parameters, and whether they only read."""

from __future__ import annotations

import re
from typing import Any, Final

from core.backends.embedded.d1.values import Refused
from core.sql.rules import MAX_PARAMETERS, MAX_SQL_BYTES, WRONG_COUNT, absent_tables, refused_default
from core.statements.tokens import StatementText, number_of, numbered, statements_of, words

# One of these alone changes rows and not the schema.
_ALONE: Final = words("INSERT REPLACE UPDATE DELETE WITH")

_READING: Final = words("SELECT VALUES EXPLAIN")

_SPACE: Final = " \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"

WHITE_SPACE: Final = "".join(chr(code) for code in range(0x2000, 0x200B)) + _SPACE.replace("\u2000-\u200a", "")

_COMMENT_LINE: Final = re.compile(rf"(?:^|(?<=[\r\u2028\u2029]))[{_SPACE}]+--[^\n\r\u2028\u2029]*", re.MULTILINE)

_NAME: Final = re.compile(r"(:_p+\d+)\f?")
"""A name of ours for a parameter."""


class Statement:
    """One statement of a string, ready to run."""

    __slots__ = ("names", "piece", "plain", "sql", "unchecked", "written")

    def __init__(self, piece: StatementText) -> None:
        self.piece: StatementText = piece
        self.sql: str = piece.text
        # Python's sqlite3 takes a sequence for plain question marks alone, from 3.14 on at the latest, and a dict where
        # every parameter has a name or a number of its own. Where they are mixed, each place gets a name.
        self.plain: bool = all(token.text == "?" for token in piece.parameters) or _has_number_out_of_range(piece)
        self.names: dict[str, int] = {}
        # What stood in the place of each name of ours.
        self.written: dict[str, str] = {}
        if not self.plain:
            both = [*numbered(piece.tokens)]
            self.names = {token.text[1:]: number for token, number in both}
            if "" in self.names or not len(self.names) == len({token.text for token, _ in both}) == max(
                self.names.values()
            ):
                name = "_p"
                while name in piece.text:  # in a string, say, which is no name of ours
                    name += "p"
                self.sql = with_names(piece, name)
                self.names = {f"{name}{place}": number for place, (_, number) in enumerate(both)}
                self.written = {f":{name}{place}": token.text for place, (token, _) in enumerate(both)}
        # None of our own statements begins with a blank, so that the sqlite3 module never takes one of ours, which the
        # authorizer let pass ("COMMIT"), for the application's: it keeps what it prepared, by the exact text.
        self.sql = f" {self.sql}"
        # Nothing about it has to be looked up in the schema, or refused, before it runs.
        self.unchecked: bool = bool(piece.tokens) and not (
            piece.keyword == "ALTER" or absent_tables(piece) or refused_default(piece)
        )

    def bindings(self, values: tuple[object, ...]) -> Any:
        """`values` as the sqlite3 module wants them."""
        if self.plain:
            return values
        if len(values) != max(self.names.values()):
            raise Refused(WRONG_COUNT)
        return {name: values[number - 1] for name, number in self.names.items()}

    def as_written(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """The names of columns: SQLite names one without an alias by its expression, with our names in it."""
        written = self.written
        return tuple([_NAME.sub(lambda found: written.get(found[1], found[0]), name) for name in columns])


class Plan:
    """Facts about SQL before it runs."""

    __slots__ = ("alone", "blank", "reading", "statements", "too_long")

    def __init__(self, sql: str) -> None:
        self.blank: bool = not _COMMENT_LINE.sub("", sql).strip(WHITE_SPACE)
        self.too_long: bool = len(sql) * 4 > MAX_SQL_BYTES and len(sql.encode("utf-8", "replace")) > MAX_SQL_BYTES
        pieces = [] if self.blank or self.too_long else statements_of(sql)
        self.statements: list[Statement] = [Statement(piece) for piece in pieces]
        self.reading: bool = bool(pieces) and {piece.verb for piece in pieces} <= _READING
        self.alone: bool = len(pieces) == 1 and (self.reading or pieces[0].keyword in _ALONE)


def _has_number_out_of_range(piece: StatementText) -> bool:
    """Return True if a parameter has a number that SQLite refuses, in words of its own."""
    numbers = [number_of(token) for token in piece.parameters if token.text[0] == "?" and token.text != "?"]
    return any(not 1 <= number <= MAX_PARAMETERS for number in numbers)


def with_names(piece: StatementText, of_places: str = "") -> str:
    """A statement with a name for every parameter, `:v1`, so that each part of it can be run with all of the values.

    `of_places` begins a name for each place, as in `:_p0`, which tells what was written there. A form feed, which is
    white space, keeps it from a word right behind it (`?AS a`).
    """
    parts: list[str] = []
    end = 0
    for place, (token, number) in enumerate(numbered(piece.tokens)):
        parts += (piece.text[end : token.start], f":{of_places}{place}" if of_places else f":v{number}")
        end = token.end
        if piece.text[end : end + 1].isidentifier():
            parts.append("\f")
    return "".join(parts) + piece.text[end:]
