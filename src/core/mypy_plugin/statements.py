"""SQL given to `prepare`, the values bound to it, and the classes its rows become (`core-sql`).

Only the way from mypy's hooks to `core.analysis.queries`, where all of it is decided, and mypy's answers to its
questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mypy.nodes import (
    ARG_NAMED,
    ARG_POS,
    AwaitExpr,
    CallExpr,
    Expression,
    MemberExpr,
    NameExpr,
    Node,
)
from mypy.plugin import CheckerPluginInterface, MethodContext, MethodSigContext
from mypy.types import CallableType, FunctionLike, Instance, NoneType, Type, UnionType, get_proper_type

from core.analysis.findings import is_wanted, level_of
from core.analysis.front_end import Problem
from core.analysis.queries import batch_problems, bind_problems, chain_of, prepare_problems, run_problems, value_of_row
from core.analysis.settings import Project
from core.mypy_plugin.index import Index
from core.mypy_plugin.location import index_here, tell, type_of, unwatched
from core.mypy_plugin.types import BINDINGS, given_value, has_base, kinds_of, named_type, row_fields, shown
from core.sql.parameters import Given
from core.sql.rows import Kind, RowField, value_kinds
from core.sql.statement import Statement

__all__ = ["asked", "batched", "bound", "prepared", "run", "typed"]


class _Queries:
    """The statements of the module that is being checked, as `core.analysis.queries` asks for them."""

    def __init__(self, project: Project, api: CheckerPluginInterface) -> None:
        self.project = project
        self.api = api
        self.index = index = index_here(api)
        index.is_derived = lambda name: not project.sources.complete or name in project.sources.bases
        self.string_of = index.string_of
        self.value_of = index.value_of
        self.method_call = index.method_call
        self.items_of = index.items_of
        self.given: dict[Node, Type] = {}

    def report(self, problems: Iterable[Problem[Node]]) -> None:
        """Report the findings."""
        for code, message, node in problems:
            with unwatched(self.api):
                tell(self.project, self.api, message, node, code)

    def statement_of(self, prepare: Node, /) -> tuple[str, Statement] | None:
        """The label of a database and the statement given to it."""
        statements = self.index.statements
        if prepare not in statements:
            # All of a module at once: SQLite, and this module, are twice as fast while nothing else runs in between.
            new = [one for one in (*self.index.prepares, prepare) if one not in statements]
            asked = [_asked(self.project, one, self.index) for one in new]
            for one, given in zip(new, asked, strict=True):
                statements[one] = _read(self.project, given, self.api.path)
            if self.index.prepares:
                self.project.keep_statements(self.api.path)
            self.index.prepares.clear()
            calls = self.index.asked.copy()
            self.index.asked.clear()
            self.index.settled.update(filter(self._is_settled, calls))
        return statements[prepare]

    def _is_settled(self, call: CallExpr) -> bool:
        """Return True if a call that asks for rows is all right, as far as its statement has been read."""
        chain = chain_of(self, call.callee.expr) if isinstance(call.callee, MemberExpr) else None
        read = chain is not None and self.index.statements.get(chain.prepare) is not None
        return read and bool(call.args) and not any(True for _ in run_problems(self, call))

    def scans_of(self, prepare: Node, /) -> Sequence[str]:
        """The tables that a statement reads without an index."""
        if not isinstance(prepare, CallExpr) or not isinstance(prepare.callee, MemberExpr) or len(prepare.args) != 1:
            return ()
        if not is_wanted("core-scan", self.project.configured_for(self.api.path).configurations):
            return ()
        sql = self.index.string_of(prepare.args[0])
        found = self.project.database(self.api.path, _attribute(prepare.callee.expr, self.index, self.project))
        return self.project.schema(found[1]).scans(sql) if sql is not None and found is not None else ()

    def row_of(self, node: Node, /) -> tuple[str, Sequence[RowField]] | None:
        """The class that an expression names, as rows become it."""
        type_ = named_type(node)
        return row_fields(type_) if type_ is not None else None

    def given_of(self, node: Node, /) -> Given | None:
        """The values that an argument of `bind` may have, as mypy knows it."""
        type_ = self.given.get(node)
        return given_value(type_) if type_ is not None else None

    def scalar_of(self, node: Node, /) -> tuple[str, frozenset[Kind]] | None:
        """Another type that an expression names."""
        type_ = named_type(node)
        return (shown(type_), kinds_of(type_)) if type_ is not None else None


def prepared(project: Project, ctx: MethodContext) -> Type:
    """`db.prepare("…")`: the statement by itself."""
    if isinstance(ctx.context, CallExpr):
        queries = _Queries(project, ctx.api)
        queries.report(prepare_problems(queries, ctx.context, project.sources))
    return ctx.default_return_type


def bound(project: Project, ctx: MethodContext) -> Type:
    """`.bind(…)`: as many values as the statement takes, each one that can be where it is."""
    if isinstance(ctx.context, CallExpr):
        queries = _Queries(project, ctx.api)
        for expressions, types in zip(ctx.args, ctx.arg_types, strict=True):
            queries.given |= zip(expressions, types, strict=True)
        queries.report(bind_problems(queries, ctx.context))
    return ctx.default_return_type


def batched(project: Project, ctx: MethodSigContext) -> FunctionLike:
    """`.batch([…])`: every statement in it was bound, if it takes values."""
    given = [get_proper_type(type_) for type_ in ctx.default_signature.arg_types]
    # Each overload is asked for by itself; the one for lists stands for the call.
    if any(isinstance(type_, Instance) for type_ in given):
        queries = _Queries(project, ctx.api)
        for expressions in ctx.args:
            for expression in expressions:
                queries.report(batch_problems(queries, expression))
    return ctx.default_signature


def typed(project: Project, ctx: MethodContext) -> Type:
    """`.as_(T)`: the rows fit `T`."""
    if isinstance(ctx.context, CallExpr):
        queries = _Queries(project, ctx.api)
        queries.report(run_problems(queries, ctx.context))
    return ctx.default_return_type


def run(project: Project, ctx: MethodSigContext) -> FunctionLike:
    """`.first(T)`, `.all(T)`, `.run()` and `.raw()`: values are bound, and the rows fit `T`."""
    signature = ctx.default_signature
    # Each overload is asked for by itself; the one without a required argument stands for the call.
    if isinstance(ctx.context, CallExpr) and _takes_column(signature):
        return _with_value(project, ctx, signature, ctx.context)
    required = ARG_POS in signature.arg_kinds or ARG_NAMED in signature.arg_kinds
    if not required and isinstance(ctx.context, CallExpr) and ctx.context not in index_here(ctx.api).settled:
        queries = _Queries(project, ctx.api)
        queries.report(run_problems(queries, ctx.context))
    return signature


def _takes_column(signature: CallableType) -> bool:
    first = get_proper_type(signature.arg_types[0]) if signature.arg_types else None
    return isinstance(first, Instance) and first.type.fullname == "builtins.str"


def _with_value(project: Project, ctx: MethodSigContext, signature: CallableType, call: CallExpr) -> CallableType:
    """`first("name")`, with the type of the statement's column, where that is known, in the place of Any."""
    returned = get_proper_type(signature.ret_type)
    queries = _Queries(project, ctx.api)
    found = value_of_row(queries, call)
    if found is None or not isinstance(returned, Instance) or not returned.args:
        return signature
    if level_of("core-sql", project.configured_for(ctx.api.path).configurations, ctx.api.path) == "off":
        return signature
    kinds = value_kinds(found[1], found[3], one=found[2] == "one")
    if kinds is None:
        return signature
    types: list[Type] = [ctx.api.named_generic_type(f"builtins.{kind}", []) for kind in sorted(kinds - {"none"})]
    if "none" in kinds:
        types.append(NoneType())
    result = Instance(returned.type, [*returned.args[:-1], UnionType.make_union(types)])
    return signature.copy_modified(ret_type=result)  # pyright: ignore[reportUnknownMemberType]  # some of its parameters have no types


def asked(project: Project, call: CallExpr, index: Index) -> tuple[str, Statement] | None:
    """The text of the statement that `statement.first(…)` and the like run, and the facts known of it."""
    chain = chain_of(index, call.callee.expr) if isinstance(call.callee, MemberExpr) else None
    given = _asked(project, chain.prepare, index) if chain is not None else None
    found = _read(project, given, index.file)
    return (given[1], found[1]) if given is not None and found is not None else None


def _asked(project: Project, call: Node, index: Index) -> tuple[str | None, str] | None:
    """The attribute of the database and the text of a `prepare("…")`."""
    sql = index.string_of(call.args[0]) if isinstance(call, CallExpr) and len(call.args) == 1 else None
    if sql is None or not isinstance(call, CallExpr) or not isinstance(call.callee, MemberExpr):
        return None
    return _attribute(call.callee.expr, index, project), sql


def _read(project: Project, given: tuple[str | None, str] | None, path: str) -> tuple[str, Statement] | None:
    if given is None:
        return None
    attribute, sql = given
    found = project.statement(path, attribute, sql)
    if found is None:
        from core.sql.schema import blank_schema

        return attribute or "SQL", blank_schema().analyse(sql)
    return found


def _attribute(expression: Expression, index: Index, project: Project) -> str | None:
    """The attribute of Env that a database is, as far as it is written: `req.env.DB`."""
    for _ in range(50):
        if isinstance(expression, AwaitExpr):
            expression = expression.expr
        elif isinstance(expression, NameExpr):
            value = index.value_of(expression)
            if value is None:
                return None
            expression = value
        elif isinstance(expression, CallExpr) and isinstance(expression.callee, MemberExpr):
            expression = expression.callee.expr  # with_session(…)
        elif isinstance(expression, MemberExpr):
            if _may_be_env(expression.expr, index, project):
                return expression.name
            value = index.value_of(expression)
            if value is None:
                return None
            expression = value
        else:
            return None
    return None


def _may_be_env(owner: Expression, index: Index, project: Project) -> bool:
    """Return True if the owner of a database attribute is an Env: it is called so, or its class is one."""
    if isinstance(owner, NameExpr | MemberExpr) and owner.name == "env":
        return True
    type_ = type_of(owner, index)
    if type_ is None:
        return False
    info = type_.type
    return has_base(info, BINDINGS) or info.is_protocol or project.settings.names(info.fullname)
