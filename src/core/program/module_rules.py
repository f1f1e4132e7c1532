"""The rules that look at one module of a program after the other: its functions, classes and calls.

The findings of a module are kept by `core.program.memory` for as long as nothing changes that they depend on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

from core.config.checks import Code
from core.program.absent import absent_names
from core.program.asked_late import asked_late
from core.program.awaits import awaits_problem, sent_problems, used_problem
from core.program.classes import ClassRef
from core.program.databases import RUNS, Databases
from core.program.envs import EnvShape
from core.program.extensions import declared
from core.program.findings import Finding, Unread
from core.program.modules import Module, Scope
from core.program.nodes import scopes_in
from core.program.problems import binding_problem, unknown_parameter
from core.program.queries import batch_problems, bind_problems, prepare_problems, run_problems, value_problem
from core.program.readable import READS, read_problem
from core.program.receivers import Receivers
from core.program.registered import parameters_of
from core.program.rows import row_fields
from core.program.sent_twice import sent_twice
from core.program.shapes import (
    ONE_VALUE,
    class_problems,
    made_problem,
    name_problem,
    returned_problems,
    status_problem,
    uncalled_problem,
    unraised_problem,
    values_problem,
)
from core.program.stubs import stub_problem
from core.program.syntax import Node, Problem, SyntaxTrees
from core.program.table import Route
from core.program.urls import Urls
from core.program.worker import worker_findings


class Looked(NamedTuple):
    """The findings of one module, the number of statements that were compared, and the statements that were not."""

    findings: Sequence[Finding]
    statements: int
    unread: Sequence[Unread]


class ModuleRules:
    """The rules over the modules of one program. `shape` gives an Env as the rules want it."""

    def __init__(self, trees: SyntaxTrees, databases: Databases, shape: Callable[[ClassRef], EnvShape]) -> None:
        self.trees = trees
        self.databases = databases
        self.receivers: Receivers = Receivers(databases)
        self.shape = shape
        self._urls: Urls = Urls(self.receivers)
        self._found: list[Finding] = []

    def look(self, module: Module) -> Looked:
        """Everything that is wrong in a module."""
        self._found = []
        read, unread = self.databases.read, len(self.databases.unread)
        for scope in scopes_in(module.scope):
            if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._check_parameters(scope)
                for rule in (returned_problems, sent_twice, asked_late):
                    self._report(*rule(self.receivers, scope))
                self._check_nodes(scope)
            elif isinstance(scope.node, ast.ClassDef) and scope.parent is not None:
                self._report(*class_problems(self.receivers, ClassRef(scope.node, scope.parent)))
            else:
                for attribute in scope.nodes.of(ast.Attribute):
                    self._report(name_problem(self.receivers, Node(attribute, scope)))
            self._report(*absent_names(self.trees.modules, scope))
            for call in scope.nodes.of(ast.Call):
                self._check_named(Node(call, scope))
                if _method(call) == "url_for":
                    self._report(self._urls.problem(Node(call, scope)))
        self._found += worker_findings(self.trees.modules, [module], self.databases.configurations)
        return Looked(self._found, self.databases.read - read, self.databases.unread[unread:])

    def _check_nodes(self, scope: Scope) -> None:
        """The calls, attributes, items and declared values of a function."""
        for call in scope.nodes.of(ast.Call):
            node = Node(call, scope)
            for rule in _BY_METHOD.get(_method(call), ()):
                self._report(*rule(self.receivers, node))
            self._report(awaits_problem(self.receivers, node))
        for attribute in scope.nodes.of(ast.Attribute):
            node = Node(attribute, scope)
            self._report(name_problem(self.receivers, node))
            if isinstance(self.trees.modules.value(attribute.value, scope)[0], ast.Call):
                self._report(stub_problem(self.receivers, node), used_problem(self.receivers, node))
        for item in scope.nodes.of(ast.Subscript):
            self._report(used_problem(self.receivers, Node(item, scope)))
        for statement in scope.nodes.of(ast.Expr):
            self._report(unraised_problem(self.receivers, Node(statement, scope)))
        for declared_value in scope.nodes.of(ast.AnnAssign, ast.Return):
            self._report(value_problem(self.receivers, Node(declared_value, scope)))

    def _add(self, code: Code, message: str, module: Module, node: ast.expr | ast.stmt, typed: str = "") -> None:
        """Note a finding at a node."""
        place, end = (str(module.path), node.lineno, node.col_offset + 1), node.end_lineno or 0
        self._found.append(Finding(code, message, *place, end_line=end, typed=typed))

    def _report(self, *problems: Problem | None) -> None:
        """Add what rules have found."""
        for problem in problems:
            if problem is not None and isinstance(problem.node.node, ast.expr | ast.stmt):
                self._add(problem.code, problem.message, problem.node.scope.module, problem.node.node, problem.typed)

    def _check_named(self, call: Node) -> None:
        """A binding that a middleware is given by its name, against the Env of the application that uses it."""
        bodies = self.trees.bodies
        if self.trees.maker_of(call) not in declared().named:
            return
        envs = {app.env for app in bodies.table.apps if app.env is not None}
        if len(envs) != 1:
            return
        here, file = call.node, str(call.scope.module.path)
        # A module that took no part in the start, such as a test, has applications of its own.
        if (
            not isinstance(here, ast.Call)
            or file not in bodies.table.modules
            or any(one.file == file and here.lineno <= one.line <= (here.end_lineno or 0) for one in bodies.table.idle)
        ):
            return
        env = bodies.class_of(envs.pop())
        for named in _bindings_of(self.trees, call) if env is not None else ():
            if env is not None:
                message = binding_problem(named.shown, named.name, self.shape(env), expected=named.expected)
                self._report(Problem("core-binding", message, call) if message is not None else None)

    def _check_parameters(self, scope: Scope) -> None:
        """`req.params["idd"]` and `req.params.parse(User)` in the body of a handler."""
        served = self.trees.bodies.served.get(scope.node)
        name = self.trees.request_of(scope)
        if name is None or served is None or not served.routes:
            return
        self._check_reads(scope, name, served.routes, {scope.node})
        self._check_tools(scope, name, served.routes)

    def _check_tools(self, scope: Scope, name: str, routes: Sequence[Route]) -> None:
        """The body that a handler reads, and that a tool which calls its route does not send."""
        tools = [tool for route in routes for tool in route.bodiless]
        for call in scope.nodes.of(ast.Call) if tools else ():
            match call:
                case ast.Call(func=ast.Attribute(attr="json", value=ast.Name(id=owner)), args=[body]) if owner == name:
                    given = ", ".join([f"body={ast.unparse(body)}", *(ast.unparse(each) for each in call.keywords)])
                    told = f"{ast.unparse(call)}: the tool {tools[0]} sends no body, and is answered with 400"
                    way = f"Name what it reads: mcp.expose({_name(scope)}, {given})"
                    self._add("core-handler", f"{told}. {way}", scope.module, call)
                case _:
                    pass

    def _check_reads(self, scope: Scope, name: str, routes: Sequence[Route], seen: set[ast.AST]) -> None:
        """The same, in a body and in the functions that it hands its request on to."""
        for helper, given in self._handed_on(scope, name):
            if helper.node not in seen:
                self._check_reads(helper, given, routes, seen | {helper.node})
        for fields, shown, node in self._params_parsed(scope, name):
            messages = (_unknown(field, routes, f"req.params.parse({shown})") for field in fields)
            message = next(filter(None, messages), None)
            if message is not None:
                self._add("core-params", message, scope.module, node)
        reads = list(self._params_read(scope, name))
        asked = {text for text, node in reads if isinstance(node, ast.Compare)}
        for text, node in reads:
            if isinstance(node, ast.Subscript) and text not in asked:
                message = _unknown(text, routes, f'req.params["{text}"]')
                if message is not None:
                    self._add("core-params", message, scope.module, node.slice)

    def _handed_on(self, scope: Scope, name: str) -> Iterator[tuple[Scope, str]]:
        """The functions that a request is given to, and what each of them calls it."""
        for inner in _seeing(scope, name):
            for node in inner.nodes.of(ast.Call):
                at = [n for n, one in enumerate(node.args) if isinstance(one, ast.Name) and one.id == name]
                found = self.trees.function(node.func, inner) if at else None
                if found is None or found[0] in self.trees.bodies.served:
                    continue
                helper, where = found[1].children[found[0]], found[0].args
                of_object = self.trees.modules.resolve(node.func, inner) is None
                arguments = [*where.posonlyargs, *where.args][at[0] + of_object :][:1]
                if arguments and len(helper.names[arguments[0].arg]) == 1:
                    yield helper, arguments[0].arg

    def _params_read(self, scope: Scope, name: str) -> Iterator[tuple[str, ast.Subscript | ast.Compare]]:
        """`req.params["…"]`, and tests such as `"…" in req.params`, in a body and in the functions inside it."""
        for inner in _seeing(scope, name):
            for node in inner.nodes.of(ast.Subscript, ast.Compare):
                match node:
                    case ast.Subscript(value=value, slice=key, ctx=ast.Load()):
                        pass
                    case ast.Compare(left=key, comparators=[value]):
                        pass
                    case _:
                        continue
                text = self.trees.modules.string(key, inner) if self._is_params(value, inner, name) else None
                if text is not None:
                    yield text, node

    def _params_parsed(self, scope: Scope, name: str) -> Iterator[tuple[list[str], str, ast.expr]]:
        """The fields without a default of `T` in `req.params.parse(T)`, its name, and where it is."""
        for inner in _seeing(scope, name):
            for node in inner.nodes.of(ast.Call):
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


_RULES: Final[Sequence[tuple[Callable[[Receivers, Node], Iterator[Problem]], Collection[str]]]] = (
    (prepare_problems, ["prepare", "exec"]),
    (bind_problems, ["bind"]),
    (batch_problems, ["batch"]),
    (run_problems, RUNS),
    (sent_problems, ["json"]),
    (uncalled_problem, ["wait_until"]),
    (values_problem, ONE_VALUE),
    (made_problem, ["json"]),
    (status_problem, ["", "CoreError"]),
    (read_problem, ["", *READS]),
)
"""The rules about calls, each with the methods that it is about; "" for what is no method."""
_BY_METHOD: Final = {name: [rule for rule, of in _RULES if name in of] for _, names in _RULES for name in names}


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _name(scope: Scope) -> str:
    return scope.node.name if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef) else ""


def _seeing(scope: Scope, name: str) -> Iterator[Scope]:
    """A function and those inside it that give a name of it to nothing else."""
    return (inner for inner in scopes_in(scope) if inner is scope or name not in inner.names)


def _unknown(name: str, routes: Sequence[Route], read: str) -> str | None:
    """A parameter that the first of a function's routes without it does not have."""
    for route in routes:
        known = parameters_of(route)
        if name not in known:
            return unknown_parameter(name, route.path, known, read)
    return None


class _NamedBinding(NamedTuple):
    """A binding named by a string in a call: `rate_limit(kv_binding="SESSIONS")`.

    `maker` is the full name of the function called, `option` the argument, `name` the text.
    """

    maker: str
    option: str
    name: str

    @property
    def shown(self) -> str:
        """The call as messages show it."""
        middleware = declared().middleware[self.maker]
        named = "" if self.option == middleware.first else f"{self.option}="
        return f'{middleware.name}({named}"{self.name}")'

    @property
    def expected(self) -> str:
        """The Protocol that the binding must be of."""
        return declared().middleware[self.maker].bindings[self.option]


def _bindings_of(trees: SyntaxTrees, call: Node) -> Iterator[_NamedBinding]:
    """The bindings that a middleware, or the store that it is given, goes by."""
    maker = trees.maker_of(call)
    middleware = declared().middleware[maker]
    for option in middleware.bindings:
        given = trees.argument_of(call, option, first=option == middleware.first)
        name = trees.string_of(given) if given is not None else None
        if name is not None:
            yield _NamedBinding(maker, option, name)
