"""A whole program against its configuration, read from its text: what `core check` finds.

Starts from the file that `main` names and follows its imports. Env classes, routers, routes, consumers and SQL are
found here; what is wrong with them is decided where the mypy plugin asks too: `check.py`, `routes.py`, `sql.py`.
Nothing of the program runs, and nothing is said about what is not understood.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import attrs

from core.config.annotations import ClassRef, Reader
from core.config.check import (
    Code,
    EnvShape,
    Finding,
    binding_problem,
    check_env,
    handler_not_last,
    handler_parameters,
    queue_problem,
    sort_findings,
    unknown_parameter,
)
from core.config.migrations import problem_text
from core.config.model import Binding, Configuration
from core.config.modules import External, FunctionNode, Local, Module, Modules, Scope
from core.config.routes import METHODS, MIDDLEWARE, Placed, Promise, parameters_of, path_problem, reversals, runs_before
from core.config.sources import Sources, defined_names, read_sources
from core.config.sql import (
    Schema,
    Statement,
    blank_schema,
    check_column,
    check_row,
    check_scalar,
    check_values,
    schema_of,
)

__all__ = ["Options", "check_program", "find_env"]

_ROUTES: Final = METHODS | {"on"}
_REGISTERS: Final = _ROUTES | {"use", "queue"}
_RATE_LIMIT: Final = frozenset(["core.middleware.rate_limit.rate_limit"])
_APPS: Final = frozenset(["core.create_app", "core.app.create_app", "core.App", "core.app.App"])
_ROUTERS: Final = frozenset(["core.Router", "core.router.Router"])
_OBJECTS: Final = frozenset(["core.DurableObject", "core.bindings.durable_object.DurableObject"])
_REQUESTS: Final = frozenset(["core.Request", "core.request.Request"])
_BATCHES: Final = frozenset(["core.MessageBatch", "core.bindings.queue.MessageBatch"])
_DEEPEST: Final = 30


@attrs.frozen
class Options:
    """`env`: full names or patterns of Env classes, in place of all over `Bindings`. `paths`: further files or folders."""

    env: Sequence[str] | None = None
    paths: Sequence[Path] = ()


def check_program(configurations: Sequence[Configuration], options: Options | None = None) -> list[Finding]:
    """Everything that is wrong between a program and the given environments of its configuration."""
    return _Program(configurations, options or Options()).findings()


def find_env(configurations: Sequence[Configuration], name: str, file: Path | None = None) -> list[EnvShape]:
    """The Env classes of that name in the program, or in one file of it."""
    program = _Program(configurations, Options(paths=[file] if file is not None and file.is_file() else ()))
    return [
        program.reader.shape(class_)
        for class_ in program.envs()
        if class_.node.name == name and (file is None or class_.module.path == file.resolve())
    ]


@attrs.frozen(eq=False)
class _Router:
    """An app or router. `key` is where it is made: views of it have the same."""

    key: ast.AST
    env: ClassRef | None
    app: bool


@attrs.frozen(eq=False)
class _Registration:
    """A call that registers something on a router: `router.method(…)`.

    `where` is the way to it through the blocks of its module, so that of two it can be told whether one always runs
    before the other.
    """

    call: ast.Call
    router: _Router
    method: str
    scope: Scope
    where: tuple[int, ...]
    decorated: FunctionNode | None = None

    @property
    def handlers(self) -> Sequence[ast.expr]:
        """What is registered, without the path."""
        return self.call.args[{"on": 2, "use": 0}.get(self.method, 1) :]


class _Program:
    def __init__(self, configurations: Sequence[Configuration], options: Options) -> None:
        self.configurations = configurations
        self.configuration = configurations[0]
        self.directory = self.configuration.directory.resolve()
        self.found: list[Finding] = []
        self.entry = self._entry()
        self.modules = Modules(self._roots())
        start = self._start(options.paths)
        self.program = self.modules.reachable(start)
        self.reader = Reader(self.modules, self._named(options.env))
        self.sources: Sources = read_sources(self.directory)
        self.registrations: dict[Module, list[_Registration]] = {}
        self.routes: dict[ast.AST, list[_Registration]] = {}
        self.mounts: dict[ast.AST, list[_Router]] = {}
        self._schemas: dict[Path, Schema] = {}
        self._parents: dict[ast.AST, dict[ast.AST, ast.AST]] = {}

    def findings(self) -> list[Finding]:
        """All findings, in order."""
        linecache.checkcache()
        for path, line, text in self.modules.problems:
            self.found.append(Finding("core-env", f"this is not Python: {text}. Mend it", str(path), line))
        for module in self.program:
            self.registrations[module] = list(_Registrations(self, module).read())
        for registrations in self.registrations.values():
            for registration in registrations:
                self._index(registration)
        self._check_envs()
        for module, registrations in self.registrations.items():
            for registration in registrations:
                self._check_registration(registration)
            self._check_order(module, registrations)
        for module in self.program:
            for scope in _scopes(module.scope):
                if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._check_parameters(scope)
                    _Queries(self, scope).check()
        return [finding for finding in sort_findings(self.found) if not _ignored(finding)]

    def add(self, code: Code, message: str, module: Module, node: ast.expr | ast.stmt, *, line: int = 0) -> None:
        """Note a finding at a node."""
        self.found.append(Finding(code, message, str(module.path), node.lineno + line, node.col_offset + 1))

    # -- the files

    def _entry(self) -> Path | None:
        """The Python file that `main` names, or that `[core] app` does."""
        worker = self.configuration.worker
        if worker.main is None:
            return None
        path = self.directory / worker.main
        if path.suffix != ".py":
            return None
        if not path.is_file():
            line = self.configuration.line_of("main")
            message = f"main: there is no file {worker.main}. Write it, or correct main"
            self.found.append(Finding("core-env", message, str(self.configuration.path), line))
            return None
        return path

    def _roots(self) -> list[Path]:
        """The folders that imports start from: the one above the entry's package, `src`, the project, the entry's own."""
        roots: list[Path] = []
        if self.entry is not None:
            folder = self.entry.parent
            while (folder / "__init__.py").is_file() and folder != folder.parent:
                folder = folder.parent
            roots += [folder, self.entry.parent]
        roots += [self.directory / "src", self.directory]
        return list(dict.fromkeys(root.resolve() for root in roots if root.is_dir()))

    def _start(self, paths: Sequence[Path]) -> list[Module]:
        files: list[Path] = [self.entry] if self.entry is not None else []
        app = self.modules.find((self.configuration.worker.core.app or "").partition(":")[0])
        if app is not None:
            files.append(app.path)
        for path in paths:
            files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not files:
            files = _python_files(self.directory)
        return [module for module in map(self.modules.add, dict.fromkeys(files)) if module is not None]

    def _named(self, patterns: Sequence[str] | None) -> frozenset[str] | None:
        """The full names of the Env classes that the options name; None where they name none."""
        if patterns is None:
            return None
        names = {
            f"{scope.module.name}.{scope.qualname}"
            for module in self.program
            for scope in _scopes(module.scope)
            if isinstance(scope.node, ast.ClassDef)
        }
        return frozenset(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))

    # -- Env

    def envs(self) -> Iterator[ClassRef]:
        """The Env classes of the program."""
        for module in self.program:
            for scope in _scopes(module.scope):
                if isinstance(scope.node, ast.ClassDef) and scope.parent is not None:
                    class_ = ClassRef(scope.node, scope.parent)
                    if self.reader.is_env(class_):
                        yield class_

    def _check_envs(self) -> None:
        names = self._entry_names()
        for class_ in self.envs():
            node = class_.node
            own = any(isinstance(statement, ast.AnnAssign) for statement in node.body)
            if own and not node.decorator_list and not self.reader.is_protocol(class_) and not node.keywords:
                message = f"{node.name} has attributes of its own but no decorator. Put @attrs.frozen above it"
                self.add("core-env", message, class_.module, node)
                continue
            shape = self._shape(class_)
            self.found += check_env(shape, self.configurations, entry_names=names)
            self._check_migrations(shape)

    def _check_migrations(self, shape: EnvShape) -> None:
        """A migration that fails is told where the database stands on the Env."""
        for attribute in shape.attributes:
            if attribute.kind != "D1Database" or attribute.inherited:
                continue
            for configuration in self.configurations:
                binding = configuration.bindings.get(attribute.name)
                if binding is None or binding.kind != "d1":
                    continue
                for problem in self.schema(configuration, binding).problems:
                    text = f"{shape.name}.{attribute.attribute}: {problem_text(problem, configuration.directory)}"
                    place = attribute.location
                    self.found.append(Finding("core-sql", text, place.file, place.line, place.column))

    def _shape(self, class_: ClassRef) -> EnvShape:
        partial = self.reader.named is None and (not self.sources.complete or class_.node.name in self.sources.bases)
        return self.reader.shape(class_, partial=partial)

    def _entry_names(self) -> frozenset[str] | None:
        if self.entry is None or not any(c.worker.durable_objects.bindings for c in self.configurations):
            return None
        return defined_names(self.entry)

    # -- routers

    def router(self, expression: ast.expr, scope: Scope, depth: int = 0) -> _Router | None:
        """The app or router that an expression is."""
        if depth > _DEEPEST:
            return None
        if isinstance(expression, ast.Name | ast.Attribute):
            resolved = self.modules.resolve(expression, scope)
            if not isinstance(resolved, Local):
                return None
            definition = resolved.definition
            annotated = self._annotated(definition.annotation, resolved.scope)
            if definition.value is None:
                # A parameter: `def register(app: App[Env])`.
                app, env = annotated
                return None if app is None else _Router(definition.node, env, app)
            made = self.router(definition.value, resolved.scope, depth + 1)
            if made is not None and made.env is None and annotated[1] is not None:
                return attrs.evolve(made, env=annotated[1])
            return made
        if not isinstance(expression, ast.Call):
            return None
        function = expression.func
        if isinstance(function, ast.Attribute) and function.attr in ("Router", "authenticated"):
            owner = self.router(function.value, scope, depth + 1)
            if owner is not None:
                return owner if function.attr == "authenticated" else _Router(expression, owner.env, app=False)
        given = function.slice if isinstance(function, ast.Subscript) else None
        resolved = self.modules.resolve(function.value if isinstance(function, ast.Subscript) else function, scope)
        if not isinstance(resolved, External):
            return None
        if resolved.name in _APPS:
            argument = expression.args[0] if expression.args else given
            return _Router(expression, self._env(argument, scope), app=True)
        if resolved.name in _ROUTERS:
            return _Router(expression, self._env(given, scope), app=False)
        return None

    def _annotated(self, annotation: ast.expr | None, scope: Scope) -> tuple[bool | None, ClassRef | None]:
        """Whether an annotation is `App[…]` (or `Router[…]`, or neither), and its Env."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return None, None
        inside = annotation.slice if isinstance(annotation, ast.Subscript) else None
        if isinstance(annotation, ast.Subscript):
            annotation = annotation.value
        resolved = self.modules.resolve(annotation, scope) if annotation is not None else None
        if not isinstance(resolved, External) or resolved.name not in _APPS | _ROUTERS:
            return None, None
        return resolved.name in _APPS, self._env(inside, scope)

    def _env(self, expression: ast.expr | None, scope: Scope) -> ClassRef | None:
        if isinstance(expression, ast.Tuple):
            expression = expression.elts[0] if expression.elts else None
        return self.reader.class_of(expression, scope) if expression is not None else None

    def env_of(self, router: _Router) -> ClassRef | None:
        """The Env of a router: its own, or that of what it is mounted on, where that is one and the same."""
        return self._env_of(router, frozenset())

    def _env_of(self, router: _Router, seen: frozenset[ast.AST]) -> ClassRef | None:
        if router.env is not None or router.app or router.key in seen:
            return router.env
        above = [self._env_of(parent, seen | {router.key}) for parent in self.mounts.get(router.key, ())]
        return above[0] if above and all(env == above[0] for env in above) else None

    def function(self, expression: ast.expr, scope: Scope) -> tuple[FunctionNode, Scope] | None:
        """The function that an expression names, and the scope it stands in."""
        resolved = self.modules.resolve(expression, scope)
        if isinstance(resolved, Local) and isinstance(resolved.definition.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return resolved.definition.node, resolved.scope
        return None

    def path(self, registration: _Registration) -> str | None:
        """The path of a registration, where it is a text."""
        at = 1 if registration.method == "on" else 0
        args = registration.call.args
        return self.modules.text(args[at], registration.scope) if len(args) > at else None

    def _index(self, registration: _Registration) -> None:
        if registration.method in _ROUTES:
            if registration.decorated is not None:
                self.routes.setdefault(registration.decorated, []).append(registration)
            for handler in registration.handlers:
                function = self.function(handler, registration.scope)
                if function is not None:
                    self.routes.setdefault(function[0], []).append(registration)
        elif registration.method == "use":
            for handler in registration.handlers:
                mounted = self.router(handler, registration.scope)
                if mounted is not None:
                    self.mounts.setdefault(mounted.key, []).append(registration.router)

    # -- registrations

    def _check_registration(self, registration: _Registration) -> None:
        module = registration.scope.module
        if registration.method == "queue":
            self._check_queue(registration)
            return
        for handler in registration.handlers:
            self._check_rate_limit(registration, handler)
        path = self.path(registration)
        problem = path_problem(path) if path is not None else None
        if problem is not None:
            self.add("core-params", problem, module, registration.call)
            return
        if registration.method == "use":
            return
        handlers = registration.handlers
        self._check_last(
            registration, f'{registration.method}("{path}")' if path is not None else registration.method + "(…)"
        )
        if path is None:
            return
        known = parameters_of(path) or ()
        places: list[tuple[FunctionNode, Scope, ast.expr]] = []
        if registration.decorated is not None:
            places.append((registration.decorated, registration.scope, registration.call))
        for handler in handlers:
            function = self.function(handler, registration.scope)
            if function is not None:
                places.append((*function, handler))
        for function_node, scope, place in places:
            wanted = [
                name
                for name in self._wanted(function_node, scope)
                if registration.router.app or not (name in self.sources.prefixes or not self.sources.complete)
            ]
            message = handler_parameters(function_node.name, wanted, path, known)
            if message is not None:
                self.add("core-params", message, module, place)

    def _check_last(self, registration: _Registration, call: str) -> None:
        """A handler `(req, res)` ends the chain: whatever is registered after it never runs."""
        handlers = registration.handlers
        if any(isinstance(argument, ast.Starred) for argument in registration.call.args):
            return
        ends = len(handlers) if registration.decorated is not None else len(handlers) - 1
        for handler in handlers[:ends]:
            if self._takes(handler, registration.scope) == 2:
                message = handler_not_last(_spelt(handler), call)
                self.add("core-params", message, registration.scope.module, handler)
                return

    def _takes(self, expression: ast.expr, scope: Scope) -> int | None:
        """How many arguments a callable demands: a function, or an object of a class with `__call__`."""
        function = self.function(expression, scope)
        if function is not None:
            return _demanded(function[0]) if self._plain(*function) else None
        value, scope = self.modules.value(expression, scope)
        class_ = self.reader.class_of(value.func, scope) if isinstance(value, ast.Call) else None
        if class_ is None:
            return None
        called = [d.node for d in class_.body.names.get("__call__", ())]
        if len(called) != 1 or not isinstance(called[0], ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        demanded = _demanded(called[0])
        return demanded - 1 if demanded is not None and not called[0].decorator_list else None

    def _plain(self, function: FunctionNode, scope: Scope) -> bool:
        """Whether a function is what its `def` says: no decorator, or only those that register it."""
        return all(
            isinstance(decorator, ast.Call)
            and isinstance(decorator.func, ast.Attribute)
            and self.router(decorator.func.value, scope) is not None
            for decorator in function.decorator_list
        )

    def _wanted(self, function: FunctionNode, scope: Scope) -> list[str]:
        """The names that a handler's own annotation asks for: `Request[Env, User, Literal["id"]]`."""
        annotation = _first_annotation(function)
        if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
            return []
        resolved = self.modules.resolve(annotation.value, scope)
        if not isinstance(resolved, External) or resolved.name not in _REQUESTS or len(annotation.slice.elts) < 3:
            return []
        read = self.reader.annotation(annotation.slice.elts[2], scope)
        return [str(value) for value in read.literals] if read.kind == "Literal" else []

    def _check_rate_limit(self, registration: _Registration, handler: ast.expr) -> None:
        value, scope = self.modules.value(handler, registration.scope)
        if not isinstance(value, ast.Call):
            return
        maker = self.modules.resolve(value.func, scope)
        if not isinstance(maker, External) or maker.name not in _RATE_LIMIT:
            return
        given = next((keyword.value for keyword in value.keywords if keyword.arg == "kv_binding"), None)
        name = self.modules.text(given, scope)
        env = self.env_of(registration.router)
        if name is None or env is None:
            return
        message = binding_problem(f'rate_limit(kv_binding="{name}")', name, self._shape(env))
        if message is not None:
            self.add("core-binding", message, registration.scope.module, handler)

    def _check_queue(self, registration: _Registration) -> None:
        queue = self.modules.text(registration.call.args[0], registration.scope) if registration.call.args else None
        if queue is None:
            return
        env = self.env_of(registration.router)
        message: tuple[str, str] | None = None
        function = registration.decorated
        annotation = _first_annotation(function) if function is not None else None
        if isinstance(annotation, ast.Subscript):
            resolved = self.modules.resolve(annotation.value, registration.scope)
            if isinstance(resolved, External) and resolved.name in _BATCHES:
                full_name = self.reader.full_name(annotation.slice, registration.scope)
                if full_name:
                    message = full_name, self.reader.annotation(annotation.slice, registration.scope).shown
        if env is None and function is not None:
            second = _annotation_at(function, 1)
            env = self.reader.class_of(second, registration.scope) if second is not None else None
        shape = self._shape(env) if env is not None else None
        problem = queue_problem(queue, message, shape, self.configurations)
        if problem is not None:
            self.add("core-queue", problem, registration.scope.module, registration.call)

    # -- parameters

    def _check_parameters(self, scope: Scope) -> None:
        """`req.params["idd"]` in the body of a handler."""
        function = scope.node
        registrations = self.routes.get(function, ())
        paths = [self.path(registration) for registration in registrations]
        name = _first_parameter(scope)
        if name is None or not registrations or None in paths:
            return
        known = [parameters_of(path or "") for path in paths]
        if None in known:
            return
        reads = list(self._params_read(scope, name))
        asked = {text for text, node in reads if isinstance(node, ast.Compare)}
        on_app = all(registration.router.app for registration in registrations)
        for text, node in reads:
            if isinstance(node, ast.Compare) or text in asked or any(text in (names or ()) for names in known):
                continue
            if not on_app and (text in self.sources.prefixes or not self.sources.complete):
                continue  # a prefix may bring it along
            message = unknown_parameter(text, paths[0] or "", known[0] or ())
            self.add("core-params", message, scope.module, node.slice)

    def _params_read(self, scope: Scope, name: str) -> Iterator[tuple[str, ast.Subscript | ast.Compare]]:
        """`req.params["…"]`, and tests such as `"…" in req.params`, in a body and in the functions inside it."""
        for inner in _scopes(scope):
            if inner is not scope and name in inner.names:
                continue
            for node in self.parents(inner.node):
                match node:
                    case ast.Subscript(value=value, slice=key) if isinstance(node.ctx, ast.Load):
                        pass
                    case ast.Compare(left=key, comparators=[value]):
                        pass
                    case _:
                        continue
                params, _ = self.modules.value(value, inner)
                text = self.modules.text(key, inner)
                if (
                    text is not None
                    and isinstance(params, ast.Attribute)
                    and params.attr == "params"
                    and isinstance(params.value, ast.Name)
                    and params.value.id == name
                ):
                    yield text, node

    # -- order

    def _check_order(self, module: Module, registrations: Sequence[_Registration]) -> None:
        told: set[ast.Call] = set()
        for router in dict.fromkeys(registration.router.key for registration in registrations):
            entries = list(self._entries(registrations, router, "", (), frozenset()))
            for index, (late, where) in enumerate(entries):
                if not late.promise.provides:
                    continue
                before = [entry for entry, at in entries[:index] if runs_before(at, where)]
                for place, message in reversals([*before, late]):
                    call = registrations[place].call
                    if call not in told:
                        told.add(call)
                        self.add("core-order", message, module, call)

    def _entries(
        self,
        registrations: Sequence[_Registration],
        router: ast.AST,
        prefix: str,
        where: tuple[int, ...],
        seen: frozenset[ast.AST],
    ) -> Iterator[tuple[Placed, tuple[int, ...]]]:
        """Every known middleware on a router, in order, with those of routers mounted on it in this module."""
        if router in seen:
            return
        for number, registration in enumerate(registrations):
            if registration.router.key is not router or registration.method == "queue":
                continue
            at = where or registration.where
            handlers = list(registration.handlers)
            path: str | None = ""
            if registration.method == "use":
                text = self.modules.text(handlers[0], registration.scope) if handlers else None
                if text is not None:
                    path, handlers = text, handlers[1:]
            else:
                path = self.path(registration)
            if path is None:
                continue
            whole = prefix.rstrip("/") + path if path not in ("", "/") else prefix or "/"
            for handler in handlers:
                promise = self._promise(handler, registration.scope)
                if promise is not None:
                    yield Placed(promise, whole or "/", registration.method != "use", number), at
                elif registration.method == "use":
                    mounted = self.router(handler, registration.scope)
                    if mounted is not None:
                        for entry, _ in self._entries(registrations, mounted.key, whole, at, seen | {router}):
                            yield attrs.evolve(entry, place=number), at

    def _promise(self, expression: ast.expr, scope: Scope) -> Promise | None:
        value, inner = self.modules.value(expression, scope)
        if not isinstance(value, ast.Call):
            return None
        maker = self.modules.resolve(value.func, inner)
        return MIDDLEWARE.get(maker.name) if isinstance(maker, External) else None

    def parents(self, function: ast.AST) -> dict[ast.AST, ast.AST]:
        """The nodes of a function and the parent of each; found once."""
        found = self._parents.get(function)
        if found is None:
            found = self._parents[function] = _parents(function)
        return found

    # -- databases

    def database(self, attribute: str | None) -> tuple[Configuration, Binding] | None:
        """The SQL database under a binding's name; of an unknown one, the only database there is."""
        only: dict[str, tuple[Configuration, Binding]] = {}
        for configuration in self.configurations:
            for binding in configuration.bindings.values():
                if binding.kind == "d1":
                    if binding.name == attribute:
                        return configuration, binding
                    only.setdefault(binding.name, (configuration, binding))
        return next(iter(only.values())) if attribute is None and len(only) == 1 else None

    def schema(self, configuration: Configuration, binding: Binding) -> Schema:
        """The schema of a database."""
        folder = configuration.migrations_directory(binding.entry)
        schema = self._schemas.get(folder)
        if schema is None:
            schema = self._schemas[folder] = schema_of(folder)
        return schema


# Registrations ------------------------------------------------------------------------------------------------------


class _Registrations:
    """The registrations of one module, in the order of the text."""

    def __init__(self, program: _Program, module: Module) -> None:
        self.program = program
        self.module = module

    def read(self) -> Iterator[_Registration]:
        yield from self._body(self.module.tree.body, self.module.scope, ())

    def _body(self, body: Sequence[ast.stmt], scope: Scope, where: tuple[int, ...]) -> Iterator[_Registration]:
        for number, statement in enumerate(body):
            yield from self._statement(statement, scope, (*where, number))

    def _statement(self, statement: ast.stmt, scope: Scope, where: tuple[int, ...]) -> Iterator[_Registration]:
        match statement:
            case ast.Expr(value=value) | ast.Assign(value=value) | ast.Return(value=ast.expr() as value):
                yield from self._call(value, scope, where, None)
            case ast.AnnAssign(value=ast.expr() as value):
                yield from self._call(value, scope, where, None)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in statement.decorator_list:
                    yield from self._call(decorator, scope, where, statement)
                yield from self._body(statement.body, scope.children[statement], (*where, 0))
            case ast.ClassDef():
                yield from self._body(statement.body, scope.children[statement], (*where, 0))
            case ast.With() | ast.AsyncWith():
                yield from self._body(statement.body, scope, where)
            case _:
                for number, block in enumerate(_blocks(statement)):
                    yield from self._body(block, scope, (*where, -1 - number))

    def _call(
        self, expression: ast.expr, scope: Scope, where: tuple[int, ...], decorated: FunctionNode | None
    ) -> Iterator[_Registration]:
        if isinstance(expression, ast.Await):
            expression = expression.value
        if not isinstance(expression, ast.Call):
            return
        function = expression.func
        if isinstance(function, ast.Call) and len(expression.args) == 1:
            # app.get("/x")(handler)
            handler = self.program.function(expression.args[0], scope)
            yield from self._call(function, scope, where, handler[0] if handler is not None else None)
        elif isinstance(function, ast.Attribute) and function.attr in _REGISTERS:
            router = self.program.router(function.value, scope)
            if router is not None:
                yield _Registration(expression, router, function.attr, scope, where, decorated)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    match statement:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            yield statement.body
            yield statement.orelse
        case ast.Try() | ast.TryStar():
            yield statement.body
            for handler in statement.handlers:
                yield handler.body
            yield statement.orelse
            yield statement.finalbody
        case ast.Match():
            for case in statement.cases:
                yield case.body
        case _:
            pass


# SQL ----------------------------------------------------------------------------------------------------------------


class _Queries:
    """The statements that one function prepares, and what becomes of them."""

    def __init__(self, program: _Program, scope: Scope) -> None:
        self.program = program
        self.scope = scope
        self.function = scope.node
        self.label = ""
        self.parents = program.parents(scope.node)

    def check(self) -> None:
        """Look at every `prepare` in the function, without those of functions inside it."""
        for node in self.parents:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "prepare"
                and len(node.args) == 1
            ):
                self._check(node, node.func.value)

    def _check(self, call: ast.Call, receiver: ast.expr) -> None:
        text = self.program.modules.text(call.args[0], self.scope)
        known, name = self._database(receiver, self.scope)
        if text is None or not known:
            return
        found = self.program.database(name)
        if found is None:
            self.label, statement = name or "SQL", blank_schema().analyse(text)
        else:
            self.label, statement = found[1].name, self.program.schema(*found).analyse(text)
        for problem in statement.problems:
            where = f" (line {problem.line + 1} of the statement)" if "\n" in text else ""
            self._tell(f"{problem.message}{where}", call.args[0])
        self._follow(call, statement, bound=False)

    def _database(self, receiver: ast.expr, scope: Scope) -> tuple[bool, str | None]:
        """Whether the receiver is known to be a database, and the name of its binding where that is known."""
        value, scope = self.program.modules.value(receiver, scope)
        match value:
            case ast.Name():
                resolved = self.program.modules.resolve(value, scope)
                if isinstance(resolved, Local) and resolved.definition.annotation is not None:
                    kind = self.program.reader.annotation(resolved.definition.annotation, resolved.scope).kind
                    return kind == "D1Database", None
                return False, None
            case ast.Call(func=ast.Attribute(value=database, attr="with_session")):
                return self._database(database, scope)
            case ast.Attribute():
                env = self._env(value.value, scope)
                if env is None:
                    return False, None
                attributes = self.program.reader.shape(env).attributes
                attribute = next((a for a in attributes if (a.attribute or a.name) == value.attr), None)
                if attribute is None or attribute.kind != "D1Database":
                    return False, None
                return True, value.attr.lstrip("_")
            case _:
                return False, None

    def _env(self, expression: ast.expr, scope: Scope) -> ClassRef | None:
        """The class of an expression that is an Env: `req.env`, or a parameter that is annotated so."""
        value, scope = self.program.modules.value(expression, scope)
        if isinstance(value, ast.Attribute) and value.attr == "env":
            resolved = self.program.modules.resolve(value.value, scope)
            if not isinstance(resolved, Local) or not isinstance(resolved.definition.node, ast.arg):
                return None
            annotation = resolved.definition.annotation
            if annotation is None:
                own = self._own_class(resolved)
                if own is not None:
                    return self._kept_env(own)
                registrations = self.program.routes.get(resolved.scope.node, ())
                envs = {self.program.env_of(registration.router) for registration in registrations}
                first = _first_parameter(resolved.scope) == resolved.definition.node.arg
                return envs.pop() if first and len(envs) == 1 else None
            if not isinstance(annotation, ast.Subscript):
                return None
            request = self.program.modules.resolve(annotation.value, resolved.scope)
            if not isinstance(request, External) or request.name not in _REQUESTS:
                return None
            inside = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
            return self.program.reader.class_of(inside, resolved.scope)
        if isinstance(value, ast.Name):
            resolved = self.program.modules.resolve(value, scope)
            if isinstance(resolved, Local) and resolved.definition.annotation is not None:
                return self.program.reader.class_of(resolved.definition.annotation, resolved.scope)
        return None

    def _own_class(self, parameter: Local) -> ClassRef | None:
        """The class that a parameter is an instance of, being the first one of a method."""
        method, around = parameter.scope.node, parameter.scope.parent
        if around is None or around.parent is None or not isinstance(around.node, ast.ClassDef):
            return None
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or method.decorator_list:
            return None
        first = _first_parameter(parameter.scope)
        named = isinstance(parameter.definition.node, ast.arg) and parameter.definition.node.arg == first
        return ClassRef(around.node, around.parent) if named else None

    def _kept_env(self, class_: ClassRef) -> ClassRef | None:
        """What `self.env` is: as it is declared, as `__init__` was given it, or as a Durable Object has it."""
        reader = self.program.reader
        for owner in reader.ancestors(class_):
            for definition in owner.body.names.get("env", ()):
                return reader.class_of(definition.annotation, owner.body) if definition.annotation else None
            for scope in owner.body.children.values():
                if isinstance(scope.node, ast.FunctionDef) and scope.node.name == "__init__":
                    given = _given(scope, "env")
                    if given is not None:
                        return reader.class_of(given, scope)
            for base in owner.node.bases:
                if isinstance(base, ast.Subscript):
                    resolved = self.program.modules.resolve(base.value, owner.scope)
                    if isinstance(resolved, External) and resolved.name in _OBJECTS:
                        return reader.class_of(base.slice, owner.scope)
        return None

    def _follow(self, node: ast.expr, statement: Statement, *, bound: bool) -> None:
        """What is done with a statement: in the same expression, or with the variable that it is kept in."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.Assign | ast.AnnAssign) and parent.value is node:
            target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
            if isinstance(target, ast.Name) and len(self.scope.names.get(target.id, ())) == 1:
                for use in self.parents:
                    if isinstance(use, ast.Name) and use.id == target.id and isinstance(use.ctx, ast.Load):
                        self._follow(use, statement, bound=bound)
            return
        if isinstance(parent, ast.List | ast.Tuple):
            # DB.batch([…]): every statement in it was bound, if it takes values.
            batch = self.parents.get(parent)
            if isinstance(batch, ast.Call) and isinstance(batch.func, ast.Attribute) and batch.func.attr == "batch":
                self._tell(None if bound else check_values(statement, None), node)
            return
        call = self.parents.get(parent) if parent is not None else None
        if not isinstance(parent, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not parent:
            return
        match parent.attr:
            case "bind":
                if not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args):
                    self._tell(check_values(statement, len(call.args)), call)
                self._follow(call, statement, bound=True)
            case "first" | "all":
                if not bound:
                    message = check_values(statement, None)
                    self._tell(message, call)
                    if message is not None:
                        return
                if len(call.args) == 1 and not call.keywords:
                    self._check_result(call.args[0], statement)
            case "run" | "raw":
                if not bound:
                    self._tell(check_values(statement, None), call)
            case _:
                pass

    def _check_result(self, asked: ast.expr, statement: Statement) -> None:
        column = self.program.modules.text(asked, self.scope)
        if column is not None:
            self._tell(check_column(statement, column), asked)
            return
        row = self.program.reader.row_fields(asked, self.scope)
        if row is not None:
            for _, message in check_row(statement, *row):
                self._tell(message, asked)
        elif isinstance(asked, ast.Name | ast.Attribute):
            resolved = self.program.modules.resolve(asked, self.scope)
            if isinstance(resolved, External) and resolved.name.startswith("builtins."):
                kinds = self.program.reader.row_kinds(asked, self.scope)
                self._tell(check_scalar(statement, resolved.name.removeprefix("builtins."), kinds), asked)

    def _tell(self, message: str | None, place: ast.expr) -> None:
        if message is not None:
            self.program.add("core-sql", f"{self.label}: {message}", self.scope.module, place)


_IGNORE: Final = re.compile(r"#\s*type:\s*ignore(?:\[(?P<codes>[^\]]*)\])?")


def _ignored(finding: Finding) -> bool:
    """Whether the line of a finding switches it off, with the comment that mypy goes by: `# type: ignore[core-env]`."""
    if not finding.file.endswith(".py"):
        return False
    match = _IGNORE.search(linecache.getline(finding.file, finding.line))
    if match is None:
        return False
    codes = {code.strip() for code in (match["codes"] or "").split(",")} - {""}
    return not codes or bool(codes & {finding.code, "core"})


# Small questions ----------------------------------------------------------------------------------------------------


def _scopes(scope: Scope) -> Iterator[Scope]:
    """A scope and all scopes inside it."""
    yield scope
    for child in scope.children.values():
        yield from _scopes(child)


_LEAVES: Final = (ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


def _parents(function: ast.AST) -> dict[ast.AST, ast.AST]:
    """The nodes of a function and the parent of each, without the bodies of functions and classes inside it."""
    parents: dict[ast.AST, ast.AST] = {}
    todo: list[ast.AST] = [function]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, _LEAVES) and not isinstance(child, _INNER):
                parents[child] = node
                todo.append(child)
    return parents


_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _first_parameter(scope: Scope) -> str | None:
    """The name of a function's first parameter, if nothing else in it has that name."""
    node = scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    arguments = [*node.args.posonlyargs, *node.args.args]
    if not arguments or len(scope.names.get(arguments[0].arg, ())) != 1:
        return None
    return arguments[0].arg


def _given(scope: Scope, name: str) -> ast.expr | None:
    """The annotation of the parameter that a method keeps as it is: `self.name = parameter`."""
    own = _first_parameter(scope)
    for node in ast.walk(scope.node):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=target), attr=attribute)], value=ast.Name(id=parameter)
            ) if target == own and attribute == name:
                found = scope.names.get(parameter, ())
                return found[0].annotation if len(found) == 1 else None
            case _:
                pass
    return None


def _spelt(expression: ast.expr) -> str:
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return f"{_spelt(function)}()"
        case _:
            return "the handler"


def _first_annotation(function: FunctionNode) -> ast.expr | None:
    return _annotation_at(function, 0)


def _annotation_at(function: FunctionNode, position: int) -> ast.expr | None:
    arguments = [*function.args.posonlyargs, *function.args.args]
    annotation = arguments[position].annotation if len(arguments) > position else None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    return annotation


def _demanded(function: FunctionNode) -> int | None:
    """How many positional arguments a function demands; None where it takes others too."""
    arguments = function.args
    if arguments.vararg is not None or any(default is None for default in arguments.kw_defaults):
        return None
    return len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)


def _python_files(directory: Path) -> list[Path]:
    """The Python files of a project, without its tests, environments and hidden folders."""
    left_out = {"node_modules", "__pycache__", "tests", "test", "build", "dist", "venv", "site-packages"}
    return sorted(
        path
        for path in directory.rglob("*.py")
        if not any(part in left_out or part.startswith(".") for part in path.relative_to(directory).parts)
    )
