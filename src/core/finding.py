"""The chain for a request: found by its method and path, built once, and kept.

Everything about order is decided here: which middleware runs before a route, and which route comes after one that went
on. For a path without parameters the chain is kept under the path itself, and a request to it costs one look into one
dict. How a chain is built of its steps is in `core.chain`; this file does not run one, nor answer errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from core.answers import ErrorHandlers, refuse_malformed
from core.chain import Run, build_chain, set_own_parameters
from core.handlers import info_of
from core.http.paths import CANONICAL, canonical_path, split_path
from core.request import NO_PARAMS, AnyRequest, FoundParams, OpenRequest, Params
from core.response import Response
from core.routing.pattern import Pattern
from core.routing.scopes import Scope, Scopes
from core.routing.table import Leaf, Table

if TYPE_CHECKING:
    from typing import Protocol

    from core.shapes import Handler, Middleware

__all__ = ["ALL", "ChainFinder", "Entry", "LAST", "build_scoped"]

ALL = "*"
"""The method of an entry that answers every method."""
LAST = 1 << 62
"""An order behind that of every entry."""
_KEPT_CHAINS = 1024


class Entry:
    """One thing that was registered, with its whole path: a route, or one middleware over a prefix."""

    __slots__ = ("errors", "handler", "method", "middleware", "pattern")

    def __init__(
        self,
        method: str | None,
        pattern: Pattern,
        middleware: Sequence[Middleware[Any, Any]],
        handler: Handler[Any, Any] | None = None,
        errors: tuple[ErrorHandlers, ...] = (),
    ) -> None:
        self.method: str | None = method
        """The method of a route, ALL for any; None for a middleware over a prefix."""
        self.pattern: Pattern = pattern
        self.middleware: Sequence[Middleware[Any, Any]] = middleware
        self.handler: Handler[Any, Any] | None = handler
        self.errors: tuple[ErrorHandlers, ...] = errors
        """The error handlers of the routers that it is registered on, the outermost first; without the application's.
        """

    @property
    def label(self) -> str:
        """The name of a route in messages."""
        method = "any method" if self.method == ALL else self.method
        return f"{method} {self.pattern.text}"


class _Route:
    """A route with its chain, which is built when the first request comes for it; two where a segment is optional."""

    __slots__ = ("chains", "entry", "maybe", "middleware", "order", "pattern", "run")

    def __init__(self, order: int, entry: Entry, pattern: Pattern, middleware: list[Middleware[Any, Any]]) -> None:
        self.order = order
        self.entry = entry
        self.pattern = pattern
        self.middleware = middleware  # those of `entry`, made for its location
        self.run: Run | None = None
        self.maybe = False  # whether the middleware that cover it depend on the request
        self.chains: dict[tuple[int, ...], Run] | None = None


class _Routes(Table[_Route]):
    """The routes of one method, and the chains of those of their paths that need no care."""

    __slots__ = ("chains",)

    def __init__(self) -> None:
        super().__init__()
        self.chains: dict[str, Run] = {}


class _Tables(dict[str, _Routes]):
    """The routes of each method; `any` has those of every other method."""

    def __init__(self) -> None:
        super().__init__()
        self.any: _Routes = _Routes()

    def __missing__(self, method: str) -> _Routes:
        return self.any


if TYPE_CHECKING:

    class Instrument(Protocol):
        """Wraps the steps that a chain is built of, as `core.tracing` does.

        A dispatcher without one pays nothing for it.
        """

        def middleware(self, middleware: Middleware[Any, Any], /) -> Middleware[Any, Any]:
            """The middleware that runs instead of `middleware`."""
            ...

        def request(self, run: Run, entry: Entry | None, /) -> Run:
            """The chain that runs instead of a route's, or, where there is no entry, of a path without one."""
            ...


class ChainFinder:
    """Finds the chains of requests among the entries that `load` gives, in their order.

    A dispatcher derives from it: it decides the end of the chain behind the last step, and the answer to an error on
    the way.
    """

    _end: Run
    """The end of a chain that no route answers."""
    error_handlers: ErrorHandlers
    """The application's own."""

    def __init__(self, load: Callable[[], Iterable[Entry]]) -> None:
        self._load = load
        self.instrument: Instrument | None = None
        """It is asked when chains are built. After setting it, set `stale`."""
        # The error handlers of the routers that middleware is in, by the order of the middleware.
        self._errors: dict[int, tuple[ErrorHandlers, ...]] = {}
        self._tables = _Tables()
        self._scopes: Scopes[Middleware[Any, Any]] = Scopes()
        self._scoped = False
        # The chain for a path that no route has: one, or one for each set of prefixes with middleware.
        self._missing: Run | None = None
        self._chains: dict[tuple[int, ...], Run] = {}
        self.stale: bool = True
        """True if something was registered since the entries were loaded."""

    def _catch(self, levels: tuple[ErrorHandlers, ...], follow: Run) -> Run:
        """Return a chain that runs `follow`, and answers its errors by the handlers of `levels`."""
        raise NotImplementedError

    # -- finding the chain

    def _find_chain(self, req: Any, table: _Routes) -> Run:
        """The chain for a request that is not to a known path without parameters; sets `req.params`."""
        path: str = req.path
        head, slash, last = path.rpartition("/")
        leaf = table.single_parameter_routes.get(head)
        if leaf is not None and last.isalnum() and last.isascii() and slash and path not in table.static:
            # The path is canonical: the part before its last segment is in the table as it is.
            params = req.params = FoundParams()
            params.found = {leaf.one: last}
            return leaf.value.run or self._find_route_chain(leaf, path.split("/"), req)
        # As `is_canonical` has it, without the call.
        if path.strip(CANONICAL) or "/." in path or path[:1] != "/":
            path = req.path = canonical_path(path)
        segments = path.split("/")
        if "%" in path:
            try:
                segments = ["", *split_path(path)]
            except ValueError:
                return self._instrumented(build_scoped([*self._scopes.everywhere], refuse_malformed))
            leaf = table.find(segments)
        elif segments[-1] == "" and len(segments) > 1:
            segments.pop()  # a trailing slash is ignored
            leaf = table.find(segments)
        else:
            leaf = table.static.get(path) or table.find_among_shapes(segments)
        if leaf is None:
            return self._find_missing_chain(segments)
        if leaf.names or leaf.rest:
            req.params = Params(leaf.parameters(segments))
            table.keep_single_parameter_route(leaf, segments)
        return leaf.value.run or self._find_route_chain(leaf, segments, req)

    def _find_route_chain(self, leaf: Leaf[_Route], segments: list[str], req: AnyRequest) -> Run:
        route = leaf.value
        if not route.maybe:
            scopes, route.maybe = self._scopes.over(route.pattern, route.order)
            if not route.maybe:
                run = route.run = self._instrumented(self._build_whole(scopes, leaf), route.entry)
                if route.pattern.static:
                    self._keep(req.method, segments, run)
                return run
        scopes = self._scopes.covering(segments, route.order)
        key = tuple(scope.order for scope in scopes)
        if route.chains is None:
            route.chains = {}
        chain = route.chains.get(key)
        if chain is None:
            chain = self._instrumented(self._build_whole(scopes, leaf), route.entry)
            if len(route.chains) < _KEPT_CHAINS:
                route.chains[key] = chain
        return chain

    def _keep(self, method: str, segments: list[str], run: Run) -> None:
        """Keep the chain of a path without parameters under the path, for every spelling that needs no care."""
        path = "/".join(segments)
        table = self._tables[method]
        if path == "" or path in table.static:
            table.chains[path or "/"] = run

    def _find_missing_chain(self, segments: list[str]) -> Run:
        if not self._scoped:
            if self._missing is None:
                self._missing = self._instrumented(build_scoped(self._scopes.everywhere, self._end))
            return self._missing
        scopes = self._scopes.covering(segments, LAST)
        key = tuple(scope.order for scope in scopes)
        chain = self._chains.get(key)
        if chain is None:
            chain = self._instrumented(build_scoped(scopes, self._end))
            if len(self._chains) < _KEPT_CHAINS:
                self._chains[key] = chain
        return chain

    # -- building chains

    def _instrumented(self, run: Run, entry: Entry | None = None) -> Run:
        return run if self.instrument is None else self.instrument.request(run, entry)

    def _build_whole(
        self, scopes: Sequence[Scope[Middleware[Any, Any]]], leaf: Leaf[_Route], end: Run | None = None
    ) -> Run:
        """The chain of a route with the middleware that covers it. Errors of a router's steps go to its handlers."""
        run = self._build_route(leaf.value, end)
        errors = leaf.value.entry.errors
        for depth in range(len(errors), 0, -1):
            # The registrations of a router stand together, and a route's own router is the last to begin.
            first = len(scopes)
            while first and self._errors.get(scopes[first - 1].order, ())[:depth] == errors[:depth]:
                first -= 1
            run = self._catch((*reversed(errors[:depth]), self.error_handlers), build_scoped(scopes[first:], run, leaf))
            scopes = scopes[:first]
        return build_scoped(scopes, run, leaf)

    def _build_route(self, route: _Route, end: Run | None) -> Run:
        """The chain of a route: its own middleware, then its handler or the next route that matches."""
        handler = cast("Run | None", route.entry.handler)
        order = route.order
        opens = getattr(handler, "__core_websocket__", False)
        # After the last route of its path a WebSocket's own handler refuses: 426.
        last = (handler if opens else None) or end or self._end

        def go_on(req: Any, res: Response) -> Awaitable[object]:
            return self._resume(req, res, order, last)

        chain = build_chain(route.middleware, handler or go_on)
        if not opens:
            return chain

        def open_or_go_on(req: AnyRequest, res: Response) -> Awaitable[object]:
            return (chain if req._opens_websocket() else go_on)(req, res)

        return open_or_go_on

    async def _resume(self, req: OpenRequest, res: Response, after: int, end: Run) -> None:
        """Go on behind the route of the order `after`: to the next that matches, or to the end."""
        segments = ["", *split_path(req.path)]
        leaf = next(self._tables[req.method].matches(segments, after), None)
        before = LAST if leaf is None else leaf.order
        scopes = self._scopes.covering(segments, before, after)
        run = build_scoped(scopes, end) if leaf is None else self._build_whole(scopes, leaf, end)
        params = req.params
        req.params = NO_PARAMS if leaf is None else Params(leaf.parameters(segments))
        try:
            await run(req, res)
        finally:
            req.params = params

    def _allowed_methods(self, segments: list[str]) -> list[str]:
        """The methods that a path has routes for, in order of registration. A route for all methods names none."""
        return [method for method, table in self._tables.items() if table.find(segments) is not None]

    # -- loading

    def _compile(self) -> None:
        """Load the entries. Routes of one method are in one table; ALL is in each."""
        tables = _Tables()
        for_all: list[_Route] = []
        scopes: Scopes[Middleware[Any, Any]] = Scopes()
        scoped = False
        counts: dict[tuple[str, str], int] = {}
        entries = list(self._load())
        errors: dict[int, tuple[ErrorHandlers, ...]] = {}
        # HEAD is answered by GET without the body, from the same table unless there are routes for HEAD alone.
        get_methods = ("GET", "HEAD") if any(entry.method == "HEAD" for entry in entries) else ("GET",)
        for order, entry in enumerate(entries):
            location = entry.pattern.text if entry.method is None else entry.label
            placed = [_place(middleware, location, counts) for middleware in entry.middleware]
            if self.instrument is not None:
                placed = [self.instrument.middleware(middleware) for middleware in placed]
            if entry.method is None:
                scoped = scoped or bool(entry.pattern.parts)
                if entry.errors:
                    errors[order] = entry.errors
                for middleware in placed:
                    scopes.add(order, entry.pattern, middleware)
                continue
            routes = [_Route(order, entry, pattern, placed) for pattern in entry.pattern.variants]
            methods: Iterable[str]
            if entry.method == ALL:
                for_all += routes
                for route in routes:
                    tables.any.add(order, route.pattern, route)
                methods = tables
            else:
                methods = get_methods if entry.method == "GET" else (entry.method,)
                for method in methods:
                    if method not in tables:
                        table = tables[method] = _Routes()
                        for earlier in for_all:
                            table.add(earlier.order, earlier.pattern, earlier)
            for method in methods:
                for route in routes:
                    tables[method].add(order, route.pattern, route)
        if "GET" in tables:
            tables.setdefault("HEAD", tables["GET"])
        self._tables, self._scopes, self._scoped = tables, scopes, scoped
        self._missing, self._chains = None, {}
        self._errors = errors
        self.stale = False


def build_scoped(scopes: Sequence[Scope[Middleware[Any, Any]]], end: Run, leaf: Leaf[_Route] | None = None) -> Run:
    """The chain of the middleware of `scopes`, then `end`."""
    known = frozenset(leaf.names) if leaf is not None else frozenset[tuple[str, int]]()
    middleware = [
        # A prefix may name parameters that the route does not.
        scope.value if known.issuperset(scope.names) else set_own_parameters(scope.value, scope.names)
        for scope in scopes
    ]
    return build_chain(middleware, end)


def _place(middleware: Middleware[Any, Any], location: str, counts: dict[tuple[str, str], int]) -> Middleware[Any, Any]:
    """The middleware for one location, which `counts` numbers among others of its name there."""
    info = info_of(middleware)
    if info is None or info.placed is None:
        return middleware
    number = counts[location, info.name] = counts.get((location, info.name), 0) + 1
    return info.placed(location, number)
