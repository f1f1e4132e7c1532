"""Routes that no request reaches, and mounts of nothing (`core-route`).

The first route that matches answers, in the order of registration: `core.routing.table`. Only routes of one router in
one module are compared, whose order is certain, and only where the earlier one ends in a handler.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from core.analysis.front_end import FrontEnd, Registration
from core.analysis.registrations import path_of
from core.analysis.routes import path_problem, runs_before

__all__ = ["mounts_nothing", "nothing_mounted", "unreachable"]

NodeT = TypeVar("NodeT")
MAKES_ROUTER: Final = frozenset(["core.Router", "core.router.Router"])


_MORE: Final = re.compile(r"[{}()?+]")


class _Route(NamedTuple):
    method: str
    path: str
    segments: list[str] | None
    where: tuple[int, ...]
    final: bool
    number: int


def unreachable(front_end: FrontEnd[NodeT], registrations: Sequence[Registration[NodeT]]) -> dict[int, str]:
    """The routes of a module, by number, that an earlier one on the same router answers in their place."""
    routers: dict[Hashable, list[_Route]] = {}
    for number, registration in enumerate(registrations):
        if not registration.is_route or registration.router is None or registration.starred:
            continue
        path, method = path_of(front_end, registration), registration.method.upper()
        if method == "ON":
            given = front_end.string_of(registration.arguments[0]) if registration.arguments else None
            method = given.upper() if given is not None else ""
        if path is None or not method or path_problem(path) is not None:
            continue
        handlers = [*registration.handlers, *([registration.decorated] if registration.decorated is not None else [])]
        final = bool(handlers) and front_end.demanded(handlers[-1]) == 2
        routers.setdefault(registration.router, []).append(
            _Route(method, path, _segments(path), registration.where, final, number)
        )
    found: dict[int, str] = {}
    for routes in routers.values():
        earlier: dict[str, list[_Route]] = {}
        """Those so far by their first segments: a path that begins with another text is not covered."""
        for late in routes:
            begin = late.path[1:].partition("/")[0]
            candidates = [*earlier.get("", ()), *(earlier.get(begin, ()) if begin else ())]
            for early in sorted(candidates, key=_number):
                if (
                    early.final
                    and _is_for(early, late.method)
                    and _covers(early, late)
                    and runs_before(early.where, late.where)
                ):
                    found[late.number] = _told(early, late)
                    break
            earlier.setdefault("" if begin[:1] in ("", ":", "*") else begin, []).append(late)
    return found


def _number(route: _Route) -> int:
    return route.number


def _is_for(early: _Route, method: str) -> bool:
    return early.method in ("ALL", method) or (early.method, method) == ("GET", "HEAD")


def _covers(early: _Route, late: _Route) -> bool:
    """Return True if every path of the later route matches the earlier one."""
    if early.path == late.path:
        return True
    first, second = early.segments, late.segments
    if first is None or second is None:
        return False
    rest, longer = first[-1:] == ["*"], second[-1:] == ["*"]
    if not rest and len(first) != len(second):
        return False  # so for most
    first, second = first[: len(first) - rest], second[: len(second) - longer]
    # A rest may be empty or not by the router's own rule; it is certainly covered where something is left.
    if longer > rest or (rest and len(second) < len(first) + (not longer)):
        return False
    return all(a == b or a[:1] == ":" for a, b in zip(first, second, strict=False))


def _segments(path: str) -> list[str] | None:
    """The segments of a path of plain texts and parameters; None where a parameter is more than a name."""
    segments = path[1:].split("/")
    if segments[-1] == "":
        segments.pop()
    return None if _MORE.search(path) or "*" in segments[:-1] else segments


def _told(early: _Route, late: _Route) -> str:
    shown, before = _shown(late), _shown(early)
    if shown == before:
        return (
            f"{shown} is registered twice, and the first one answers: this one is never reached. Leave one of them out"
        )
    return f"{shown} is never reached: {before} is registered before it, and answers. Register {shown} first"


def _shown(route: _Route) -> str:
    return f'{route.method.lower()}("{route.path}")'


def mounts_nothing(front_end: FrontEnd[NodeT], registration: Registration[NodeT]) -> Mapping[NodeT, str]:
    """`use("/users", Router())`, by the argument: a router that nobody else can put anything on."""
    if registration.method != "use":
        return {}
    path = path_of(front_end, registration)
    return {
        handler: nothing_mounted(path, "Router()")
        for handler in registration.handlers
        if front_end.maker_of(handler) in MAKES_ROUTER
    }


def nothing_mounted(path: str | None, router: str) -> str:
    """A mount of a router without routes."""
    call = f'use("{path}", {router})' if path is not None else f"use({router})"
    return f"{call} mounts nothing: the router has neither routes nor middleware. Register them on it, or leave it out"
