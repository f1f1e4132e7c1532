"""The functions that a table names as syntax trees, and what each of them serves.

What is registered comes from the table alone; here it is only found again in the text of the program.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import attrs

from core.program.classes import classes_in
from core.program.findings import Unread
from core.program.modules import ClassScope, FunctionScope, Module, Modules, Scope
from core.program.table import App, Env, Function, Place, Route, Table


@attrs.define
class Served:
    """What a function serves: `routes` as their handler or one of their own middleware, and `handles` as their handler.
    `bound` are the arguments that it is given beside those of a request. `direct`: a request calls it itself, and no
    decorator has what it returns.
    """

    scope: FunctionScope
    bound: int
    direct: bool = False
    apps: list[App] = attrs.field(factory=list[App])
    routes: list[Route] = attrs.field(factory=list[Route])
    handles: list[Route] = attrs.field(factory=list[Route])


class Bodies:
    """The functions of a table in the modules of a program; `unread` are those that are not found there."""

    def __init__(self, table: Table, modules: Modules, program: Iterable[Module]) -> None:
        self.table = table
        self.served: dict[ast.AST, Served] = {}
        self.unread: list[Unread] = []
        self._modules = modules
        self._program = {str(module.path): module for module in program}
        self._found: dict[str, dict[tuple[str, int], FunctionScope]] = {}
        self._decorated: dict[str, dict[int, FunctionScope]] = {}
        for app in table.apps:
            for route in app.routes:
                for index in route.middleware[len(route.middleware) - route.own :]:
                    for served in self._of(index, app):
                        served.routes.append(route)
                if route.handler is not None:
                    for served in self._of(route.handler, app, route.place):
                        served.routes.append(route)
                        served.handles.append(route)
            for event in app.events:
                self._of(event.handler, app, event.place)
        for places, why in (
            (table.unread, "it comes from a module that cannot be imported"),
            (table.unmounted, 'its router is mounted nowhere. Mount it: app.use("/prefix", router)'),
        ):
            self.unread += (Unread(place.file, place.line, why, "handler") for place in places)
        handlers = {route.handler for app in table.apps for route in app.routes if route.handler is not None}
        handlers |= {event.handler for app in table.apps for event in app.events if event.kind != "error"}
        self.handlers: int = sum(any(map(self.function, table.callbacks[index].bodies)) for index in handlers)
        """The number of handlers that were found, of routes and events."""

    @cached_property
    def only_env(self) -> ClassScope | None:
        """The Env of every application that has one, where that is one."""
        envs = {app.env for app in self.table.apps if app.env is not None}
        return self.class_of(envs.pop()) if len(envs) == 1 else None

    def env_around(self, call: ast.expr, module: Module) -> ClassScope | None:
        """The Env of the application that a middleware made by a call belongs to, where there is only one.

        A module that took no part in the start, such as a test, has applications of its own.
        """
        file, lines = str(module.path), range(call.lineno, (call.end_lineno or 0) + 1)
        is_idle = any(place.file == file and place.line in lines for place in self.table.idle)
        return None if is_idle or file not in self.table.modules else self.only_env

    def env_of(self, function: ast.AST) -> ClassScope | None:
        """The Env that a function is given, where that is one."""
        served = self.served.get(function)
        envs = {app.env for app in served.apps} if served is not None else set[Env | None]()
        env = envs.pop() if len(envs) == 1 else None
        return self.class_of(env) if env is not None else None

    def facts(self, module: Module) -> str:
        """Everything of the table that the findings of a module depend on, without lines."""
        apps = [(app.env, app.main) for app in self.table.apps]
        idle = [place for place in self.table.idle if place.file == str(module.path)]
        served = self._all_facts if module.links else repr(self._facts.get(module.path))
        return f"{apps} {idle} {self.table.finished} {served}"

    @cached_property
    def _all_facts(self) -> str:
        return hashlib.sha256(repr(self._facts).encode()).hexdigest()

    @cached_property
    def _facts(self) -> Mapping[Path, Sequence[str]]:
        """What each function of a module serves."""
        found: dict[Path, list[str]] = {}
        for one in self.served.values():
            served = one.bound, [(route.path, route.kind) for route in one.routes], len(one.handles), one.direct
            found.setdefault(one.scope.module.path, []).append(f"{one.scope.node.name} {served}")
        return found

    def class_of(self, env: Env) -> ClassScope | None:
        """The class of an Env, where it is one of the program."""
        module = self._modules.find(env.module)
        found = classes_in(module) if module is not None else ()
        return next((class_ for class_ in found if class_.qualname == env.qualname), None)

    def _of(self, index: int, app: App, place: Place | None = None) -> list[Served]:
        """The functions of a callback, as far as they are found. `place` is the line of its registration."""
        described = self.table.callbacks[index]
        found = [*map(self.function, described.bodies)]
        if place is not None:
            # The `def` that is decorated at the line of the registration is one of them.
            self._functions(place.file)
            decorated = self._decorated.get(place.file, {}).get(place.line)
            unread = Unread(place.file, place.line, f"the function behind {described.name} is not found", "handler")
            if not described.whole or (decorated is not None and decorated not in found):
                self.unread += [unread] if unread not in self.unread else []
        all_served: list[Served] = []
        for function, scope in zip(described.bodies, found, strict=True):
            if scope is None:
                continue
            served = self.served.get(scope.node)
            if served is None:
                served = self.served[scope.node] = Served(scope, function.bound)
            served.direct = served.direct or (described.direct and function is described.bodies[0])
            if app not in served.apps:
                served.apps.append(app)
            all_served.append(served)
        return all_served

    def function(self, function: Function) -> FunctionScope | None:
        """A function of a table."""
        return self._functions(function.file).get((function.qualname, function.line))

    def _functions(self, file: str) -> Mapping[tuple[str, int], FunctionScope]:
        """The functions of a file by their names and first lines."""
        if file not in self._found:
            module = self._program.get(file) or (self._modules.add(Path(file)) if file.endswith(".py") else None)
            self._found[file] = dict(_functions_in(module.scope, "")) if module is not None else {}
            self._decorated[file] = {
                decorator.lineno: scope
                for scope in self._found[file].values()
                for decorator in scope.node.decorator_list
                if isinstance(decorator, ast.Call | ast.Name | ast.Attribute)
            }
        return self._found[file]


def _functions_in(scope: Scope, inside: str) -> Iterator[tuple[tuple[str, int], FunctionScope]]:
    for inner in scope.children.values():
        name = inside + inner.node.name
        if isinstance(inner, FunctionScope):
            yield (name, min(one.lineno for one in (inner.node, *inner.node.decorator_list))), inner
            yield from _functions_in(inner, f"{name}.<locals>.")
        else:
            yield from _functions_in(inner, f"{name}.")
