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


def await_problems(receivers: Receivers, scope: Scope) -> Iterator[Finding]:
    """`req.json()` by itself, `if env.USERS.get(id) is None`, `res.json({"user": find()})`, and the use of a name that
    is given such a call, once.
    """
    given = {
        name
        for name, each in scope.names.items()
        if len(each) == 1 and isinstance(each[0].value, ast.Call) and receivers.is_coroutine(each[0].value, scope)
    }
    names = (one for one in scope.nodes.of(ast.Name) if one.id in given and isinstance(one.ctx, ast.Load))
    for expression in (*scope.nodes.of(ast.Call), *(names if given else ())):
        found = _use(receivers, expression, scope)
        if found is not None and (isinstance(expression, ast.Name) or receivers.is_coroutine(expression, scope)):
            yield found


def _use(receivers: Receivers, expression: ast.Call | ast.Name, scope: Scope) -> Finding | None:
    """The finding about the place of a coroutine; None where it may be one."""
    used: ast.expr = expression
    message, typed = f"{_shown(expression)} was not awaited, so it has no result yet. Write `await` before the call", ""
    match scope.nodes.parents.get(expression):
        case ast.Expr() if isinstance(expression, ast.Call):
            message = f"{_shown(expression)} is not awaited, so it does nothing. Write `await` before it"
            typed = "unused-coroutine"
            if isinstance(expression.func, ast.Name) and receivers.kind(expression.func, scope) == NEXT:
                name = f"{expression.func.id}()"
                message = f"{name} is not awaited, so nothing after this middleware runs. Write `await {name}`"
                typed = "unused-awaitable"
        case ast.Attribute(attr=name, ctx=ast.Load()) as used if name not in _OWN and name[:3] not in ("cr_", "__a"):
            typed = "attr-defined"
        case ast.Subscript(value=value, ctx=ast.Load()) as used if value is expression:
            typed = "index"
        # It is asked what a value is, or shown: a test, a comparison, an operator, a text.
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if test is expression:
            pass
        case ast.BoolOp(values=[*tested, _]) if expression in tested:
            pass
        case ast.BinOp() | ast.Compare() | ast.FormattedValue() | ast.UnaryOp():
            pass
        case ast.Call(func=ast.Name() as func) if receivers.modules.outside(func, scope) in _SHOWS:
            pass
        case _ if _is_sent(receivers, expression, scope):
            message = f"{_shown(expression)} in the response is a call that was not awaited. Write `await` before it"
        case _:
            return None
    return finding_at(used, scope, "core-await", message, typed)


def _is_sent(receivers: Receivers, expression: ast.expr, scope: Scope) -> bool:
    """Return True for the value of a `res.json(…)`, and for what it is made of."""
    around = scope.nodes.parents.get(expression)
    while isinstance(around, ast.Dict | ast.List | ast.ListComp | ast.Tuple | ast.Set):
        around = scope.nodes.parents.get(around)
    match around:
        case ast.Call(func=ast.Attribute(value=owner, attr="json"), args=[_]):
            return receivers.kind(owner, scope) == RESPONSE
        case _:
            return False


def _shown(expression: ast.expr) -> str:
    """A call as messages show it: `get()`, or the name it was given to."""
    match expression:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return f"{name}()"
        case ast.Name(id=name):
            return name
        case _:
            return "the call"
