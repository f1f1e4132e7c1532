"""Path parameters, handlers in their place, and the order of middleware (`core-params`, `core-order`).

Only the way from mypy's hooks to `core.analysis.registrations`, where all of it is decided.
"""

from __future__ import annotations

from collections.abc import Sequence

from mypy.nodes import (
    ARG_NAMED,
    ARG_POS,
    LDEF,
    AwaitExpr,
    CallExpr,
    Expression,
    IndexExpr,
    MemberExpr,
    NameExpr,
    Node,
    StrExpr,
    Var,
)
from mypy.plugin import MethodContext
from mypy.types import Instance, Type, get_proper_type

from core.analysis.registrations import path_of, registration_problems, unknown_read
from core.analysis.routes import pattern_of
from core.analysis.settings import Project
from core.analysis.unreachable import mounts_nothing
from core.mypy_plugin.bindings import check_names
from core.mypy_plugin.index import Index
from core.mypy_plugin.location import at, index_here, tell
from core.mypy_plugin.types import named_type, row_fields

__all__ = ["item", "linked", "parsed", "registered"]


def item(project: Project, ctx: MethodContext) -> Type:
    """`req.params["idd"]` in a handler whose paths are all known, and have no `:idd`."""
    if isinstance(ctx.context, IndexExpr):
        name = index_here(ctx.api).string_of(ctx.context.index)
        if name is not None:
            _check_read(project, ctx, ctx.context.base, [name], ctx.context.index)
    return ctx.default_return_type


def parsed(project: Project, ctx: MethodContext) -> Type:
    """`req.params.parse(User)`, where `User` has a field without a default that is not a parameter of the path."""
    call = ctx.context
    if isinstance(call, CallExpr) and isinstance(call.callee, MemberExpr) and len(call.args) == 1:
        type_ = named_type(call.args[0])
        row = row_fields(type_) if type_ is not None else None
        if row is not None:
            names = [field.name for field in row[1] if field.required]
            _check_read(project, ctx, call.callee.expr, names, call.args[0], row[0])
    return ctx.default_return_type


def linked(project: Project, ctx: MethodContext) -> Type:
    """`app.url_for(show, id=7)`, whose handler may be registered and mounted in any module."""
    call = ctx.context
    if isinstance(call, CallExpr) and _is_right_here(project, call, ctx):
        return ctx.default_return_type
    found = project.elsewhere.wrong_url(ctx.api.path, call.line, call.column)
    if found is not None:
        message, line, column = found
        tell(project, ctx.api, message, at(line, column), "core-params")
    return ctx.default_return_type


def _is_right_here(project: Project, call: CallExpr, ctx: MethodContext) -> bool:
    """Return True if a link is right by its own module: a decorator here registers the handler, on a path that takes
    just these arguments, whatever their values are.

    So are nearly all, and for the others every module that registers or mounts something is read as text.
    """
    if call.arg_kinds[:1] != [ARG_POS] or any(kind is not ARG_NAMED for kind in call.arg_kinds[1:]):
        return False
    if project.sources.prefixes or project.sources.computed or not project.sources.complete:
        return False  # a prefix may bring parameters of its own
    index = index_here(ctx.api)
    function = index.function(call.args[0])
    names = {name for name in call.arg_names[1:] if name is not None}
    for route in index.routes(function) if function is not None else ():
        path = path_of(index.checked, route) if route.decorated is function else None
        pattern = pattern_of(path) if path is not None else None
        if pattern is None:
            return False
        nameless = pattern.parts.count(None) > len(pattern.names)
        if not (pattern.checks or nameless) and any(names == {*way.parameters} for way in pattern.variants):
            types = _types(call, ctx)
            return all(_is_int(types.get(value)) or _is_computed(value, index) for value in call.args[1:])
    return False


def _is_int(type_: Type | None) -> bool:
    proper = get_proper_type(type_)
    return isinstance(proper, Instance) and proper.type.fullname == "builtins.int"


def _is_computed(value: Expression, index: Index) -> bool:
    """Return True if a value is certainly not written out anywhere, as "" is, which no path matches."""
    match value:
        case IndexExpr() | AwaitExpr():
            return True
        case CallExpr(callee=callee):
            return not (isinstance(callee, MemberExpr) and isinstance(callee.expr, StrExpr))  # an f-string
        case NameExpr(kind=kind, node=Var()) if kind == LDEF:
            given = index.value_of(value)
            return given is None or (isinstance(given, AwaitExpr | CallExpr | IndexExpr) and _is_computed(given, index))
        case MemberExpr():
            return _is_computed(value.expr, index)
        case _:
            return False


def _check_read(
    project: Project, ctx: MethodContext, params: Expression, names: Sequence[str], node: Expression, parsed: str = ""
) -> None:
    """Report the first of `names` that no path of the handler has. `params` is the expression they are read from."""
    index = index_here(ctx.api)
    request = _request(params, index)
    function = index.functions.get(request) if request is not None else None
    if function is None:
        return
    is_elsewhere = project.sources.files_of(function.name, ctx.api.path)
    for name in names:
        if is_elsewhere:
            message = project.elsewhere.unknown_read(name, function.name, function.line, ctx.api.path, parsed)
        else:
            message = unknown_read(index, name, index.routes(function), project.sources, parsed)
        if message is not None:
            tell(project, ctx.api, message, node, "core-params")
            return


def _request(params: Expression, index: Index) -> Var | None:
    """The variable of the request whose `params` an expression is."""
    if not isinstance(params, MemberExpr):
        value = index.value_of(params)
        if not isinstance(value, MemberExpr):
            return None
        params = value
    if params.name == "params" and isinstance(params.expr, NameExpr) and isinstance(params.expr.node, Var):
        return params.expr.node
    return None


def registered(project: Project, method: str, ctx: MethodContext) -> Type:
    """One call of `get`, `use` and the like."""
    call = ctx.context
    if isinstance(call, CallExpr):
        index = index_here(ctx.api)
        check_names(project, index, ctx)
        message = index.order.get(call)
        if message is not None:
            tell(project, ctx.api, message, call, "core-order")
        message = index.unreached.get(call)
        if message is not None:
            tell(project, ctx.api, message, call, "core-route")
        registration = index.registration(call)
        if registration is not None:
            for node, text in mounts_nothing(index.checked, registration).items():
                tell(project, ctx.api, text, node, "core-route")
            index.types = _types(call, ctx)
            for code, text, node in registration_problems(index, registration, project.sources):
                tell(project, ctx.api, text, node, code)
            index.types = {}
    return ctx.default_return_type


def _types(call: CallExpr, ctx: MethodContext) -> dict[Node, Type]:
    """The types of a method's arguments, and of its receiver."""
    given: dict[Node, Type] = {}
    for expressions, types in zip(ctx.args, ctx.arg_types, strict=True):
        given.update(zip(expressions, types, strict=False))
    if isinstance(call.callee, MemberExpr):
        given[call.callee.expr] = ctx.type
    return given
