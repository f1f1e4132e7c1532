"""The statements that programs are full of, read in one look: a plain SELECT over joined tables,
and changes without rows.

Most statements name columns of tables and little else. Which column is which can then be told from the text and the
migrations alone, and SQLite only has to agree that the statement compiles. Any other statement is not read here:
`read_simple` returns nothing, and `Schema.analyse_fully` reads the statement instead. A property holds that both say
the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from core.sql.catalog import TableInfo
from core.sql.clauses import CLAUSES, JOINS, NOT_ALIASES, OPERATORS, Clauses, Item, Reference
from core.sql.rules import MAX_PATTERN_BYTES
from core.sql.tokens import Token, simple_tokens, words

__all__ = ["SimpleColumn", "SimpleStatement", "read_simple"]


class SimpleColumn(NamedTuple):
    """A column of a result: its name, and the item of the FROM clause and the column there that it is.

    `column` is -1 for an expression.
    """

    name: str
    item: int
    column: int


class SimpleStatement(NamedTuple):
    """A statement as it was read. It is only right if SQLite compiles it.

    `takes` is the number of values to bind; `numbered` says that they are written `?1`.
    """

    takes: int
    numbered: bool
    columns: Sequence[SimpleColumn]
    clauses: Clauses


# Names in quotes, parameters with names, comments, several statements, a string without an end: the whole way is for
# those.
_ODD: Final = frozenset("\"'`[];:@$#\\{}^\x7f") | {chr(number) for number in range(32)}
_CHANGES: Final = frozenset(["INSERT", "REPLACE", "UPDATE", "DELETE"])
_NOT_PLAIN: Final = _ODD | words(
    "WITH VALUES OVER WINDOW COLLATE INDEXED MATCH REGEXP UNION EXCEPT INTERSECT HAVING FILTER RAISE TEMP RETURNING SET "
    "JSON_EACH JSON_TREE ROWID OID _ROWID_ RIGHT FULL NATURAL USING"
)
_SELECTS_PLAIN: Final = _NOT_PLAIN.isdisjoint
_CHANGES_PLAIN: Final = (_ODD | {"RETURNING"}).isdisjoint
_TAIL: Final = frozenset(["GROUP", "ORDER", "LIMIT"])
_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_STEERING: Final = CLAUSES | JOINS | {"ON", "USING"}
_NO_NAMES: Final = NOT_ALIASES | OPERATORS
_NO_CLAUSES: Final = Clauses((), (), frozenset(), True)


def read_simple(sql: str, tables: Mapping[str, TableInfo]) -> SimpleStatement | None:
    """Read a statement against the tables by their names in lower case; nothing where it is not plain."""
    if not sql.isascii() or "--" in sql or "/*" in sql or "?0" in sql or "x'" in sql or "X'" in sql:
        return None
    parts = simple_tokens(sql)
    upper = [part.upper() for part in parts]
    if ("LIKE" in upper or "GLOB" in upper) and len(max(parts, key=len)) > MAX_PATTERN_BYTES:
        return None  # perhaps too long a pattern
    first = upper[0] if upper else ""
    if first in _CHANGES:
        return SimpleStatement(*_takes(sql, parts), (), _NO_CLAUSES) if _CHANGES_PLAIN(upper) else None
    if first != "SELECT" or upper.count("SELECT") != 1 or upper.count("FROM") != 1 or not _SELECTS_PLAIN(upper):
        return None
    start = upper.index("FROM")
    reading = _Source(parts, upper, tables)
    if not reading.source(start + 1):
        return None
    columns = _columns(parts, upper, start, reading)
    if columns is None:
        return None
    return SimpleStatement(
        *_takes(sql, parts),
        columns,
        Clauses(tuple(reading.items), tuple(reading.references), frozenset(), understood=True),
    )


def _takes(sql: str, parts: Sequence[str]) -> tuple[int, bool]:
    """Return how many values a statement takes, the highest number of its parameters,
    and whether these have numbers.
    """
    highest = parts.count("?")
    if sql.count("?") == highest:
        return highest, False
    highest = 0
    numbered = False
    for part in parts:
        if part == "?":
            highest += 1
        elif part[0] == "?":
            highest = max(highest, int(part[1:]))
            numbered = True
    return highest, numbered


class _Source:
    """The FROM clause and the conditions of a SELECT, being read."""

    def __init__(self, parts: Sequence[str], upper: Sequence[str], tables: Mapping[str, TableInfo]) -> None:
        self.parts = parts
        self.upper = [*upper, "", "", ""]  # so that there is always a next one, behind a dot at the end too
        self.tables = tables
        self.items: list[Item] = []
        self.found: list[TableInfo] = []
        self.references: list[Reference] = []

    def source(self, at: int) -> bool:
        """Read the sources behind FROM, and whether all of them are plain."""
        upper = self.upper
        outer = False
        while True:
            following = self.item(at, outer)
            if following is None:
                return False
            at, outer = following, False
            joined_on = upper[at] == "ON"
            if joined_on:
                following = self.condition(at + 1, drops=not self.items[-1].outer)
                if following is None:
                    return False
                at = following
            word = upper[at]
            if (word == "," and not joined_on) or word == "JOIN":
                at += 1
            elif word in ("INNER", "CROSS") and upper[at + 1] == "JOIN":
                at += 2
            elif word == "LEFT":
                at += 2 if upper[at + 1] == "OUTER" else 1
                if upper[at] != "JOIN":
                    return False
                at, outer = at + 1, True
            elif word == "WHERE":
                following = self.condition(at + 1, drops=True)
                return following is not None and (not upper[following] or upper[following] in _TAIL)
            else:
                return not word or word in _TAIL

    def item(self, at: int, outer: bool) -> int | None:
        """Read `table AS alias`, and return where it ends."""
        upper = self.upper
        name = upper[at]
        table = self.tables.get(name.lower())
        if table is None or table.view or name in NOT_ALIASES:
            return None
        text, alias, aliased = self.parts[at], name, False
        at += 1
        if upper[at] == "AS":
            alias, aliased = upper[at + 1], True
            at += 2
            if alias[:1] not in _LETTERS or alias in NOT_ALIASES:
                return None
        elif upper[at][:1] in _LETTERS and upper[at] not in NOT_ALIASES:
            alias, aliased = upper[at], True
            at += 1
        if upper[at] in (".", "("):
            return None
        self.found.append(table)
        self.items.append(
            Item(Token("word", text, 0, name), None, name.lower(), alias.lower(), aliased, True, outer, False, 0)
        )
        return at

    def condition(self, at: int, *, drops: bool) -> int | None:
        """Read the names in a condition, and return where it ends: before a clause,
        a join or a comma of its own depth.
        """
        upper = self.upper
        depth = 0
        while word := upper[at]:
            if word[0] in _LETTERS:
                if word in _STEERING:
                    return at if not depth else None
                follows = upper[at + 1]
                if follows == ".":
                    name = upper[at + 2]
                    self.references.append(
                        Reference(word.lower(), name.lower() if name[:1] in _LETTERS else "*", True, 0, drops)
                    )
                    at += 2
                elif follows != "(" and word not in OPERATORS:
                    self.references.append(Reference(None, word.lower(), True, 0, drops))
            elif word == "(":
                depth += 1
            elif word == ")":
                depth -= 1
            elif word == "," and not depth:
                return at
            at += 1
        return at


def _columns(parts: Sequence[str], upper: Sequence[str], end: int, source: _Source) -> list[SimpleColumn] | None:
    """The columns that stand between SELECT and FROM."""
    columns: list[SimpleColumn] = []
    start = 2 if upper[1] in ("DISTINCT", "ALL") else 1
    depth = 0
    for at in range(start, end + 1):
        part = upper[at]
        if part == "(":
            depth += 1
        elif part == ")":
            depth -= 1
        elif at == end or (part == "," and not depth):
            found = _column(parts[start:at], upper[start:at], source)
            if found is None:
                return None
            columns += found
            start = at + 1
    return columns


def _column(parts: Sequence[str], upper: Sequence[str], source: _Source) -> Sequence[SimpleColumn] | None:
    """Return the meaning of one entry of the list: a column, all columns of a table,
    or an expression that has a name.
    """
    name = None
    size = len(upper)
    if size > 2 and upper[-2] == "AS":
        name = parts[-1]
        size -= 2
    elif size in (2, 4) and (size == 2 or upper[1] == ".") and upper[-1] not in _NO_NAMES:
        name = parts[-1]
        size -= 1
    if name is not None and name[0].upper() not in _LETTERS:
        return None
    if size == 1:
        qualifier, column = None, upper[0]
    elif size == 3 and upper[1] == ".":
        qualifier, column = upper[0].lower(), upper[2]
    elif name is None or size < 3 or upper[0] == "(" or (upper[1] == "." and upper[3:4] == ["."]):
        return None
    else:
        return (SimpleColumn(name, -1, -1),)
    if column == "*":
        return None if name is not None else _all(qualifier, source)
    return _one(qualifier, column.lower(), name, source)


def _one(qualifier: str | None, column: str, name: str | None, source: _Source) -> Sequence[SimpleColumn] | None:
    """The one column that a name means."""
    found: list[SimpleColumn] = []
    for number, item in enumerate(source.items):
        if qualifier is None or item.alias == qualifier:
            table = source.found[number]
            at = table.places.get(column)
            if at is not None:
                found.append(SimpleColumn(table.columns[at].name if name is None else name, number, at))
    return found if len(found) == 1 else None


def _all(qualifier: str | None, source: _Source) -> Sequence[SimpleColumn] | None:
    """All columns, of one table or of every one."""
    found = [
        SimpleColumn(column.name, number, at)
        for number, item in enumerate(source.items)
        if qualifier is None or item.alias == qualifier
        for at, column in enumerate(source.found[number].columns)
    ]
    return found or None
