"""Calls on the stub of a Durable Object: only the public `async` methods of its class are there (`core-binding`).

A type checker takes a stub for the object itself, so it accepts calls that `core.backends` refuses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from core.program.findings import Finding
from core.program.modules import Scope
from core.program.receivers import Receivers
from core.program.syntax import finding_at
from core.program.wording import did_you_mean

_EVERY_STUB: Final = frozenset(["fetch", "id", "name"])
_NOT_REMOTE: Final = frozenset(["alarm", "ctx", "env"])


def stub_problems(
    receivers: Receivers, node: ast.Attribute, scope: Scope, stub: ast.Call, made_in: Scope
) -> Iterator[Finding]:
    """`req.env.COUNTERS.get(id).reset()` in plain syntax trees, whatever is between the stub and its method."""
    class_ = receivers.stub_of(stub, made_in) if isinstance(node.ctx, ast.Load) else None
    reader, name = receivers.reader, node.attr
    if class_ is None or name in _EVERY_STUB or name.startswith("__"):
        return
    ancestors, own = reader.ancestors(class_), class_.node.name
    hint = why = write = ""
    match next((each.names[name][-1].node for each in ancestors if name in each.names), None):
        case None | ast.AsyncFunctionDef():
            pass
        case ast.FunctionDef(decorator_list=[]):
            why, write = "it is not async", f"Write async def {name}"
        case (
            ast.AnnAssign()
            | ast.Assign(value=ast.Constant())
            | ast.FunctionDef(decorator_list=[ast.Name(id="property" | "cached_property")])
        ):
            why, write = "it is not a method", f"Write an async method that returns {name}"
        case _:
            return
    if name.startswith("_"):
        why, hint = "it is private", "Give it a public name"
    elif name in _NOT_REMOTE:
        why, hint = "it is the object's own", "Write an async method for the task"
    elif why:
        body = (inner for ancestor in ancestors for inner in ancestor.node.body)
        methods = [inner.name for inner in body if isinstance(inner, ast.AsyncFunctionDef) and inner.name[0] != "_"]
        hint = did_you_mean(name, methods, f"{write} in {own}")
    if why:
        yield finding_at(node, scope, "core-binding", f"{own}.{name} cannot be called on a stub: {why}. {hint}")
