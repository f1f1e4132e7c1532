"""Handlers that want a user where nobody finds out who is asking (`core-user`).

For programs that no type checker has read: with one, `Handler[Env, Account]` does not fit a router without an
authenticator. Only annotations count: a user of a class, and a router that was made here without one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from core.analysis.extensions import declared
from core.analysis.front_end import Problem
from core.analysis.modules import External
from core.analysis.nodes import annotation_at, own_arguments
from core.analysis.registrations import path_of
from core.analysis.syntax import REQUESTS, Node, Registered, SyntaxTrees

__all__ = ["user_problems"]

USER = "req.user"


def user_problems(trees: SyntaxTrees, registration: Registered) -> Iterator[Problem[Node]]:
    """The handlers, middleware and routers that want a user of a router that provides none."""
    if registration.on.user != "none" or not (registration.is_route or registration.method == "use"):
        return
    known = (declared().middleware.get(trees.maker_of(trees.value_of(h) or h)) for h in registration.handlers)
    if any(middleware is not None and USER in middleware.provides for middleware in known):
        return
    path = path_of(trees, registration)
    call = f'{registration.method}("{path}")' if path is not None else f"{registration.method}(…)"
    nodes = [(handler, handler) for handler in registration.handlers]
    if registration.decorated is not None:
        nodes.append((registration.decorated, registration.call))
    for handler, node in nodes:
        wanted = _wanted(trees, handler)
        if wanted is not None:
            wanted_user = f"{trees.shown(handler)} wants a user, {wanted}, and {call} has no authenticator before it"
            message = f"{wanted_user}. Register it on a view: app.authenticated(…).{registration.method}(…)"
            yield Problem("core-user", message, node)


def _wanted(trees: SyntaxTrees, handler: Node) -> str | None:
    """The class of `req.user` in a handler's own annotation, or the one that a router demands."""
    middleware = declared().middleware.get(trees.maker_of(trees.value_of(handler) or handler))
    if middleware is not None:
        return USER if USER in middleware.requires else None
    router = trees.router(handler.node, handler.scope)
    if router is not None:
        return router.demands
    function = trees.function(handler.node, handler.scope)
    if isinstance(handler.node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = handler.node, handler.scope
    first = annotation_at(function[0], own_arguments(function[1])) if function is not None else None
    if function is None or first is None:
        return None
    annotation, scope = trees.reader.written_out(first, function[1])
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return None
    resolved = trees.modules.resolve(annotation.value, scope)
    if not isinstance(resolved, External) or resolved.name not in REQUESTS or len(annotation.slice.elts) < 2:
        return None
    return trees.user_of(annotation.slice.elts[1], scope)
