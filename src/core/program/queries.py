"""The rules about statements of SQL: the statement itself, the values bound to it, the rows it returns (`core-sql`,
`core-scan`).

Which statement an expression is follows from the chain of calls and from names that are assigned once; no type has to
carry it, so none is ever in the way.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from typing import Final

from core.program.databases import Behind, Databases, place_in
from core.program.findings import Finding, Unread, is_wanted
from core.program.modules import Scope
from core.program.rows import given_value, is_variable, no_row, row_fields, row_kinds
from core.program.syntax import finding_at
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
    match statement.value:
        case ast.Await(
            value=ast.Call(func=ast.Attribute(value=owner, attr="first" | "one" as method), args=[column, *_]) as call
        ) if annotation is not None:
            name = receivers.modules.string(column, scope)
            found = receivers.behind(owner, scope) if name is not None else None
            if found is not None and name is not None:
                kinds = row_kinds(receivers.reader, annotation, scope)
                message = check_value(found.statement, method, name, ast.unparse(annotation), kinds)
                yield from _finding(found, call, scope, message, typed)
        case _:
            pass


def conflict_problems(receivers: Databases, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """`conflict("emial")`: by a column that no table has, no error of a database is answered."""
    known = receivers.columns() if receivers.modules.outside(call.func, scope) in _CONFLICTS else ()
    for argument in call.args if known else ():
        name = receivers.modules.string(argument, scope)
        if name is not None and name not in known:
            hint = did_you_mean(name, sorted(known))
            message = f'conflict("{name}"): no table has such a column{f".{hint}" if hint else ""}'
            yield finding_at(argument, scope, "core-sql", message)


def prepare_problems(receivers: Databases, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """`db.prepare("…")` and `db.exec("…")`: the statement by itself."""
    asked, path = receivers.asked(call, scope), str(scope.module.path)
    if asked.why:
        receivers.unread.append(Unread(path, call.lineno, asked.why))
    elif asked.texts:
        receivers.read += 1
    if not (asked.texts or asked.problem):
        return
    text, schema = call.args[0], asked.schema
    yield from _finding(asked, text, scope, asked.problem)
    if schema is not None and not asked.statement.problems and is_wanted("core-scan", receivers.configurations):
        for message in dict.fromkeys(message for each in asked.texts for message in schema.scans(each.text)):
            yield finding_at(text, scope, "core-scan", f"{asked.label}: {message}")
    for problem in asked.statement.problems:
        if problem.table not in receivers.sources.tables:  # or the program makes it
            place = place_in(receivers.modules, text, scope, problem.at, linecache.getlines(path)) or text
            yield finding_at(place, scope, "core-sql", f"{asked.label}: {problem.message}")


def bind_problems(receivers: Databases, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """`.bind(…)`: as many values as the statement takes, each one that can be where it is."""
    found = receivers.behind(call, scope)
    if found is None or found.values in (None, -1):
        return
    message = check_values(found.statement, found.values)
    yield from _finding(found, call, scope, message)
    for number, argument in enumerate(call.args if message is None and found.statement.takes else (), 1):
        given = given_value(receivers.reader, argument, scope)
        if given is not None:
            yield from _finding(found, argument, scope, check_parameter(number, found.statement.slots, given))


def batch_problems(receivers: Databases, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """`.batch([…])`: every statement in it was bound, if it takes values."""
    for argument in call.args:
        for item in argument.elts if isinstance(argument, ast.List | ast.Tuple) else ():
            yield from _unbound(receivers, item, item, scope)[1]


def run_problems(receivers: Databases, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """`.first(T)`, `.all(T)`, `.run()` and their like: values are bound, and the rows fit `T`."""
    if not isinstance(call.func, ast.Attribute):
        return
    found, problems = _unbound(receivers, call.func.value, call, scope)
    if call.func.attr == "as_":
        problems = []  # they may be bound behind it
    yield from problems
    if found is not None and not problems and call.args and call.func.attr in TYPED:
        wanted = call.args[0]
        for message in _row_messages(receivers, found.statement, wanted, scope):
            yield from _finding(found, wanted, scope, message)
        if receivers.modules.string(wanted, scope) is None and is_variable(receivers.reader, wanted, scope):
            receivers.read -= 1  # its text was counted
            why = "what its rows are read as is not known"
            receivers.unread.append(Unread(str(scope.module.path), call.lineno, why))


def _unbound(
    receivers: Databases, expression: ast.expr, node: ast.expr, scope: Scope
) -> tuple[Behind | None, list[Finding]]:
    found = receivers.behind(expression, scope)
    message = check_values(found.statement, None) if found is not None and found.values is None else None
    return found, [*_finding(found, node, scope, message)] if found is not None else []


def _row_messages(receivers: Databases, statement: Statement, wanted: ast.expr, scope: Scope) -> Sequence[str | None]:
    """Everything that is wrong with the column, class or type that rows are asked for as."""
    column = receivers.modules.string(wanted, scope)
    if column is not None:
        return [check_column(statement, column)]
    row = row_fields(receivers.reader, wanted, scope)
    if row is not None:
        return [message for _, message in check_row(statement, *row)]
    never = no_row(receivers.reader, wanted, scope) if not statement.problems else None
    return [never_a_row(*never)] if never is not None else []


def _finding(found: Behind, node: ast.expr, scope: Scope, message: str | None, typed: str = "") -> Iterator[Finding]:
    if message is not None:
        yield finding_at(node, scope, "core-sql", f"{found.label}: {message}", typed)
