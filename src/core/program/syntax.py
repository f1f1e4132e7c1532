"""An expression where it is: a finding there, the parts of a call of a method, and the call that it is an option of."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final, NamedTuple

from core.config.checks import Code
from core.program.findings import Finding
from core.program.modules import Scope

REQUESTS: Final = frozenset(["core.Request", "core.request.Request"])


class Node(NamedTuple):
    """An expression, and the scope it is in."""

    node: ast.expr
    scope: Scope

    def finding(self, code: Code, message: str, typed: str = "") -> Finding:
        """A finding here."""
        return finding_at(self.node, self.scope, code, message, typed)

    def method_call(self) -> MethodCall | None:
        """A call of a method in its parts."""
        call, scope = self
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        counted = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args)
        arguments = [Node(argument, scope) for argument in call.args]
        return MethodCall(Node(call.func.value, scope), call.func.attr, arguments, counted)


def finding_at(node: ast.expr | ast.stmt | ast.arg, scope: Scope, code: Code, message: str, typed: str = "") -> Finding:
    """A finding at a node. `typed` is mypy's code of the error in which a type checker tells the same."""
    place = str(scope.module.path), node.lineno, node.col_offset + 1
    return Finding(code, message, *place, end_line=node.end_lineno or 0, typed=typed)


class MethodCall(NamedTuple):
    """`receiver.name(*arguments)`. `counted` is False where an argument is starred or named."""

    receiver: Node
    name: str
    arguments: Sequence[Node]
    counted: bool


def option_with(name: ast.Name, scope: Scope) -> ast.expr | None:
    """What is around the lambda that a name is a parameter of: `cors(origins=lambda req: req.env.ORIGINS)`, or the
    lambda itself where it is no option of a call.
    """
    for around in scope.nodes.above(name) if scope.nodes.of(ast.Lambda) else ():
        if isinstance(around, ast.Lambda) and any(one.arg == name.id for one in around.args.args):
            option = scope.nodes.parents.get(around)
            call = scope.nodes.parents.get(option) if isinstance(option, ast.keyword) else None
            return call if isinstance(call, ast.Call) else around
    return None
