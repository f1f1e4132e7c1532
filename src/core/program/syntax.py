"""Plain syntax trees: the meaning of an expression, which may be a string, a function, a call of a method.

Names are followed by `core.program.modules`, annotations are read by `core.program.annotations`, and what is registered
is told by a table of `core.program.start`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final, NamedTuple

from core.config.checks import Code
from core.program.bodies import Bodies
from core.program.findings import Finding
from core.program.modules import ClassScope, FunctionScope, Modules, Scope, placed
from core.program.reader import Reader

REQUESTS: Final = frozenset(["core.Request", "core.request.Request"])


class Node(NamedTuple):
    """An expression, and the scope it is in."""

    node: ast.expr
    scope: Scope

    def finding(self, code: Code, message: str, typed: str = "") -> Finding:
        """A finding here."""
        return finding_at(self.node, self.scope, code, message, typed)


def finding_at(node: ast.expr | ast.stmt, scope: Scope, code: Code, message: str, typed: str = "") -> Finding:
    """A finding at a node. `typed` is mypy's code of the error in which a type checker tells the same."""
    place = str(scope.module.path), node.lineno, node.col_offset + 1
    return Finding(code, message, *place, end_line=node.end_lineno or 0, typed=typed)


class MethodCall(NamedTuple):
    """`receiver.name(*arguments)`. `counted` is False where an argument is starred or named."""

    receiver: Node
    name: str
    arguments: Sequence[Node]
    counted: bool


class SyntaxTrees:
    """The syntax trees of a program, as the rules ask for them.

    An answer is None (or nothing) where something is not known for certain, and then nothing is reported.
    """

    def __init__(self, reader: Reader, bodies: Bodies) -> None:
        self.modules: Modules = reader.modules
        self.reader = reader
        self.bodies = bodies
        """The functions that are registered."""

    def maker_of(self, expression: ast.expr, scope: Scope) -> str:
        """The full name of the function that a call calls, where it is outside of the program."""
        return self.modules.outside(expression.func, scope) if isinstance(expression, ast.Call) else ""

    def method_call(self, node: Node) -> MethodCall | None:
        """A call of a method in its parts."""
        call, scope = node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        counted = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args)
        arguments = [Node(argument, scope) for argument in call.args]
        return MethodCall(Node(call.func.value, scope), call.func.attr, arguments, counted)

    def user_of(self, expression: ast.expr, scope: Scope) -> str | None:
        """The name of the class that a user is; None for `object`, `Any` and whatever is not a class."""
        if isinstance(expression, ast.Subscript):
            expression = expression.value
        if not isinstance(expression, ast.Name | ast.Attribute):
            return None
        read = self.reader.annotation(expression, scope)
        if read.class_ is not None:
            return read.class_.node.name
        known = self.modules.outside(expression, scope).startswith(("builtins.", "core.middleware."))
        return read.shown if known and read.kind not in ("object", "Any") else None

    def arguments(self, scope: Scope) -> Sequence[ast.arg]:
        """The parameters of a function that have a place, without those that it is bound to: `self` of a method."""
        if not isinstance(scope, FunctionScope):
            return ()
        served = self.bodies.served.get(scope.node)
        return placed(scope.node)[served.bound if served is not None else isinstance(scope.parent, ClassScope) :]

    def request_of(self, scope: Scope) -> str | None:
        """The name of a handler's request, if nothing else has that name."""
        arguments = self.arguments(scope)
        return arguments[0].arg if arguments and len(scope.names.get(arguments[0].arg, ())) == 1 else None
