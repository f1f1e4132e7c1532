"""Names of bindings given as texts, `rate_limit(kv_binding="SESSIONS")`, against the Env they will run with (`core-binding`)."""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import CallExpr, Expression, StrExpr, SymbolTableNode, TypeInfo
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Instance, LiteralType, Type, get_proper_type

from core.config.check import binding_problem
from core.mypy_plugin.codes import BINDING
from core.mypy_plugin.envs import shape_of
from core.mypy_plugin.index import Index, callee_name
from core.mypy_plugin.place import env_of, index_here, instance_of
from core.mypy_plugin.settings import Project

__all__ = ["carry_name", "check_names"]

RATE_LIMIT = "core.middleware.rate_limit.rate_limit"
BOUND = "core.handlers.BoundMiddleware"


def carry_name(lookup: Callable[[str], SymbolTableNode | None], ctx: FunctionContext) -> Type:
    """Let a limiter in a variable carry its binding's name in its type, to the router it lands on in any module.

    Only where the variable is assigned nothing else: another limiter would not fit its type.
    """
    call = ctx.context
    default = get_proper_type(ctx.default_return_type)
    if not isinstance(call, CallExpr) or not isinstance(default, Instance) or len(default.args) != 2:
        return ctx.default_return_type
    index = index_here(ctx.api)
    name = _kv_binding(call, index) if index.assigned_once(call) else None
    symbol = lookup(BOUND) if name is not None else None
    if name is None or symbol is None or not isinstance(symbol.node, TypeInfo):
        return ctx.default_return_type
    literal = LiteralType(name, ctx.api.named_generic_type("builtins.str", []))
    return Instance(symbol.node, [*default.args, literal], line=call.line, column=call.column)


def check_names(project: Project, index: Index, ctx: MethodContext) -> None:
    """Check the names that the middleware of a registration go by."""
    env = env_of(ctx.type)
    if env is None:
        return
    shape = None
    for expressions, types in zip(ctx.args, ctx.arg_types, strict=True):
        for expression, type_ in zip(expressions, types, strict=False):
            name = _name(expression, type_, index)
            if name is None or _is_namespace(env, name):
                continue
            if shape is None:
                shape = shape_of(project, env, ctx.api.path)
            message = binding_problem(f'rate_limit(kv_binding="{name}")', name, shape)
            if message is not None:
                ctx.api.fail(message, expression, code=BINDING)


def _is_namespace(env: TypeInfo, name: str) -> bool:
    """Whether an attribute of that very name is a KVNamespace: so for nearly all, and soon told."""
    symbol = env.get(name)
    type_ = get_proper_type(symbol.type) if symbol is not None else None
    return isinstance(type_, Instance) and type_.type.fullname == "core.bindings.kv.KVNamespace"


def _name(expression: Expression, type_: Type, index: Index) -> str | None:
    if isinstance(expression, CallExpr):
        return _kv_binding(expression, index) if callee_name(expression) == RATE_LIMIT else None
    if isinstance(expression, StrExpr):
        return None  # the path
    value = index.value(expression)
    if isinstance(value, CallExpr) and callee_name(value) == RATE_LIMIT:
        return _kv_binding(value, index)
    bound = instance_of(type_, BOUND)
    literal = get_proper_type(bound.args[2]) if bound is not None and len(bound.args) == 3 else None
    return literal.value if isinstance(literal, LiteralType) and isinstance(literal.value, str) else None


def _kv_binding(call: CallExpr, index: Index) -> str | None:
    for argument, name in zip(call.args, call.arg_names, strict=True):
        if name == "kv_binding":
            return index.text(argument)
    return None
