"""The rules that look at one module of a program after the other: its registrations, functions and calls.

The findings of a module are kept by `core.analysis.memory` for as long as nothing changes that they depend on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from core.analysis.awaits import awaits_problem, sent_problems
from core.analysis.classes import ClassRef, class_at
from core.analysis.databases import Databases
from core.analysis.envs import EnvShape
from core.analysis.events import cron_problem
from core.analysis.findings import Finding
from core.analysis.front_end import Problem
from core.analysis.modules import External, Module, Scope
from core.analysis.nodes import annotation_at, parents_of, request_parameter, scopes_in
from core.analysis.problems import binding_problem, queue_problem, wrong_env
from core.analysis.readable import read_problem
from core.analysis.receivers import Receivers
from core.analysis.registrations import bindings_of, misplaced, path_of, registration_problems, unknown_read
from core.analysis.rows import row_fields
from core.analysis.sent_twice import sent_twice
from core.analysis.shapes import (
    call_problem,
    class_problems,
    error_handler_problem,
    import_problems,
    name_problem,
    shape_problems,
    unraised_problem,
)
from core.analysis.sources import Sources
from core.analysis.stubs import stub_problem
from core.analysis.syntax import Node, Registered, SyntaxTrees
from core.analysis.unreachable import mounts_nothing, unreachable
from core.analysis.users import user_problems
from core.analysis.worker import worker_findings
from core.config.checks import Code

__all__ = ["Looked", "ModuleRules"]

_BATCHES: Final = frozenset(["core.MessageBatch", "core.bindings.queue.MessageBatch"])


class Looked(NamedTuple):
    """The findings of one module, and the number of paths and of statements that were compared."""

    findings: Sequence[Finding]
    paths: int
    statements: int


class ModuleRules:
    """The rules over the modules of one program. `shape` gives an Env as the rules want it."""

    def __init__(
        self, trees: SyntaxTrees, databases: Databases, sources: Sources, shape: Callable[[ClassRef], EnvShape]
    ) -> None:
        self.trees = trees
        self.databases = databases
        self.receivers: Receivers = Receivers(databases)
        self.sources = sources
        self.shape = shape
        self._found: list[Finding] = []
        self._paths = 0

    def look(self, module: Module, registered: Sequence[Registered]) -> Looked:
        """Everything that is wrong in a module."""
        self._found, self._paths = [], 0
        compared = self.databases.compared
        for registration in registered:
            self._check_registration(registration)
        for number, message in misplaced(self.trees, registered).items():
            self._report(Problem("core-order", message, registered[number].call))
        for number, message in unreachable(self.trees, registered).items():
            self._report(Problem("core-route", message, registered[number].call))
        for problem in import_problems(module):
            self._report(problem)
        for scope in scopes_in(module.scope):
            if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._check_parameters(scope)
                self._report(error_handler_problem(self.receivers, scope))
                for problem in sent_twice(self.receivers, scope):
                    self._report(problem)
                for node in _checked_in(scope):
                    self._check_node(Node(node, scope))
            elif isinstance(scope.node, ast.ClassDef) and scope.parent is not None:
                for problem in class_problems(self.receivers, ClassRef(scope.node, scope.parent)):
                    self._report(problem)
            else:
                for node in _checked_in(scope):
                    self._report(name_problem(self.receivers, Node(node, scope)))
        self._found += worker_findings(self.trees.modules, [module], self.databases.configurations)
        return Looked(self._found, self._paths, self.databases.compared - compared)

    def _check_node(self, node: Node) -> None:
        """One of the nodes of `_checked_in`."""
        if isinstance(node.node, ast.Call):
            for problem in (*self.databases.problems(node), *sent_problems(self.receivers, node)):
                self._report(problem)
            self._report(call_problem(self.receivers, node))
            self._report(read_problem(self.receivers, node))
            self._report(awaits_problem(self.receivers, node))
        elif isinstance(node.node, ast.Attribute):
            self._report(stub_problem(self.databases, node))
            self._report(name_problem(self.receivers, node))
            self._report(awaits_problem(self.receivers, node))
        elif isinstance(node.node, ast.Subscript):
            self._report(awaits_problem(self.receivers, node))
        elif isinstance(node.node, ast.Expr):
            self._report(unraised_problem(self.receivers, node))
        elif isinstance(node.node, ast.AnnAssign | ast.Return):
            self._report(self.databases.value_problem(node))

    def _add(self, code: Code, message: str, module: Module, node: ast.expr | ast.stmt) -> None:
        """Note a finding at a node."""
        self._found.append(Finding(code, message, str(module.path), node.lineno, node.col_offset + 1))

    def _report(self, problem: Problem[Node] | None) -> None:
        """Add the finding of a rule."""
        if problem is not None and isinstance(problem.node.node, ast.expr | ast.stmt):
            self._add(problem.code, problem.message, problem.node.scope.module, problem.node.node)

    def _check_registration(self, registration: Registered) -> None:
        if registration.method in ("queue", "scheduled"):
            self._check_consumer(registration)
            if registration.method == "queue":
                self._check_queue(registration)
            else:
                cron = path_of(self.trees, registration)
                message = cron_problem(cron, self.databases.configurations) if cron is not None else None
                self._report(Problem("core-env", message, registration.call) if message is not None else None)
            return
        env = self.trees.env_of(registration.on)
        for handler in registration.handlers if env is not None else ():
            for named in bindings_of(self.trees, handler):
                if env is None:
                    break
                message = binding_problem(named.shown, named.name, self.shape(env), expected=named.expected)
                self._report(Problem("core-binding", message, handler) if message is not None else None)
        for problem in registration_problems(self.trees, registration, self.sources):
            self._report(problem)
        for node, message in mounts_nothing(self.trees, registration).items():
            self._report(Problem("core-route", message, node))
        for problem in (*user_problems(self.trees, registration), *shape_problems(self.receivers, registration)):
            self._report(problem)
        self._paths += registration.is_route and path_of(self.trees, registration) is not None

    def _check_consumer(self, registration: Registered) -> None:
        """A consumer, or the handler of a trigger, over another Env than that of its app."""
        env = self.trees.env_of(registration.on)
        if env is None or registration.decorated is None:
            return
        function, scope = registration.decorated
        second = annotation_at(function, 1)
        given = (
            class_at(self.trees.modules.resolve(second, scope))
            if isinstance(second, ast.Name | ast.Attribute)
            else None
        )
        reader = self.trees.reader
        if given is None or second is None or reader.is_protocol(given) or not reader.is_env(given):
            return
        if given not in reader.ancestors(env):
            code: Code = "core-queue" if registration.method == "queue" else "core-env"
            call = f"{registration.method}({', '.join(ast.unparse(a.node) for a in registration.arguments)})"
            call = call.replace("'", '"')
            message = wrong_env(call, self.trees.shown(registration.decorated), given.node.name, env.node.name)
            self._add(code, message, scope.module, second)

    def _check_queue(self, registration: Registered) -> None:
        name = self.trees.string_of(registration.arguments[0]) if registration.arguments else None
        if name is None:
            return
        env = self.trees.env_of(registration.on)
        message: tuple[str, str] | None = None
        if registration.decorated is not None:
            function, scope = registration.decorated
            annotation = annotation_at(function, 0)
            if isinstance(annotation, ast.Subscript):
                resolved = self.trees.modules.resolve(annotation.value, scope)
                if isinstance(resolved, External) and resolved.name in _BATCHES:
                    full_name = self.trees.reader.full_name(annotation.slice, scope)
                    if full_name:
                        message = full_name, self.trees.reader.annotation(annotation.slice, scope).shown
            second = annotation_at(function, 1)
            if env is None and second is not None:
                env = self.trees.reader.class_of(second, scope)
        shape = self.shape(env) if env is not None else None
        problem = queue_problem(name, message, shape, self.databases.configurations)
        self._report(Problem("core-queue", problem, registration.call) if problem is not None else None)

    def _check_parameters(self, scope: Scope) -> None:
        """`req.params["idd"]` and `req.params.parse(User)` in the body of a handler."""
        function = scope.node
        registrations = self.trees.routes.get(function, ())
        name = request_parameter(scope)
        if name is None or not registrations:
            return
        for fields, shown, node in self._params_parsed(scope, name):
            messages = (unknown_read(self.trees, field, registrations, self.sources, shown) for field in fields)
            message = next(filter(None, messages), None)
            if message is not None:
                self._add("core-params", message, scope.module, node)
        reads = list(self._params_read(scope, name))
        asked = {text for text, node in reads if isinstance(node, ast.Compare)}
        for text, node in reads:
            if isinstance(node, ast.Subscript) and text not in asked:
                message = unknown_read(self.trees, text, registrations, self.sources)
                if message is not None:
                    self._add("core-params", message, scope.module, node.slice)

    def _params_read(self, scope: Scope, name: str) -> Iterator[tuple[str, ast.Subscript | ast.Compare]]:
        """`req.params["…"]`, and tests such as `"…" in req.params`, in a body and in the functions inside it."""
        for inner in scopes_in(scope):
            if inner is not scope and name in inner.names:
                continue
            for node in parents_of(inner):
                match node:
                    case ast.Subscript(value=value, slice=key) if isinstance(node.ctx, ast.Load):
                        pass
                    case ast.Compare(left=key, comparators=[value]):
                        pass
                    case _:
                        continue
                text = self.trees.modules.string(key, inner)
                if text is not None and self._is_params(value, inner, name):
                    yield text, node

    def _params_parsed(self, scope: Scope, name: str) -> Iterator[tuple[list[str], str, ast.expr]]:
        """The fields without a default of `T` in `req.params.parse(T)`, its name, and where it is."""
        for inner in scopes_in(scope):
            if inner is not scope and name in inner.names:
                continue
            for node in parents_of(inner):
                match node:
                    case ast.Call(func=ast.Attribute(attr="parse", value=value), args=[type_], keywords=[]):
                        row = (
                            row_fields(self.trees.reader, type_, inner) if self._is_params(value, inner, name) else None
                        )
                        if row is not None:
                            yield [field.name for field in row[1] if field.required], row[0], type_
                    case _:
                        pass

    def _is_params(self, node: ast.expr, scope: Scope, name: str) -> bool:
        """Return True for `req.params`, itself or by another name, where the request is called `name`."""
        match self.trees.modules.value(node, scope)[0]:
            case ast.Attribute(attr="params", value=ast.Name(id=request)):
                return request == name
            case _:
                return False


def _checked_in(scope: Scope) -> Sequence[ast.expr | ast.stmt]:
    """The nodes of a function that rules look at: calls, attributes, items, and values that are declared."""
    found = scope.module.checked.get(scope.node)
    if found is None:
        found = scope.module.checked[scope.node] = [
            node
            for node in parents_of(scope)
            if isinstance(node, ast.Call | ast.Attribute | ast.AnnAssign | ast.Return | ast.Subscript | ast.Expr)
        ]
    return found
