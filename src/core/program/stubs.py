"""Calls on the stub of a Durable Object: only the public `async` methods of its class are there (`core-binding`).

A type checker takes a stub for the object itself, so it accepts calls that `core.backends` refuses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from core.program.databases import OBJECTS
from core.program.findings import Finding
from core.program.modules import ClassScope, Scope
from core.program.receivers import Receivers
from core.program.syntax import finding_at
from core.program.wording import did_you_mean

_GETS_STUB: Final = frozenset(["get", "get_by_name"])
_EVERY_STUB: Final = frozenset(["fetch", "id", "name"])
_NOT_REMOTE: Final = frozenset(["alarm", "ctx", "env"])


def _on_stub(class_: str, name: str, kind: str, methods: Sequence[str]) -> str | None:
    """`stub.name` of a stub of `class_`.

    `kind` is `async`, `method` or `attribute`; `methods` are the async ones there are.
    """
    if name in _EVERY_STUB or name.startswith("__"):
        return None
    if name.startswith("_"):
        why, hint = "it is private", "Give it a public name"
    elif name in _NOT_REMOTE:
        why, hint = "it is the object's own", "Write an async method for the task"
    elif kind == "async":
        return None
    else:
        why = "it is not async" if kind == "method" else "it is not a method"
        write = f"Write async def {name}" if kind == "method" else f"Write an async method that returns {name}"
        hint = did_you_mean(name, [one for one in methods if not one.startswith("_")], f"{write} in {class_}")
    return f"{class_}.{name} cannot be called on a stub: {why}. {hint}"


def stub_problems(
    receivers: Receivers, node: ast.Attribute, scope: Scope, stub: ast.Call, made_in: Scope
) -> Iterator[Finding]:
    """`req.env.COUNTERS.get(id).reset()` in plain syntax trees, whatever is between the stub and its method."""
    if not isinstance(node.ctx, ast.Load) or not isinstance(stub.func, ast.Attribute):
        return
    class_ = _object(receivers, stub.func.value, made_in) if stub.func.attr in _GETS_STUB else None
    reader, name = receivers.reader, node.attr
    if class_ is None or not reader.outside(class_) & OBJECTS:
        return
    methods = [
        inner.name
        for ancestor in reader.ancestors(class_)
        for inner in ancestor.node.body
        if isinstance(inner, ast.AsyncFunctionDef)
    ]
    for ancestor in reader.ancestors(class_):
        found = ancestor.names.get(name)
        if found is None:
            continue
        definition = found[-1].node
        match definition:
            case ast.AsyncFunctionDef():
                kind = "async"
            case ast.FunctionDef(decorator_list=[]):
                kind = "method"
            case ast.AnnAssign() | ast.FunctionDef(decorator_list=[ast.Name(id="property" | "cached_property")]):
                kind = "attribute"
            case _:
                return
        break
    else:
        kind = "async" if name not in _NOT_REMOTE else "attribute"
    message = _on_stub(class_.node.name, name, kind, methods)
    if message is not None:
        yield finding_at(node, scope, "core-binding", message)


def _object(receivers: Receivers, receiver: ast.expr, scope: Scope) -> ClassScope | None:
    """The class of the objects of a namespace on an Env."""
    value, scope = receivers.modules.value(receiver, scope)
    if not isinstance(value, ast.Attribute):
        return None
    env = receivers.class_of(value.value, scope)
    field = next((f for f in receivers.reader.fields(env) if f.name == value.attr), None) if env is not None else None
    if field is None:
        return None
    annotation, where = receivers.reader.written_out(field.annotation, field.owner)
    if not isinstance(annotation, ast.Subscript):
        return None
    if not receivers.modules.outside(annotation, where).endswith(".DurableObjectNamespace"):
        return None
    return receivers.reader.class_of(annotation.slice, where)
