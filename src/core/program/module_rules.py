"""The rules that look at one module of a program after the other, and its findings, kept for the next look and, in a
cache, for the next run.

A module is looked at again when its text changes, or that of a module it imports, directly or not; when what other
modules register of it changes; or when something does that all of them depend on. Everything else is worked out anew by
each look, which is a small part of it.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import os
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from core.config.words import did_you_mean, listed
from core.program.absent import absent_names
from core.program.awaits import await_problems
from core.program.cache import Cache
from core.program.databases import RUNS, Databases
from core.program.envs import ANYTHING, EnvClass, attribute_name
from core.program.extensions import declared
from core.program.findings import Finding, Unread
from core.program.modules import ClassScope, FunctionScope, Module, Scope, positional
from core.program.queries import (
    batch_problems,
    bind_problems,
    conflict_problems,
    prepare_problems,
    run_problems,
    value_problems,
)
from core.program.readable import READS, read_problem
from core.program.registered import absent_parameter, parameters_of, unknown_parameter
from core.program.rows import row_fields
from core.program.syntax import finding_at
from core.program.table import Route
from core.program.twice import asked_late, sent_twice
from core.program.urls import url_problems
from core.program.usage import (
    ONE_VALUE,
    call_problems,
    class_problems,
    default_problems,
    name_problems,
    returned_problems,
    unraised_problems,
)
from core.program.wording import with_article
from core.program.worker import worker_findings

_EVERY_STUB: Final = frozenset(["fetch", "id", "name"])
_NOT_REMOTE: Final = frozenset(["alarm", "ctx", "env"])


class Looked(NamedTuple):
    """The findings of one module, the number of statements that were compared, and the statements that were not."""

    findings: Sequence[Finding]
    statements: int
    unread: Sequence[Unread]


class Memory:
    """The modules and findings of the last look. `looked` counts the modules that rules have looked at."""

    def __init__(self, cache: Cache | None = None) -> None:
        self.looked: int = 0
        self.modules: dict[Path, Module] = {}
        self._cache = cache
        self._found: dict[str, tuple[str, Looked]] = {}
        cached: dict[str, Any] = (cache.read("modules", []) if cache is not None else None) or {}
        for path, (key, (findings, statements, unread)) in cached.items():
            found, left = [Finding(*one) for one in findings], [Unread(*one) for one in unread]
            self._found[path] = key, Looked(found, statements, left)

    def look(self, receivers: Databases, module: Module, whole: str) -> Looked:
        """Return the findings of a module: those of the last look, or new ones where something changed."""
        reachable = sorted(receivers.modules.reachable([module]), key=lambda one: one.path)
        texts = (part for one in reachable for part in (str(one.path), one.name, one.digest))
        parts = [whole, receivers.bodies.facts(module), *texts]
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
        known = self._found.get(str(module.path))
        if known is None or known[0] != key:
            self.looked += 1
            known = self._found[str(module.path)] = (key, look(receivers, module))
        return known[1]

    def keep(self) -> None:
        """Write the findings into the cache, for the next run."""
        if self._cache is not None and self.looked:
            found = {path: known for path, known in self._found.items() if os.path.exists(path)}
            self._cache.write("modules", [], found)


@contextmanager
def without_collecting() -> Generator[None]:
    """No looking for garbage inside: what a look reads stays, and that would take up to a fifth of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # What was read counts as old: the next look at what is young would go through all of it. Where something is
        # frozen that would not stay so, and each look at what is old would go through all of that.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()


def look(receivers: Databases, module: Module) -> Looked:
    """Everything that is wrong in a module."""
    read, unread = receivers.read, len(receivers.unread)
    found = [finding for scope in module.scope.walk() for finding in _in(receivers, scope)]
    found += worker_findings(receivers.modules, [module], receivers.configurations)
    return Looked(found, receivers.read - read, receivers.unread[unread:])


def _in(receivers: Databases, scope: Scope) -> Iterator[Finding]:
    """The findings of a function, a class or a module, without those of the functions and classes in it."""
    match scope:
        case FunctionScope():
            yield from _check_parameters(receivers, scope)
            for rule in (returned_problems, default_problems, sent_twice, asked_late, await_problems):
                yield from rule(receivers, scope)
            yield from _check_nodes(receivers, scope)
        case ClassScope():
            yield from class_problems(receivers, scope)
        case _:
            for attribute in scope.nodes.of(ast.Attribute):
                yield from name_problems(receivers, attribute, scope)
    yield from absent_names(receivers.modules, scope)
    for call in scope.nodes.of(ast.Call):
        yield from _check_named(receivers, call, scope)
        yield from url_problems(receivers, call, scope)


def _check_nodes(receivers: Databases, scope: Scope) -> Iterator[Finding]:
    """The calls, attributes and declared values of a function."""
    for call in scope.nodes.of(ast.Call):
        for rule in _BY_METHOD.get(call.func.attr if isinstance(call.func, ast.Attribute) else "", ()):
            yield from rule(receivers, call, scope)
    for attribute in scope.nodes.of(ast.Attribute):
        yield from name_problems(receivers, attribute, scope)
        value, where = receivers.modules.value(attribute.value, scope)
        if isinstance(value, ast.Call):
            yield from _stub_problems(receivers, attribute, scope, value, where)
    for statement in scope.nodes.of(ast.Expr):
        yield from unraised_problems(receivers, statement, scope)
    for declared_value in scope.nodes.of(ast.AnnAssign):
        yield from value_problems(receivers, declared_value, scope)
    for returned in scope.nodes.of(ast.Return):
        yield from value_problems(receivers, returned, scope)


def _check_named(receivers: Databases, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """A binding that a middleware, or the store that it is given, goes by, named by a text:
    `rate_limit(kv_binding="SESSIONS")`. It is compared with the Env of the application that uses it.
    """
    middleware = declared().middleware.get(receivers.modules.maker_of(call, scope))
    if middleware is None or not middleware.bindings:
        return
    env = receivers.bodies.env_around(call, scope.module)
    if env is None:
        return
    for option, expected in middleware.bindings.items():
        given = next((keyword.value for keyword in call.keywords if keyword.arg == option), None)
        given = call.args[0] if option == middleware.first and call.args else given
        name = receivers.modules.string(given, scope)
        if name is not None:
            named = "" if option == middleware.first else f"{option}="
            shown = f'{middleware.name}({named}"{name}")'
            message = binding_problem(shown, name, receivers.reader.env_class(env), expected=expected)
            if message is not None:
                yield finding_at(call, scope, "core-binding", message)


def binding_problem(call: str, name: str, env: EnvClass, *, expected: str = "KVNamespace") -> str | None:
    """A binding named by a literal, `rate_limit(kv_binding="SESSIONS")`, against the Env it will run with
    (`core-binding`).

    `call` is how the argument is written, for example `rate_limit(kv_binding="SESSIONS")`.
    """
    attribute = next((a for a in env.attributes if name in (a.attribute, a.name)), None)
    fitting = [a.attribute for a in env.attributes if a.kind == expected]
    if attribute is not None:
        if attribute.kind in ANYTHING or attribute.kind == expected:
            return None
        hint = f"Did you mean {listed(fitting, 'or')}?" if fitting else f"{env.name} has no {expected}"
        return f"{call}: {attribute_name(env, attribute)} is {with_article(attribute.shown)}, not {with_article(expected)}. {hint}"
    hint = did_you_mean(name, [a.attribute for a in env.attributes], f"Write {name}: {expected} on {env.name}")
    hint = did_you_mean(name, fitting, hint)
    return f"{call}: {env.name} has no attribute {name}. {hint}"


def _stub_problems(
    receivers: Databases, node: ast.Attribute, scope: Scope, stub: ast.Call, made_in: Scope
) -> Iterator[Finding]:
    """`req.env.COUNTERS.get(id)._reset()`: a stub has only the public `async` methods of its class (`core-binding`).
    A type checker takes it for the object itself.
    """
    class_ = receivers.stub_of(stub, made_in) if isinstance(node.ctx, ast.Load) else None
    reader, name = receivers.reader, node.attr
    if class_ is None or name in _EVERY_STUB or name.startswith("__"):
        return
    ancestors, own = reader.ancestors(class_), class_.node.name
    hint = why = write = ""
    match next((each.names[name][-1].node for each in ancestors if name in each.names), None):
        case None | ast.AsyncFunctionDef():
            pass
        case ast.FunctionDef(decorator_list=[]):
            why, write = "it is not async", f"Write async def {name}"
        case (
            ast.AnnAssign()
            | ast.Assign(value=ast.Constant())
            | ast.FunctionDef(decorator_list=[ast.Name(id="property" | "cached_property")])
        ):
            why, write = "it is not a method", f"Write an async method that returns {name}"
        case _:
            return
    if name.startswith("_"):
        why, hint = "it is private", "Give it a public name"
    elif name in _NOT_REMOTE:
        why, hint = "it is the object's own", "Write an async method for the task"
    elif why:
        body = (inner for ancestor in ancestors for inner in ancestor.node.body)
        methods = [inner.name for inner in body if isinstance(inner, ast.AsyncFunctionDef) and inner.name[0] != "_"]
        hint = did_you_mean(name, methods, f"{write} in {own}")
    if why:
        yield finding_at(node, scope, "core-binding", f"{own}.{name} cannot be called on a stub: {why}. {hint}")


def _check_parameters(receivers: Databases, scope: Scope) -> Iterator[Finding]:
    """`req.params["idd"]` and `req.params.parse(User)` in the body of a handler."""
    served = receivers.bodies.served.get(scope.node)
    name = receivers.request_of(scope)
    if name is not None and served is not None and served.routes:
        paths = {route.path: parameters_of(route) for route in served.routes}
        yield from _check_reads(receivers, scope, name, paths, {scope.node})
        yield from _check_tools(receivers, scope, name, served.routes)


def _check_tools(receivers: Databases, scope: Scope, name: str, routes: Sequence[Route]) -> Iterator[Finding]:
    """The body that a handler reads, and that a tool which calls its route does not send."""
    tools = [tool for route in routes for tool in route.bodiless]
    for call in scope.nodes.of(ast.Call) if tools else ():
        match call:
            case ast.Call(func=ast.Attribute(attr="json", value=ast.Name(id=owner)), args=[body]) if owner == name:
                given = ", ".join([f"body={ast.unparse(body)}", *(ast.unparse(each) for each in call.keywords)])
                problem = f"{ast.unparse(call)}: the tool {tools[0]} sends no body, and is answered with 400"
                way = f"Name what it reads: mcp.expose({getattr(scope.node, 'name', '')}, {given})"
                yield finding_at(call, scope, "core-handler", f"{problem}. {way}")
            case _:
                pass


def _check_reads(
    receivers: Databases, scope: Scope, name: str, paths: Mapping[str, Sequence[str]], seen: set[ast.AST]
) -> Iterator[Finding]:
    """The same, in a body and in the functions that it hands its request on to. `paths` have their parameters."""
    for helper, given in _handed_on(receivers, scope, name):
        if helper.node not in seen:
            yield from _check_reads(receivers, helper, given, paths, seen | {helper.node})
    reads: list[tuple[str, ast.Subscript]] = []
    asked: set[str] = set()
    for inner in _seeing(scope, name):
        for node in inner.nodes.of(ast.Subscript, ast.Compare, ast.Call):
            match node:
                case ast.Subscript(value=read, slice=key, ctx=ast.Load()) | ast.Compare(left=key, comparators=[read]):
                    method = ""
                case ast.Call(func=ast.Attribute(attr="get" | "parse" as method, value=read), args=[key, *_]):
                    pass
                case _:
                    continue
            if not _is_params(receivers, read, inner, name):
                continue
            text = receivers.modules.string(key, inner)
            if method == "parse":
                yield from _check_fields(receivers, key, inner, paths)
            elif text is not None and isinstance(node, ast.Subscript):
                reads.append((text, node))
            elif text is not None:
                asked.add(text)
    for text, node in reads:
        if text not in asked:
            shown = f'req.params["{text}"]'
            message = _unknown(text, paths, shown)
            if message is None and (absent := _absent(text, paths, shown)) is not None and not _is_tried(node, scope):
                message = absent
            if message is not None:
                yield finding_at(node.slice, scope, "core-params", message)


def _check_fields(
    receivers: Databases, type_: ast.expr, scope: Scope, paths: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """The fields without a default of `T` in `req.params.parse(T)`."""
    title, fields, _ = row_fields(receivers.reader, type_, scope) or ("", (), False)
    messages = (_unknown(field.alias, paths, f"req.params.parse({title})") for field in fields if field.required)
    message = next(filter(None, messages), None)
    if message is not None:
        yield finding_at(type_, scope, "core-params", message)


def _is_tried(node: ast.AST, scope: Scope) -> bool:
    """Return True inside of a `try` that catches something."""
    tried = (block for inner in scope.walk() for block in inner.nodes.of(ast.Try) if block.handlers)
    return any(each is node for block in tried for part in block.body for each in ast.walk(part))


def _handed_on(receivers: Databases, scope: Scope, name: str) -> Iterator[tuple[Scope, str]]:
    """The functions that a request is given to, and what each of them calls it."""
    for inner in _seeing(scope, name):
        for node in inner.nodes.of(ast.Call):
            at = [n for n, one in enumerate(node.args) if isinstance(one, ast.Name) and one.id == name]
            helper = receivers.reader.function(node.func, inner) if at else None
            if helper is None or helper.node in receivers.bodies.served:
                continue
            of_object = receivers.modules.resolve(node.func, inner) is None
            arguments = positional(helper.node)[at[0] + of_object :][:1]
            if arguments and len(helper.names[arguments[0].arg]) == 1:
                yield helper, arguments[0].arg


def _is_params(receivers: Databases, node: ast.expr, scope: Scope, name: str) -> bool:
    """Return True for `req.params`, itself or by another name, where the request is called `name`."""
    match receivers.modules.value(node, scope)[0]:
        case ast.Attribute(attr="params", value=ast.Name(id=request)):
            return request == name
        case _:
            return False


_RULES: Final[Sequence[tuple[Callable[[Databases, ast.Call, Scope], Iterator[Finding]], Collection[str]]]] = (
    (prepare_problems, ["prepare", "exec"]),
    (bind_problems, ["bind"]),
    (batch_problems, ["batch"]),
    (run_problems, RUNS),
    (call_problems, ["", "CoreError", "redirect", "status", "wait_until", *ONE_VALUE]),
    (read_problem, ["", *READS]),
    (conflict_problems, ["", "conflict"]),
)
"""The rules about calls, each with the methods that it is about; "" for what is no method."""
_BY_METHOD: Final = {name: [rule for rule, of in _RULES if name in of] for _, names in _RULES for name in names}


def _seeing(scope: Scope, name: str) -> Iterator[Scope]:
    """A function and those inside it that give a name of it to nothing else."""
    return (inner for inner in scope.walk() if inner is scope or name not in inner.names)


def _absent(name: str, paths: Mapping[str, Sequence[str]], read: str) -> str | None:
    """A parameter that is the optional last segment of a path."""
    ends = (path for path, known in paths.items() if path.endswith("?") and known[-1:] == (name,))
    return next((absent_parameter(name, path, read) for path in ends), None)


def _unknown(name: str, paths: Mapping[str, Sequence[str]], read: str) -> str | None:
    """A parameter that the first of a function's paths without it does not have."""
    for path, known in paths.items():
        if name not in known:
            return unknown_parameter(name, path, known, read)
    return None
