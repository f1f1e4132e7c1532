"""What is done twice, by the order of statements: answers that are sent where one was sent before, and writes before a
question that an MCP server asks its client (`core-handler`).

An answer is reported where it fails whenever it runs: both calls are of one response, the first stands in the same
block or ends an `if` of it, and nothing between them names the response or leaves the block. A middleware may discard
what was sent, and a `try` or `with` may expect the error, so none of those is looked into. A call with a question ends
with it, and the function runs again from its first line with the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from core.program.databases import Databases
from core.program.findings import Finding
from core.program.modules import FunctionScope, Scope, blocks_of
from core.program.receivers import RESPONSE, STATEMENT, Receivers, async_methods
from core.program.syntax import finding_at
from core.program.usage import SENDERS
from core.statements.tokens import statements_of

_LOOKED_INTO = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Match
_PLAIN = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Pass
_SERVERS: Final = ("core.mcp.MCP", "core.mcp.server.MCP")
_WRITES: Final[Mapping[str, frozenset[str]]] = {
    "KVNamespace": frozenset(["delete", "put", "put_json"]),
    "D1Database": frozenset(["batch", "exec"]),
    "R2Bucket": frozenset(["create_multipart_upload", "delete", "put"]),
    "Queue": frozenset(["send", "send_batch"]),
}
_VERBS: Final = ("DELETE", "INSERT", "REPLACE", "UPDATE")
_ENDS: Final = ast.Return | ast.Raise | ast.Continue | ast.Break


class _Sent(NamedTuple):
    """The call of a method that sends, and the name of its response."""

    call: ast.Call
    method: str
    response: str


def sent_twice(receivers: Receivers, scope: FunctionScope) -> Iterator[Finding]:
    """Every second answer of a function that is no middleware."""
    if len(receivers.arguments(scope)) > 2:
        return
    for first, second in _pairs(scope.node.body):
        owners = [call.func.value for call in (first.call, second.call) if isinstance(call.func, ast.Attribute)]
        if all(receivers.kind(owner, scope) == RESPONSE for owner in owners):
            message = (
                f"res.{second.method}(): a response was sent already, in line {first.call.lineno}. Write `return` after "
                "that, or send one of the two"
            )
            yield finding_at(second.call, scope, "core-handler", message)


def _pairs(body: Sequence[ast.stmt]) -> Iterator[tuple[_Sent, _Sent]]:
    """The calls that send in a block, each with the one that has sent before it."""
    before: _Sent | None = None
    for statement in body:
        now = _sent_by(statement)
        if now is not None and before is not None and now.response == before.response:
            yield before, now
        if now is not None or not isinstance(statement, _PLAIN) or (before and _names(statement, before.response)):
            before = now or _falls_through(statement)
        for block in blocks_of(statement) if isinstance(statement, _LOOKED_INTO) else ():
            yield from _pairs(block)


def _falls_through(statement: ast.stmt) -> _Sent | None:
    """The call that sends and ends a block of an `if`, behind which the next statement runs."""
    for block in (statement.body, statement.orelse) if isinstance(statement, ast.If) else ():
        last = block[-1] if block else None
        found = (
            _sent_by(last) or _falls_through(last) if last is not None and not isinstance(last, ast.Return) else None
        )
        if found is not None:
            return found
    return None


def _sent_by(statement: ast.stmt) -> _Sent | None:
    """The call that sends, of a statement that is nothing else: `res.status(201).json(…)`, `return res.send()`."""
    match statement.value if isinstance(statement, ast.Expr | ast.Return) else None:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) as call if method in SENDERS:
            pass
        case _:
            return None
    while isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute):
        owner = owner.func.value
    return _Sent(call, method, owner.id) if isinstance(owner, ast.Name) else None


def _names(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))


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
            prepare, where, _ = receivers.prepared(owner, scope) or (call, scope, None)
            sql = receivers.modules.string(prepare.args[0], where) if prepare is not call and prepare.args else None
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
