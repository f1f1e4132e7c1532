"""Paths and order of middleware, as far as they can be told without running the program.

The rules are the router's own (`core.routing.pattern`, `core.router.prove_order`); here they are put so that both the
mypy plugin and `core check` can ask for them with the text of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from core.analysis.problems import order_problem
from core.errors import PathError
from core.extensions import DeclaredMiddleware
from core.routing.pattern import Pattern, parse

__all__ = [
    "PlacedMiddleware",
    "parameters_of",
    "path_problem",
    "pattern_of",
    "reversals",
    "runs_before",
]


@lru_cache(1024)  # a path is asked for by its route, and again by each link to it and parameter that its handler reads
def _parsed(path: str) -> Pattern | str:
    try:
        return parse(path)
    except PathError as error:
        return str(error)


def pattern_of(path: str) -> Pattern | None:
    """The pattern that a path is; None for a path that cannot be registered."""
    parsed = _parsed(path)
    return parsed if isinstance(parsed, Pattern) else None


@lru_cache(1024)
def parameters_of(path: str) -> tuple[str, ...] | None:
    """The names that `req.params` has on a path; None for a path that cannot be registered."""
    pattern = pattern_of(path)
    return pattern.parameters if pattern is not None else None


def path_problem(path: str) -> str | None:
    """Return the router's objection to a path, the one it raises at registration."""
    parsed = _parsed(path)
    return parsed if isinstance(parsed, str) else None


class PlacedMiddleware(NamedTuple):
    """A middleware and where it is registered: under a prefix, or on a `route`'s own path.

    `registration` is its number.
    """

    middleware: DeclaredMiddleware
    path: str
    route: bool
    registration: int


def reversals(placed: Sequence[PlacedMiddleware]) -> list[tuple[int, str]]:
    """The registrations of middleware that provide a value that an earlier one on the same path has already read, and
    the messages.
    """
    found: list[tuple[int, str]] = []
    for index, late in enumerate(placed):
        if not late.middleware.provides:
            continue
        pattern = pattern_of(late.path)
        provided: set[str] = set()
        waiting: list[tuple[DeclaredMiddleware, frozenset[str]]] = []
        for early in placed[:index]:
            above = pattern_of(early.path)
            if pattern is None or above is None:
                continue
            if early.route and early.registration != late.registration:
                continue  # a route's own middleware runs for that route alone
            if early.registration != late.registration and not above.covers(pattern):
                continue
            missed = frozenset((*early.middleware.reads, *early.middleware.requires)) - provided
            if missed:
                waiting.append((early.middleware, missed))
            provided.update(early.middleware.provides)
        for reader, missed in waiting:
            late_names = missed.intersection(late.middleware.provides)
            if late_names:
                reason = f"{reader.name}() reads {', '.join(sorted(late_names))}"
                found.append((late.registration, order_problem(reader.name, late.middleware.name, reason)))
                break
    return found


def runs_before(early: tuple[int, ...], late: tuple[int, ...]) -> bool:
    """Return True if a statement always runs before another one that runs: it comes before it, in a block around it."""
    if early == late:
        return True
    around = len(early) - 1
    return len(late) > around and early[:around] == late[:around] and early[around] < late[around]
