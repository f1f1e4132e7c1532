"""Questions that one syntax tree answers by itself: scopes, parents, parameters, the blocks of a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from core.program.classes import ClassRef
from core.program.modules import Module, Scope, placed


def scopes_in(scope: Scope) -> Iterator[Scope]:
    """A scope and all scopes inside it."""
    yield scope
    for child in scope.children.values():
        yield from scopes_in(child)


def classes_in(module: Module) -> Iterator[ClassRef]:
    """The classes of a module."""
    for scope in scopes_in(module.scope):
        if isinstance(scope.node, ast.ClassDef) and scope.parent is not None:
            yield ClassRef(scope.node, scope.parent)


def above(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """The nodes around one in its function, from the inside out."""
    while (parent := parents.get(node)) is not None:
        yield parent
        node = parent


def own_arguments(scope: Scope | None) -> int:
    """Return the number of arguments that callers do not give: `self` of a method."""
    return 1 if scope is not None and isinstance(scope.node, ast.ClassDef) else 0


def annotation_at(function: ast.AST, position: int) -> ast.expr | None:
    """Return the annotation of a function's parameter by its position, None where there is none."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    arguments = placed(function)
    return arguments[position].annotation if len(arguments) > position else None
