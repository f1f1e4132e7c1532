"""Stubs of Durable Objects by mypy's nodes; the methods that may be called on one are decided in `core.analysis.stubs`
(`core-binding`).
"""

from __future__ import annotations

from mypy.nodes import CallExpr, Decorator, Expression, FuncDef, MemberExpr, Node, TypeInfo, Var
from mypy.plugin import AttributeContext, CheckerPluginInterface, MethodContext
from mypy.types import Instance, Type, get_proper_type

from core.analysis.settings import Project
from core.analysis.stubs import GETS_STUB, on_stub
from core.mypy_plugin.index import Index
from core.mypy_plugin.location import index_here, tell, type_of
from core.mypy_plugin.types import has_base, instance_of

__all__ = ["attribute", "called"]

OBJECT = "core.bindings.durable_object.DurableObject"
_NAMESPACE = "core.bindings.durable_object.DurableObjectNamespace"


def called(project: Project, ctx: MethodContext) -> Type:
    """A call of a method of a Durable Object's class."""
    if isinstance(ctx.context, CallExpr) and isinstance(ctx.context.callee, MemberExpr):
        _check(project, ctx.api, ctx.context.callee)
    return ctx.default_return_type


def attribute(project: Project, ctx: AttributeContext) -> Type:
    """An attribute of a Durable Object's class, read or given a value."""
    if isinstance(ctx.context, MemberExpr) and not ctx.is_lvalue:
        _check(project, ctx.api, ctx.context)
    return ctx.default_attr_type


def _check(project: Project, api: CheckerPluginInterface, member: MemberExpr) -> None:
    class_ = _object(member.expr, index_here(api))
    symbol = class_.get(member.name) if class_ is not None else None
    kind = _kind(symbol.node) if symbol is not None else None
    if class_ is None or kind is None:
        return
    methods = [
        name for base in class_.mro for name, other in base.names.items() if other.node and _kind(other.node) == "async"
    ]
    message = on_stub(class_.name, member.name, kind, methods)
    if message is not None:
        tell(project, api, message, member, "core-binding")


def _kind(node: Node | None) -> str | None:
    match node:
        case FuncDef():
            return "async" if node.is_coroutine else "method"
        case Decorator(func=func) if func.is_coroutine:
            return "async"
        case Var():
            return "attribute"
        case _:
            return None


def _object(stub: Expression, index: Index) -> TypeInfo | None:
    """The class of the object that an expression is a stub of."""
    call = index.value_of(stub) or stub
    if not isinstance(call, CallExpr) or not isinstance(call.callee, MemberExpr) or call.callee.name not in GETS_STUB:
        return None
    receiver = index.value_of(call.callee.expr) or call.callee.expr
    namespace = instance_of(type_of(receiver, index), _NAMESPACE)
    own = get_proper_type(namespace.args[0]) if namespace is not None and namespace.args else None
    return own.type if isinstance(own, Instance) and has_base(own.type, OBJECT) else None
