"""Calls that are not awaited where mypy's own checks do not look: `next()`, and values of a response (`core-await`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from mypy.nodes import CallExpr, DictExpr, Expression, ListExpr, MemberExpr, NameExpr, SetExpr, TupleExpr
from mypy.plugin import MethodContext
from mypy.types import Instance, Type, get_proper_type

from core.analysis.problems import in_response, next_alone
from core.analysis.settings import Project
from core.mypy_plugin.location import index_here, tell

__all__ = ["follows", "sent"]


def follows(project: Project, ctx: MethodContext) -> Type:
    """`next()`, which is awaitable and no coroutine: mypy lets it stand by itself, but for `unused-awaitable`."""
    call = ctx.context
    if any(code.code == "unused-awaitable" for code in cast("Any", ctx.api).options.enabled_error_codes):
        return ctx.default_return_type
    if isinstance(call, CallExpr) and isinstance(call.callee, NameExpr) and call in index_here(ctx.api).alone:
        tell(project, ctx.api, next_alone(call.callee.name), call, "core-await")
    return ctx.default_return_type


def sent(project: Project, ctx: MethodContext) -> Type:
    """`res.json({"v": kv.get("a")})`, which takes values of any type."""
    for expressions in ctx.args:
        for expression in expressions:
            for part in _parts(expression):
                type_ = get_proper_type(cast("Type | None", cast("Any", ctx.api).lookup_type_or_none(part)))
                if isinstance(type_, Instance) and type_.type.fullname == "typing.Coroutine":
                    tell(project, ctx.api, in_response(_shown(part)), part, "core-await")
    return ctx.default_return_type


def _parts(value: Expression | None) -> Iterator[Expression]:
    """The calls and names that become values in JSON."""
    match value:
        case DictExpr(items=items):
            for _, item in items:
                yield from _parts(item)
        case ListExpr() | TupleExpr() | SetExpr():
            for item in value.items:
                yield from _parts(item)
        case CallExpr() | NameExpr():
            yield value
        case _:
            pass


def _shown(expression: Expression) -> str:
    match expression:
        case CallExpr(callee=MemberExpr(name=name) | NameExpr(name=name)):
            return f"{name}()"
        case NameExpr(name=name):
            return name
        case _:
            return "the call"
