"""The rules about everything that a program registers, over its table, each finding at a registration's line.

An event of the configuration that nothing handles is told where the application is made, and only where all handlers
are known: a name that is computed may be that of any event.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final

from core.config.checks import Code
from core.config.model import Configuration
from core.config.words import did_you_mean, listed
from core.program.absent import no_module
from core.program.envs import EnvClass, attribute_name, deployed
from core.program.extensions import declared
from core.program.findings import Finding, syntax_error
from core.program.modules import ClassScope, FunctionNode, Scope, positional
from core.program.reader import arguments_of
from core.program.syntax import REQUESTS, finding_at
from core.program.table import Callback, Event, Refusal, Route
from core.program.wording import with_article
from core.routing.pattern import Pattern, parse

if TYPE_CHECKING:
    from core.program.receivers import Receivers

_CODES: Final[Mapping[str, Code]] = {
    "DefaultDeny": "core-route",
    "EnvError": "core-env",
    "ForeignName": "core-handler",
    "HandlerError": "core-handler",
    "MountsNothing": "core-route",
    "OptionError": "core-handler",
    "OrderError": "core-order",
    "PathError": "core-params",
    "RegistrationError": "core-route",
}
_IMPORTS: Final = frozenset(["NoApp", "NoModule", "NoName", "NoStart"])
_BATCHES: Final = frozenset(["core.MessageBatch", "core.bindings.queue.MessageBatch"])
_ABSENT: Final = re.compile(r"No module named '([\w.]+)'")
USER: Final = "req.user"
_SESSION: Final = "req.session"
_SESSION_OF: Final = "core.middleware.sessions.session_of"
_MOST: Final = 50
"""Functions of one callback that are looked into."""
pattern_of: Final = cache(parse)  # three rules ask for that of a route


def refused(refusal: Refusal) -> Finding:
    """The finding that a refusal is."""
    code: Code = _CODES.get(refusal.kind, "core-import")
    message = refusal.message
    if refusal.kind == "SyntaxError":
        return syntax_error(refusal.place.file, refusal.place.line, message)
    if code == "core-import" and refusal.kind not in _IMPORTS:
        absent = _ABSENT.fullmatch(message) if refusal.kind == "ModuleNotFoundError" else None
        fix = refusal.fix.rstrip(".") or "Fix it, or let a lifespan do it"
        way = f"importing the program fails here: {refusal.kind}: {message}"
        failure = way if fix in message else f"{way}. {fix}"  # a MissingExtraError is its fix
        message = failure if absent is None else no_module(absent[1])
    return Finding(code, message, *refusal.place)


def parameters_of(route: Route) -> tuple[str, ...]:
    """The names that `req.params` has on a route."""
    return pattern_of(route.path).parameters


def unknown_parameter(name: str, path: str, known: Sequence[str], read: str) -> str:
    """`req.params["idd"]` in a handler of `/users/:id` (`core-params`).

    `read` is how it is read, as messages show it.
    """
    other = f"It has {listed(known, 'and')}" if known else f"It has none. Write /:{name} where it belongs"
    hint = did_you_mean(name, known, other)
    return f"{read}: the path {path} has no parameter {name}. {hint}"


def absent_parameter(name: str, path: str, read: str) -> str:
    """`req.params["id"]` in a handler of `/users/:id?` (`core-params`)."""
    return f'{read}: the path {path} matches without {name} too, where this raises. Write req.params.get("{name}")'


def handler_parameters(handler: str, wanted: Sequence[str], path: str, known: Sequence[str]) -> str | None:
    """A handler over `Request[Env, U, Literal["org"]]` on a path without `:org` (`core-params`)."""
    lacking = [f":{name}" for name in wanted if name not in known]
    if not lacking:
        return None
    names = listed(lacking, "and")
    has = f"it has {listed(known, 'and')}" if known else "it has no parameters"
    return f"{handler} reads {names}, which the path {path} does not have: {has}. Register it on a path with {names}"


def registered(receivers: Receivers) -> Iterator[Finding]:
    """Everything that is wrong with the registrations."""
    table = receivers.bodies.table
    yield from map(refused, table.refusals)
    for app in table.apps:
        yield from _unreachable(app.routes)
        for route in app.routes:
            yield from _handler(receivers, route)
        for event in app.events:
            yield from _event(receivers, event)
    main = table.app
    if table.finished and main is not None:
        for code, message in _unhandled(receivers.configurations, main.events):
            yield Finding(code, message, *main.place)


def _handler(receivers: Receivers, route: Route) -> Iterator[Finding]:
    """The parameters and the user that annotations ask for: of a handler, and of all that runs before it."""
    own = route.middleware[len(route.middleware) - route.own :]
    last = route.handler is None
    for index in own[: len(own) - last]:
        middleware = declared().middleware.get(receivers.bodies.table.callbacks[index].maker)
        if middleware is not None and middleware.answers:
            problem = f"{middleware.name}() answers every request, so everything after it in {_shown(route)} never runs"
            yield Finding("core-params", f"{problem}. Put it last", *route.place)
    user = route.authenticated or route.optional
    session = False
    for index in (*route.middleware, *([route.handler] if route.handler is not None else [])):
        described = receivers.bodies.table.callbacks[index]
        arguments, scope = _request_arguments(receivers, index)
        if scope is not None and len(arguments) > 2 and (index in own or index == route.handler):
            read = receivers.reader.annotation(arguments[2], scope)
            wanted = [str(value) for value in read.literals] if read.kind == "Literal" else []
            message = handler_parameters(described.name, wanted, route.path, parameters_of(route)) if wanted else None
            if message is not None:
                yield Finding("core-params", message, *route.place)
        account = None if user or scope is None else _user_of(receivers, arguments[1], scope)
        if account is not None:
            call = _shown(route)
            problem = f"{described.name} wants a user, {account}, and {call} has no authenticator before it"
            view = f"Register it on a view: app.authenticated(…).{call.partition('(')[0]}(…)"
            yield Finding("core-user", f"{problem}. {view}", *route.place)
        user = user or USER in described.provides
        for opened, place in _opened(receivers, described) if not session else ():
            problem = f"{described.name} opens the session, and {_shown(route)} has no sessions() before it"
            yield finding_at(opened, place, "core-order", f"{problem}. Register it first: app.use(sessions(…))")
        session = session or _SESSION in described.provides or _runs_others(receivers, described)


def _opened(receivers: Receivers, callback: Callback) -> Iterator[tuple[ast.Call, Scope]]:
    """The calls of `session_of` in the functions of a callback, and in those that they call."""
    todo = [found for body in callback.bodies if (found := receivers.bodies.function(body)) is not None]
    seen = set(todo)
    for scope in todo:
        for call in scope.nodes.of(ast.Call):
            if receivers.modules.outside(call.func, scope) == _SESSION_OF:
                yield call, scope
            inner = receivers.reader.function(call.func, scope)
            if inner is not None and inner not in seen and len(seen) < _MOST:
                seen.add(inner)
                todo.append(inner)


def _runs_others(receivers: Receivers, callback: Callback) -> bool:
    """True for a middleware of the program that hands its `next` on: what it runs may open sessions."""
    for body in callback.bodies:
        found = receivers.bodies.function(body)
        names = [each.arg for each in positional(found.node)[body.bound :]] if found is not None else []
        for call in found.nodes.of(ast.Call) if found is not None and len(names) > 2 else ():
            if any(isinstance(given, ast.Name) and given.id == names[2] for given in call.args):
                return True
    return False


def _user_of(receivers: Receivers, expression: ast.expr, scope: Scope) -> str | None:
    """The name of the class that a user is; None for `object`, `Any` and whatever is not a class."""
    if isinstance(expression, ast.Subscript):
        expression = expression.value
    if not isinstance(expression, ast.Name | ast.Attribute):
        return None
    read = receivers.reader.annotation(expression, scope)
    if read.class_ is not None:
        return read.class_.node.name
    known = receivers.modules.outside(expression, scope).startswith(("builtins.", "core.middleware."))
    return read.shown if known and read.kind not in ("object", "Any") else None


def _request_arguments(receivers: Receivers, index: int) -> tuple[list[ast.expr], Scope | None]:
    """The type arguments of the request in a callback's own annotation, two at least: `Request[Env, User]`."""
    bodies = receivers.bodies.table.callbacks[index].bodies
    found = receivers.bodies.function(bodies[0]) if bodies else None
    first = _annotation_at(found.node, bodies[0].bound) if found is not None else None
    if found is None or first is None:
        return [], None
    annotation, scope = receivers.reader.written_out(first, found.parent)
    if not isinstance(annotation, ast.Subscript) or receivers.modules.outside(annotation, scope) not in REQUESTS:
        return [], None
    arguments = arguments_of(annotation)
    return (arguments, scope) if len(arguments) > 1 else ([], None)


# -- events


def _event(receivers: Receivers, event: Event) -> Iterator[Finding]:
    """A consumer or the handler of a cron, against the configuration and the Env of its application."""
    if event.kind in ("lifespan", "error"):
        return
    if event.kind == "scheduled":
        message = _cron_problem(event.name, receivers.configurations) if event.name is not None else None
        if message is not None:
            yield Finding("core-env", message, *event.place)
    bodies = receivers.bodies.table.callbacks[event.handler].bodies
    found = receivers.bodies.function(bodies[0]) if bodies else None
    if found is None:
        return
    function, scope = found.node, found.parent
    served, reader = receivers.bodies.served[function], receivers.reader
    env = receivers.bodies.env_of(function)
    second = _annotation_at(function, served.bound + 1)
    given = reader.class_of(second, scope) if second is not None else None
    if env is not None and second is not None and given is not None and _is_other(receivers, given, env):
        call = f'{event.kind}("{event.name}")' if event.name is not None else f"{event.kind}()"
        name, own = receivers.bodies.table.callbacks[event.handler].name, env.node.name
        message = f"{call}: {name} takes env: {given.node.name}, but the app has {own}. Write env: {own}"
        code: Code = "core-queue" if event.kind == "queue" else "core-env"
        yield Finding(code, message, event.place.file, second.lineno, second.col_offset + 1)
    if event.kind == "queue":
        env = env or given
        env_class = receivers.reader.env_class(env) if env is not None else None
        payload = _payload(receivers, _annotation_at(function, served.bound), scope)
        problem = queue_problem(event.name or "", payload, env_class, receivers.configurations)
        if problem is not None:
            yield Finding("core-queue", problem, *event.place)


def queue_problem(
    queue: str, message: tuple[str, str] | None, env: EnvClass | None, configurations: Sequence[Configuration]
) -> str | None:
    """A consumer `@app.queue("jobs")` over `MessageBatch[T]`, against the messages sent and the consumers declared
    (`core-queue`).

    `message` is T: its full name and how to show it; None when it is not known.
    """
    names = sorted({consumer.queue for c in configurations for consumer in c.worker.queues.consumers})
    if configurations and queue not in names:
        configuration = configurations[0]
        kind_text = (
            f'"queues.consumers": [{{ "queue": "{queue}" }}]'
            if configuration.is_json
            else f'[[queues.consumers]] queue = "{queue}"'
        )
        hint = did_you_mean(queue, names, f"Write {kind_text}")
        return f'queue("{queue}"): {configuration.path.name} has no consumer of that queue. {hint}'
    if message is None or env is None or message[0] in ("typing.Any", "builtins.object", "object", "Any"):
        return None
    attributes = {one.name: one for one in env.attributes if one.kind == "Queue" and len(one.arguments) == 1}
    for binding in (one for configuration in configurations for one in configuration.bindings.values()):
        attribute = attributes.get(binding.name)
        if attribute is None or binding.kind != "queue" or binding.entry.queue != queue:
            continue
        if attribute.arguments[0] not in ("", "typing.Any", "Any", message[0]):
            return (
                f'queue("{queue}"): the consumer takes MessageBatch[{message[1]}], but {attribute_name(env, attribute)} '
                f"({binding.place}) is {with_article(attribute.shown)}. Write the same type in both"
            )
    return None


def _is_other(receivers: Receivers, given: ClassScope, env: ClassScope) -> bool:
    reader = receivers.reader
    return reader.is_env(given) and not reader.is_protocol(given) and given not in reader.ancestors(env)


def _payload(receivers: Receivers, annotation: ast.expr | None, scope: Scope) -> tuple[str, str] | None:
    """The T of `MessageBatch[T]`: its full name, and how it is shown."""
    if annotation is not None:
        annotation, scope = receivers.reader.written_out(annotation, scope)
    if not isinstance(annotation, ast.Subscript) or receivers.modules.outside(annotation, scope) not in _BATCHES:
        return None
    name = receivers.reader.full_name(annotation.slice, scope)
    return (name, receivers.reader.annotation(annotation.slice, scope).shown) if name else None


def _annotation_at(function: FunctionNode, position: int) -> ast.expr | None:
    arguments = positional(function)
    return arguments[position].annotation if len(arguments) > position else None


# -- events of the configuration


def _cron_problem(cron: str, configurations: Sequence[Configuration]) -> str | None:
    """A handler `@app.scheduled("0 * * * *")` of a cron that no environment has (`core-env`)."""
    crons = sorted({other for configuration in configurations for other in configuration.worker.triggers.crons})
    if not configurations or cron in crons:
        return None
    near = get_close_matches(cron, crons, n=1)
    table = f'"triggers": {{ "crons": ["{cron}"] }}' if configurations[0].is_json else f'[triggers] crons = ["{cron}"]'
    hint = f'Did you mean "{near[0]}"?' if near else f"Write {table}"
    return f'scheduled("{cron}"): {configurations[0].path.name} has no such cron, so it never runs. {hint}'


def _unhandled(configurations: Sequence[Configuration], events: Iterable[Event]) -> Iterator[tuple[Code, str]]:
    """Every cron and every queue of a configuration that nothing handles.

    Where a handler is of any, or of one that is not in the configuration, it may be the one that is meant.
    """
    places: dict[tuple[str, str], str] = {}
    for configuration in deployed(configurations):
        worker, file, is_json = configuration.worker, configuration.path.name, configuration.is_json
        for at, cron in enumerate(worker.triggers.crons):
            table = "triggers.crons" if is_json else "[triggers] crons"
            line = configuration.line_of(f"triggers.crons[{at}]")
            places.setdefault(("scheduled", cron), f"{file}:{line} {table}")
        for at, consumer in enumerate(worker.queues.consumers):
            table = "queues.consumers" if is_json else "[[queues.consumers]]"
            line = configuration.line_of(f"queues.consumers[{at}]")
            if consumer.type == "worker":
                places.setdefault(("queue", consumer.queue), f"{file}:{line} {table}")
    handled = {(event.kind, event.name or "") for event in events}
    unknown = {kind for kind, name in handled if (kind, name) not in places}
    for kind, name in sorted(places.keys() - handled):
        if kind not in unknown:
            code: Code = "core-queue" if kind == "queue" else "core-env"
            noun = "the queue" if kind == "queue" else "the cron"
            text = f'{places[kind, name]} has {noun} "{name}", which nothing handles. Write @app.{kind}("{name}")'
            yield code, text


# -- routes that no request reaches


def _unreachable(routes: Sequence[Route]) -> Iterator[Finding]:
    """The routes that an earlier one answers in their place: the first one that matches does (`core.routing.table`)."""
    earlier: dict[str, list[tuple[Route, Pattern]]] = {}
    """Those so far by their first segments: a path that begins with another text is not covered."""
    for late in routes:
        pattern = pattern_of(late.path)
        begin = late.path[1:].partition("/")[0]
        keys = ["", begin] if begin and begin[0] not in ":*" else [""]
        for early, before in (one for key in keys for one in earlier.get(key, ())):
            answers = early.method in ("*", late.method) or (early.method, late.method) == ("GET", "HEAD")
            if answers and (early.path == late.path or _covers(before, pattern)):
                yield Finding("core-route", _never_reached(early, late), *late.place)
                break
        if late.handler is not None and late.kind != "websocket":
            earlier.setdefault(keys[-1], []).append((late, pattern))


def _covers(first: Pattern, second: Pattern) -> bool:
    """Return True if every path of the later route certainly matches the earlier one."""
    if first.checks or second.checks or first.optional or second.optional or second.rest > first.rest:
        return False
    # A rest may be empty or not by the router's own rule; it is certainly covered where something is left.
    longer = len(second.parts) - len(first.parts)
    fits = longer >= (not second.rest) if first.rest else longer == 0
    return fits and first.covers(second)


def _never_reached(early: Route, late: Route) -> str:
    shown, before = _shown(late), _shown(early)
    if shown == before:
        return (
            f"{shown} is registered twice, and the first one answers: this one is never reached. Leave one of them out"
        )
    return f"{shown} is never reached: {before} is registered before it, and answers. Register {shown} first"


def _shown(route: Route) -> str:
    if route.kind == "websocket":
        return f'websocket("{route.path}")'
    return f'{route.method.lower().replace("*", "all")}("{route.path}")'
