"""The rules about statements of SQL: the statement itself, the values bound to it, the rows it returns (`core-sql`,
`core-scan`).

Which statement an expression is follows from the chain of calls and from names that are assigned once; no type has to
carry it, so none is ever in the way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from core.program.databases import Behind, Databases
from core.program.findings import Finding
from core.program.modules import Scope
from core.program.rows import given_value, is_variable, no_row, row_fields, row_kinds
from core.program.syntax import Node
from core.sql.classes import check_row
from core.sql.messages import did_you_mean
from core.sql.rows import check_column, check_parameter, check_value, check_values, never_a_row
from core.sql.statement import Statement

_CONFLICTS: Final = frozenset(["core.conflict", "core.errors.conflicts.conflict"])
TYPED: Final = frozenset(["first", "one", "all", "as_"])


def value_problems(receivers: Databases, statement: ast.AnnAssign | ast.Return, scope: Scope) -> Iterator[Finding]:
    """`name: int = await statement.first("name")`, and the same behind `return`: the column against the annotation."""
    annotation: ast.expr | None = getattr(scope.node, "returns", None)
    typed = "return-value"
    if isinstance(statement, ast.AnnAssign):
        annotation, typed = statement.annotation, "assignment"
    if annotation is None or not isinstance(statement.value, ast.Await):
        return
    call = Node(statement.value.value, scope)
    parts = call.method_call()
    if parts is None or parts.name not in ("first", "one") or not parts.arguments:
        return
    name = receivers.modules.string(*parts.arguments[0])
    found = receivers.behind(parts.receiver) if name is not None else None
    if found is not None and name is not None:
        kinds = row_kinds(receivers.reader, annotation, scope)
        message = check_value(found.statement, parts.name, name, ast.unparse(annotation), kinds)
        yield from _finding(found, call, message, typed)


def conflict_problems(receivers: Databases, call: Node) -> Iterator[Finding]:
    """`conflict("emial")`: by a column that no table has, no error of a database is answered."""
    made = call.node
    if not isinstance(made, ast.Call) or receivers.modules.outside(made.func, call.scope) not in _CONFLICTS:
        return
    known = receivers.columns()
    for argument in made.args if known else ():
        name = receivers.modules.string(argument, call.scope)
        if name is not None and name not in known:
            hint = did_you_mean(name, sorted(known))
            message = f'conflict("{name}"): no table has such a column{f".{hint}" if hint else ""}'
            yield Node(argument, call.scope).finding("core-sql", message)


def prepare_problems(receivers: Databases, call: Node) -> Iterator[Finding]:
    """`db.prepare("…")` and `db.exec("…")`: the statement by itself."""
    yield from receivers.count(call)
    found = receivers.behind(call)
    parts = call.method_call()
    if found is None or parts is None:
        return
    if not found.statement.problems:
        for message in receivers.scans_of(call):
            yield parts.arguments[0].finding("core-scan", f"{found.label}: {message}")
    for problem in found.statement.problems:
        if problem.table not in receivers.sources.tables:  # or the program makes it
            place = receivers.place_of(parts.arguments[0], problem.at)
            yield place.finding("core-sql", f"{found.label}: {problem.message}")


def bind_problems(receivers: Databases, call: Node) -> Iterator[Finding]:
    """`.bind(…)`: as many values as the statement takes, each one that can be where it is."""
    found = receivers.behind(call)
    if found is None or found.values in (None, -1):
        return
    message = check_values(found.statement, found.values)
    yield from _finding(found, call, message)
    parts = call.method_call() if message is None and found.statement.takes else None
    for number, argument in enumerate(parts.arguments if parts is not None else (), 1):
        given = given_value(receivers.reader, *argument)
        if given is not None:
            yield from _finding(found, argument, check_parameter(number, found.statement.slots, given))


def batch_problems(receivers: Databases, call: Node) -> Iterator[Finding]:
    """`.batch([…])`: every statement in it was bound, if it takes values."""
    parts = call.method_call()
    for argument in parts.arguments if parts is not None else ():
        for item in argument.node.elts if isinstance(argument.node, ast.List | ast.Tuple) else ():
            statement = Node(item, argument.scope)
            yield from _unbound(receivers, statement, statement)[1]


def run_problems(receivers: Databases, call: Node) -> Iterator[Finding]:
    """`.first(T)`, `.all(T)`, `.run()` and their like: values are bound, and the rows fit `T`."""
    parts = call.method_call()
    if parts is None:
        return
    found, problems = _unbound(receivers, parts.receiver, call)
    if parts.name == "as_":
        problems = []  # they may be bound behind it
    yield from problems
    if found is not None and not problems and parts.arguments and parts.name in TYPED:
        wanted = parts.arguments[0]
        for message in _row_messages(receivers, found.statement, wanted):
            yield from _finding(found, wanted, message)
        if receivers.modules.string(*wanted) is None and is_variable(receivers.reader, *wanted):
            receivers.read -= 1  # its text was counted
            receivers.note_unread(call, "what its rows are read as is not known")


def _unbound(receivers: Databases, expression: Node, node: Node) -> tuple[Behind | None, list[Finding]]:
    found = receivers.behind(expression)
    message = check_values(found.statement, None) if found is not None and found.values is None else None
    return found, [*_finding(found, node, message)] if found is not None else []


def _row_messages(receivers: Databases, statement: Statement, wanted: Node) -> Sequence[str | None]:
    """Everything that is wrong with the column, class or type that rows are asked for as."""
    column = receivers.modules.string(*wanted)
    if column is not None:
        return [check_column(statement, column)]
    row = row_fields(receivers.reader, *wanted)
    if row is not None:
        return [message for _, message in check_row(statement, *row)]
    never = no_row(receivers.reader, *wanted) if not statement.problems else None
    return [never_a_row(*never)] if never is not None else []


def _finding(found: Behind, node: Node, message: str | None, typed: str = "") -> Iterator[Finding]:
    if message is not None:
        yield node.finding("core-sql", f"{found.label}: {message}", typed)
