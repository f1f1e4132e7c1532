"""The tables that a statement reads without an index, by SQLite's own plan of it (https://www.sqlite.org/eqp.html):
`core-scan`.

The plan is made on the empty database that the migrations make, and nothing runs. An index is only proposed where the
plan with it reads less. A table is small where its CREATE TABLE says so, `-- core: small`; a statement says itself that
it may read whole tables: `-- core: scan ok, <reason>`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from core.sql.catalog import Migrated, TableInfo
from core.sql.functions import AGGREGATES
from core.sql.syntax import (
    Call,
    Change,
    Constant,
    Expression,
    From,
    In,
    Join,
    Name,
    Operator,
    Query,
    Table,
    Unclear,
    inside,
    read_statement,
)
from core.statements.tokens import parameter_count, quoted, statements_of, tokens_of

_ALLOWED: Final = re.compile(r"--\s*core:\s*scan ok\b,?[ \t]*(?P<reason>[^\n]*)", re.IGNORECASE)
_SMALL: Final = re.compile(r"--\s*core:\s*small\b", re.IGNORECASE)
_SCAN: Final = re.compile(r"SCAN (?:TABLE )?(?P<name>\S+)(?: AS (?P<alias>\S+))?(?P<rest>.*)")
_AUTOMATIC: Final = re.compile(r"SEARCH (?:TABLE )?(?P<name>\S+)(?: AS (?P<alias>\S+))? USING AUTOMATIC")
_SORT: Final = re.compile(r"USE TEMP B-TREE FOR (?:\w+ )*ORDER BY")
_ALLOW: Final = "or say why it may: -- core: scan ok, <reason>"


class _Part(NamedTuple):
    """A SELECT, or a change, as far as its plan goes: its tables by alias, its conditions and its order."""

    tables: Mapping[str, str]
    conditions: Sequence[Expression]
    order: Sequence[Expression] = ()
    bounded: bool = False


def scan_problems(migrated: Migrated, sql: str) -> tuple[str, ...]:
    """Return the problems of the plan of a statement that SQLite compiles."""
    parts = [part for part in statements_of(sql) if part.tokens]
    if len(parts) != 1 or parts[0].keyword not in ("SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE"):
        return ()
    text = parts[0].text
    with migrated.lock:
        try:
            read = read_statement(text, parts[0].tokens)
            plan = _plan(migrated, text)
        except (Unclear, sqlite3.Error):
            return ()
        found = list(dict.fromkeys(_judge(migrated, text, plan, list(_parts(read)))))
    allowed = _ALLOWED.search(sql)
    if allowed is None:
        return tuple(found)
    if not allowed["reason"].strip():
        return ("-- core: scan ok has no reason. Write it behind a comma",)
    return () if found else ("the plan reads no table whole: -- core: scan ok is no longer needed. Remove it",)


def _plan(migrated: Migrated, text: str) -> list[str]:
    """The lines of a plan, without the platform's rules: EXPLAIN QUERY PLAN runs nothing."""
    values = (None,) * parameter_count(tokens_of(text))
    return [str(row[3]) for row in migrated.connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]


def _judge(migrated: Migrated, text: str, plan: Sequence[str], parts: Sequence[_Part]) -> Iterator[str]:
    sorts = [line for line in plan if _SORT.fullmatch(line)]
    scanned: set[str] = set()
    for line in plan:
        match = _SCAN.fullmatch(line) or _AUTOMATIC.match(line)
        if match is None or "VIRTUAL TABLE" in line:
            continue
        alias = (match["alias"] or match["name"]).lower()
        part = next((part for part in parts if alias in part.tables), None)
        table = migrated.tables.get(part.tables[alias] if part is not None else match["name"].lower())
        if table is None or table.view or _SMALL.search(table.sql):
            continue
        scanned.add(table.name)
        if part is not None and part.bounded and not sorts and len(part.tables) == 1:
            continue  # it stops after as many rows as LIMIT says
        index = _index(migrated, text, table, alias, part, line)
        if index:
            yield f"every row of {table.name} is read. Make an index: {index}; {_ALLOW}"
        else:
            yield f"every row of {table.name} is read. Add a condition that an index serves, or a LIMIT, {_ALLOW}"
    for part in parts:
        if not sorts or not part.order or len(part.tables) != 1:
            continue
        ((alias, name),) = part.tables.items()
        table = migrated.tables.get(name)
        if table is None or table.view or table.name in scanned or _SMALL.search(table.sql):
            continue
        index = _index(migrated, text, table, alias, part, sorts[0])
        if index:
            yield f"the rows of {table.name} are sorted without an index. Make one: {index}; {_ALLOW}"


def _index(migrated: Migrated, text: str, table: TableInfo, alias: str, part: _Part | None, line: str) -> str:
    """The index that takes a line out of the plan, or nothing."""
    if part is None:
        return ""
    equal: list[str] = []
    ranges: list[str] = []

    def columns_in(*expressions: Expression) -> list[str]:
        named = (one for one in expressions if isinstance(one, Name) and one.qualifier in (None, alias))
        return [found.name for one in named if (found := table.column(one.name)) is not None]

    for condition in part.conditions:
        match condition:
            case Operator(name="=" | "IS", operands=operands):
                equal += columns_in(*operands)
            case Operator(name="<" | "<=" | ">" | ">=", operands=operands):
                ranges += columns_in(*operands)
            case In(operand=operand):
                equal += columns_in(operand)
            case Operator(name="BETWEEN", operands=(operand, *_)):
                ranges += columns_in(operand)
            case _:
                pass
    order = columns_in(*part.order)
    choices = [[*equal, *order] if order else [], [*equal, *ranges[:1]], equal]
    for choice in choices:
        columns = list(dict.fromkeys(choice))
        if columns and _helps(migrated, text, table, columns, line, part.bounded):
            name = "_".join([table.name, *columns])
            return f"CREATE INDEX {name} ON {table.name} ({', '.join(columns)})"
    return ""


def _helps(migrated: Migrated, text: str, table: TableInfo, columns: Sequence[str], line: str, bounded: bool) -> bool:
    """True if a line of the plan goes with an index: tried, and taken back."""
    connection = migrated.connection
    with migrated.unguarded():
        try:
            connection.execute("SAVEPOINT core_scan")
            try:
                listed = ", ".join(map(quoted, columns))
                connection.execute(f"CREATE INDEX core_scan_index ON {quoted(table.name)} ({listed})")
                plan = _plan(migrated, text)
            finally:
                connection.execute("ROLLBACK TO core_scan")
                connection.execute("RELEASE core_scan")
        except sqlite3.Error:
            return False
    # An index that is only read from end to end does not help.
    whole = any(one.startswith("SCAN") and "core_scan_index" in one for one in plan)
    return line not in plan and (bounded or not whole or _SORT.fullmatch(line) is not None)


# The parts of a statement --------------------------------------------------------------------------------------------


def _parts(statement: Query | Change) -> Iterator[_Part]:
    for part in inside(statement):
        if isinstance(part, Change) and not part.inserts:
            yield _Part({part.alias: part.table, **_tables_in(part.source)}, list(_conjuncts(part.where)))
        elif isinstance(part, Query):
            alone = len(part.cores) == 1
            for core in part.cores:
                joins = (one for one in inside(core.source, queries=False) if isinstance(one, Join))
                conditions = [*_conjuncts(core.where), *(each for join in joins for each in _conjuncts(join.on))]
                # A SELECT that aggregates reads all there is before it gives a row.
                whole = any(isinstance(c.value, Call) and c.value.name in AGGREGATES for c in core.columns)
                bounded = alone and bool(part.limit) and core.where is None and not core.group and not whole
                yield _Part(_tables_in(core.source), conditions, part.order if alone else (), bounded)


def _tables_in(source: From | None) -> dict[str, str]:
    tables = (one for one in inside(source, queries=False) if isinstance(one, Table) and one.arguments is None)
    return {table.alias: table.name for table in tables}


def _conjuncts(expression: Expression | None) -> Iterator[Expression]:
    match expression:
        case None | Constant():
            pass
        case Operator(name="AND", operands=(left, right)):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield expression
