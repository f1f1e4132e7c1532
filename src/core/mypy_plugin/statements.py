"""SQL given to `prepare`, the values bound to it, and the classes its rows become (`core-sql`).

Which text a statement has is followed through the chain of calls and through names that are assigned once, by the
expressions alone: no type has to carry it, so none is ever in the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mypy.nodes import (
    ARG_NAMED,
    ARG_POS,
    AwaitExpr,
    CallExpr,
    Expression,
    ListExpr,
    MemberExpr,
    NameExpr,
    RefExpr,
    TupleExpr,
    TypeAlias,
    TypeInfo,
)
from mypy.plugin import CheckerPluginInterface, MethodContext, MethodSigContext
from mypy.types import FunctionLike, Instance, Type, get_proper_type
from mypy.typevars import fill_typevars_with_any

from core.config.sql import Statement, blank_schema, check_column, check_row, check_scalar, check_values
from core.mypy_plugin.codes import SQL
from core.mypy_plugin.index import Index
from core.mypy_plugin.place import index_here
from core.mypy_plugin.settings import Project
from core.mypy_plugin.types import kinds_of, row_fields, shown

__all__ = ["batched", "bound", "prepared", "run"]


class _Chain(NamedTuple):
    """A statement as an expression: the call of `prepare` that it began with, and how many values were bound last.

    `values` is None where nothing was bound, -1 where it cannot be counted.
    """

    prepare: CallExpr
    values: int | None


def prepared(project: Project, ctx: MethodContext) -> Type:
    """`db.prepare("…")`: the statement by itself."""
    call = ctx.context
    if isinstance(call, CallExpr):
        index = index_here(ctx.api)
        found = _statement(project, call, index, ctx.api)
        if found is not None and found[1].problems:
            label, statement = found
            lines = "\n" in (index.text(call.args[0]) or "")
            for problem in statement.problems:
                where = f" (line {problem.line + 1} of the statement)" if lines else ""
                ctx.api.fail(f"{label}: {problem.message}{where}", call.args[0], code=SQL)
    return ctx.default_return_type


def bound(project: Project, ctx: MethodContext) -> Type:
    """`.bind(…)`: as many values as the statement takes."""
    call = ctx.context
    if isinstance(call, CallExpr):
        index = index_here(ctx.api)
        chain = _chain(call, index)
        found = _statement(project, chain.prepare, index, ctx.api) if chain is not None else None
        if chain is not None and found is not None and chain.values not in (None, -1):
            message = check_values(found[1], chain.values)
            if message is not None:
                ctx.api.fail(f"{found[0]}: {message}", call, code=SQL)
    return ctx.default_return_type


def batched(project: Project, ctx: MethodContext) -> Type:
    """`.batch([…])`: every statement that stands in it was bound, if it takes values."""
    index = index_here(ctx.api)
    for expressions in ctx.args:
        for expression in expressions:
            items = expression.items if isinstance(expression, ListExpr | TupleExpr) else []
            for item in items:
                _check_bound(project, item, item, index, ctx.api)
    return ctx.default_return_type


def run(project: Project, name: str, ctx: MethodSigContext) -> FunctionLike:
    """`.first(T)`, `.all(T)`, `.run()` and `.raw()`: values are bound, and the rows fit `T`."""
    signature = ctx.default_signature
    # Each overload is asked for by itself; the one without a required argument stands for the call.
    if ARG_POS in signature.arg_kinds or ARG_NAMED in signature.arg_kinds:
        return signature
    call = ctx.context
    if isinstance(call, CallExpr) and isinstance(call.callee, MemberExpr):
        index = index_here(ctx.api)
        if call in index.settled:
            return signature
        found = _check_bound(project, call.callee.expr, call, index, ctx.api)
        if found is not None and call.args and name in ("first", "all"):
            _check_rows(found, call.args[0], index, ctx.api)
    return signature


def _check_bound(
    project: Project, expression: Expression, place: Expression, index: Index, api: CheckerPluginInterface
) -> tuple[str, Statement] | None:
    chain = _chain(expression, index)
    found = _statement(project, chain.prepare, index, api) if chain is not None else None
    if chain is None or found is None:
        return None
    if chain.values is None:
        message = check_values(found[1], None)
        if message is not None:
            api.fail(f"{found[0]}: {message}", place, code=SQL)
            return None
    return found


def _is_settled(call: CallExpr, index: Index) -> bool:
    """Whether a call that asks for rows is all right, as far as its statement has been read."""
    if not isinstance(call.callee, MemberExpr) or not call.args:
        return False
    chain = _chain(call.callee.expr, index)
    found = index.statements.get(chain.prepare) if chain is not None else None
    if chain is None or found is None or (chain.values is None and check_values(found[1], None) is not None):
        return False
    return not any(True for _ in _row_messages(found[1], call.args[0], index))


def _check_rows(found: tuple[str, Statement], wanted: Expression, index: Index, api: CheckerPluginInterface) -> None:
    label, statement = found
    for message in _row_messages(statement, wanted, index):
        api.fail(f"{label}: {message}", wanted, code=SQL)


def _row_messages(statement: Statement, wanted: Expression, index: Index) -> Iterator[str]:
    column = index.text(wanted)
    if column is not None:
        message = check_column(statement, column)
        if message is not None:
            yield message
        return
    type_ = _type(wanted)
    if type_ is None:
        return
    row = row_fields(type_)
    if row is not None:
        for _, message in check_row(statement, *row):
            yield message
        return
    message = check_scalar(statement, shown(type_), kinds_of(type_))
    if message is not None:
        yield message


def _type(expression: Expression) -> Type | None:
    """The class or alias that an expression names."""
    node = expression.node if isinstance(expression, RefExpr) else None
    if isinstance(node, TypeInfo):
        if node.typeddict_type is not None:
            return node.typeddict_type.copy_modified(fallback=Instance(node, []))  # so that it has its name
        return fill_typevars_with_any(node)
    if isinstance(node, TypeAlias) and not node.alias_tvars:
        return get_proper_type(node.target)
    return None


# Which statement it is ----------------------------------------------------------------------------------------------


def _chain(expression: Expression, index: Index) -> _Chain | None:
    """The statement that an expression is."""
    values: int | None = None
    counted = False
    for _ in range(50):
        if isinstance(expression, NameExpr):
            value = index.value(expression)
            if value is None:
                return None
            expression = value
            continue
        if not isinstance(expression, CallExpr) or not isinstance(expression.callee, MemberExpr):
            return None
        if expression.callee.name == "prepare":
            return _Chain(expression, values)
        if expression.callee.name != "bind":
            return None
        if not counted:
            counted = True
            starred = any(kind.is_star() for kind in expression.arg_kinds)
            values = -1 if starred else len(expression.args)
        expression = expression.callee.expr
    return None


def _statement(
    project: Project, call: CallExpr, index: Index, api: CheckerPluginInterface
) -> tuple[str, Statement] | None:
    """What is known of the text given to `prepare`, and how its database is called."""
    statements = index.statements
    if call not in statements:
        # All of a module at once: SQLite, and what is here, are twice as fast while nothing else runs in between.
        for one in (*index.prepares, call):
            if one not in statements:
                statements[one] = _read(project, one, index, api.path)
        index.prepares.clear()
        index.settled.update(one for one in index.asked if _is_settled(one, index))
        index.asked.clear()
    return statements[call]


def _read(project: Project, call: CallExpr, index: Index, path: str) -> tuple[str, Statement] | None:
    sql = index.text(call.args[0]) if len(call.args) == 1 else None
    if sql is None or not isinstance(call.callee, MemberExpr):
        return None
    attribute = _attribute(call.callee.expr, index)
    found = project.database(path, attribute)
    if found is None:
        return attribute or "SQL", blank_schema().analyse(sql)
    name, schema = found
    return name, schema.analyse(sql)


def _attribute(expression: Expression, index: Index) -> str | None:
    """The attribute of Env that a database is, as far as it is written: `req.env.DB`."""
    for _ in range(50):
        if isinstance(expression, AwaitExpr):
            expression = expression.expr
        elif isinstance(expression, NameExpr):
            value = index.value(expression)
            if value is None:
                return None
            expression = value
        elif isinstance(expression, CallExpr) and isinstance(expression.callee, MemberExpr):
            expression = expression.callee.expr  # with_session(…)
        elif isinstance(expression, MemberExpr):
            return expression.name
        else:
            return None
    return None
