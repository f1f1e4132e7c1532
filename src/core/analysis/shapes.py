"""Handlers, calls of the framework and classes of a shape that does not work (`core-handler`).

For programs that no type checker has read: with one, most of these are errors of types. Only what would fail whenever
it runs is reported; the words are those of the running program, `core.mistakes`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from core.analysis.classes import ClassRef
from core.analysis.front_end import Problem
from core.analysis.modules import External, FunctionNode, Module, Scope, blocks_of
from core.analysis.nodes import demanded_by, own_arguments, parents_of
from core.analysis.receivers import CONTEXT, REQUEST, RESPONSE, Receivers
from core.analysis.registrations import path_of
from core.analysis.syntax import Node, Registered
from core.mistakes import (
    DEFINES,
    MUTABLE,
    handler_in_use,
    not_async,
    shared_default,
    turned,
    turned_status,
    uncalled,
    wrong_number,
)
from core.names import MODULE, NAMES

__all__ = [
    "DEFINES",
    "MUTABLE",
    "SENDERS",
    "call_problem",
    "class_problems",
    "error_handler_problem",
    "import_problems",
    "name_problem",
    "shape_problems",
    "unraised_problem",
]

SENDERS: Final = frozenset(["json", "text", "html", "send", "redirect", "stream", "sse", "file"])
"""The methods of a response that answer."""
_BINDINGS: Final = frozenset(["core.Bindings", "core.env.Bindings"])
_ONE_VALUE: Final = frozenset(["json", "text", "html", "send"])
_ERRORS: Final = frozenset(["core.CoreError", "core.errors.CoreError"])
_KINDS: Final[Mapping[type[ast.expr], str]] = {
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Tuple: "tuple",
    ast.JoinedStr: "str",
}


# -- handlers


def _yields(function: FunctionNode) -> bool:
    """Return True for a generator function: one with a `yield` of its own, not of a function inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.GeneratorExp):
            todo += ast.iter_child_nodes(node)
    return False


def shape_problems(receivers: Receivers, registration: Registered) -> Iterator[Problem[Node]]:
    """The handlers and middleware of a registration: their parameters, `async`, and what they return."""
    trees = receivers.trees
    handlers = list(registration.handlers)
    if registration.decorated is not None:
        handlers.append(registration.decorated)
    for handler in handlers:
        function = trees.function(handler.node, handler.scope)
        if isinstance(handler.node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = handler.node, handler.scope
        demanded = trees.demanded(handler)
        if function is None or demanded is None or _is_unbound(receivers, handler):
            continue
        node, scope = function
        names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][own_arguments(scope) :]
        is_async = isinstance(node, ast.AsyncFunctionDef)
        if demanded not in (2, 3):
            message: str | None = wrong_number(
                node.name,
                demanded,
                names[0] if names else "",
                is_async=is_async,
                is_middleware=registration.method == "use",
            )
        elif not is_async or _yields(node):
            message = not_async(node.name, yields=_yields(node))
        elif registration.method == "use" and demanded == 2:
            message = handler_in_use(node.name, path_of(trees, registration) or "/")
        else:
            message = turned(node.name, names)
        if message is not None:
            in_place = registration.method == "use" and demanded == 2 and is_async
            yield Problem("core-handler", message, handler if in_place else Node(node, scope))
        elif registration.is_route and demanded == 2 and len(names) == 2:
            yield from _returned(receivers, node, scope.children[node], names[1])


def _is_unbound(receivers: Receivers, handler: Node) -> bool:
    """Return True for a function of a class without its object: `Pages.show`, or one decorated in the class."""
    if isinstance(handler.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return isinstance(handler.scope.node, ast.ClassDef)
    resolved = (
        receivers.trees.modules.resolve(handler.node, handler.scope) if isinstance(handler.node, ast.expr) else None
    )
    return resolved is not None and isinstance(getattr(resolved, "scope", handler.scope).node, ast.ClassDef)


def _returned(receivers: Receivers, function: FunctionNode, scope: Scope, res: str) -> Iterator[Problem[Node]]:
    """`return {…}` in a handler that has certainly sent nothing before it."""
    parents = parents_of(scope)
    returns = [node for node in parents if isinstance(node, ast.Return) and node.value is not None]
    if scope.children or not returns or len(scope.names.get(res, ())) != 1:
        return
    may_send = [node for node in parents if isinstance(node, ast.Name) and node.id == res and _may_send(node, parents)]
    for node in returns:
        kind, fix = _kind(receivers, node.value, scope) if node.value is not None else ("", "")
        in_loop = any(isinstance(above, ast.For | ast.AsyncFor | ast.While) for above in _above(node, parents))
        if (
            kind
            and not in_loop
            and all(name.lineno > node.lineno or _leaves(name, parents) not in (None, node) for name in may_send)
        ):
            article = "an" if kind[0] in "aeiou" or kind.startswith("http.") else "a"
            message = f"{function.name} returns {article} {kind}, which nothing sends. {fix}"
            yield Problem("core-handler", message, Node(node, scope))


def _kind(receivers: Receivers, value: ast.expr, scope: Scope) -> tuple[str, str]:
    """The type of a value that is certainly no response, and the way to send it."""
    kind = _KINDS.get(type(value), "")
    match value:
        case ast.Constant(value=constant) if constant is not None:
            kind = type(constant).__name__
        case ast.Call(func=func):
            resolved = receivers.trees.modules.resolve(func, scope)
            if isinstance(resolved, External) and resolved.name.startswith("core.http."):
                return (
                    (
                        "http.Response",
                        "Send its parts: `return res.status(response.status).send(await response.bytes())`",
                    )
                    if resolved.name.endswith(".Response")
                    else ("", "")
                )
        case _:
            pass
    if kind == "tuple":
        return kind, "Send it, with the status first: `return res.status(201).json(value)`"
    return kind, f"Send it: `return res.{'text' if kind == 'str' else 'json'}(value)`"


def _above(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while (above := parents.get(node)) is not None:
        yield above
        node = above


def _may_send(name: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Return True if a use of the response may answer: a sender in its chain of calls, or handing it on."""
    node: ast.AST = name
    last = ""
    for above in _above(name, parents):
        match above:
            case ast.Attribute(value=value, attr=last) if value is node:
                if last in SENDERS:
                    return True
            case ast.Call(func=func) if func is node:
                pass
            case ast.Subscript(value=value) if value is node:
                pass
            case ast.Expr() | ast.Assign() | ast.Delete():
                return last == ""
            case _:
                return True
        node = above
    return True


def _leaves(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.stmt | None:
    """The statement of a node, or the one after it, if a function ends with that."""
    while not isinstance(node, ast.stmt):
        node = parents[node]
    above = parents.get(node)
    following = [node]
    for block in blocks_of(above) if isinstance(above, ast.stmt) else ():
        if node in block:
            following += block[block.index(node) + 1 :][:1]
    return next((each for each in following if isinstance(each, ast.Return | ast.Raise)), None)


def error_handler_problem(receivers: Receivers, scope: Scope) -> Problem[Node] | None:
    """`@app.on_error` over a function that does not take `(err, req, res, next)`, or is not async."""
    node = scope.node
    if (
        not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or scope.parent is None
        or len(node.decorator_list) != 1
    ):
        return None
    decorator = node.decorator_list[0]
    register = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(register, ast.Attribute) or register.attr != "on_error":
        return None
    demanded = demanded_by(node)
    if demanded is None or receivers.trees.router(register.value, scope.parent) is None:
        return None
    if demanded != 4:
        message = f"{node.name} takes {demanded} arguments, and on_error gives 4. Write `(err, req, res, next)`"
        return Problem("core-handler", message, Node(node, scope.parent))
    if not isinstance(node, ast.AsyncFunctionDef):
        return Problem("core-handler", not_async(node.name), Node(node, scope.parent))
    return None


def unraised_problem(receivers: Receivers, node: Node) -> Problem[Node] | None:
    """`CoreError(404, "Not found")` as a statement by itself, which is made and answers nothing."""
    match node.node:
        case ast.Expr(value=ast.Call(func=func) as call):
            made = receivers.trees.modules.resolve(func, node.scope)
            class_ = receivers.reader.class_of(func, node.scope)
            names = receivers.reader.outside(class_) if class_ is not None else {getattr(made, "name", "")}
            if names & _ERRORS:
                text = "is made and not raised, so nobody is told. Write `raise` before it"
                return Problem("core-handler", f"{ast.unparse(func)} {text}", Node(call, node.scope))
        case _:
            pass
    return None


# -- calls and names


def call_problem(receivers: Receivers, node: Node) -> Problem[Node] | None:
    """`CoreError("Not found", 404)`, `wait_until(job)`, `res.json(value, 201)`."""
    match node.node:
        case ast.Call(func=ast.Attribute(value=owner, attr="wait_until"), args=[given], keywords=[]):
            if not isinstance(given, ast.Name | ast.Attribute) or not receivers.function(given, node.scope):
                return None
            if receivers.kind(owner, node.scope) == CONTEXT:
                return Problem("core-handler", uncalled(ast.unparse(given)), node)
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=given, keywords=keywords) if (
            name in _ONE_VALUE and (len(given) > 1 or keywords)
        ):
            if any(isinstance(each, ast.Starred) for each in given) or any(each.arg is None for each in keywords):
                return None
            if receivers.kind(owner, node.scope) == RESPONSE:
                by_name = next((each.arg for each in keywords), None)
                if by_name is not None and by_name not in ("status", "status_code"):
                    fix = f"Stage headers first: `res.header(…).{name}(value)`"
                else:
                    fix = f"Set the status first: `res.status(201).{name}(value)`"
                return Problem("core-handler", f"res.{name}() takes one value. {fix}", node)
        case ast.Call(func=ast.Name() | ast.Attribute(attr="CoreError") as func, args=[ast.Constant(value=given), *_]):
            status = given if type(given) is int else 0
            if status < 400 or status > 599:
                resolved = receivers.trees.modules.resolve(func, node.scope)
                if isinstance(resolved, External) and resolved.name in _ERRORS:
                    return Problem("core-handler", turned_status(given), node)
        case _:
            pass
    return None


def name_problem(receivers: Receivers, node: Node) -> Problem[Node] | None:
    """`req.body`, `app.route` and other names that peers have and the framework has not, and `req.env.NMAE`."""
    if not isinstance(node.node, ast.Attribute) or not isinstance(node.node.ctx, ast.Load):
        return None
    name, owner = node.node.attr, node.node.value
    found = _unknown_on_env(receivers, owner, name, node.scope)
    kind = receivers.kind(owner, node.scope)
    if kind in (REQUEST, RESPONSE):
        class_ = "Request" if kind == REQUEST else "Response"
        if name in NAMES[class_]:
            found = f"{class_} has no {name}. In core this is {NAMES[class_][name]}"
    elif name in NAMES["Router"]:
        router = receivers.trees.router(owner, node.scope)
        if router is not None and not _is_set(node.scope.module, name):
            found = f"{'App' if router.app else 'Router'} has no {name}. In core this is {NAMES['Router'][name]}"
    return Problem("core-handler", found, node) if found is not None else None


def _unknown_on_env(receivers: Receivers, owner: ast.expr, name: str, scope: Scope) -> str | None:
    """A name that an Env does not have, where all of its classes are known and nothing gives it other attributes."""
    if not isinstance(owner, ast.Attribute) or owner.attr != "env" or name.startswith("_"):
        return None
    env = receivers.databases.env_class(owner, scope)
    if env is None or not receivers.reader.is_marked(env):
        return None
    classes = list(receivers.reader.ancestors(env))
    if receivers.reader.outside(env) - _BINDINGS or any("__getattr__" in each.body.names for each in classes):
        return None
    if any(None in receivers.reader.bases(each) or name in each.body.names for each in classes):
        return None
    known = [field.name for field in receivers.reader.fields(env)]
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else "Write it in the class, and the binding in the configuration file"
    return f"{env.node.name} has no {name}. {hint}"


def _is_set(module: Module, name: str) -> bool:
    """Return True if a module gives an attribute of that name a value."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(module.tree)
    )


def import_problems(module: Module) -> Iterator[Problem[Node]]:
    """`from core import HTTPException`."""
    for statement in module.tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "core" and not statement.level:
            for alias in statement.names:
                if alias.name in MODULE:
                    message = f"core has no {alias.name}. In core this is {MODULE[alias.name]}"
                    yield Problem("core-handler", message, Node(statement, module.scope))


# -- classes


def class_problems(receivers: Receivers, class_: ClassRef) -> Iterator[Problem[Node]]:
    """`tags: list[str] = []` in a class made with attrs."""
    fields: list[tuple[ast.AnnAssign, str]] = []
    for statement in class_.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(), value=ast.Dict() | ast.List() | ast.Set() as value):
                fields.append((statement, _KINDS[type(value)]))
            case ast.AnnAssign(
                target=ast.Name(), value=ast.Call(func=ast.Name(id="dict" | "list" | "set" as maker) as func, args=[])
            ):
                resolved = receivers.trees.modules.resolve(func, class_.body)
                if isinstance(resolved, External) and resolved.name == f"builtins.{maker}":
                    fields.append((statement, maker))
            case _:
                pass
    if not fields or not any(
        receivers.reader.maker(decorator, class_.scope) in DEFINES for decorator in class_.node.decorator_list
    ):
        return
    for statement, kind in fields:
        annotation, scope = receivers.reader.written_out(statement.annotation, class_.body)
        base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        if receivers.reader.full_name(base, scope) in MUTABLE and isinstance(statement.target, ast.Name):
            shown = receivers.reader.shown(statement.annotation, class_.body, 0)
            message = shared_default(class_.node.name, statement.target.id, shown, kind)
            yield Problem("core-handler", message, Node(statement, class_.body))
