"""The tables in a statement's FROM clauses, and the names in its conditions.

A clause that is not understood is left out rather than guessed. The schema is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import attrs

from core.sql.tokens import Token, words

__all__ = [
    "CLAUSES",
    "Clauses",
    "Item",
    "JOINS",
    "NOT_ALIASES",
    "OPERATORS",
    "Reference",
    "clauses_of",
    "common_tables_of",
]


class Item(NamedTuple):
    """A table or view, named in a FROM clause. `name` is its name in lower case, without quotes.

    `top` says that it stands in the outermost SELECT itself; `outer` that its row may be missing there, being on the
    optional side of an outer join, and `enclosed` that it is so with all that is in its parentheses. `scope` is a
    number for those parentheses.
    """

    table: Token
    schema: Token | None
    name: str
    alias: str
    aliased: bool
    top: bool
    outer: bool
    enclosed: bool
    scope: int

    @property
    def start(self) -> int:
        """The start of its name, with the schema's."""
        return (self.schema or self.table).start


class Reference(NamedTuple):
    """A name in a condition: in WHERE, HAVING or ON. `qualifier` is the `u` of `u.id`.

    `drops` is False in the ON of an outer join, which by itself drops no row.
    """

    qualifier: str | None
    name: str
    top: bool
    scope: int
    drops: bool


class Clauses(NamedTuple):
    """The FROM clauses and conditions of a SELECT, as far as text shows them.

    `understood` is False where they were too unusual to say anything about missing rows. `compound` holds the UNION,
    EXCEPT and INTERSECT of the outermost statement.
    """

    items: tuple[Item, ...]
    references: tuple[Reference, ...]
    compound: frozenset[str]
    understood: bool


CLAUSES: Final = frozenset(
    [
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "WINDOW",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "RETURNING",
        "SET",
        "VALUES",
    ]
)
JOINS: Final = frozenset(["JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "OUTER"])
NOT_ALIASES: Final = CLAUSES | JOINS | {"ON", "USING", "AS", "INDEXED", "NOT", "DO"}
_CONDITIONS: Final = frozenset(["WHERE", "HAVING", "ON", "USING"])
_STEERING: Final = CLAUSES | JOINS | {"ON", "USING"}
_MARKS: Final = frozenset("(),")
_NAMES: Final = frozenset(["word", "quoted"])


@attrs.define
class _Level:
    """One pair of parentheses, or the text outside all: which clause the reading is in."""

    clause: str = ""
    expects: bool = False  # a table or a parenthesis comes next
    drops: bool = True  # whether the join being read drops rows that its condition does not fit
    top: bool = False
    outer: bool = False  # all within is on the optional side of an outer join
    condition: bool = False  # within a condition of a level above
    scope: int = 0


# One function: one reading from left to right, whose branches all change the same few variables.
def clauses_of(tokens: Sequence[Token]) -> Clauses:
    """Read the FROM clauses and conditions of a statement."""
    items: list[Item] = []
    references: list[Reference] = []
    compound: set[str] = set()
    understood = True
    levels = [_Level(top=True)]
    join_outer = False
    index = scopes = 0
    while index < len(tokens):
        token = tokens[index]
        word = token.word
        level = levels[-1]
        if (
            word not in _STEERING
            and token.text not in _MARKS
            and (not (level.condition or level.expects or level.clause in _CONDITIONS) or token.kind not in _NAMES)
        ):
            index += 1  # most of a statement: nothing that steers, and no name that is asked for
            continue
        if token.text == "(":
            inner = _Level(condition=level.condition or level.clause in _CONDITIONS, drops=level.drops)
            follows = tokens[index + 1].word if index + 1 < len(tokens) else ""
            subquery = follows in ("SELECT", "WITH", "VALUES")
            inner.top = level.top and not subquery
            scopes += subquery
            inner.scope = scopes if subquery else level.scope
            if level.clause == "FROM" and level.expects:
                inner.outer = level.outer or join_outer
                if not subquery:
                    # Parentheses around a join. Their own rules for missing rows are more than is read here.
                    inner.clause, inner.expects, understood = "FROM", True, False
                level.expects = join_outer = False
            levels.append(inner)
        elif token.text == ")":
            if len(levels) > 1:
                levels.pop()
        elif word in CLAUSES and not _is_name(tokens, index):
            level.clause, level.drops = word, True
            level.expects = word == "FROM"
            join_outer = False
            if len(levels) == 1 and word in ("UNION", "EXCEPT", "INTERSECT"):
                compound.add(word)
                # Another SELECT follows: the first one alone gives the names and the types.
                level.top = False
        elif level.clause in ("FROM", "ON", "USING") and (word in JOINS or token.text == ","):
            if token.text == ",":
                if level.clause == "FROM":
                    level.expects, join_outer = True, False
            elif word == "JOIN":
                level.clause, level.expects, level.drops = "FROM", True, not join_outer
            elif word == "LEFT":
                level.clause, join_outer = "FROM", True
            elif word == "FULL":
                level.clause, join_outer = "FROM", True
                items = [item._replace(outer=item.outer or item.top == level.top) for item in items]
            elif word == "RIGHT":
                level.clause, join_outer, understood = "FROM", True, False
            elif word == "NATURAL":
                level.clause, join_outer, understood = "FROM", False, False
            elif word in ("INNER", "CROSS"):
                level.clause, join_outer = "FROM", False
        elif level.clause == "FROM" and word in ("ON", "USING"):
            level.clause = word
        elif level.clause == "FROM" and level.expects and token.name is not None:
            index = _read_item(tokens, index, level, join_outer, items)
            level.expects = join_outer = False
            continue
        elif token.name is not None and (level.condition or level.clause in _CONDITIONS):
            drops = level.drops
            follows = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if follows == "." and index + 2 < len(tokens):
                references.append(
                    Reference(
                        token.name.lower(), (tokens[index + 2].name or "*").lower(), level.top, level.scope, drops
                    )
                )
                index += 2
            elif follows != "(" and (token.kind == "quoted" or word not in OPERATORS):
                references.append(Reference(None, token.name.lower(), level.top, level.scope, drops))
        index += 1
    return Clauses(tuple(items), tuple(references), frozenset(compound), understood)


OPERATORS: Final = words(
    "AND OR NOT IS NULL IN LIKE GLOB MATCH REGEXP BETWEEN ESCAPE COLLATE NOCASE CASE WHEN THEN ELSE END EXISTS "
    "ISNULL NOTNULL DISTINCT FROM TRUE FALSE CAST AS"
)


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    """Return True if a keyword begins no clause: it stands beside a dot, or is a part of an operator."""
    if index and (tokens[index - 1].text == "." or tokens[index - 1].word == "DISTINCT"):
        return True  # `IS DISTINCT FROM` is an operator
    return index + 1 < len(tokens) and tokens[index + 1].text == "."


def _read_item(tokens: Sequence[Token], index: int, level: _Level, join_outer: bool, items: list[Item]) -> int:
    """Read `schema.table AS alias`, append it, and return the index behind it."""
    schema: Token | None = None
    table = tokens[index]
    index += 1
    if index + 1 < len(tokens) and tokens[index].text == "." and tokens[index + 1].name is not None:
        schema, table = table, tokens[index + 1]
        index += 2
    if index < len(tokens) and tokens[index].text == "(":
        return index  # a table-valued function: json_each(…)
    alias, aliased = table.name or "", False
    if index < len(tokens) and tokens[index].word == "AS" and index + 1 < len(tokens):
        alias, aliased = tokens[index + 1].name or alias, True
        index += 2
    elif index < len(tokens) and tokens[index].name is not None and tokens[index].word not in NOT_ALIASES:
        alias, aliased = tokens[index].name or alias, True
        index += 1
    items.append(
        Item(
            table,
            schema,
            (table.name or "").lower(),
            alias.lower(),
            aliased,
            level.top,
            level.outer or join_outer,
            level.outer and not join_outer,
            level.scope,
        )
    )
    return index


def common_tables_of(tokens: Sequence[Token]) -> frozenset[str]:
    """The names, in lower case, that WITH gives to queries."""
    names: set[str] = set()
    if not any(token.word == "WITH" for token in tokens):
        return frozenset()
    for index, token in enumerate(tokens):
        if token.word != "AS":
            continue
        after = index + 1
        while after < len(tokens) and tokens[after].word in ("NOT", "MATERIALIZED"):
            after += 1
        if after >= len(tokens) or tokens[after].text != "(":
            continue
        before = index - 1
        if before > 0 and tokens[before].text == ")":  # the names of its columns
            while before > 0 and tokens[before].text != "(":
                before -= 1
            before -= 1
        name = tokens[before].name if before >= 0 else None
        if name is not None:
            names.add(name.lower())
    return frozenset(names)
