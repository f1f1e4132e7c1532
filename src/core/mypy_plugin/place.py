"""Where mypy is at the moment: the module, its tree and its path, which the interface for plugins does not name."""

from __future__ import annotations

from typing import Any, cast

from mypy.nodes import Context, MypyFile, TypeInfo
from mypy.plugin import CheckerPluginInterface
from mypy.types import Instance, ProperType, Type, UnionType, get_proper_type

from core.mypy_plugin.index import Index, index_of

__all__ = ["at", "env_of", "index_here", "instance_of"]


def index_here(api: CheckerPluginInterface) -> Index:
    """The index of the module that is being checked."""
    return index_of(cast("MypyFile", cast("Any", api).tree))


def at(line: int, column: int = 0) -> Context:
    """A place in the module that is being checked."""
    return Context(line, column)


def instance_of(type_: Type | None, ancestor: str) -> Instance | None:
    """A type as the generic ancestor that it has, with the ancestor's arguments."""
    proper: ProperType | None = get_proper_type(type_) if type_ is not None else None
    if isinstance(proper, UnionType):
        found = [instance_of(item, ancestor) for item in proper.items]
        return found[0] if found and all(found) else None
    if not isinstance(proper, Instance):
        return None
    if proper.type.fullname == ancestor:
        return proper
    for base in proper.type.mro:
        if base.fullname == ancestor:
            from mypy.maptype import map_instance_to_supertype

            return map_instance_to_supertype(proper, base)
    return None


def env_of(receiver: Type | None) -> TypeInfo | None:
    """The Env class of a router, where it has one."""
    router = instance_of(receiver, "core.router.Router")
    if router is None or not router.args:
        return None
    env = get_proper_type(router.args[0])
    return env.type if isinstance(env, Instance) else None
