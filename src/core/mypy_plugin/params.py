"""Path parameters, handlers in their place, and the order of middleware (`core-params`, `core-order`)."""

from __future__ import annotations

from collections.abc import Sequence

from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    CallExpr,
    Expression,
    FuncDef,
    IndexExpr,
    MemberExpr,
    NameExpr,
    RefExpr,
    Var,
)
from mypy.plugin import MethodContext
from mypy.types import CallableType, Type, get_proper_type

from core.config.check import handler_not_last, handler_parameters, unknown_parameter
from core.config.routes import parameters_of, path_problem
from core.mypy_plugin.bindings import check_names
from core.mypy_plugin.codes import ORDER, PARAMS
from core.mypy_plugin.index import Index, Registration
from core.mypy_plugin.place import index_here, instance_of
from core.mypy_plugin.settings import Project
from core.mypy_plugin.types import literal_names, required_arguments

__all__ = ["item", "registered"]


def item(project: Project, ctx: MethodContext) -> Type:
    """`req.params["idd"]` in a handler whose paths are all known, and have no `:idd`."""
    _check_item(project, ctx)
    return ctx.default_return_type


def _check_item(project: Project, ctx: MethodContext) -> None:
    if not isinstance(ctx.context, IndexExpr):
        return
    index = index_here(ctx.api)
    name = index.text(ctx.context.index)
    request = _request(ctx.context.base, index)
    function = index.functions.get(request) if request is not None else None
    if name is None or function is None:
        return
    if function not in index.parameters:
        index.parameters[function] = [_known(route, index) for route in index.routes(function)]
    known = index.parameters[function]
    if not known or any(names is None or name in names for names in known):
        return
    routes = index.routes(function)
    if not all(_is_root(route) for route in routes) and _from_prefix(project, name):
        return
    path = index.path(routes[0]) or ""
    ctx.api.fail(unknown_parameter(name, path, known[0] or ()), ctx.context.index, code=PARAMS)


def _request(params: Expression, index: Index) -> Var | None:
    """The variable of the request whose `params` an expression is."""
    if not isinstance(params, MemberExpr):
        value = index.value(params)
        if not isinstance(value, MemberExpr):
            return None
        params = value
    if params.name == "params" and isinstance(params.expr, NameExpr) and isinstance(params.expr.node, Var):
        return params.expr.node
    return None


def _known(route: Registration, index: Index) -> tuple[str, ...] | None:
    path = index.path(route)
    return parameters_of(path) if path is not None else None


def _is_root(route: Registration) -> bool:
    """Whether a route stands on an application, which nothing mounts, and not on a router."""
    node = route.receiver.node if isinstance(route.receiver, RefExpr) else None
    return isinstance(node, Var) and instance_of(node.type, "core.app.App") is not None


def _from_prefix(project: Project, name: str) -> bool:
    """Whether a prefix that a router is mounted at may have the parameter."""
    sources = project.sources
    return not sources.complete or name in sources.prefixes


def registered(project: Project, method: str, ctx: MethodContext) -> Type:
    """One call of `get`, `use` and the like."""
    if isinstance(ctx.context, CallExpr):
        index = index_here(ctx.api)
        check_names(project, index, ctx)
        _check_registration(project, method, index, ctx.context, ctx)
    return ctx.default_return_type


def _check_registration(project: Project, method: str, index: Index, call: CallExpr, ctx: MethodContext) -> None:
    message = index.order.get(call)
    if message is not None:
        ctx.api.fail(message, call, code=ORDER)
    registration = index.registration(call)
    if registration is None:
        return
    path = index.path(registration) if method != "use" or _has_prefix(registration, index) else None
    known = parameters_of(path) if path is not None else None
    if path is not None and known is None:
        ctx.api.fail(path_problem(path) or "", ctx.context, code=PARAMS)
        return
    if method == "use":
        return
    given = _given(registration, ctx)
    shown = f'{method}("{path}")' if path is not None else f"{method}(…)"
    _check_last(registration, given, shown, ctx)
    if path is None or known is None:
        return
    root = instance_of(ctx.type, "core.app.App") is not None
    for expression, type_ in given:
        _check_names(project, expression, type_, path, known, root, ctx)
    function = registration.decorated
    if function is not None and function.type is not None:
        _check_names(project, function, function.type, path, known, root, ctx)


def _has_prefix(registration: Registration, index: Index) -> bool:
    return bool(registration.call.args) and index.path(registration) is not None


def _given(registration: Registration, ctx: MethodContext) -> list[tuple[Expression, Type]]:
    """The handlers of a registration and their types."""
    handlers = registration.handlers
    return [
        (expression, type_)
        for expressions, types in zip(ctx.args, ctx.arg_types, strict=True)
        for expression, type_ in zip(expressions, types, strict=False)
        if expression in handlers
    ]


def _check_last(
    registration: Registration, given: Sequence[tuple[Expression, Type]], shown: str, ctx: MethodContext
) -> None:
    """A handler `(req, res)` ends the chain: whatever is registered after it never runs."""
    if ARG_STAR in registration.call.arg_kinds or ARG_STAR2 in registration.call.arg_kinds:
        return
    last = None if registration.decorated is not None or not given else given[-1][0]
    for expression, type_ in given:
        if expression is not last and required_arguments(type_) == 2:
            ctx.api.fail(handler_not_last(_spelt(expression), shown), expression, code=PARAMS)
            return


def _check_names(
    project: Project,
    handler: Expression | FuncDef,
    type_: Type,
    path: str,
    known: tuple[str, ...],
    root: bool,
    ctx: MethodContext,
) -> None:
    """A handler over `Request[Env, U, Literal["org"]]` on a path without `:org`."""
    proper = get_proper_type(type_)
    if not isinstance(proper, CallableType) or not proper.arg_types:
        return
    request = instance_of(proper.arg_types[0], "core.request.Request")
    wanted = literal_names(request.args[2]) if request is not None and len(request.args) == 3 else None
    if not wanted:
        return
    if not root:
        wanted = tuple(name for name in wanted if name in known or not _from_prefix(project, name))
    message = handler_parameters(_spelt(handler), wanted, path, known)
    if message is not None:
        ctx.api.fail(message, ctx.context if isinstance(handler, FuncDef) else handler, code=PARAMS)


def _spelt(expression: Expression | FuncDef) -> str:
    if isinstance(expression, FuncDef):
        return expression.name
    if isinstance(expression, RefExpr):
        return expression.name if isinstance(expression, NameExpr | MemberExpr) else "the handler"
    if isinstance(expression, CallExpr):
        return f"{_spelt(expression.callee)}()"
    return "the handler"
