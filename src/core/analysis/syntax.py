"""Plain syntax trees as a front end: which expression is a router, a handler, a string, and where each is registered.

One of the two implementations of `core.analysis.front_end`; the other reads mypy's nodes. Names are followed by
`core.analysis.modules`, annotations are read by `core.analysis.annotations`.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import attrs

from core.analysis.classes import ClassRef
from core.analysis.front_end import REGISTERS, MethodCall, Registration
from core.analysis.modules import Definition, External, FunctionNode, Local, Module, Modules, Scope, blocks_of
from core.analysis.nodes import (
    annotation_at,
    demanded_by,
    own_arguments,
    own_class,
)
from core.analysis.reader import Reader

__all__ = ["Node", "REQUESTS", "Registered", "Router", "SyntaxTrees"]

_APPS: Final = frozenset(["core.create_app", "core.app.create_app", "core.App", "core.app.App"])
_ROUTERS: Final = frozenset(["core.Router", "core.router.Router"])
REQUESTS: Final = frozenset(["core.Request", "core.request.Request"])
_DEEPEST: Final = 30


class Node(NamedTuple):
    """An expression or a function, and the scope it is in: that of its class, for a method."""

    node: ast.AST
    scope: Scope


@attrs.frozen(eq=False)
class Router:
    """An app or router. `key` is where it is made, in `file`: views of it have the same.

    `user` is `none` where nothing finds out who is asking, `view` behind an authenticator, and `unknown`. `demands` is
    the class of the user that it needs where it is mounted.
    """

    key: ast.AST
    env: ClassRef | None
    app: bool
    user: Literal["none", "view", "unknown"] = "none"
    demands: str | None = None
    file: Path = attrs.field(default=Path(), kw_only=True)


class Registered(Registration[Node]):
    """A registration, and the router it is on."""

    def __init__(
        self,
        call: Node,
        on: Router,
        method: str,
        where: tuple[int, ...],
        arguments: Sequence[Node],
        starred: bool = False,
        decorated: Node | None = None,
    ) -> None:
        super().__init__(call, on.key, method, where, arguments, starred, decorated)
        self.on = on


class SyntaxTrees:
    """The syntax trees of a program: a `FrontEnd` for the rules, and an index of the registrations."""

    def __init__(self, modules: Modules, reader: Reader) -> None:
        self.modules = modules
        self.reader = reader
        self.routes: dict[ast.AST, list[Registered]] = {}
        self.mounts: dict[ast.AST, list[Router]] = {}

    def registrations(self, module: Module) -> list[Registered]:
        """The registrations of a module in the order of the text, now part of the index."""
        found = self.walk(module)
        for registration in found:
            self._index(registration)
        return found

    def walk(self, module: Module) -> list[Registered]:
        """The registrations of a module in the order of the text, for a look at them alone."""
        return list(_Walk(self).body(module.tree.body, module.scope, ()))

    def _index(self, registration: Registered) -> None:
        if registration.decorated is not None and registration.is_route:
            self.routes.setdefault(registration.decorated.node, []).append(registration)
        for handler in registration.handlers:
            if registration.is_route:
                function = self.function(handler.node, handler.scope)
                if function is not None:
                    self.routes.setdefault(function[0], []).append(registration)
            elif registration.method == "use":
                mounted = self.router(handler.node, handler.scope)
                if mounted is not None:
                    self.mounts.setdefault(mounted.key, []).append(registration.on)

    # -- the interface of `core.analysis.front_end`

    def string_of(self, node: Node, /) -> str | None:
        """The string that an expression is for certain."""
        return self.modules.string(node.node, node.scope) if isinstance(node.node, ast.expr) else None

    def value_of(self, node: Node, /) -> Node | None:
        """The value that a name was given, once, wherever that is."""
        if not isinstance(node.node, ast.Name | ast.Attribute):
            return None
        value, scope = self.modules.value(node.node, node.scope)
        if value is node.node:
            kept = self.modules.of_self(value, scope)
            return Node(*kept) if kept is not None else None
        return Node(value, scope)

    def maker_of(self, node: Node, /) -> str:
        """The full name of the function that a call calls, where it is outside of the program."""
        resolved = self.modules.resolve(node.node.func, node.scope) if isinstance(node.node, ast.Call) else None
        return resolved.name if isinstance(resolved, External) else ""

    def argument_of(self, call: Node, name: str, /, *, first: bool = False) -> Node | None:
        """The argument of a call that is given by name, or first of all."""
        keywords = call.node.keywords if isinstance(call.node, ast.Call) else ()
        if first and isinstance(call.node, ast.Call) and call.node.args:
            return Node(call.node.args[0], call.scope)
        return next((Node(keyword.value, call.scope) for keyword in keywords if keyword.arg == name), None)

    def router_of(self, node: Node, /) -> Hashable | None:
        """The place where the router that an expression is was made."""
        router = self.router(node.node, node.scope)
        return router.key if router is not None else None

    def is_app(self, registration: Registration[Node], /) -> bool:
        """Return True if something is registered on an application."""
        return isinstance(registration, Registered) and registration.on.app

    def shown(self, node: Node, /) -> str:
        """A handler as messages call it."""
        match node.node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                return name
            case ast.Call(func=function):
                return f"{self.shown(Node(function, node.scope))}()"
            case _:
                return "the handler"

    def parameters_read(self, node: Node, /) -> Sequence[str]:
        """The names that a handler's own annotation asks for: `Request[Env, User, Literal["id"]]`."""
        if isinstance(node.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self._wanted(node.node, node.scope)
        function = self.function(node.node, node.scope)
        return self._wanted(*function) if function is not None else ()

    def method_call(self, node: Node, /) -> MethodCall[Node] | None:
        """A call of a method in its parts."""
        call, scope = node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        counted = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args)
        arguments = [Node(argument, scope) for argument in call.args]
        return MethodCall(Node(call.func.value, scope), call.func.attr, arguments, counted)

    def items_of(self, node: Node, /) -> Sequence[Node]:
        """The items of a list or tuple that is written out."""
        items = node.node.elts if isinstance(node.node, ast.List | ast.Tuple) else ()
        return [Node(item, node.scope) for item in items]

    def demanded(self, node: Node, /) -> int | None:
        """Return the number of arguments a callable requires: a function, or an object of a class with `__call__`."""
        expression, scope = node
        function = self.function(expression, scope)
        if isinstance(expression, ast.FunctionDef | ast.AsyncFunctionDef):
            function = expression, scope
        if function is not None:
            demanded = demanded_by(function[0]) if self._plain(*function) else None
            return demanded - own_arguments(function[1]) if demanded is not None else None
        if not isinstance(expression, ast.expr):
            return None
        value, scope = self.modules.value(expression, scope)
        class_ = self.reader.class_of(value.func, scope) if isinstance(value, ast.Call) else None
        if class_ is None:
            return None
        called = [d.node for d in class_.body.names.get("__call__", ())]
        if len(called) != 1 or not isinstance(called[0], ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        demanded = demanded_by(called[0])
        return demanded - 1 if demanded is not None and not called[0].decorator_list else None

    def _plain(self, function: FunctionNode, scope: Scope) -> bool:
        """Return True if a name means the function of its `def`: no decorator, or only those that register it."""
        return all(
            isinstance(decorator, ast.Call)
            and isinstance(decorator.func, ast.Attribute)
            and self.router(decorator.func.value, scope) is not None
            for decorator in function.decorator_list
        )

    def _wanted(self, function: FunctionNode, scope: Scope) -> list[str]:
        """The names that a handler's own annotation asks for: `Request[Env, User, Literal["id"]]`."""
        first = annotation_at(function, own_arguments(scope))
        if first is None:
            return []
        annotation, scope = self.reader.written_out(first, scope)
        if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
            return []
        resolved = self.modules.resolve(annotation.value, scope)
        if not isinstance(resolved, External) or resolved.name not in REQUESTS or len(annotation.slice.elts) < 3:
            return []
        read = self.reader.annotation(annotation.slice.elts[2], scope)
        return [str(value) for value in read.literals] if read.kind == "Literal" else []

    # -- routers and handlers

    def router(self, expression: ast.AST, scope: Scope, depth: int = 0) -> Router | None:
        """The app or router that an expression is."""
        if depth > _DEEPEST:
            return None
        if isinstance(expression, ast.Name | ast.Attribute):
            resolved = self.modules.resolve(expression, scope)
            if not isinstance(resolved, Local):
                return None
            definition = resolved.definition
            annotated = self._annotated(definition, resolved.scope)
            if definition.value is None:
                return annotated  # a parameter: `def register(app: App[Env])`
            made = self.router(definition.value, resolved.scope, depth + 1)
            if made is None or definition.annotation is None:
                return made
            if annotated is None:
                return attrs.evolve(made, user="unknown")
            user = made.user if made.user == "view" else annotated.user
            return attrs.evolve(made, env=made.env or annotated.env, user=user, demands=annotated.demands)
        if not isinstance(expression, ast.Call):
            return None
        function = expression.func
        if isinstance(function, ast.Attribute) and function.attr in ("Router", "authenticated"):
            owner = self.router(function.value, scope, depth + 1)
            if owner is not None:
                if function.attr == "authenticated":
                    return attrs.evolve(owner, user="view", demands=None)
                return Router(expression, owner.env, app=False, file=scope.module.path)
        given = function.slice if isinstance(function, ast.Subscript) else None
        resolved = self.modules.resolve(function.value if isinstance(function, ast.Subscript) else function, scope)
        if not isinstance(resolved, External):
            return None
        if resolved.name in _APPS:
            argument = expression.args[0] if expression.args else given
            return Router(expression, self._env(argument, scope), app=True, file=scope.module.path)
        if resolved.name in _ROUTERS:
            return self._given(expression, given, scope, app=False)
        return None

    def _annotated(self, definition: Definition, scope: Scope) -> Router | None:
        """The router that an annotation says is there: `App[Env]`, `Router[Env, User]`; None for everything else."""
        annotation = definition.annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return None
        inside = annotation.slice if isinstance(annotation, ast.Subscript) else None
        if isinstance(annotation, ast.Subscript):
            annotation = annotation.value
        resolved = self.modules.resolve(annotation, scope) if annotation is not None else None
        if not isinstance(resolved, External) or resolved.name not in _APPS | _ROUTERS:
            return None
        return self._given(definition.node, inside, scope, app=resolved.name in _APPS)

    def _given(self, key: ast.AST, inside: ast.expr | None, scope: Scope, *, app: bool) -> Router:
        """A router by its type arguments: `Env`, `Env, User`."""
        second = inside.elts[1] if isinstance(inside, ast.Tuple) and len(inside.elts) > 1 else None
        resolved = self.modules.resolve(second, scope) if second is not None else None
        nobody = second is None or (isinstance(resolved, External) and resolved.name == "builtins.object")
        demands = self.user_of(second, scope) if second is not None else None
        user: Literal["none", "unknown"] = "none" if nobody else "unknown"
        return Router(key, self._env(inside, scope), app, user, demands, file=scope.module.path)

    def user_of(self, expression: ast.expr, scope: Scope) -> str | None:
        """The name of the class that a user is; None for `object`, `Any` and whatever is not a class."""
        if isinstance(expression, ast.Subscript):
            expression = expression.value
        if not isinstance(expression, ast.Name | ast.Attribute):
            return None
        read = self.reader.annotation(expression, scope)
        if read.class_ is not None:
            return read.class_.node.name
        resolved = self.modules.resolve(expression, scope)
        known = isinstance(resolved, External) and resolved.name.startswith(("builtins.", "core.middleware."))
        return read.shown if known and read.kind not in ("object", "Any") else None

    def _env(self, expression: ast.expr | None, scope: Scope) -> ClassRef | None:
        if isinstance(expression, ast.Tuple):
            expression = expression.elts[0] if expression.elts else None
        return self.reader.class_of(expression, scope) if expression is not None else None

    def env_of(self, router: Router) -> ClassRef | None:
        """The Env of a router: its own, or that of the routers it is mounted on, where they have one and the same."""
        return self._env_of(router, frozenset())

    def _env_of(self, router: Router, seen: frozenset[ast.AST]) -> ClassRef | None:
        if router.env is not None or router.app or router.key in seen:
            return router.env
        above = [self._env_of(parent, seen | {router.key}) for parent in self.mounts.get(router.key, ())]
        return above[0] if above and all(env == above[0] for env in above) else None

    def function(self, expression: ast.AST, scope: Scope) -> tuple[FunctionNode, Scope] | None:
        """The function that an expression names, and the scope it is in: that of its class, for a method."""
        if not isinstance(expression, ast.expr):
            return None
        resolved = self.modules.resolve(expression, scope)
        if isinstance(resolved, Local) and isinstance(resolved.definition.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return resolved.definition.node, resolved.scope
        if not isinstance(expression, ast.Attribute):
            return None
        owner, where = self.modules.value(expression.value, scope)
        class_ = self.reader.class_of(owner.func, where) if isinstance(owner, ast.Call) else None
        if isinstance(owner, ast.Name):
            parameter = self.modules.resolve(owner, where)
            class_ = own_class(parameter) if isinstance(parameter, Local) else None
        for ancestor in self.reader.ancestors(class_) if class_ is not None else ():
            found = ancestor.body.names.get(expression.attr)
            if found is not None:
                node = found[0].node
                if (
                    not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                    or node.decorator_list
                    or len(found) > 1
                ):
                    return None
                return node, ancestor.body
        return None


class _Walk:
    """Walks the statements of a module in the order of the text."""

    def __init__(self, trees: SyntaxTrees) -> None:
        self.trees = trees

    def body(self, body: Sequence[ast.stmt], scope: Scope, where: tuple[int, ...]) -> Iterator[Registered]:
        for number, statement in enumerate(body):
            yield from self._statement(statement, scope, (*where, number))

    def _statement(self, statement: ast.stmt, scope: Scope, where: tuple[int, ...]) -> Iterator[Registered]:
        match statement:
            case ast.Expr(value=value) | ast.Assign(value=value) | ast.Return(value=ast.expr() as value):
                yield from self._call(value, scope, where, None)
            case ast.AnnAssign(value=ast.expr() as value):
                yield from self._call(value, scope, where, None)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in statement.decorator_list:
                    yield from self._call(decorator, scope, where, Node(statement, scope))
                yield from self.body(statement.body, scope.children[statement], (*where, 0))
            case ast.ClassDef():
                yield from self.body(statement.body, scope.children[statement], (*where, 0))
            case ast.With() | ast.AsyncWith():
                yield from self.body(statement.body, scope, where)
            case _:
                for number, block in enumerate(blocks_of(statement)):
                    yield from self.body(block, scope, (*where, -1 - number))

    def _call(
        self, expression: ast.expr, scope: Scope, where: tuple[int, ...], decorated: Node | None
    ) -> Iterator[Registered]:
        if isinstance(expression, ast.Await):
            expression = expression.value
        if not isinstance(expression, ast.Call):
            return
        function = expression.func
        if isinstance(function, ast.Call) and len(expression.args) == 1:
            # app.get("/x")(handler)
            handler = self.trees.function(expression.args[0], scope)
            yield from self._call(function, scope, where, Node(*handler) if handler is not None else None)
        elif isinstance(function, ast.Attribute) and function.attr in REGISTERS:
            router = self.trees.router(function.value, scope)
            if router is not None:
                arguments = [Node(argument, scope) for argument in expression.args]
                yield Registered(
                    Node(expression, scope),
                    router,
                    function.attr,
                    where,
                    arguments,
                    any(isinstance(argument, ast.Starred) for argument in expression.args),
                    decorated,
                )
