"""SQLite's queries and expressions as trees, read from tokens (https://www.sqlite.org/lang_select.html,
lang_expr.html).

Only statements that SQLite has compiled are read, so nothing is judged here: a form that is not understood raises
`Unclear`, and then nothing is said about the statement's values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from core.statements.tokens import Token, numbered, words

T = TypeVar("T")


class Unclear(Exception):
    """A statement that is not understood."""


# Expressions --------------------------------------------------------------------------------------------------------


class Constant(NamedTuple):
    """A literal. `kind` is its storage class, or `null`."""

    kind: Literal["integer", "real", "text", "blob", "null"]
    text: str


class Parameter(NamedTuple):
    """A `?`, with the number of its value, from 1."""

    number: int


class Name(NamedTuple):
    """A column, in lower case; `qualifier` is the `u` of `u.id`."""

    qualifier: str | None
    name: str


class Operator(NamedTuple):
    """An operator in capitals with its operands: one or two, three for BETWEEN and LIKE with ESCAPE, any for ROW."""

    name: str
    operands: tuple[Expression, ...]


class Call(NamedTuple):
    """A function, in lower case.

    `window` says that it has OVER, `framed` that a frame or a named window goes with it.
    """

    name: str
    arguments: tuple[Expression, ...]
    filter: Expression | None = None
    window: bool = False
    framed: bool = False
    others: tuple[Expression, ...] = ()
    """Expressions of its window, and of an ORDER BY among its arguments."""


class Case(NamedTuple):
    """CASE: `base` is the expression that the WHENs are compared with, where there is one."""

    base: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


class Cast(NamedTuple):
    """CAST(operand AS type)."""

    operand: Expression
    type: str


class In(NamedTuple):
    """operand IN (items) or IN (query); neither for a table."""

    operand: Expression
    items: tuple[Expression, ...] | None
    query: Query | None


class Subquery(NamedTuple):
    """A query in the place of a value, or behind EXISTS (`exists`)."""

    query: Query
    exists: bool = False


Expression: TypeAlias = "Constant | Parameter | Name | Operator | Call | Case | Cast | In | Subquery"

# Queries ------------------------------------------------------------------------------------------------------------


class Star(NamedTuple):
    """`*`, or `u.*`."""

    qualifier: str | None


class Returned(NamedTuple):
    """An entry of a result list: its alias in lower case, and its text."""

    value: Expression | Star
    alias: str | None
    text: str


class Table(NamedTuple):
    """A table, view or WITH query of a FROM clause, in lower case; `arguments` for a function: json_each(…)."""

    name: str
    alias: str
    arguments: tuple[Expression, ...] | None


class Derived(NamedTuple):
    """A query in a FROM clause."""

    query: Query
    alias: str


JoinKind: TypeAlias = Literal["inner", "left", "right", "full"]


class Join(NamedTuple):
    """Two sources side by side. `using` holds the columns of USING, None in it stands for NATURAL."""

    left: From
    right: From
    kind: JoinKind
    on: Expression | None
    using: tuple[str | None, ...]


From: TypeAlias = "Table | Derived | Join"


Common: TypeAlias = "Mapping[str, tuple[tuple[str, ...], Query]]"
"""The queries that WITH names: their columns, and the query."""
_NO_QUERIES: Final[Common] = {}


class Core(NamedTuple):
    """One SELECT, or VALUES with its `rows`."""

    columns: tuple[Returned, ...] = ()
    source: From | None = None
    where: Expression | None = None
    group: tuple[Expression, ...] = ()
    having: Expression | None = None
    rows: tuple[tuple[Expression, ...], ...] = ()
    windows: tuple[Expression, ...] = ()


class Query(NamedTuple):
    """SELECTs with the operators between them, and the queries that WITH names: (their columns, the query)."""

    common: Common
    cores: tuple[Core, ...]
    compound: tuple[str, ...] = ()
    order: tuple[Expression, ...] = ()
    limit: tuple[Expression, ...] = ()


class Change(NamedTuple):
    """UPDATE, DELETE, and INSERT or REPLACE with its ON CONFLICT clause: columns and their values, sources, conditions.

    `action` is the word of OR IGNORE and the like. What is inserted (`inserts`) are the rows of `query`, None for
    DEFAULT VALUES, into `columns`, None for all.
    """

    table: str
    alias: str
    sets: tuple[tuple[tuple[str, ...], Expression], ...] = ()
    source: From | None = None
    where: Expression | None = None
    returning: tuple[Returned, ...] = ()
    common: Common = _NO_QUERIES
    others: tuple[Expression, ...] = ()
    action: str = ""
    inserts: bool = False
    columns: tuple[str, ...] | None = None
    query: Query | None = None


_LEAVES: Final = frozenset([Constant, Name, Parameter, Star])
"""The parts without others in them: most are such."""


def inside(whole: object, *, queries: bool = True) -> Iterator[object]:
    """A part of a statement and all parts inside it, as they are written; without `queries` not those of queries."""
    todo: list[Any] = [whole]
    while todo:
        part = todo.pop()
        if type(part) is tuple:
            todo += part[::-1]
        elif type(part) is dict:
            todo += part.values()
        elif hasattr(part, "_fields"):
            yield part
            if type(part) not in _LEAVES and (queries or type(part) is not Query):
                todo += part[::-1]


# Reading ------------------------------------------------------------------------------------------------------------

_COMPOUND: Final = words("UNION EXCEPT INTERSECT")
_NOT_ALIASES: Final = _COMPOUND | words(
    "SELECT FROM WHERE GROUP HAVING ORDER LIMIT WINDOW RETURNING SET VALUES JOIN LEFT RIGHT FULL INNER CROSS NATURAL "
    "OUTER ON USING AS INDEXED NOT DO"
)
"""The words behind a table that are no alias of it."""
_ENDS: Final = _NOT_ALIASES | words(
    "WHEN THEN ELSE AND OR IS IN LIKE BETWEEN COLLATE ISNULL NOTNULL ASC DESC FILTER OVER"
)
_COMPARED: Final = "= == <> != IS IN LIKE GLOB MATCH REGEXP BETWEEN ISNULL NOTNULL NOT"
_LEVELS: Final = ("OR", "AND", "", _COMPARED, "< <= > >=", "& | << >>", "+ -", "* / %", "|| -> ->>")
"""The operators between two operands, from those that bind least; in the empty place stands NOT before one."""
_NEGATION, _COMPARISON, _OPERANDS = 2, 3, 4
_BINDS: Final = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}
_UNARY: Final = words("- + ~")
_OUTER: Final[Mapping[str, JoinKind]] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}
_VALUES: Final = words("NULL TRUE FALSE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CASE CAST NOT EXISTS")
"""The keywords that a value may begin with."""


def read_statement(text: str, tokens: Sequence[Token]) -> Query | Change:
    """Read one statement. Raises `Unclear` for a form that is not understood."""
    reader = _Reader(text, tokens)
    try:
        statement = reader.statement()
    except (IndexError, RecursionError):
        raise Unclear from None
    if not reader.at_end:
        raise Unclear
    return statement


class _Reader:
    """A reading of tokens from left to right."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.marks: list[str] = [token.word or token.text for token in tokens]
        self.marks.append("")
        self.at = 0
        self.numbers: dict[int, int] = {token.start: number for token, number in numbered(tokens)}

    # -- the tokens

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.tokens)

    @property
    def mark(self) -> str:
        return self.marks[self.at]

    def skip(self, first: str, *others: str) -> bool:
        """Go past the words given, if they come next."""
        if self.marks[self.at] != first:
            return False  # so it is for most: every operator is asked for in turn
        end = self.at + 1 + len(others)
        if others and self.marks[self.at + 1 : end] != [*others]:
            return False
        self.at = end
        return True

    def expect(self, *expected: str) -> None:
        if not self.skip(*expected):
            raise Unclear

    def identifier(self) -> str:
        """The name that comes next, in lower case."""
        token = self.tokens[self.at]
        if token.kind == "word":
            self.at += 1
            return token.text.lower()
        name = token.text[1:-1] if token.kind == "string" else token.name
        if name is None:
            raise Unclear
        self.at += 1
        return name.lower()

    def several(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Things with commas between them."""
        found = [read()]
        while self.skip(","):
            found.append(read())
        return tuple(found)

    def enclosed(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Things with commas between them, from behind a parenthesis to the other one."""
        found = () if self.mark == ")" else self.several(read)
        self.expect(")")
        return found

    # -- statements

    def statement(self) -> Query | Change:
        common = self.common()
        if self.mark in ("SELECT", "VALUES"):
            return self.query(common)
        if self.mark in ("INSERT", "REPLACE"):
            return self.insert(common)
        if self.mark == "UPDATE":
            return self.update(common)
        self.expect("DELETE", "FROM")
        table, alias = self.target()
        where = self.expression() if self.skip("WHERE") else None
        returning = self.returning()
        others = self.tail()
        return Change(table, alias, where=where, returning=returning, common=common, others=others)

    def target(self) -> tuple[str, str]:
        """The table that is changed, and its alias."""
        table = self.identifier()
        if self.skip("."):
            table = self.identifier()
        alias = self.identifier() if self.skip("AS") else table
        self.skip_index()
        return table, alias

    def skip_index(self) -> None:
        if self.skip("INDEXED", "BY"):
            self.at += 1
        self.skip("NOT", "INDEXED")

    def action(self) -> str:
        if not self.skip("OR"):
            return ""
        self.at += 1
        return self.marks[self.at - 1]

    def insert(self, common: Common) -> Change:
        word = self.mark
        self.at += 1
        action = self.action() if word == "INSERT" else "REPLACE"
        self.expect("INTO")
        table, alias = self.target()
        columns = self.enclosed(self.identifier) if self.skip("(") else None
        query = None if self.skip("DEFAULT", "VALUES") else self.query(self.common())
        sets: list[tuple[tuple[str, ...], Expression]] = []
        others: list[Expression] = []
        while self.skip("ON", "CONFLICT"):
            if self.skip("("):
                others += self.enclosed(self.ordered)
                if self.skip("WHERE"):
                    others.append(self.expression())
            self.expect("DO")
            if not self.skip("NOTHING"):
                self.expect("UPDATE", "SET")
                sets += self.several(self.assignment)
                if self.skip("WHERE"):
                    others.append(self.expression())
        returning = self.returning()
        known = (tuple(sets), None, None, returning, common, tuple(others), action, True, columns, query)
        return Change(table, alias, *known)

    def update(self, common: Common) -> Change:
        self.expect("UPDATE")
        action = self.action()
        table, alias = self.target()
        self.expect("SET")
        sets = self.several(self.assignment)
        source = self.source() if self.skip("FROM") else None
        where = self.expression() if self.skip("WHERE") else None
        returning = self.returning()
        return Change(table, alias, sets, source, where, returning, common, self.tail(), action)

    def assignment(self) -> tuple[tuple[str, ...], Expression]:
        names = self.enclosed(self.identifier) if self.skip("(") else (self.identifier(),)
        self.expect("=")
        return names, self.expression()

    def returning(self) -> tuple[Returned, ...]:
        return self.several(self.returned) if self.skip("RETURNING") else ()

    def tail(self) -> tuple[Expression, ...]:
        """ORDER BY and LIMIT: their expressions."""
        order = self.order()
        return (*order, *self.limit())

    # -- queries

    def common(self) -> Common:
        found: dict[str, tuple[tuple[str, ...], Query]] = {}
        if not self.skip("WITH"):
            return found
        self.skip("RECURSIVE")
        while True:
            name = self.identifier()
            columns = self.enclosed(self.identifier) if self.skip("(") else ()
            self.expect("AS")
            self.skip("NOT")
            self.skip("MATERIALIZED")
            self.expect("(")
            found[name] = columns, self.query(self.common())
            self.expect(")")
            if not self.skip(","):
                return found

    def nested(self) -> Query | None:
        """The query behind a parenthesis, to its other one; None where no query begins there."""
        if self.mark not in ("SELECT", "WITH", "VALUES"):
            return None
        query = self.query(self.common())
        self.expect(")")
        return query

    def query(self, common: Common) -> Query:
        cores = [self.core()]
        compound: list[str] = []
        while self.mark in _COMPOUND:
            compound.append(self.mark)
            self.at += 1
            self.skip("ALL")
            cores.append(self.core())
        order = self.order()
        return Query(common, tuple(cores), tuple(compound), order, self.limit())

    def core(self) -> Core:
        if self.skip("VALUES"):
            return Core(rows=self.several(self.row))
        self.expect("SELECT")
        _ = self.skip("DISTINCT") or self.skip("ALL")
        columns = self.several(self.returned)
        source = self.source() if self.skip("FROM") else None
        where = self.expression() if self.skip("WHERE") else None
        group = self.several(self.expression) if self.skip("GROUP", "BY") else ()
        having = self.expression() if self.skip("HAVING") else None
        named = self.several(self.named_window) if self.skip("WINDOW") else ()
        windows = tuple(one for others, _ in named for one in others)
        return Core(columns, source, where, group, having, windows=windows)

    def row(self) -> tuple[Expression, ...]:
        self.expect("(")
        return self.enclosed(self.expression)

    def returned(self) -> Returned:
        begin = self.tokens[self.at]
        if self.skip("*"):
            return Returned(Star(None), None, "*")
        if self.marks[self.at + 1 : self.at + 3] == [".", "*"]:
            qualifier = self.identifier()
            self.at += 2
            return Returned(Star(qualifier), None, "*")
        value = self.expression()
        text = self.text[begin.start : self.tokens[self.at - 1].end]
        if not self.skip("AS") and (self.at_end or not self._is_alias()):
            return Returned(value, None, text)
        return Returned(value, self.identifier(), text)

    def _is_alias(self) -> bool:
        token = self.tokens[self.at]
        return token.kind in ("quoted", "string") or (token.kind == "word" and token.word not in _ENDS)

    def order(self) -> tuple[Expression, ...]:
        return self.several(self.ordered) if self.skip("ORDER", "BY") else ()

    def ordered(self) -> Expression:
        value = self.expression()
        _ = self.skip("ASC") or self.skip("DESC")
        _ = self.skip("NULLS", "FIRST") or self.skip("NULLS", "LAST")
        return value

    def limit(self) -> tuple[Expression, ...]:
        if not self.skip("LIMIT"):
            return ()
        first = self.expression()
        return (first, self.expression()) if self.skip("OFFSET") or self.skip(",") else (first,)

    # -- sources

    def source(self) -> From:
        left = self.item()
        while True:
            kind: JoinKind = "inner"
            natural = False
            if not self.skip(","):
                natural = self.skip("NATURAL")
                kind = _OUTER.get(self.mark, "inner")
                if kind != "inner":
                    self.at += 1
                    self.skip("OUTER")
                else:
                    _ = self.skip("INNER") or self.skip("CROSS")
                if not self.skip("JOIN"):
                    if natural or kind != "inner":
                        raise Unclear
                    return left
            right = self.item()
            on = self.expression() if self.skip("ON") else None
            using: tuple[str | None, ...] = (None,) if natural else ()
            if self.skip("USING", "("):
                using = self.enclosed(self.identifier)
            left = Join(left, right, kind, on, using)

    def item(self) -> From:
        if self.skip("("):
            if (query := self.nested()) is not None:
                return Derived(query, self.alias(""))
            inner = self.source()
            self.expect(")")
            if self.alias(""):
                raise Unclear
            return inner
        name = self.identifier()
        if self.skip("."):
            name = self.identifier()
        arguments = self.enclosed(self.expression) if self.skip("(") else None
        alias = self.alias(name)
        self.skip_index()
        return Table(name, alias, arguments)

    def alias(self, otherwise: str) -> str:
        if self.skip("AS"):
            return self.identifier()
        if not self.at_end and self.tokens[self.at].name is not None and self.tokens[self.at].word not in _NOT_ALIASES:
            return self.identifier()
        return otherwise

    # -- expressions, from the operators that bind least

    def expression(self) -> Expression:
        return self.binary(0)

    def binary(self, level: int) -> Expression:
        """Operands of operators that bind as those of a level do, or more."""
        if level <= _NEGATION and self.marks[self.at] == "NOT" and self.marks[self.at + 1] != "EXISTS":
            self.at += 1
            left: Expression = Operator("NOT", (self.binary(_NEGATION),))
        else:
            left = self.unary()
        while (binds := _BINDS.get(self.marks[self.at], -1)) >= level:
            if binds == _COMPARISON:
                left = self.compared(left)
            else:
                word = self.marks[self.at]
                self.at += 1
                left = Operator(word, (left, self.binary(binds + 1)))
        return left

    def compared(self, left: Expression) -> Expression:
        if self.skip("ISNULL") or self.skip("NOTNULL") or self.skip("NOT", "NULL"):
            return Operator("ISNULL", (left,))
        if self.skip("IS"):
            self.skip("NOT")
            self.skip("DISTINCT", "FROM")
            return Operator("IS", (left, self.binary(_OPERANDS)))
        negated = self.skip("NOT")
        word = self.mark
        self.at += 1
        match word:
            case "IN":
                return self.inside(left)
            case "BETWEEN":
                low = self.binary(_OPERANDS)
                self.expect("AND")
                return Operator("BETWEEN", (left, low, self.binary(_OPERANDS)))
            case "LIKE" | "GLOB" | "MATCH" | "REGEXP":
                operands = (left, self.binary(_OPERANDS))
                return Operator(word, (*operands, self.binary(_OPERANDS)) if self.skip("ESCAPE") else operands)
            case "=" | "==" | "<>" | "!=" if not negated:
                return Operator("=", (left, self.binary(_OPERANDS)))
            case _:
                raise Unclear

    def inside(self, left: Expression) -> Expression:
        if not self.skip("("):
            self.item()
            return In(left, None, None)
        if (query := self.nested()) is not None:
            return In(left, None, query)
        return In(left, self.enclosed(self.expression), None)

    def unary(self) -> Expression:
        if self.marks[self.at] in _UNARY:
            word = self.marks[self.at]
            self.at += 1
            return Operator(word, (self.unary(),))
        value = self.primary()
        while self.marks[self.at] == "COLLATE":
            self.at += 2
        return value

    def primary(self) -> Expression:
        token = self.tokens[self.at]
        match token.kind:
            case "number":
                self.at += 1
                hexadecimal = token.text[:2].lower() == "0x"
                real = not hexadecimal and any(mark in token.text for mark in ".eE")
                return Constant("real" if real else "integer", token.text)
            case "string":
                self.at += 1
                return Constant("text" if token.text[0] == "'" else "blob", token.text)
            case "parameter":
                self.at += 1
                return Parameter(self.numbers[token.start])
            case _:
                pass
        if token.text == "(":
            return self.parentheses()
        if token.kind == "word":
            if token.word in _VALUES and (known := self.keyword(token.word)) is not None:
                return known
            if self.marks[self.at + 1] == "(":
                return self.call()
        elif self.marks[self.at + 1] == "(" and token.kind == "quoted":
            return self.call()
        return self.named()

    def named(self) -> Name:
        """A column, with its qualifier."""
        name = self.identifier()
        qualifier: str | None = None
        while self.marks[self.at] == ".":
            self.at += 1
            qualifier, name = name, self.identifier()
        return Name(qualifier, name)

    def keyword(self, word: str) -> Expression | None:
        """The kind of value that a keyword begins; None for any other keyword."""
        after = self.marks[self.at + 1]
        if after == ".":
            return None
        self.at += 1
        match word:
            case "NULL":
                return Constant("null", word)
            case "TRUE" | "FALSE":
                return Constant("integer", word)
            case "CURRENT_DATE" | "CURRENT_TIME" | "CURRENT_TIMESTAMP":
                return Constant("text", word)
            case "CASE":
                return self.case()
            case "CAST" if after == "(":
                self.at += 1
                operand = self.expression()
                self.expect("AS")
                begin = self.at
                while self.mark not in ("(", ")"):
                    self.at += 1
                if self.skip("("):
                    self.enclosed(self.expression)
                declared = " ".join(self.marks[begin : self.at])
                self.expect(")")
                return Cast(operand, declared)
            case "NOT" | "EXISTS":
                if word == "NOT":
                    self.expect("EXISTS")
                self.expect("(")
                query = self.query(self.common())
                self.expect(")")
                return Subquery(query, exists=True)
            case _:
                self.at -= 1
                return None

    def case(self) -> Expression:
        base = None if self.mark == "WHEN" else self.expression()
        branches: list[tuple[Expression, Expression]] = []
        while self.skip("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.skip("ELSE") else None
        self.expect("END")
        return Case(base, tuple(branches), otherwise)

    def parentheses(self) -> Expression:
        self.expect("(")
        if (query := self.nested()) is not None:
            return Subquery(query)
        items = self.enclosed(self.expression)
        return items[0] if len(items) == 1 else Operator("ROW", items)

    def call(self) -> Expression:
        name = self.identifier()
        self.expect("(")
        others: list[Expression] = []
        arguments: tuple[Expression, ...] = ()
        if not self.skip("*") and self.mark != ")":
            _ = self.skip("DISTINCT") or self.skip("ALL")
            arguments = self.several(self.expression)
            others += self.order()
        self.expect(")")
        condition: Expression | None = None
        if self.skip("FILTER", "(", "WHERE"):
            condition = self.expression()
            self.expect(")")
        window = framed = self.skip("OVER")
        if window and self.mark == "(":
            found, framed = self.window()
            others += found
        elif window:
            self.identifier()
        return Call(name, arguments, condition, window, framed, tuple(others))

    def named_window(self) -> tuple[tuple[Expression, ...], bool]:
        self.identifier()
        self.expect("AS")
        return self.window()

    def window(self) -> tuple[tuple[Expression, ...], bool]:
        """The expressions of a window, and whether it has a frame or builds on another window."""
        self.expect("(")
        builds = self.mark not in ("PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS", ")")
        if builds:
            self.identifier()
        parts = self.several(self.expression) if self.skip("PARTITION", "BY") else ()
        others = (*parts, *self.order())
        framed = builds or self.mark != ")"
        while not self.skip(")"):
            if self.mark == "(":
                raise Unclear
            self.at += 1
        return others, framed
