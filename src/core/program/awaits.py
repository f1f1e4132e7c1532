"""Coroutines that nobody awaits (`core-await`).

A coroutine that is a statement by itself does nothing, and one whose result is used has none. mypy sees the first where
the type is a coroutine's, and the second where types meet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from core.program.findings import Finding
from core.program.modules import Scope
from core.program.receivers import NEXT, RESPONSE, Receivers
from core.program.syntax import finding_at

_OWN: Final = frozenset(["close", "send", "throw"])
_SHOWS: Final = frozenset(["builtins.bool", "builtins.print", "builtins.repr", "builtins.str"])
"""Functions that take whatever there is, so that a type checker says nothing."""
_NOT_YET: Final = "{} was not awaited, so it has no result yet. Write `await` before the call"


def used_problems(receivers: Receivers, used: ast.Attribute | ast.Subscript, scope: Scope) -> Iterator[Finding]:
    """`note = req.json()`, and then `note["text"]`."""
    owner, typed = used.value, "index"
    if isinstance(used, ast.Attribute):
        typed = "attr-defined" if used.attr not in _OWN and used.attr[:3] not in ("cr_", "__a") else ""
    # A name of this function, that was given the value of a call, once.
    given = scope.names.get(owner.id, ()) if isinstance(owner, ast.Name) else ()
    is_call = isinstance(owner, ast.Call) or (len(given) == 1 and isinstance(given[0].value, ast.Call))
    if typed and isinstance(used.ctx, ast.Load) and is_call and receivers.is_coroutine(owner, scope):
        yield finding_at(used, scope, "core-await", _NOT_YET.format(_shown(owner)), typed)


def awaits_problems(receivers: Receivers, expression: ast.Call, scope: Scope) -> Iterator[Finding]:
    """A call that is a statement by itself, or whose result is used at once, without `await`."""
    if isinstance(scope.nodes.parents.get(expression), ast.Expr):
        if receivers.is_coroutine(expression, scope):
            if isinstance(expression.func, ast.Name) and receivers.kind(expression.func, scope) == NEXT:
                name = expression.func.id
                message = f"{name}() is not awaited, so nothing after this middleware runs. Write `await {name}()`"
                yield finding_at(expression, scope, "core-await", message, "unused-awaitable")
            else:
                message = f"{_shown(expression)} is not awaited, so it does nothing. Write `await` before it"
                yield finding_at(expression, scope, "core-await", message, "unused-coroutine")
    elif _is_looked_at(receivers, expression, scope) and receivers.is_coroutine(expression, scope):
        yield finding_at(expression, scope, "core-await", _NOT_YET.format(_shown(expression)))


def unawaited_problems(receivers: Receivers, scope: Scope) -> Iterator[Finding]:
    """`user = env.USERS.get(id)`, and then `if user is None`."""
    coroutines = {
        name
        for name, given in scope.names.items()
        if len(given) == 1 and isinstance(given[0].value, ast.Call) and receivers.is_coroutine(given[0].value, scope)
    }
    for name in scope.nodes.of(ast.Name) if coroutines else ():
        if name.id in coroutines and isinstance(name.ctx, ast.Load) and _is_looked_at(receivers, name, scope):
            yield finding_at(name, scope, "core-await", _NOT_YET.format(name.id))


def _is_looked_at(receivers: Receivers, expression: ast.expr, scope: Scope) -> bool:
    """Return True where it is asked what a value is, or shows: a test, a comparison, an operator, a text."""
    match scope.nodes.parents.get(expression):
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return test is expression
        case ast.BoolOp(values=values):
            return values[-1] is not expression
        case ast.BinOp() | ast.Compare() | ast.FormattedValue() | ast.UnaryOp():
            return True
        case ast.Call(func=ast.Name() as func, args=args) if expression in args:
            return receivers.modules.outside(func, scope) in _SHOWS
        case _:
            return False


def sent_problems(receivers: Receivers, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """The calls in the value of `res.json(…)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="json"), args=[value]):
            found = [each for each in _parts(value) if receivers.is_coroutine(each, scope)]
            if found and receivers.kind(owner, scope) == RESPONSE:
                for each in found:
                    message = f"{_shown(each)} in the response is a call that was not awaited. Write `await` before it"
                    yield finding_at(each, scope, "core-await", message)
        case _:
            pass


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """The calls and names that become values in JSON."""
    match value:
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from _parts(part)
        case ast.Call() | ast.Name():
            yield value
        case _:
            pass


def _shown(expression: ast.expr) -> str:
    """A call as messages show it: `get()`, or the name it was given to."""
    match expression:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return f"{name}()"
        case ast.Name(id=name):
            return name
        case _:
            return "the call"
