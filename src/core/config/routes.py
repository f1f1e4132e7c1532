"""Paths and order of middleware, as far as they can be told without running the program.

The rules are the router's own (`core.routing.pattern`, `core.router.prove_order`); here they are put so that both the
mypy plugin and `core check` can ask for them with what stands in the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from core.config.check import order_problem
from core.errors import PathError
from core.routing.pattern import Pattern, parse
from core.values import frozen

__all__ = ["METHODS", "MIDDLEWARE", "Placed", "Promise", "parameters_of", "path_problem", "reversals", "runs_before"]

METHODS: Final = frozenset(["all", "delete", "get", "head", "options", "patch", "post", "put"])
"""The methods of a router that register a route by its path alone. `on` takes the method first."""


@frozen
class Promise:
    """What a middleware of the framework reads of a request, and what it puts there."""

    name: str
    reads: frozenset[str] = frozenset()
    provides: frozenset[str] = frozenset()


MIDDLEWARE: Final[Mapping[str, Promise]] = {
    "core.middleware.logger.logger": Promise("logger", reads=frozenset(["req.id"])),
    "core.middleware.request_id.request_id": Promise("request_id", provides=frozenset(["req.id"])),
}
"""By the full name of the function that makes it. What is not here neither reads nor provides."""


@lru_cache(1024)  # a path is asked for by its route, and again by each parameter that its handler reads
def parameters_of(path: str) -> tuple[str, ...] | None:
    """The names that `req.params` has on a path; None for a path that cannot be registered."""
    try:
        return parse(path).parameters
    except PathError:
        return None


def path_problem(path: str) -> str | None:
    """What the router says against a path when it is registered."""
    try:
        parse(path)
    except PathError as error:
        return str(error)
    return None


@frozen
class Placed:
    """A middleware where it is registered: under a prefix, or on a route's own path. `place` is the face's own."""

    promise: Promise
    path: str
    route: bool
    place: int


def reversals(placed: Sequence[Placed]) -> list[tuple[int, str]]:
    """The places of middleware that provide what an earlier one on the same way has already read, and the messages."""
    found: list[tuple[int, str]] = []
    for index, late in enumerate(placed):
        if not late.promise.provides:
            continue
        pattern = _pattern(late.path)
        provided: set[str] = set()
        waiting: list[tuple[Promise, frozenset[str]]] = []
        for early in placed[:index]:
            above = _pattern(early.path)
            if pattern is None or above is None:
                continue
            if early.route and early.place != late.place:
                continue  # a route's own middleware runs for that route alone
            if early.place != late.place and not _covers(above, pattern):
                continue
            missed = early.promise.reads - provided
            if missed:
                waiting.append((early.promise, missed))
            provided |= early.promise.provides
        for reader, missed in waiting:
            late_names = missed & late.promise.provides
            if late_names:
                reason = f"{reader.name}() reads {', '.join(sorted(late_names))}"
                found.append((late.place, order_problem(reader.name, late.promise.name, reason)))
                break
    return found


def runs_before(early: tuple[int, ...], late: tuple[int, ...]) -> bool:
    """Whether a statement always runs before another one that runs: it stands before it, in a block around it."""
    if early == late:
        return True
    around = len(early) - 1
    return len(late) > around and early[:around] == late[:around] and early[around] < late[around]


def _pattern(path: str) -> Pattern | None:
    try:
        return parse(path)
    except PathError:
        return None


def _covers(prefix: Pattern, pattern: Pattern) -> bool:
    """Whether every path of `pattern` lies at or below `prefix`, as `core.router.covers` has it."""
    if len(prefix.parts) > len(pattern.parts):
        return False
    return all(part is None or part == other for part, other in zip(prefix.parts, pattern.parts, strict=False))
