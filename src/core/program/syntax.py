"""An expression where it is: a finding there, and the call that it is an option of."""

from __future__ import annotations

import ast
from typing import Final

from core.config.checks import Code
from core.program.findings import Finding
from core.program.modules import Scope

REQUESTS: Final = frozenset(["core.Request", "core.request.Request"])


def finding_at(node: ast.expr | ast.stmt | ast.arg, scope: Scope, code: Code, message: str, typed: str = "") -> Finding:
    """A finding at a node. `typed` is mypy's code of the error in which a type checker tells the same."""
    place = str(scope.module.path), node.lineno, node.col_offset + 1
    return Finding(code, message, *place, end_line=node.end_lineno or 0, typed=typed)


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
