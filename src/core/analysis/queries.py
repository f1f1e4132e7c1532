"""The rules about statements of SQL: the statement itself, the values bound to it, the rows it returns (`core-sql`,
`core-scan`).

Written once for both front ends (`core.analysis.front_end`). Which statement an expression is follows from the chain of
calls and from names that are assigned once; no type has to carry it, so none is ever in the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from core.analysis.front_end import Calls, Problem, QueryFrontEnd
from core.analysis.sources import Sources
from core.sql.parameters import check_parameter
from core.sql.rows import check_column, check_row, check_scalar, check_values
from core.sql.statement import Statement

__all__ = [
    "Chain",
    "RUNS",
    "TYPED",
    "batch_problems",
    "bind_problems",
    "chain_of",
    "prepare_problems",
    "row_messages",
    "run_problems",
    "value_of_row",
]

NodeT = TypeVar("NodeT")
RUNS: Final = frozenset(["first", "one", "all", "run", "raw", "as_"])
TYPED: Final = frozenset(["first", "one", "all", "as_"])
_LONGEST: Final = 50


class Chain(NamedTuple, Generic[NodeT]):
    """A statement as an expression: the call of `prepare` that it begins with, and how many values were bound last.

    `values` is None where nothing was bound, -1 where it cannot be counted.
    """

    prepare: NodeT
    values: int | None


def chain_of(front_end: Calls[NodeT], expression: NodeT) -> Chain[NodeT] | None:
    """The statement that an expression is."""
    values: int | None = None
    for _ in range(_LONGEST):
        call = front_end.method_call(expression)
        if call is None:
            value = front_end.value_of(expression)
            if value is None:
                return None
            expression = value
        elif call.name == "prepare":
            return Chain(expression, values)
        elif call.name == "bind":
            if values is None:
                values = len(call.arguments) if call.counted else -1
            expression = call.receiver
        elif call.name == "as_":
            expression = call.receiver
        else:
            return None
    return None


def prepare_problems(front_end: QueryFrontEnd[NodeT], call: NodeT, sources: Sources) -> Iterator[Problem[NodeT]]:
    """`db.prepare("…")`: the statement by itself."""
    found = front_end.statement_of(call)
    parts = front_end.method_call(call)
    if found is None or parts is None:
        return
    if not found[1].problems:
        for message in front_end.scans_of(call):
            yield Problem("core-scan", f"{found[0]}: {message}", parts.arguments[0])
        return
    label, statement = found
    lines = "\n" in (front_end.string_of(parts.arguments[0]) or "")
    for problem in statement.problems:
        if problem.table not in sources.tables:  # or the program makes it
            where = f" (line {problem.line + 1} of the statement)" if lines else ""
            yield Problem("core-sql", f"{label}: {problem.message}{where}", parts.arguments[0])


def bind_problems(front_end: QueryFrontEnd[NodeT], call: NodeT) -> Iterator[Problem[NodeT]]:
    """`.bind(…)`: as many values as the statement takes, each one that can be where it is."""
    chain = chain_of(front_end, call)
    found = front_end.statement_of(chain.prepare) if chain is not None else None
    if chain is not None and found is not None and chain.values not in (None, -1):
        message = check_values(found[1], chain.values)
        if message is not None:
            yield Problem("core-sql", f"{found[0]}: {message}", call)
            return
        parts = front_end.method_call(call)
        for number, argument in enumerate(parts.arguments if parts is not None and found[1].takes else (), 1):
            given = front_end.given_of(argument)
            message = check_parameter(number, found[1].slots, given) if given is not None else None
            if message is not None:
                yield Problem("core-sql", f"{found[0]}: {message}", argument)


def batch_problems(front_end: QueryFrontEnd[NodeT], given: NodeT) -> Iterator[Problem[NodeT]]:
    """`.batch([…])`: every statement in it was bound, if it takes values."""
    for item in front_end.items_of(given):
        yield from _unbound(front_end, item, item)[1]


def run_problems(front_end: QueryFrontEnd[NodeT], call: NodeT) -> Iterator[Problem[NodeT]]:
    """`.first(T)`, `.all(T)`, `.run()` and their like: values are bound, and the rows fit `T`."""
    parts = front_end.method_call(call)
    if parts is None:
        return
    found, problems = _unbound(front_end, parts.receiver, call)
    if parts.name == "as_":
        problems = []  # they may be bound behind it
    yield from problems
    if found is not None and not problems and parts.arguments and parts.name in TYPED:
        label, statement = found
        for message in row_messages(front_end, statement, parts.arguments[0]):
            yield Problem("core-sql", f"{label}: {message}", parts.arguments[0])


def value_of_row(front_end: QueryFrontEnd[NodeT], call: NodeT) -> tuple[str, Statement, str, str] | None:
    """The database, the statement, the method and the column of `statement.first("name")`."""
    parts = front_end.method_call(call)
    if parts is None or parts.name not in ("first", "one") or not parts.arguments:
        return None
    name = front_end.string_of(parts.arguments[0])
    chain = chain_of(front_end, parts.receiver) if name is not None else None
    found = front_end.statement_of(chain.prepare) if chain is not None else None
    return (*found, parts.name, name) if found is not None and name is not None else None


def _unbound(
    front_end: QueryFrontEnd[NodeT], expression: NodeT, node: NodeT
) -> tuple[tuple[str, Statement] | None, list[Problem[NodeT]]]:
    chain = chain_of(front_end, expression)
    found = front_end.statement_of(chain.prepare) if chain is not None else None
    message = check_values(found[1], None) if chain is not None and chain.values is None and found is not None else None
    return found, [Problem("core-sql", f"{found[0]}: {message}", node)] if found is not None and message else []


def row_messages(front_end: QueryFrontEnd[NodeT], statement: Statement, wanted: NodeT) -> Iterator[str]:
    """Everything that is wrong with the column, class or type that rows are asked for as."""
    column = front_end.string_of(wanted)
    if column is not None:
        message = check_column(statement, column)
        if message is not None:
            yield message
        return
    row = front_end.row_of(wanted)
    if row is not None:
        for _, message in check_row(statement, *row):
            yield message
        return
    scalar = front_end.scalar_of(wanted)
    message = check_scalar(statement, *scalar) if scalar is not None else None
    if message is not None:
        yield message
