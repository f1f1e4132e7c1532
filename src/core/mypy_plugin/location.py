"""The position that mypy is at: the module, its tree and its path, which the interface for plugins does not name."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from mypy.nodes import (
    CallExpr,
    Context,
    Decorator,
    Expression,
    FuncDef,
    MemberExpr,
    NameExpr,
    RefExpr,
    TypeInfo,
    Var,
)
from mypy.plugin import CheckerPluginInterface, SemanticAnalyzerPluginInterface
from mypy.types import AnyType, CallableType, Instance, Type, TypeOfAny, get_proper_type

from core.analysis.findings import level_of
from core.analysis.settings import Project
from core.config.checks import Code
from core.mypy_plugin.codes import ERROR_CODES
from core.mypy_plugin.index import Index, index_of
from core.mypy_plugin.types import instance_of

__all__ = ["at", "env_of", "index_here", "tell", "type_of", "unwatched"]


def index_here(api: CheckerPluginInterface) -> Index:
    """The index of the module that is being checked."""
    return index_of(cast("Any", api).tree)


def tell(
    project: Project,
    api: CheckerPluginInterface | SemanticAnalyzerPluginInterface,
    message: str,
    node: Context,
    code: Code,
    *,
    path: str = "",
) -> None:
    """Report a finding as an error, as a note, or not at all: as `[core.checks]` of the configuration sets the code.

    `path` is that of the module, where `api` does not have it.
    """
    file = path or cast("str", cast("Any", api).path)
    match level_of(code, project.configured_for(file).configurations, file):
        case "error":
            api.fail(message, node, code=ERROR_CODES[code])
        case "warning":
            cast("Any", api).note(message, node, code=ERROR_CODES[code])  # neither interface names it, and both have it
        case _:
            pass


@contextmanager
def unwatched(api: CheckerPluginInterface) -> Generator[None]:
    """Report the messages of the block to the reader alone.

    While mypy tries the overloads of a call, an error in an argument would count against each of them, and add its own.
    """
    errors = cast("Any", api).msg.errors
    watchers, errors._watchers = errors._watchers, []
    try:
        yield
    finally:
        errors._watchers = watchers


def at(line: int, column: int = 0) -> Context:
    """A place in the module that is being checked."""
    return Context(line, column)


def type_of(expression: Expression | None, index: Index) -> Instance | None:
    """The class of a name or of an attribute, by its declaration; None where that is not known."""
    if isinstance(expression, NameExpr):
        declared = get_proper_type(expression.node.type) if isinstance(expression.node, Var) else None
        return declared if isinstance(declared, Instance) else type_of(index.value_of(expression), index)
    if isinstance(expression, CallExpr) and isinstance(expression.callee, RefExpr):
        made = expression.callee.node
        if isinstance(made, TypeInfo):
            return Instance(made, [AnyType(TypeOfAny.special_form) for _ in made.type_vars])
        signature = get_proper_type(made.type) if isinstance(made, FuncDef) and not made.is_coroutine else None
        returned = get_proper_type(signature.ret_type) if isinstance(signature, CallableType) else None
        return returned if isinstance(returned, Instance) else None
    if not isinstance(expression, MemberExpr):
        return None
    owner = type_of(expression.expr, index)
    symbol = owner.type.get(expression.name) if owner is not None else None
    node = symbol.node if symbol is not None else None
    node = node.var if isinstance(node, Decorator) else node
    if owner is None or not isinstance(node, Var) or node.type is None:
        return None
    type_ = get_proper_type(node.type)
    if isinstance(type_, CallableType) and node.is_property:
        type_ = get_proper_type(type_.ret_type)
    from mypy.expandtype import expand_type_by_instance
    from mypy.maptype import map_instance_to_supertype

    found = get_proper_type(expand_type_by_instance(type_, map_instance_to_supertype(owner, node.info)))
    return found if isinstance(found, Instance) else None


def env_of(receiver: Type | None) -> TypeInfo | None:
    """The Env class of a router, where it has one."""
    router = instance_of(receiver, "core.router.Router")
    if router is None or not router.args:
        return None
    env = get_proper_type(router.args[0])
    return env.type if isinstance(env, Instance) else None
