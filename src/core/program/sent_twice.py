"""Answers that are sent where one was sent before (`core-handler`), by the order of statements.

Only what fails whenever it runs is reported: both calls are of one response, the first stands in the same block or ends
an `if` of it, and nothing between them names the response or leaves the block. A middleware may discard what was sent,
and a `try` or `with` may expect the error, so none of those is looked into.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.program.findings import Finding
from core.program.modules import FunctionScope, blocks_of
from core.program.receivers import RESPONSE, Receivers
from core.program.shapes import SENDERS
from core.program.syntax import finding_at

_LOOKED_INTO = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Match
_PLAIN = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Pass


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
