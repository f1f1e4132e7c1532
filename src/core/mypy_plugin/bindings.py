"""Names of bindings given as strings, `rate_limit(kv_binding="SESSIONS")`, against the Env they will run with
(`core-binding`).
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import CallExpr, Expression, StrExpr, SymbolTableNode, TypeInfo
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Instance, LiteralType, Type, get_proper_type

from core.analysis.extensions import declared
from core.analysis.problems import binding_problem
from core.analysis.registrations import NamedBinding, bindings_of
from core.analysis.settings import Project
from core.mypy_plugin.envs import shape_of
from core.mypy_plugin.index import Index
from core.mypy_plugin.location import env_of, index_here, tell
from core.mypy_plugin.types import instance_of

__all__ = ["carry_name", "check_names"]

_SEPARATOR = ":"
_BETWEEN = ";"
BOUND = "core.shapes.BoundMiddleware"


def carry_name(lookup: Callable[[str], SymbolTableNode | None], ctx: FunctionContext) -> Type:
    """Let a middleware in a variable carry its binding's name in its type, to the router it lands on in any module.

    Only where the variable is assigned nothing else: another one would not fit its type.
    """
    call = ctx.context
    default = get_proper_type(ctx.default_return_type)
    if not isinstance(call, CallExpr) or not isinstance(default, Instance) or len(default.args) != 2:
        return ctx.default_return_type
    index = index_here(ctx.api)
    names = [_SEPARATOR.join(name) for name in bindings_of(index, call)] if index.assigned_once(call) else []
    symbol = lookup(BOUND) if names else None
    if symbol is None or not isinstance(symbol.node, TypeInfo):
        return ctx.default_return_type
    literal = LiteralType(_BETWEEN.join(names), ctx.api.named_generic_type("builtins.str", []))
    return Instance(symbol.node, [*default.args, literal], line=call.line, column=call.column)


def check_names(project: Project, index: Index, ctx: MethodContext) -> None:
    """Check the names that the middleware of a registration go by."""
    env = env_of(ctx.type)
    if env is None:
        return
    shape = None
    for expressions, types in zip(ctx.args, ctx.arg_types, strict=True):
        for expression, type_ in zip(expressions, types, strict=False):
            for named in _names(expression, type_, index):
                if _is_namespace(env, named):
                    continue
                if shape is None:
                    shape = shape_of(project, env, ctx.api.path)
                message = binding_problem(named.shown, named.name, shape, expected=named.expected)
                if message is not None:
                    tell(project, ctx.api, message, expression, "core-binding")


def _is_namespace(env: TypeInfo, named: NamedBinding) -> bool:
    """Return True if an attribute of that very name is the KVNamespace that is wanted: so for nearly all, and soon
    told.
    """
    symbol = env.get(named.name) if named.expected == "KVNamespace" else None
    type_ = get_proper_type(symbol.type) if symbol is not None else None
    return isinstance(type_, Instance) and type_.type.fullname == "core.bindings.kv.KVNamespace"


def _names(expression: Expression, type_: Type, index: Index) -> list[NamedBinding]:
    """The bindings that a middleware goes by: as it is written here, or as its type says where it is from elsewhere."""
    if isinstance(expression, StrExpr):
        return []  # the path
    made = list(bindings_of(index, expression))
    if made:
        return made
    bound = instance_of(type_, BOUND)
    literal = get_proper_type(bound.args[2]) if bound is not None and len(bound.args) == 3 else None
    if not isinstance(literal, LiteralType) or not isinstance(literal.value, str):
        return []
    named = [NamedBinding(*text.split(_SEPARATOR, 2)) for text in literal.value.split(_BETWEEN)]
    known = declared().middleware
    return [one for one in named if one.maker in known and one.option in known[one.maker].bindings]
