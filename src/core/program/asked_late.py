"""Writes before a question that an MCP server asks its client (`core-handler`): they are done again for each question.

Such a call ends with the question, and the function runs again from its first line with the answer. Reported are writes
by bindings and SQL in the same function, in the order of statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from core.program.databases import Databases
from core.program.findings import Finding
from core.program.modules import FunctionScope, Scope
from core.program.receivers import STATEMENT, async_methods
from core.program.syntax import Node, finding_at
from core.statements.tokens import statements_of

_SERVERS: Final = ("core.mcp.MCP", "core.mcp.server.MCP")
_WRITES: Final[Mapping[str, frozenset[str]]] = {
    "KVNamespace": frozenset(["delete", "put", "put_json"]),
    "D1Database": frozenset(["batch", "exec"]),
    "R2Bucket": frozenset(["create_multipart_upload", "delete", "put"]),
    "Queue": frozenset(["send", "send_batch"]),
}
_VERBS: Final = ("DELETE", "INSERT", "REPLACE", "UPDATE")
_ENDS: Final = ast.Return | ast.Raise | ast.Continue | ast.Break


def asked_late(receivers: Databases, scope: FunctionScope) -> Iterator[Finding]:
    """Every write of a function that a question follows."""
    if not isinstance(scope.node, ast.AsyncFunctionDef):
        return
    parents = scope.nodes.parents
    calls = scope.nodes.of(ast.Call)
    asks = [(call, _way(call, parents)) for call in calls if _asks(receivers, call, scope)]
    for call in calls if asks else ():
        if _writes(receivers, call, scope):
            way = _way(call, parents)
            ask = next((ask for ask, its in asks if _is_before(way, its)), None)
            if ask is not None:
                name = ask.func.attr if isinstance(ask.func, ast.Attribute) else ""
                message = (
                    f"{ast.unparse(call.func)}(): {name}() in line {ask.lineno} runs the function again from its first line, so "
                    "this is done twice. Write behind the last question"
                )
                yield finding_at(call, scope, "core-handler", message)


def _asks(receivers: Databases, call: ast.Call, scope: Scope) -> bool:
    match call.func:
        case ast.Attribute(value=owner, attr="ask" | "inputs"):
            return receivers.modules.maker_of(*receivers.modules.value(owner, scope)) in _SERVERS
        case _:
            return False


def _writes(receivers: Databases, call: ast.Call, scope: Scope) -> bool:
    match call.func:
        case ast.Attribute(value=owner, attr=name) if name in async_methods(STATEMENT):
            chain = receivers.prepared(Node(owner, scope))
            parts = chain[0].method_call() if chain is not None else None
            sql = receivers.modules.string(*parts.arguments[0]) if parts is not None and parts.arguments else None
            return any(each.verb in _VERBS for each in statements_of(sql or ""))
        case ast.Attribute(value=owner, attr=name):
            return name in _WRITES.get(receivers.kind(owner, scope), ())
        case _:
            return False


_Way = Sequence[tuple[ast.AST, str, int]]
"""The nodes around an expression from the outside in, each with the field and the place in it that leads there."""


def _way(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> _Way:
    found: list[tuple[ast.AST, str, int]] = []
    while (parent := parents.get(node)) is not None:
        for name, value in ast.iter_fields(parent):
            items = cast("list[ast.AST]", value) if isinstance(value, list) else [value]
            place = next((at for at, each in enumerate(items) if each is node), None)
            if place is not None:
                found.append((parent, name, place))
        node = parent
    return found[::-1]


def _is_before(write: _Way, ask: _Way) -> bool:
    """Return True if a write has run wherever a question that stands behind it is reached."""
    at = next((at for at, (one, other) in enumerate(zip(write, ask, strict=False)) if one != other), None)
    if at is None:
        return False
    (inside, field, place), (_, other, behind) = write[at], ask[at]
    is_either = isinstance(inside, ast.If | ast.IfExp) and {field, other} == {"body", "orelse"}
    if is_either or field == other == "cases" or "handlers" in (field, other):
        return False  # of which one runs
    order = inside._fields.index
    ends = (getattr(parent, name) for parent, name, _ in write[at + 1 :])
    return (order(field), place) < (order(other), behind) and not any(
        isinstance(block, list) and isinstance(block[-1], _ENDS) for block in ends
    )
