"""The first registered route that matches a path, found without walking all of them.

Routes are grouped by how many segments they have, and which of them are text. All routes of one group stand in one dict
under their texts, so a request asks one dict per group of its length, however many routes there are. Paths without
parameters stand in one more dict, under the path itself, with the winner already decided. Among the routes found the
lowest order wins; groups are kept in that order, so the search ends as soon as nothing earlier can come.

Paths arrive as lists of decoded segments whose first is the empty text before the leading slash. Handlers and
middleware are opaque here: `core.dispatch` runs them.

A pattern with a regular expression has a group of its own, which asks the expressions of those under the same
texts, one after the other. Tables without such patterns have no such group.

Most paths with a parameter have one, and it comes last. The path before it then decides which
route it is, and is kept in `single_parameter_routes`, unless an earlier route might want some of those paths.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, cast

from core.http.paths import CANONICAL
from core.routing.pattern import Pattern

Chain = Callable[[Any, Any], Awaitable[object]]
"""Runs a request, and its response, to the end."""

ALL = "*"
"""The method of a route that answers every method."""


class Route:
    """One registration: a route, middleware over a prefix, or a mounted router.

    The same record stands in a router's own list, in the flat list of an application and, after `index`, in the tables
    that requests are looked up in.
    """

    order: int
    """The place in the order of registration."""
    names: tuple[tuple[str, int], ...]
    """The parameters, each with the index of its segment; the text before the leading slash is segment 0."""
    rest: int
    """The index of the first segment of `*` at the end; 0 without one."""
    checks: tuple[tuple[int, re.Pattern[str]], ...]
    """The regular expressions, each with the index of its segment."""
    one: str
    """The name of the parameter where it is the only one and has no expression; else an empty string."""
    place: int
    """The index of the segment of `one`."""

    def __init__(
        self,
        method: str | None,
        pattern: Pattern,
        middleware: Sequence[object],
        handler: object = None,
        errors: tuple[Mapping[type[Exception], object], ...] = (),
        mounted: object = None,
        tool: bool = False,
    ) -> None:
        self.method: str | None = method
        """The method of a route, ALL for any; None for middleware over a prefix or a mounted router."""
        self.pattern: Pattern = pattern
        self.middleware: Sequence[Any] = middleware
        self.handler: Any = handler
        self.errors: tuple[Mapping[type[Exception], Any], ...] = errors
        """The error handlers of the routers that it is registered on, the outermost first; without the application's.
        """
        self.mounted: Any = mounted
        """The router that is mounted at the pattern."""
        self.tool: bool = tool
        """True if models may call the route."""
        self.run: Chain | None = None
        """The chain, built for the first request."""
        self.maybe: bool = False
        """True if the middleware that covers it depends on the request; then `chains` has a chain for each set."""
        self.chains: dict[tuple[int, ...], Chain] | None = None

    @property
    def label(self) -> str:
        """The name of a route in messages."""
        return f"{'any method' if self.method == ALL else self.method} {self.pattern.text}"

    def index(self, order: int) -> None:
        """Give it its place in the order, and work out how its pattern is matched."""
        pattern = self.pattern
        self.order = order
        self.names = tuple((name, index + 1) for name, index in pattern.names)
        self.rest = len(pattern.parts) + 1 if pattern.rest else 0
        self.checks = tuple((index + 1, re.compile(source)) for index, source in pattern.checks)
        self.one, self.place = "", 0
        if len(self.names) == 1 and not self.rest and not self.checks:
            self.one, self.place = self.names[0]

    def parameters(self, segments: list[str]) -> dict[str, str]:
        """The values of the parameters in `segments`, which the pattern matches."""
        found = {name: segments[index] for name, index in self.names}
        if self.rest:
            found["*"] = "/".join(segments[self.rest :])
        return found

    def fits(self, segments: list[str]) -> bool:
        """Return True if every regular expression of the pattern fits its segment."""
        return all(expression.fullmatch(segments[index]) for index, expression in self.checks)


class _Group:
    """All patterns with text in the same places: the routes of each text, in order."""

    __slots__ = ("checked", "first", "places", "routes", "texts_of")

    def __init__(self, first: int, places: tuple[int, ...], checked: bool) -> None:
        self.first = first
        self.places = places
        self.checked = checked
        self.texts_of: Callable[[list[str]], object] = cast("Any", itemgetter(*places)) if places else _nothing
        self.routes: dict[object, list[Route]] = {}


def _nothing(_: list[str]) -> object:
    return None


class Table:
    """The routes of one method, in order of registration, and the chains of those of their paths that need no care."""

    __slots__ = ("_by_length", "_groups", "_texts", "chains", "single_parameter_routes", "static")

    def __init__(self) -> None:
        self.chains: dict[str, Chain] = {}
        """The chains that the finder keeps, under the paths as most requests have them."""
        self.static: dict[str, Route] = {}
        """The winner for every registered path without parameters, under the path as most requests have it."""
        self.single_parameter_routes: dict[str, Route] = {}
        """The winner for every path of one segment more that has no special character in it and is not in `static`."""
        self._texts: dict[str, list[Route]] = {}
        self._groups: dict[tuple[int, tuple[int, ...], bool, bool], _Group] = {}
        self._by_length: dict[int, list[_Group]] = {}

    def add(self, route: Route) -> None:
        """Add a route without an optional segment. Its order is higher than those before, but for another variant's."""
        pattern = route.pattern
        if pattern.static:
            segments = ["", *(part for part in pattern.parts if part is not None)]
            text = "/".join(segments)
            self._texts.setdefault(text, []).append(route)
            # An empty last segment is written with one slash more ("//" is not "/"): such paths are found by `find`.
            if segments[-1] or len(segments) == 1:
                self.static.setdefault(text or "/", self.find_in_groups(segments, route) or route)
            return
        self.single_parameter_routes.clear()
        places = tuple(index + 1 for index, part in enumerate(pattern.parts) if part is not None)
        named = (len(pattern.parts) + 1, places, pattern.rest, bool(pattern.checks))
        group = self._groups.get(named)
        if group is None:
            group = self._groups[named] = _Group(route.order, places, bool(pattern.checks))
            # Which groups a length has is worked out when the first path of that length comes.
            self._by_length.clear()
        texts = tuple(part for part in pattern.parts if part is not None)
        key = texts[0] if len(texts) == 1 else texts or None
        group.routes.setdefault(key, []).append(route)

    def find(self, segments: list[str]) -> Route | None:
        """The first route that matches, or None."""
        return self.find_in_groups(segments, next(iter(self._by_text(segments)), None))

    def matches(self, segments: list[str], after: int) -> list[Route]:
        """All routes that match and come after the order `after`, in order."""
        found = [*self._by_text(segments)]
        for group in self._groups_of(len(segments)):
            found += [route for route in group.routes.get(group.texts_of(segments), ()) if route.fits(segments)]
        return sorted((route for route in found if route.order > after), key=lambda route: route.order)

    def _by_text(self, segments: list[str]) -> list[Route]:
        routes = self._texts.get("/".join(segments), [])
        # %2F stays inside its segment, so such a path is another one.
        return [] if routes and any("/" in segment for segment in segments) else routes

    def find_in_groups(self, segments: list[str], best: Route | None = None) -> Route | None:
        """The first route with a parameter or a rest that matches; `best` where that comes before it."""
        length = len(segments)
        groups = self._by_length.get(length)
        if groups is None:
            groups = self._groups_of(length)
        for group in groups:
            if best is not None and group.first > best.order:
                break
            routes = group.routes.get(group.texts_of(segments))
            if routes is not None:
                route = next((each for each in routes if each.fits(segments)), None) if group.checked else routes[0]
                if route is not None and (best is None or route.order < best.order):
                    best = route
        return best

    def keep_single_parameter_route(self, route: Route, segments: list[str]) -> None:
        """Keep a route, which `find` gave, in `single_parameter_routes` if every path like `segments` is its own."""
        last = len(segments) - 1
        if not route.one or route.place != last:
            return
        head = "/".join(segments[:last])
        if head.strip(CANONICAL) or "/." in head:
            return
        for group in self._groups_of(last + 1):
            if group.first < route.order and (last in group.places or group.checked):
                return  # an earlier route with a string or an expression there may win for some paths
        self.single_parameter_routes[head] = route

    def _groups_of(self, length: int) -> list[_Group]:
        groups = self._by_length.get(length)
        if groups is None:
            groups = [
                group
                for (size, _, rest, _), group in self._groups.items()
                if size == length or (rest and size < length)
            ]
            # A client chooses how long its paths are; the memory kept for that is bounded.
            if len(self._by_length) < 64:
                self._by_length[length] = groups
        return groups
