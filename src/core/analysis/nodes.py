"""Questions that one syntax tree answers by itself: scopes, parents, parameters, the blocks of a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from core.analysis.classes import ClassRef
from core.analysis.modules import FunctionNode, Local, Scope, children_of, self_of

__all__ = [
    "annotation_at",
    "demanded_by",
    "own_arguments",
    "own_class",
    "parents_in",
    "parents_of",
    "request_parameter",
    "scopes_in",
]

_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def scopes_in(scope: Scope) -> Iterator[Scope]:
    """A scope and all scopes inside it."""
    yield scope
    for child in scope.children.values():
        yield from scopes_in(child)


def parents_in(function: ast.AST) -> dict[ast.AST, ast.AST]:
    """The nodes of a function and the parent of each, without the bodies of functions and classes inside it."""
    parents: dict[ast.AST, ast.AST] = {}
    todo: list[ast.AST] = [function]
    while todo:
        node = todo.pop()
        for child in children_of(node):
            if not isinstance(child, _INNER):
                parents[child] = node
                todo.append(child)
    return parents


def parents_of(scope: Scope) -> dict[ast.AST, ast.AST]:
    """Return the nodes of a function and the parent of each, found once."""
    found = scope.module.parents.get(scope.node)
    if found is None:
        found = scope.module.parents[scope.node] = parents_in(scope.node)
    return found


def own_class(parameter: Local) -> ClassRef | None:
    """The class that a parameter is an instance of, being the first one of a method."""
    method, around = parameter.scope.node, parameter.scope.parent
    if around is None or around.parent is None or not isinstance(around.node, ast.ClassDef):
        return None
    return ClassRef(around.node, around.parent) if parameter.definition.node is self_of(method) else None


def request_parameter(scope: Scope) -> str | None:
    """The name of a handler's request: its first parameter, or a method's second, if nothing else has that name."""
    node = scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    at = own_arguments(scope.parent)
    arguments = [*node.args.posonlyargs, *node.args.args][at : at + 1]
    return arguments[0].arg if arguments and len(scope.names.get(arguments[0].arg, ())) == 1 else None


def own_arguments(scope: Scope | None) -> int:
    """Return the number of arguments that callers do not give: `self` of a method."""
    return 1 if scope is not None and isinstance(scope.node, ast.ClassDef) else 0


def annotation_at(function: ast.AST, position: int) -> ast.expr | None:
    """Return the annotation of a function's parameter by its position, None where there is none."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    arguments = [*function.args.posonlyargs, *function.args.args]
    annotation = arguments[position].annotation if len(arguments) > position else None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    return annotation


def demanded_by(function: FunctionNode) -> int | None:
    """Return the number of positional arguments a function requires; None where it takes others too."""
    arguments = function.args
    if arguments.vararg is not None or any(default is None for default in arguments.kw_defaults):
        return None
    return len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
