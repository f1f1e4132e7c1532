"""The values of a statement: the storage class of each column of its rows, when it is NULL, and the columns beside its
parameters.

Follows https://www.sqlite.org/lang_select.html and lang_expr.html. Three answers are possible about NULL: it is proven
that a value never is, it is known why it can be, or neither; then nothing is said. A column that any condition names
counts as not known, since the condition may be there to leave its NULLs out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from core.sql.catalog import TableColumn, TableInfo, affinity
from core.sql.functions import AGGREGATES, FUNCTIONS, OPERATORS, WINDOWS, Rule, storages
from core.sql.messages import left_out
from core.sql.statement import ANY, Column, Slot, SqlProblem, Statement, Storage
from core.sql.syntax import (
    Call,
    Case,
    Cast,
    Change,
    Common,
    Constant,
    Core,
    Derived,
    Expression,
    From,
    In,
    Join,
    Name,
    Operator,
    Parameter,
    Query,
    Returned,
    Star,
    Subquery,
    Table,
    Unclear,
    inside,
    read_statement,
)
from core.statements.tokens import StatementText, Token, statements_of, text_of, words

NO_ROW: Final = "is NULL where no row is found"
_MISSING: Final = "is NULL where the outer join"
_NUMBERS: Final[frozenset[Storage]] = frozenset(["integer", "real"])
_INTEGER: Final[frozenset[Storage]] = frozenset(["integer"])
_REAL: Final[frozenset[Storage]] = frozenset(["real"])
_ROWIDS: Final = words("rowid oid _rowid_")
_JSON: Final = {
    "key": "?",
    "value": "?",
    "type": "t",
    "atom": "?",
    "id": "i",
    "parent": "i",
    "fullkey": "t",
    "path": "t",
}
"""The columns of json_each and json_tree, and the letters of their storage."""
_JSON_FULL: Final = words("type id fullkey path")
"""Those that are never NULL."""


_UNKNOWN: Final = Column(ANY)
_CONSTANTS: Final[Mapping[str, Column]] = {
    "null": Column(frozenset(), "stands in the result", "NULL"),
    "integer": Column(_INTEGER, never=True),
    "real": Column(_REAL, never=True),
    "text": Column(frozenset(["text"]), never=True),
    "blob": Column(frozenset(["blob"]), never=True),
}
"""The values of literals, by their kinds."""
_CHOICES: Final = words("OR CASE IIF IF")


def values_of(read: Query | Change | None, part: StatementText, tables: Mapping[str, TableInfo]) -> Statement:
    """Return what the values of a statement that SQLite compiles tell of it; nothing where it is not understood."""
    if read is None:
        return Statement()
    try:
        evaluation = _Evaluation(tables, part.tokens, read)
        columns, certain = evaluation.statement(read)
    except (Unclear, RecursionError):
        return Statement()
    places = {token.text: token.start for token in reversed(part.tokens)} | {"": part.tokens[0].start}
    problems = tuple(SqlProblem(message, part.start + places[text]) for text, message in evaluation.mistakes)
    if certain and any(token.word == "NOTHING" for token in part.tokens):
        certain = False
    return Statement(problems, columns=columns, slots=tuple(evaluation.slots), certain=certain)


# Names in conditions -------------------------------------------------------------------------------------------------


class _Names:
    """Names in conditions: all, those without a qualifier, and those that may drop rows, as no ON of an outer join."""

    def __init__(self, named: Sequence[tuple[Name, bool]]) -> None:
        self.all: set[str] = {name.name for name, _ in named}
        self.bare: set[str] = {name.name for name, _ in named if name.qualifier is None}
        self.dropping: set[tuple[str | None, str]] = {(name.qualifier, name.name) for name, drops in named if drops}


def _conditioned_names(statement: Query | Change) -> Iterator[tuple[Name, bool, bool]]:
    """The names in the conditions of a statement, those of its queries, of CASE, of iif() and of FILTER among them.

    With each is said whether its condition may drop rows, and whether it is one of WHERE, HAVING or ON.
    """
    for part in inside(statement):
        found: object = None
        drops = filters = True
        match part:
            case Core(where=where, having=having):
                found = where, having
            case Change(where=where):
                found = where
            case Join(on=on, kind=kind, using=using):
                found, drops = (on, *(Name(None, name) for name in using if name is not None)), kind == "inner"
            case Case(base=base, branches=branches):
                found, filters = (base, *(condition for condition, _ in branches)), False
            case Call(name="iif" | "if", arguments=[condition, *_]) | Call(filter=condition):
                found, filters = condition, False
            case _:
                pass
        yield from ((name, drops, filters) for name in _names_in(found))


def _names_in(whole: object) -> Iterator[Name]:
    """The names in expressions, those of queries in them too."""
    return (part for part in inside(whole) if isinstance(part, Name))


def _aggregates(expression: Expression | Star) -> bool:
    """True if an expression has an aggregate in it: then a SELECT without GROUP BY gives one row."""
    calls = (part for part in inside(expression, queries=False) if isinstance(part, Call))
    return any(not call.window and _is_aggregate(call) for call in calls)


def _is_aggregate(call: Call) -> bool:
    return call.name in AGGREGATES and (call.name not in ("min", "max") or len(call.arguments) == 1 or call.window)


# Meanings of names ---------------------------------------------------------------------------------------------------


@attrs.define
class _Entry:
    """A source of a FROM clause: its columns by name.

    `missing` says why it may have no row; `hidden` columns are not in `*`.
    """

    alias: str
    columns: Mapping[str, Column]
    table: TableInfo | None = None
    missing: str = ""
    hidden: frozenset[str] = frozenset()
    inner: bool = False
    """It is a query, whose outer joins a condition outside may narrow."""


@attrs.define
class _Scope:
    """The sources that a name may be of, with those around. `empty`: all are without a row where no row is found."""

    entries: list[_Entry] = attrs.field(factory=lambda: list[_Entry]())
    parent: _Scope | None = None
    empty: bool = False
    merged: set[str] = attrs.field(factory=lambda: set[str]())
    """The columns that USING and NATURAL make one of two."""


def _either(values: Sequence[Column]) -> Column:
    """A value that is one of several."""
    first = values[0]
    if all(value == first for value in values[1:]):
        return first
    reason = next((value for value in values if value.null), _UNKNOWN)
    found = Column(_storages(values), reason.null, reason.about, all(value.never for value in values))
    if not first.join or any(value.join != first.join for value in values):
        return found
    own = next((value.own for value in values if value.own), "")
    return found._replace(join=first.join, own=own, full=all(value.full for value in values))


class _Evaluation:
    """One statement, being read."""

    def __init__(self, tables: Mapping[str, TableInfo], tokens: Sequence[Token], read: Query | Change) -> None:
        self.tables = tables
        used = {token.word for token in tokens}
        # Texts that are written otherwise may be equal then.
        self.collates = "COLLATE" in used
        # `? = '' OR state = ?` asks for any state where the text is none of them.
        self.chooses = not used.isdisjoint(_CHOICES)
        named = [*_conditioned_names(read)]
        self.filters = _Names([(name, drops) for name, drops, filters in named if filters])
        self.everywhere = _Names([(name, drops) for name, drops, _ in named])
        self.slots: dict[Slot, None] = {}
        self.mistakes: dict[tuple[str, str], None] = {}
        """Messages, each with the literal that it is about, or ""."""
        self.action = ""
        self.common: list[Mapping[str, list[tuple[str, Column]]]] = []

    # -- statements

    def statement(self, statement: Query | Change) -> tuple[tuple[Column, ...], bool]:
        """The columns of the rows, and whether there is one for certain."""
        if isinstance(statement, Query):
            return tuple(value for _, value in self.query(statement, None)), _gives_row(statement)
        return self.change(statement)

    def change(self, change: Change) -> tuple[tuple[Column, ...], bool]:
        table = self.tables.get(change.table)
        if table is None or table.view:
            raise Unclear
        self.define(change.common, None)
        self.action = change.action
        written = {name for names, _ in change.sets for name in names}
        if change.inserts:
            # Of an INSERT that lists no columns, all that are not generated.
            every = [name for name, column in table.named.items() if not column.generated]
            given: Sequence[str] = () if change.query is None else change.columns or every
            self.insert(change.query, table, given)
            written |= {*given, *(column.name.lower() for column in table.columns if column.has_default)}
        entry = self.entry(Table(change.table, change.alias, None), None)
        scope = _Scope([entry])
        if change.inserts:
            scope.entries.append(attrs.evolve(entry, alias="excluded", hidden=frozenset(entry.columns)))
        if change.source is not None:
            self.source(change.source, scope)
        for names, value in change.sets:
            self.evaluate(value, scope)
            parts = value.operands if isinstance(value, Operator) and value.name == "ROW" else (value,)
            for name, part in zip(names, parts, strict=False):
                self.store(table, name, part)
        for condition in (change.where, *change.others):
            if condition is not None:
                self.evaluate(condition, scope)
        returned: tuple[Column, ...] = ()
        if change.returning:
            # A value that was just written is not NULL because the column can be: only where it was left out.
            entry.columns = {
                name: value if name not in written else value._replace(allowed=()) if value.never else _unsaid(value)
                for name, value in entry.columns.items()
            }
            returned = tuple(value for _, value in self.listed(change.returning, _Scope([entry])))
        written_out = change.inserts and (change.query is None or any(core.rows for core in change.query.cores))
        certain = written_out and change.where is None and change.action != "IGNORE"
        return returned, certain

    def insert(self, query: Query | None, table: TableInfo, columns: Sequence[str]) -> None:
        """Read the values inserted in `columns`, and note the columns that must not be left out."""
        if query is not None and len(query.cores) == 1 and query.cores[0].rows:
            for row in query.cores[0].rows:
                for name, value in zip(columns, row, strict=False):
                    self.evaluate(value, _Scope())
                    self.store(table, name, value)
        elif query is not None:
            self.query(query, None)
            if len(query.cores) == 1:
                for name, listed in zip(columns, query.cores[0].columns, strict=False):
                    if isinstance(listed.value, Star):
                        break
                    if isinstance(listed.value, Parameter | Constant):
                        self.store(table, name, listed.value)
        if self.action == "IGNORE" or table.guarded:
            return
        for name, column in table.named.items():
            if column.required and name not in columns:
                why = "is NOT NULL and has no default, but the INSERT leaves it out. Give it a value"
                self.mistakes["", f"{table.name}.{column.name} {why}"] = None

    def store(self, table: TableInfo, name: str, value: Expression) -> None:
        """Note that a value is stored in a column, and that it is NULL where it must not be."""
        column = table.column(name)
        if column is None:
            return
        shown = f"{table.name}.{column.name}"
        full = column.filled and not column.key and not table.guarded and self.action != "IGNORE"
        if column.has_default and self.action == "REPLACE":
            full = False  # it takes the default then
        if isinstance(value, Parameter):
            exact = column.strict or column.key
            self.slots[Slot(value.number, "store", shown, column.storage, full, exact, self.allowed(column))] = None
        self.judge(shown, column, [value])
        if full and _is_null(value):
            self.mistakes["", f"{shown} is NOT NULL, but NULL is written into it. Write a value"] = None

    # -- queries

    def define(self, common: Common, scope: _Scope | None) -> None:
        known: dict[str, list[tuple[str, Column]]] = {}
        self.common.append(known)
        for name, (columns, query) in common.items():
            sources = inside(tuple(core.source for core in query.cores[1:]))
            if not any(isinstance(part, Table) and part.name == name for part in sources):
                known[name] = _renamed(self.query(query, scope), columns)
                continue
            before = self.query(query._replace(cores=query.cores[:1], compound=(), order=(), limit=()), scope)
            known[name] = _renamed(before, columns)
            for _ in range(3):
                before, known[name] = known[name], _renamed(self.query(query, scope), columns)
                if before == known[name]:
                    break
            else:
                known[name] = [(column, _UNKNOWN) for column, _ in known[name]]

    def query(self, query: Query, parent: _Scope | None) -> list[tuple[str, Column]]:
        """The columns of a query: the name and the value of each."""
        depth = len(self.common)
        if query.common:
            self.define(query.common, parent)
        parts: list[list[tuple[str, Column]]] = []
        for core in query.cores:
            columns, scope = self.core(core, parent)
            parts.append(columns)
            if len(query.cores) == 1:
                for one in query.order:
                    self.evaluate(one, scope)
        for one in query.limit:
            if isinstance(one, Parameter):
                self.slots[Slot(one.number, "limit", "LIMIT", _INTEGER, True, True)] = None
        del self.common[depth:]
        if len({len(part) for part in parts}) != 1:
            raise Unclear
        if len(parts) == 1:
            return parts[0]
        result: list[tuple[str, Column]] = []
        for rows in zip(*parts, strict=True):
            name = rows[0][0]
            arms = tuple(value for _, value in rows)
            value = _either(arms)._replace(text="", arms=arms)
            if set(query.compound) & {"EXCEPT", "INTERSECT"}:
                value = _unsaid(rows[0][1])
            result.append((name, value))
        return result

    def core(self, core: Core, parent: _Scope | None) -> tuple[list[tuple[str, Column]], _Scope]:
        scope = _Scope(parent=parent)
        if core.rows:
            rows = [[self.evaluate(value, scope) for value in row] for row in core.rows]
            return [(f"column{at}", _either(values)) for at, values in enumerate(zip(*rows, strict=True), 1)], scope
        if core.source is not None:
            self.source(core.source, scope)
        for condition in (core.where, core.having, *core.group, *core.windows):
            if condition is not None:
                self.evaluate(condition, scope)
        scope.empty = self.may_be_empty(core)
        columns = self.listed(core.columns, scope)
        if core.having is not None and not core.group:
            columns = [(name, value._replace(null="", about="", never=False)) for name, value in columns]
        return columns, scope

    def may_be_empty(self, core: Core) -> bool:
        """True if a SELECT gives its one row also where it finds none: it aggregates all, and there may be nothing."""
        if core.group or core.having is not None or not any(_aggregates(column.value) for column in core.columns):
            return False
        return core.where is not None or not _has_row(core.source)

    def listed(self, columns: Sequence[Returned], scope: _Scope) -> list[tuple[str, Column]]:
        found: list[tuple[str, Column]] = []
        for value, alias, text in columns:
            if isinstance(value, Star):
                found += self.all(value.qualifier, scope)
                continue
            known = self.name(value, scope, self.filters) if isinstance(value, Name) else self.evaluate(value, scope)
            if known.null and not known.about:
                known = known._replace(about=_short(text))
            name = alias or (value.name if isinstance(value, Name) else text.lower())
            if not known.source:
                known = known._replace(text=_short(text))
            if alias in self.filters.bare:
                known = _unsaid(known)
            found.append((name, known))
        return found

    def all(self, qualifier: str | None, scope: _Scope) -> list[tuple[str, Column]]:
        found: list[tuple[str, Column]] = []
        seen: set[str] = set()
        for entry in scope.entries:
            if qualifier is None or entry.alias == qualifier:
                for name in entry.columns:
                    if name not in entry.hidden and not (qualifier is None and name in scope.merged and name in seen):
                        found.append((name, self.column(entry, name, scope, self.filters)))
                        seen.add(name)
        return found

    # -- sources

    def source(self, source: From, scope: _Scope) -> None:
        if not isinstance(source, Join):
            scope.entries.append(self.entry(source, scope))
            return
        begin = len(scope.entries)
        self.source(source.left, scope)
        middle = len(scope.entries)
        self.source(source.right, scope)
        left, right = scope.entries[begin:middle], scope.entries[middle:]
        optional = {"inner": (), "left": right, "right": left, "full": (*left, *right)}
        for entry in optional[source.kind]:
            join = "" if entry.table is not None and entry.alias == entry.table.name.lower() else f" of {entry.alias}"
            entry.missing = f"{_MISSING}{join} finds no row"
        if source.kind == "left" and len(right) == 1 and any(_along_key(source.on, each, right[0]) for each in left):
            right[0].missing = ""  # there is always a row
        for name in source.using:
            if name is not None:
                scope.merged.add(name)
            else:
                there = {name for each in left for name in each.columns}
                scope.merged |= {name for each in right for name in each.columns if name in there}
        if source.on is not None:
            self.evaluate(source.on, scope)

    def entry(self, source: Table | Derived, scope: _Scope | None) -> _Entry:
        if isinstance(source, Derived):
            return _Entry(source.alias, dict(_unique(self.query(source.query, None))), inner=True)
        if source.arguments is not None:
            if source.name not in ("json_each", "json_tree"):
                raise Unclear
            for argument in source.arguments:
                if isinstance(argument, Parameter):
                    self.slots[Slot(argument.number, "json", source.name)] = None
                elif scope is not None:
                    self.evaluate(argument, scope)
            columns = {n: Column(storages(letters), never=n in _JSON_FULL) for n, letters in _JSON.items()}
            return _Entry(source.alias, columns)
        for known in reversed(self.common):
            if source.name in known:
                return _Entry(source.alias, dict(_unique(known[source.name])), inner=True)
        table = self.tables.get(source.name)
        if table is None:
            raise Unclear
        if table.view:
            return self.view(table, source.alias)
        columns = {name: _of_column(table, column) for name, column in table.named.items()}
        return _Entry(source.alias, columns, table, hidden=table.hidden)

    def view(self, table: TableInfo, alias: str) -> _Entry:
        """A view: the rows of its query, read by itself."""
        tokens = statements_of(table.sql)[0].tokens
        begin = next(at for at, token in enumerate(tokens, 1) if token.word == "AS")
        read = read_statement(table.sql, tokens[begin:])
        if not isinstance(read, Query):
            raise Unclear
        found = _Evaluation(self.tables, tokens, read).query(read, None)
        if len(found) != len(table.columns):
            raise Unclear
        columns = {column.name.lower(): value for column, (_, value) in zip(table.columns, found, strict=True)}
        return _Entry(alias, columns, table, inner=True)

    # -- names

    def name(self, name: Name, scope: _Scope, names: _Names | None = None) -> Column:
        """The value of a name.

        `names` are those of the conditions that its row has met: in a part of an expression, of any that there is.
        """
        names = names or self.everywhere
        entries, around = self.sources_of(name, scope)
        if not entries:
            return _UNKNOWN
        if len(entries) == 1:
            return self.column(entries[0], name.name, around, names)
        if name.name not in around.merged:
            return _UNKNOWN
        outer = any(one.missing for one in entries)
        value = self.column(entries[0], name.name, around, names)
        return value._replace(null="", about="", never=value.never and not outer)

    def declared(self, name: Name, scope: _Scope) -> tuple[TableColumn, TableInfo] | None:
        """The table's column that a name is."""
        entries, _ = self.sources_of(name, scope)
        table = entries[0].table if len(entries) == 1 else None
        column = table.column(name.name) if table is not None and not table.view else None
        return (column, table) if column is not None and table is not None else None

    def sources_of(self, name: Name, scope: _Scope | None) -> tuple[list[_Entry], _Scope]:
        """The sources that a name may be of, and the scope that has them."""
        qualifier, column = name
        while scope is not None:
            entries = [
                entry
                for entry in scope.entries
                if qualifier in (None, entry.alias)
                and (column in entry.columns or (column in _ROWIDS and entry.table and not entry.table.view))
            ]
            if qualifier is None and len(entries) > 1:
                entries = [entry for entry in entries if entry.alias != "excluded"]
            if entries:
                return entries, scope
            scope = scope.parent
        return [], _Scope()

    def column(self, entry: _Entry, name: str, scope: _Scope, names: _Names) -> Column:
        """A column of a source, with the facts that its join and the conditions give."""
        value = entry.columns.get(name)
        if value is None:
            value = Column(_INTEGER, never=True, source=f"{entry.alias}.{name}")
        about = value.about or value.source or f"{entry.alias}.{name}"
        if (value.null or value.allowed) and _conditioned(entry, name, value, names):
            value = _unsaid(value)
        if entry.missing and not _excludes_null(entry, names):
            value = value._replace(null=entry.missing, join=entry.alias, own=value.null, full=value.never)
        null = value.null or (NO_ROW if scope.empty else "")
        never = value.never and not (entry.missing or scope.empty)
        return value._replace(null=null, about=about if null else "", never=never)

    # -- expressions

    def evaluate(self, expression: Expression, scope: _Scope) -> Column:
        """The facts about an expression; the parameters in it are noted."""
        match expression:  # most are names and operators
            case Name():
                return self.name(expression, scope)
            case Operator():
                return self.operator(expression.name, expression.operands, scope)
            case Constant():
                return _CONSTANTS[expression.kind]
            case Parameter():
                return _UNKNOWN
            case Call():
                return self.call(expression, scope)
            case Case():
                return self.case(expression, scope)
            case Cast(operand=operand, type=declared):
                value = self.evaluate(operand, scope)
                return _alone(value)._replace(storage=storages(affinity(declared)))
            case In():
                return self.inside(expression, scope)
            case Subquery(query=query, exists=True):
                self.query(query, scope)
                return Column(_INTEGER, never=True)
            case Subquery(query=query):
                return self.subquery(query, scope)

    def operator(self, name: str, operands: Sequence[Expression], scope: _Scope) -> Column:
        if len(operands) == 2 and name in ("=", "<", "<=", ">", ">=", "IS"):
            use = "is" if name == "IS" else "compare"
            self.beside(operands[0], operands[1:], scope, use, equal=name in ("=", "IS"))
            self.beside(operands[1], operands[:1], scope, use, equal=name in ("=", "IS"))
        if name == "BETWEEN":
            self.beside(operands[0], operands[1:], scope, equal=False)
        if name == "ISNULL" or (name == "IS" and any(_is_null(operand) for operand in operands)):
            for operand in operands:
                if isinstance(operand, Parameter):
                    self.slots[Slot(operand.number, "null")] = None
        values = [self.evaluate(operand, scope) for operand in operands]
        if name == "+" and len(values) == 1:
            return _alone(values[0])
        if name in ("AND", "OR", "BETWEEN"):
            return Column(_INTEGER, never=all(value.never for value in values))
        value = self.applied(OPERATORS[name], values)
        if name in ("LIKE", "GLOB") and "blob" in _storages(values):
            return Column(_INTEGER, never=value.never)  # SQLite may be built so that no blob is like anything
        divisor = operands[-1]
        if name in ("/", "%") and isinstance(divisor, Constant) and divisor.text.strip("0._") and not value.null:
            # Only a divisor of 0 makes NULL of two numbers.
            value = value._replace(never=values[0].never and _are_numbers(values[:1]) and divisor.kind in _NUMBERS)
        return value

    def beside(
        self, column: Expression, others: Sequence[Expression], scope: _Scope, use: str = "compare", equal: bool = True
    ) -> None:
        """Note the parameters and the texts that a column is compared with. `equal`: whether it is one of them."""
        given = any(isinstance(other, Parameter | Constant) for other in others)
        found = self.declared(column, scope) if given and isinstance(column, Name) else None
        if found is None:
            return
        declared, table = found
        exact = declared.strict or declared.key
        shown, storage = f"{table.name}.{declared.name}", declared.storage
        allowed = self.allowed(declared) if equal and not self.chooses else ()
        for other in others:
            if isinstance(other, Parameter):
                self.slots[Slot(other.number, use, shown, storage, declared.filled, exact, allowed)] = None
        if equal:
            self.judge(shown, declared, others)

    def allowed(self, column: TableColumn) -> tuple[str, ...]:
        """The texts that the CHECK of a column allows, where a text is equal to itself alone."""
        return () if self.collates else column.allowed

    def judge(self, shown: str, column: TableColumn, given: Sequence[Expression]) -> None:
        """Note the texts among some values that a column never has."""
        allowed = self.allowed(column)
        for value in given if allowed else ():
            if isinstance(value, Constant) and value.kind == "text" and text_of(value.text) not in allowed:
                self.mistakes[value.text, left_out(shown, allowed, text_of(value.text))] = None

    def applied(self, rule: Rule, values: Sequence[Column]) -> Column:
        """The facts about a function's or an operator's result."""
        match rule.storage:
            case "1":
                storage = values[0].storage if values else ANY
            case "#":
                storage = values[0].storage if _are_numbers(values[:1]) else ANY
            case "*":
                known = [value.storage for value in values]
                storage = _INTEGER if all(one == _INTEGER for one in known) else _NUMBERS
                if _are_numbers(values) and _REAL in known:
                    storage = _REAL
            case letters:
                storage = storages(letters)
        if rule.nulls in ("never", "unknown"):
            return Column(storage, never=rule.nulls == "never")
        given = values[:1] if rule.nulls == "first" else values
        reason = next((value for value in given if value.null), _UNKNOWN)
        never = rule.nulls != "some" and bool(given) and all(value.never for value in given)
        return Column(storage, reason.null, reason.about, never)

    def call(self, call: Call, scope: _Scope) -> Column:
        name, aggregate = call.name, _is_aggregate(call)
        inner = attrs.evolve(scope, empty=False) if aggregate and not call.window else scope
        values = [self.evaluate(argument, inner) for argument in call.arguments]
        for other in (*call.others, *(() if call.filter is None else (call.filter,))):
            self.evaluate(other, inner)
        if aggregate or name in WINDOWS:
            return self.aggregate(call, values, scope)
        match name:
            case "coalesce" | "ifnull":
                return _coalesced(values)
            case "iif" | "if" if len(values) == 3:
                return _alone(_either(values[1:]))
            case "nullif" if len(values) == 2:
                reason = values[0] if values[0].null else Column(null="is NULL where both of its values are equal")
                return Column(values[0].storage, reason.null, reason.about)
            case _:
                rule = FUNCTIONS.get(name)
        if rule is None:
            return _UNKNOWN
        if name in ("min", "max"):
            return self.applied(rule, values)._replace(storage=_storages(values))
        if name in ("substr", "substring"):
            return self.applied(Rule("?" if "blob" in values[0].storage else "t", "any"), values)
        return self.applied(rule, values)

    def aggregate(self, call: Call, values: Sequence[Column], scope: _Scope) -> Column:
        """An aggregate, or a function of a window."""
        rule = AGGREGATES.get(call.name) or WINDOWS[call.name]
        value = self.applied(rule, values[:1])
        if rule.nulls == "never":
            return value
        if call.name in ("lag", "lead"):
            missing = values[2] if len(values) > 2 else Column(null="is NULL where there is no such row")
            return _either([value._replace(never=values[0].never), missing])._replace(storage=value.storage)
        if call.filter is not None and not call.window:
            return Column(value.storage, "is NULL where the filter leaves no row", "")
        if call.framed or call.filter is not None or call.name == "nth_value":
            return value._replace(null="", about="", never=False)
        if not call.window and scope.empty:
            return Column(value.storage, NO_ROW, "")
        if value.null and call.name in AGGREGATES:
            return value._replace(null="is NULL where all of its values are", about="")
        return value

    def case(self, case: Case, scope: _Scope) -> Column:
        if case.base is not None:
            self.beside(case.base, [condition for condition, _ in case.branches], scope)
            self.evaluate(case.base, scope)
        for condition, _ in case.branches:
            self.evaluate(condition, scope)
        values = [self.evaluate(value, scope) for _, value in case.branches]
        if case.otherwise is not None:
            values.append(self.evaluate(case.otherwise, scope))
        else:
            values.append(Column(frozenset(), "" if self.may_be_all(case, scope) else "is NULL where no WHEN holds"))
        return _alone(_either(values))

    def may_be_all(self, case: Case, scope: _Scope) -> bool:
        """True if a condition or a CHECK may leave no values but those of the WHENs."""
        if isinstance(case.base, Name) and case.base.name not in self.filters.all:
            found = self.declared(case.base, scope)
            allowed = self.allowed(found[0]) if found is not None else ()
            texts = [when.text for when, _ in case.branches if isinstance(when, Constant) and when.kind == "text"]
            if allowed and len(texts) == len(case.branches):
                return set(map(text_of, texts)).issuperset(allowed)
        for name in _names_in((case.base, *(when for when, _ in case.branches))):
            declared = self.declared(name, scope)
            if name.name in self.filters.all or (declared is not None and declared[0].checked):
                return True
        return False

    def inside(self, expression: In, scope: _Scope) -> Column:
        operand = self.evaluate(expression.operand, scope)
        if expression.query is not None:
            self.query(expression.query, scope)
        if expression.items is None:
            return Column(_INTEGER)
        self.beside(expression.operand, expression.items, scope, "list" if len(expression.items) == 1 else "compare")
        values = [operand, *(self.evaluate(item, scope) for item in expression.items)]
        if not expression.items:
            return Column(_INTEGER, never=True)
        return Column(_INTEGER, operand.null, operand.about, all(value.never for value in values))

    def subquery(self, query: Query, scope: _Scope) -> Column:
        """A query as a value: NULL where it has no row."""
        columns = self.query(query, scope)
        if len(columns) != 1:
            return _UNKNOWN
        value = columns[0][1]._replace(text="", arms=())
        if _gives_row(query):
            return value
        grouped = any(core.having is not None or core.group for core in query.cores)
        if value.null or grouped or len(query.cores) != 1:
            return value._replace(never=False)
        if self.finds_parent(query.cores[0], scope):
            return value
        return value._replace(null=NO_ROW, about="", never=False)

    def finds_parent(self, core: Core, scope: _Scope) -> bool:
        """True if a query looks for the row that a foreign key around it is of; True also where that cannot be told."""
        where, source = core.where, core.source
        if not isinstance(source, Table) or source.name not in self.tables or not isinstance(where, Operator):
            return where is not None and not isinstance(source, Table)
        parent = self.entry(source, None)
        around: _Scope | None = scope
        while around is not None:
            if any(_along_key(where, entry, parent) for entry in around.entries):
                return True
            around = around.parent
        return False


# Helpers ------------------------------------------------------------------------------------------------------------


def _conditioned(entry: _Entry, name: str, value: Column, names: _Names) -> bool:
    """True if a condition may drop the rows in which a column is NULL."""
    if name in names.all:
        return True
    if not entry.inner:
        return False
    # In a query the same column may have another name, and an outer join is narrowed by any of its columns.
    others = (other for given, other in entry.columns.items() if given in names.all)
    return any(other.source == value.source for other in others) or (
        value.null.startswith(_MISSING) and _excludes_null(entry, names)
    )


def _excludes_null(entry: _Entry, names: _Names) -> bool:
    """True if a condition may drop the rows in which a source is missing."""
    return any(of == entry.alias or (of is None and name in entry.columns) for of, name in names.dropping)


def _along_key(on: Expression | None, child: _Entry, parent: _Entry) -> bool:
    """True if a condition is `child.key = parent.id`, along a foreign key of the child's that is never NULL."""
    match on:
        case Operator("=", [Name() as left, Name() as right]) if child.table and parent.table and not child.missing:
            for one, other in ((left, right), (right, left)):
                key, link = child.table.column(one.name), (one.name, parent.table.name.lower(), other.name)
                named = one.qualifier in (None, child.alias) and other.qualifier in (None, parent.alias)
                if named and key is not None and key.filled and link in child.table.foreign:
                    return True
        case _:
            pass
    return False


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.kind == "null"


def _of_column(table: TableInfo, column: TableColumn) -> Column:
    null = "can be NULL" if column.nullable else ""
    source = f"{table.name}.{column.name}"
    about, allowed = source if null else "", column.allowed
    return Column(column.storage or ANY, null, about, column.filled, source, column.declared, allowed=allowed)


def _are_numbers(values: Sequence[Column]) -> bool:
    return _storages(values) <= _NUMBERS


def _storages(values: Iterable[Column]) -> frozenset[Storage]:
    return frozenset[Storage]().union(*(value.storage for value in values))


def _alone(value: Column) -> Column:
    """A value without the column that it comes from."""
    return value._replace(source="", declared="", text="", arms=(), allowed=())


def _unsaid(value: Column) -> Column:
    """A value of which nothing is said about NULL, unless it is proven that it never is."""
    return value._replace(null="", about="", join="", own="", full=False, allowed=())


def _coalesced(values: Sequence[Column]) -> Column:
    taken = values[: next((at for at, value in enumerate(values, 1) if value.never), None)]
    never, storage = taken[-1].never, _storages(taken)
    if never or not all(value.null for value in taken):
        return Column(storage, never=never)
    return Column(storage, taken[-1].null, taken[-1].about)


def _renamed(columns: list[tuple[str, Column]], names: Sequence[str]) -> list[tuple[str, Column]]:
    if not names:
        return columns
    if len(names) != len(columns):
        raise Unclear
    return [(name, value) for name, (_, value) in zip(names, columns, strict=True)]


def _unique(columns: Iterable[tuple[str, Column]]) -> Iterator[tuple[str, Column]]:
    """Columns by their names. Of two of one name the second has another, as SQLite gives it."""
    seen: set[str] = set()
    for given, value in columns:
        name = given
        while name in seen:
            name = f"{given}:{len(seen)}"
        seen.add(name)
        yield name, value


def _has_row(source: From | None) -> bool:
    """True if a FROM clause gives a row for certain."""
    match source:
        case None:
            return True
        case Derived(query=query):
            return _gives_row(query)
        case Join(left=left, kind="left"):
            return _has_row(left)
        case Join(left=left, right=right, kind="inner", on=None, using=using) if not using:
            return _has_row(left) and _has_row(right)
        case _:
            return False


def _gives_row(query: Query) -> bool:
    """True if a query gives a row for certain: it aggregates all there is, or reads from nowhere."""
    if query.limit or set(query.compound) - {"UNION"}:
        return False
    for core in query.cores:
        if core.rows:
            return True
        if core.group or core.having is not None:
            continue
        if (core.where is None and _has_row(core.source)) or any(_aggregates(column.value) for column in core.columns):
            return True
    return False


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 60 else f"{plain[:57]}..."
