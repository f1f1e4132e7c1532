"""Handlers, calls of the framework and classes that do not work (`core-handler`).

For programs that no type checker has read: with one, most of these are errors of types. Only what would fail whenever
it runs is reported; the words are those of the running program, `core.errors.mistakes`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from core import http
from core.bindings.kinds import PROTOCOLS
from core.config.words import did_you_mean
from core.context import RequestContext
from core.errors import REDIRECT_STATUSES
from core.errors.mistakes import (
    DEFINES,
    MUTABLE,
    never_given,
    refused_redirect,
    refused_status,
    shared_default,
    turned_status,
    uncalled,
)
from core.explain.misuse import snake
from core.explain.names import NAMES
from core.program.findings import Finding
from core.program.modules import ClassScope, FunctionScope, Nodes, Scope, blocks_of, class_at
from core.program.receivers import CONTEXT, REQUEST, RESPONSE, Receivers
from core.program.rows import DISPLAYS
from core.program.syntax import finding_at
from core.request import Request
from core.response import Response

SENDERS: Final = frozenset(["json", "text", "html", "send", "redirect", "stream", "sse", "file"])
"""The methods of a response that answer."""
_BINDINGS: Final = frozenset(["core.Bindings", "core.env.Bindings"])
ONE_VALUE: Final = frozenset(["json", "text", "html", "send"])
_RESPONSES: Final = frozenset(["core.http.Response", "core.http.response.Response"])
_ERRORS: Final = frozenset(["core.CoreError", "core.errors.CoreError"])
_KINDS: Final[Mapping[type[ast.expr], str]] = {**DISPLAYS, ast.JoinedStr: "str"}


# -- handlers


def returned_problems(receivers: Receivers, scope: FunctionScope) -> Iterator[Finding]:
    """`return {…}` in a handler that has certainly sent nothing before it."""
    function = scope.node
    served = receivers.bodies.served.get(function)
    if served is None or not served.direct:
        return
    names = [one.arg for one in receivers.arguments(scope)]
    if len(names) != 2 or not any(route.kind == "http" for route in served.handles):
        return
    res = names[1]
    returns = [node for node in scope.nodes.of(ast.Return) if node.value is not None]
    if scope.children or not returns or len(scope.names.get(res, ())) != 1:
        return
    may_send = [node for node in scope.nodes.of(ast.Name) if node.id == res and _may_send(node, scope.nodes)]
    for node in returns:
        kind, fix = _kind(receivers, node.value, scope) if node.value is not None else ("", "")
        in_loop = any(isinstance(one, ast.For | ast.AsyncFor | ast.While) for one in scope.nodes.above(node))
        if (
            kind
            and not in_loop
            and all(
                name.lineno > node.lineno or _leaves(name, scope.nodes.parents) not in (None, node) for name in may_send
            )
        ):
            article = "an" if kind[0] in "aeiou" or kind.startswith("http.") else "a"
            message = f"{function.name} returns {article} {kind}, which nothing sends. {fix}"
            yield finding_at(node, scope, "core-handler", message)


def default_problems(receivers: Receivers, scope: FunctionScope) -> Iterator[Finding]:
    """`async def items(req, res, limit: int = 10)`. A default that is a name may hand on a variable of a loop."""
    function, arguments = scope.node, scope.node.args
    served = receivers.bodies.served.get(function)
    if served is None or not served.direct or not served.handles:
        return
    positional = [*arguments.posonlyargs, *arguments.args]
    by_place = zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    given = [
        (parameter, ast.unparse(default))
        for parameter, default in (*by_place, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
        if isinstance(default, ast.Constant) and parameter not in positional[: served.bound + 2]
    ]
    if given and any(node.id == function.name for each in scope.parent.walk() for node in each.nodes.of(ast.Name)):
        return  # it may be called there
    for parameter, default in given:
        yield finding_at(parameter, scope, "core-handler", never_given(function.name, parameter.arg, default))


def _kind(receivers: Receivers, value: ast.expr, scope: Scope) -> tuple[str, str]:
    """The type of a value that is certainly no response, and the way to send it."""
    kind = _KINDS.get(type(value), "")
    match value:
        case ast.Constant(value=constant) if constant is not None:
            kind = type(constant).__name__
        case ast.Call(func=func):
            name = receivers.modules.outside(func, scope)
            if name.startswith("core.http."):
                fix = "Send its parts: `return res.status(response.status).send(await response.bytes())`"
                return ("http.Response", fix) if name.endswith(".Response") else ("", "")
        case _:
            pass
    if kind == "tuple":
        return kind, "Send it, with the status first: `return res.status(201).json(value)`"
    return kind, f"Send it: `return res.{'text' if kind == 'str' else 'json'}(value)`"


def _may_send(name: ast.Name, nodes: Nodes) -> bool:
    """Return True if a use of the response may answer: a sender in its chain of calls, or handing it on."""
    node: ast.AST = name
    last = ""
    for around in nodes.above(name):
        match around:
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
        node = around
    return True


def _leaves(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.stmt | None:
    """The statement of a node, or the one after it, if a function ends with that."""
    while not isinstance(node, ast.stmt):
        node = parents[node]
    parent = parents.get(node)
    following = [node]
    for block in blocks_of(parent) if isinstance(parent, ast.stmt) else ():
        if node in block:
            following += block[block.index(node) + 1 :][:1]
    return next((each for each in following if isinstance(each, ast.Return | ast.Raise)), None)


def unraised_problems(receivers: Receivers, statement: ast.Expr, scope: Scope) -> Iterator[Finding]:
    """`CoreError(404, "Not found")` as a statement by itself, which is made and answers nothing."""
    call = statement.value
    if isinstance(call, ast.Call):
        class_ = receivers.reader.class_of(call.func, scope)
        outside = receivers.reader.outside(class_) if class_ is not None else {receivers.modules.maker_of(call, scope)}
        if outside & _ERRORS:
            problem = f"{ast.unparse(call.func)} is made and not raised, so nobody is told. Write `raise` before it"
            yield finding_at(call, scope, "core-handler", problem)


# -- calls and names


def call_problems(receivers: Receivers, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """Calls of the framework with arguments that it does not take."""
    message, typed = "", "arg-type"
    match call:
        # `wait_until(job)`
        case ast.Call(
            func=ast.Attribute(value=owner, attr="wait_until"),
            args=[ast.Name() | ast.Attribute() as coroutine],
            keywords=[],
        ):
            if receivers.function(coroutine, scope) and receivers.kind(owner, scope) == CONTEXT:
                message = uncalled(ast.unparse(coroutine))
        # `res.status(7)`
        case ast.Call(func=ast.Attribute(value=owner, attr="status"), args=[ast.Constant(value=int() as status)]):
            if not 200 <= status <= 599 and receivers.kind(owner, scope) == RESPONSE:
                message, typed = refused_status(status), ""
        # `res.redirect(url, 200)`
        case (
            ast.Call(func=ast.Attribute(value=owner, attr="redirect"), args=[_, ast.Constant(value=int() as status)])
            | ast.Call(
                func=ast.Attribute(value=owner, attr="redirect"),
                keywords=[ast.keyword(arg="status", value=ast.Constant(value=int() as status))],
            )
        ):
            if status not in REDIRECT_STATUSES and receivers.kind(owner, scope) == RESPONSE:
                message, typed = refused_redirect(status), ""
        # `http.Response.json(value)`, which makes a response in JavaScript and reads one here
        case ast.Call(func=ast.Attribute(value=owner, attr="json"), args=[value, *_]) if (
            receivers.modules.outside(owner, scope) in _RESPONSES
        ):
            shown = ast.unparse(owner)
            message = (
                f"{shown}.json() reads the body of a response. Make one with {shown}.from_json({ast.unparse(value)})"
            )
        # `res.json(value, 201)`
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=given, keywords=keywords) if name in ONE_VALUE:
            names = [each.arg for each in keywords]
            plain = None not in names and not any(isinstance(each, ast.Starred) for each in given)
            if plain and (given[1:] or names) and receivers.kind(owner, scope) == RESPONSE:
                fix = f"Set the status first: `res.status(201).{name}(value)`"
                if names and names[0] not in ("status", "status_code"):
                    fix = f"Stage headers first: `res.header(…).{name}(value)`"
                message = f"res.{name}() takes one value. {fix}"
        # `CoreError("Not found", 404)`
        case ast.Call(func=ast.Name() | ast.Attribute() as func, args=[ast.Constant(value=first), *_]):
            if not (type(first) is int and 400 <= first <= 599) and receivers.modules.outside(func, scope) in _ERRORS:
                message = turned_status(first)
        case _:
            pass
    if message:
        yield finding_at(call, scope, "core-handler", message, typed)


def name_problems(receivers: Receivers, node: ast.Attribute, scope: Scope) -> Iterator[Finding]:
    """`req.body` and other names that peers have and the framework has not, and `req.env.NMAE`."""
    if not isinstance(node.ctx, ast.Load):
        return
    name, owner = node.attr, node.value
    found = _unknown_on_env(receivers, owner, name, scope) or _of_class(receivers, node, scope)
    kind = receivers.kind(owner, scope)
    members = _members(kind) if kind else ()
    if members and name not in members and name[0] != "_":
        way = f"In core this is {NAMES[kind][name]}" if name in NAMES.get(kind, ()) else ""
        near = get_close_matches(snake(name), members, n=1, cutoff=0.75)
        way = way or (f"Did you mean {near[0]}?" if near else "")
        # A middleware may have given it to a request, a class derived from a binding's may have it.
        if (way or kind in (RESPONSE, CONTEXT)) and not _is_asked(owner, scope):
            found = f"{kind} has no {name}. {way or 'Correct the name'}"
    if found is not None:
        yield finding_at(node, scope, "core-handler", found, "attr-defined")


def _is_asked(owner: ast.expr, scope: Scope) -> bool:
    """Return True for `hasattr(res, "name")` or `isinstance(res, Other)` beside it."""
    calls = (call for call in scope.nodes.of(ast.Call) if call.args and ast.unparse(call.args[0]) == ast.unparse(owner))
    return any(isinstance(call.func, ast.Name) and call.func.id in ("hasattr", "isinstance") for call in calls)


@lru_cache
def _members(kind: str) -> Sequence[str]:
    """The public names of what handlers are given, and of a binding by its Protocol; none where they are not known."""
    nothing: Any = None
    whole: object = None
    if kind == REQUEST:
        whole = Request(http.Request("https://a.example"), None, nothing)
    elif kind in (RESPONSE, CONTEXT):
        whole = Response if kind == RESPONSE else RequestContext
    elif kind in PROTOCOLS and kind != "Fetcher":  # which has the methods of another worker too
        whole = getattr(import_module(f"core.bindings.{PROTOCOLS[kind].module}"), kind, None)
    return [name for name in dir(whole) if name[0] != "_"] if whole is not None else []


def _unknown_on_env(receivers: Receivers, owner: ast.expr, name: str, scope: Scope) -> str | None:
    """A name that an Env does not have, where all of its classes are known and nothing gives it other attributes."""
    if not isinstance(owner, ast.Attribute) or owner.attr != "env" or name.startswith("_"):
        return None
    env = receivers.class_of(owner, scope)
    classes = receivers.reader.ancestors(env) if env is not None else ()
    if env is None or any(not {name, "__getattr__"}.isdisjoint(each.names) for each in classes):
        return None
    if not receivers.reader.is_marked(env) or receivers.reader.outside(env) - _BINDINGS:
        return None
    if any(None in receivers.modules.bases(each) for each in classes):
        return None
    known = [field.name for field in receivers.reader.fields(env)]
    hint = did_you_mean(name, known, "Write it in the class, and the binding in the configuration file")
    return f"{env.node.name} has no {name}. {hint}"


def _of_class(receivers: Receivers, node: ast.Attribute, scope: Scope) -> str | None:
    """`Env.DB.prepare(…)` in a function: the class has the declaration alone. Type checkers take it for the binding."""
    if not isinstance(scope, FunctionScope) or not isinstance(node.value, ast.Name):
        return None
    if not isinstance(scope.nodes.parents.get(node), ast.Attribute):
        return None
    env = class_at(receivers.modules.resolve(node.value, scope))
    if env is None or not receivers.reader.is_marked(env):
        return None
    if node.attr not in (field.name for field in receivers.reader.fields(env)):
        return None
    return f"{env.node.name}.{node.attr} has no value. Read it while a request is answered: req.env.{node.attr}"


# -- classes


def class_problems(receivers: Receivers, class_: ClassScope) -> Iterator[Finding]:
    """`tags: list[str] = []` in a class made with attrs."""
    reader = receivers.reader
    if not any(reader.maker(decorator, class_.parent) in DEFINES for decorator in class_.node.decorator_list):
        return
    for statement in class_.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict() | ast.List() | ast.Set() as value):
                kind = _KINDS[type(value)]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(args=[]) as call):
                kind = receivers.modules.maker_of(call, class_).removeprefix("builtins.")
            case _:
                continue
        annotation, scope = reader.written_out(statement.annotation, class_)
        base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        if kind in ("dict", "list", "set") and reader.full_name(base, scope) in MUTABLE:
            shown = reader.annotation(statement.annotation, class_).written
            message = shared_default(class_.node.name, name, shown, kind)
            yield finding_at(statement, class_, "core-handler", message)
