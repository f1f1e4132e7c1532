"""Defaults that all instances of a class share (`core-handler`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mypy.nodes import AssignmentStmt, CallExpr, DictExpr, Expression, ListExpr, NameExpr, RefExpr, SetExpr, Var
from mypy.plugin import ClassDefContext
from mypy.types import Instance, get_proper_type

from core.analysis.settings import Project
from core.mistakes import DEFINES, MUTABLE, shared_default
from core.mypy_plugin.location import tell
from core.mypy_plugin.types import shown

__all__ = ["check_defaults"]

_DISPLAYS: Final[Mapping[type[Expression], str]] = {DictExpr: "dict", ListExpr: "list", SetExpr: "set"}


def check_defaults(project: Project, ctx: ClassDefContext) -> None:
    """`tags: list[str] = []` in a class made with attrs."""
    tree = ctx.api.modules.get(ctx.api.cur_mod_id)
    maker = ctx.reason.callee if isinstance(ctx.reason, CallExpr) else ctx.reason
    if tree is None or not isinstance(maker, RefExpr) or maker.fullname not in DEFINES:
        return
    for statement in ctx.cls.defs.body:
        if isinstance(statement, AssignmentStmt) and statement.type is not None:
            target, kind = statement.lvalues[0], _kind(statement.rvalue)
            type_ = get_proper_type(statement.type)
            if (
                not kind
                or not isinstance(target, NameExpr)
                or (isinstance(target.node, Var) and target.node.is_classvar)
            ):
                continue
            if isinstance(type_, Instance) and type_.type.fullname in MUTABLE:
                message = shared_default(ctx.cls.name, target.name, shown(type_), kind)
                tell(project, ctx.api, message, statement, "core-handler", path=tree.path)


def _kind(value: Expression) -> str:
    match value:
        case CallExpr(callee=NameExpr(fullname="builtins.dict" | "builtins.list" | "builtins.set", name=name), args=[]):
            return name
        case _:
            return _DISPLAYS.get(type(value), "")
