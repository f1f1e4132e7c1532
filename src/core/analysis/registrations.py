"""The rules about registrations: paths, handlers and their parameters, names of bindings, the order of middleware.

Written once for both front ends (`core.analysis.front_end`). The meaning of a path, and the values that each middleware
reads, are in `core.analysis.routes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from core.analysis.extensions import declared
from core.analysis.front_end import FrontEnd, Names, Problem, Registration
from core.analysis.problems import answers_first, handler_not_last, handler_parameters, unknown_parameter
from core.analysis.routes import (
    PlacedMiddleware,
    parameters_of,
    path_problem,
    reversals,
    runs_before,
)
from core.analysis.sources import Sources
from core.extensions import DeclaredMiddleware

__all__ = ["NamedBinding", "bindings_of", "misplaced", "path_of", "registration_problems", "unknown_read"]

NodeT = TypeVar("NodeT")


def path_of(front_end: Names[NodeT], registration: Registration[NodeT]) -> str | None:
    """The path or prefix of a registration, where it is a string."""
    at = 1 if registration.method == "on" else 0
    arguments = registration.arguments
    return front_end.string_of(arguments[at]) if len(arguments) > at else None


def registration_problems(
    front_end: FrontEnd[NodeT], registration: Registration[NodeT], sources: Sources
) -> Iterator[Problem[NodeT]]:
    """Everything that is wrong with a path and with the handlers on it (`core-params`)."""
    path = path_of(front_end, registration)
    problem = path_problem(path) if path is not None else None
    if problem is not None:
        yield Problem("core-params", problem, registration.call)
        return
    if not registration.is_route:
        return
    yield from _not_last(front_end, registration, path)
    if path is None:
        return
    known = parameters_of(path) or ()
    nodes = [(handler, handler) for handler in registration.handlers]
    if registration.decorated is not None:
        nodes.append((registration.decorated, registration.call))
    for handler, node in nodes:
        read = front_end.parameters_read(handler)
        if read and not front_end.is_app(registration):
            read = [name for name in read if name in known or not sources.may_prefix(name)]
        message = handler_parameters(front_end.shown(handler), read, path, known) if read else None
        if message is not None:
            yield Problem("core-params", message, node)


def _not_last(
    front_end: FrontEnd[NodeT], registration: Registration[NodeT], path: str | None
) -> Iterator[Problem[NodeT]]:
    """A handler `(req, res)` ends the chain: whatever is registered after it never runs."""
    if registration.starred:
        return
    handlers = registration.handlers
    for handler in handlers if registration.decorated is not None else handlers[:-1]:
        middleware = _middleware(front_end, handler)
        if front_end.demanded(handler) == 2 or (middleware is not None and middleware.answers):
            call = f'{registration.method}("{path}")' if path is not None else f"{registration.method}(…)"
            shown = front_end.shown(handler)
            message = handler_not_last(shown, call) if middleware is None else answers_first(shown, call)
            yield Problem("core-params", message, handler)
            return


def unknown_read(
    front_end: FrontEnd[NodeT], name: str, routes: Sequence[Registration[NodeT]], sources: Sources, parsed: str = ""
) -> str | None:
    """`req.params["idd"]` in a handler whose paths are all known, and have no `:idd`.

    `parsed` is the class whose field it is, where it is read by `req.params.parse`.
    """
    paths = [path_of(front_end, route) for route in routes]
    known = [parameters_of(path) if path is not None else None for path in paths]
    if not known or any(names is None or name in names for names in known):
        return None
    if sources.may_prefix(name) and not all(front_end.is_app(route) for route in routes):
        return None  # a prefix may bring it along
    read = f"req.params.parse({parsed})" if parsed else f'req.params["{name}"]'
    return unknown_parameter(name, paths[0] or "", known[0] or (), read)


class NamedBinding(NamedTuple):
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


def bindings_of(front_end: Names[NodeT], node: NodeT, deeper: bool = True) -> Iterator[NamedBinding]:
    """The bindings that a middleware goes by, named by texts: its own, and those of a store that it is given."""
    value = front_end.value_of(node)
    call = node if value is None else value
    maker = front_end.maker_of(call)
    middleware = declared().middleware.get(maker)
    if middleware is None:
        return
    for option in middleware.bindings:
        given = front_end.argument_of(call, option, first=option == middleware.first)
        name = front_end.string_of(given) if given is not None else None
        if name is not None:
            yield NamedBinding(maker, option, name)
    store = front_end.argument_of(call, "store") if deeper else None
    if store is not None:
        yield from bindings_of(front_end, store, deeper=False)


# The order of middleware ----------------------------------------------------------------------------------------------


def misplaced(front_end: Names[NodeT], registrations: Sequence[Registration[NodeT]]) -> dict[int, str]:
    """The registrations of a module, by number, that provide a value which an earlier one has already read
    (`core-order`).
    """
    found: dict[int, str] = {}
    known = (_middleware(front_end, handler) for entry in registrations for handler in entry.handlers)
    if not any(middleware is not None and middleware.provides for middleware in known):
        return found  # so in most modules
    for router in dict.fromkeys(entry.router for entry in registrations if entry.router is not None):
        entries = list(_entries(front_end, registrations, router, "", (), frozenset()))
        for number, (late, where) in enumerate(entries):
            if late.middleware.provides:
                before = [entry for entry, at in entries[:number] if runs_before(at, where)]
                for registration, message in reversals([*before, late]):
                    found.setdefault(registration, message)
    return found


def _entries(
    front_end: Names[NodeT],
    registrations: Sequence[Registration[NodeT]],
    router: Hashable,
    prefix: str,
    where: tuple[int, ...],
    seen: frozenset[Hashable],
) -> Iterator[tuple[PlacedMiddleware, tuple[int, ...]]]:
    """Every known middleware on a router, in order, with those of routers mounted on it in this module."""
    if router in seen:
        return
    for number, registration in enumerate(registrations):
        if registration.router != router or registration.method in ("queue", "scheduled"):
            continue
        at = where or registration.where
        handlers = registration.handlers
        path = path_of(front_end, registration)
        if not registration.is_route:
            handlers, path = (handlers, "") if path is None else (handlers[1:], path)
        if path is None:
            continue
        whole = prefix.rstrip("/") + path if path not in ("", "/") else prefix or "/"
        for handler in handlers:
            middleware = _middleware(front_end, handler)
            if middleware is not None:
                yield PlacedMiddleware(middleware, whole or "/", registration.is_route, number), at
            elif not registration.is_route and (mounted := front_end.router_of(handler)) is not None:
                inner = _entries(front_end, registrations, mounted, whole, at, seen | {router})
                yield from ((entry._replace(registration=number), at) for entry, _ in inner)


def _middleware(front_end: Names[NodeT], node: NodeT) -> DeclaredMiddleware | None:
    """A middleware that somebody declares, made here."""
    value = front_end.value_of(node)
    return declared().middleware.get(front_end.maker_of(node if value is None else value))
