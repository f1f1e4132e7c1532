"""The chain for a request: found by its method and path, built once, and kept.

Everything about order is decided here: which middleware runs before a route, and which route comes after one that went
on. For a path without parameters the chain is kept under the path itself, and a request to it costs one look into one
dict. How a chain is built of its steps is in `core.dispatch.chain`; this file does not run one, nor answer errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from core.dispatch.answers import ErrorHandlers, refuse_malformed
from core.dispatch.chain import Run, build_chain, set_own_parameters
from core.handlers import info_of
from core.http.paths import CANONICAL, canonical_path, split_path
from core.request import NO_PARAMS, AnyRequest, OpenRequest, Params
from core.response import Response
from core.routing.scopes import Scope, Scopes
from core.routing.table import ALL, Route, Table

if TYPE_CHECKING:
    from typing import TypeAlias

    from core.dispatch.instruments import Instrument
    from core.types import Middleware, Next

    Covering: TypeAlias = Sequence[Scope]

_LAST = 1 << 62
"""An order behind that of every route."""
_KEPT_CHAINS = 1024
NO_CHAINS: dict[str, Run] = {}


class Finder:
    """Finds the chains of requests among the routes that `load` gives, in their order.

    `end` is the end of a chain that no route answers. `catch(levels, follow)` gives a chain that runs `follow`, and
    answers its errors by the error handlers of routers, the nearest first.
    """

    def __init__(
        self, load: Callable[[], Iterable[Route]], end: Run, catch: Callable[[tuple[ErrorHandlers, ...], Run], Run]
    ) -> None:
        self._load = load
        self._end = end
        self._catch = catch
        self.instruments: list[Instrument] = []
        """They are asked when chains are built. After a change, call `reload`."""
        # The error handlers of the routers that middleware is in, by the order of the middleware.
        self._errors: dict[int, tuple[ErrorHandlers, ...]] = {}
        self.tables: dict[str, Table] = {ALL: Table()}
        """The routes of each method; under ALL those of every other method."""
        self.chains: dict[str, dict[str, Run]] = {}
        """The chains that each method's table keeps. Hosts have this dict: it is filled, and never replaced."""
        self._scopes: Scopes = Scopes()
        self._scoped = False
        # The chain for a path that no route has: one, or one for each set of prefixes with middleware.
        self._missing: Run | None = None
        self._chains: dict[tuple[int, ...], Run] = {}
        self._loaded = False

    def reload(self) -> None:
        """Load the routes anew before the next request: something was registered, or stands around the steps now."""
        self.tables, self._loaded = {ALL: Table()}, False
        self.chains.clear()

    # -- finding the chain

    def find(self, method: str, path: str) -> tuple[Run, Params[Any], str]:
        """The chain for a request, its parameters, and its path in canonical form.

        Raises what is wrong with the application as a whole, which is looked at before the first request.
        """
        if not self._loaded:
            self._load_routes()
        table = self.tables.get(method) or self.tables[ALL]
        head, slash, last = path.rpartition("/")
        route = table.single_parameter_routes.get(head)
        if route is not None and last.isalnum() and last.isascii() and slash and path not in table.static:
            # The path is canonical: the part before its last segment is in the table as it is.
            params: Params[Any] = Params()  # quicker filled than made of another dict
            params._keep(route.one, last)
            return route.run or self._route_chain(route, method, path.split("/")), params, path
        # As `is_canonical` has it, without the call.
        if path.strip(CANONICAL) or "/." in path or path[:1] != "/":
            path = canonical_path(path)
        segments = path.split("/")
        if "%" in path:
            try:
                segments = ["", *split_path(path)]
            except ValueError:
                return self._instrumented(build_scoped(self._scopes.everywhere, refuse_malformed)), NO_PARAMS, path
            route = table.find(segments)
        elif segments[-1] == "" and len(segments) > 1:
            segments.pop()  # a trailing slash is ignored
            route = table.find(segments)
        else:
            route = table.static.get(path) or table.find_in_groups(segments)
        if route is None:
            return self._missing_chain(segments), NO_PARAMS, path
        params = NO_PARAMS
        if route.names or route.rest:
            params = Params(route.parameters(segments))
            table.keep_single_parameter_route(route, segments)
        return route.run or self._route_chain(route, method, segments), params, path

    def route_of(self, method: str, path: str) -> tuple[Route | None, list[Middleware[Any, Any]]]:
        """The route that answers a path in canonical form, and the middleware before it in its order, for messages."""
        try:
            segments = ["", *split_path(path)]
        except ValueError:
            segments = [""]
        route = (self.tables.get(method) or self.tables[ALL]).find(segments)
        middleware = [scope.value for scope in self._scopes.covering(segments, _LAST if route is None else route.order)]
        return route, middleware if route is None else [*middleware, *route.middleware]

    def allowed_methods(self, path: str) -> list[str]:
        """The methods that a path has routes for, in order of registration. A route for all methods names none."""
        segments = ["", *split_path(path)]
        return [method for method, table in self.tables.items() if method != ALL and table.find(segments) is not None]

    def _route_chain(self, route: Route, method: str, segments: list[str]) -> Run:
        if not route.maybe:
            scopes, route.maybe = self._scopes.over(route.pattern, route.order)
            if not route.maybe:
                run = route.run = self._instrumented(self._build_whole(scopes, route), route)
                path, table = "/".join(segments), self.tables.get(method) or self.tables[ALL]
                # Kept under the path, for every spelling of it that needs no care.
                if route.pattern.static and (path == "" or path in table.static):
                    table.chains[path or "/"] = run
                return run
        if route.chains is None:
            route.chains = {}
        return self._scoped_chain(route.chains, segments, route)

    def _missing_chain(self, segments: list[str]) -> Run:
        if not self._scoped:
            if self._missing is None:
                self._missing = self._instrumented(build_scoped(self._scopes.everywhere, self._end))
            return self._missing
        return self._scoped_chain(self._chains, segments)

    def _scoped_chain(self, chains: dict[tuple[int, ...], Run], segments: list[str], route: Route | None = None) -> Run:
        """The chain behind the middleware that covers a path, of those that are `chains` for each set of it."""
        scopes = self._scopes.covering(segments, _LAST if route is None else route.order)
        key = tuple(scope.order for scope in scopes)
        chain = chains.get(key)
        if chain is None:
            chain = build_scoped(scopes, self._end) if route is None else self._build_whole(scopes, route)
            chain = self._instrumented(chain, route)
            if len(chains) < _KEPT_CHAINS:
                chains[key] = chain
        return chain

    # -- building chains

    def _instrumented(self, run: Run, route: Route | None = None) -> Run:
        for instrument in self.instruments:
            run = instrument.request(run, route)
        return run

    def _build_whole(self, scopes: Covering, route: Route, end: Run | None = None) -> Run:
        """The chain of a route with the middleware that covers it. Errors of a router's steps go to its handlers."""
        run = self._build_route(route, end)
        errors = route.errors
        for depth in range(len(errors), 0, -1):
            # The registrations of a router stand together, and a route's own router is the last to begin.
            first = len(scopes)
            while first and self._errors.get(scopes[first - 1].order, ())[:depth] == errors[:depth]:
                first -= 1
            run = self._catch((*reversed(errors[:depth]),), build_scoped(scopes[first:], run, route))
            scopes = scopes[:first]
        return build_scoped(scopes, run, route)

    def _build_route(self, route: Route, end: Run | None) -> Run:
        """The chain of a route: its own middleware, then its handler or the next route that matches."""
        handler: Any = route.handler
        order = route.order
        opens = hasattr(handler, "__core_opens__")
        # After the last route of its path a WebSocket's own handler refuses: 426.
        last = (handler if opens else None) or end or self._end

        def go_on(req: Any, res: Response) -> Awaitable[object]:
            return self._run(req, res, last, NO_PARAMS, order)

        chain = build_chain(route.middleware, handler or go_on)
        if not opens:
            return chain

        def open_or_go_on(req: AnyRequest, res: Response) -> Awaitable[object]:
            return (chain if req._opens_websocket() else go_on)(req, res)

        return open_or_go_on

    async def run_within(self, req: OpenRequest, res: Response, next: Next) -> None:
        """Run a request as one step of another chain: a path that matches nothing here goes on to `next`."""
        if not self._loaded:
            self._load_routes()
        params = req.params

        async def go_on(req: OpenRequest, res: Response) -> None:
            req.params = params
            await next()

        await self._run(req, res, go_on, params)

    async def _run(self, req: OpenRequest, res: Response, end: Run, missing: Params[Any], after: int = -1) -> None:
        """Run the first matching route after the order, or `end` with `missing`, and the middleware in between."""
        segments = ["", *split_path(req.path)]
        table = self.tables.get(req.method) or self.tables[ALL]
        route = table.find(segments) if after < 0 else next(iter(table.matches(segments, after)), None)
        scopes = self._scopes.covering(segments, _LAST if route is None else route.order, after)
        run = build_scoped(scopes, end) if route is None else self._build_whole(scopes, route, end)
        params = req.params
        req.params = missing if route is None else Params(route.parameters(segments))
        try:
            await run(req, res)
        finally:
            req.params = params

    # -- loading

    def _load_routes(self) -> None:
        """Load the routes. Those of one method are in one table; ALL is in each."""
        tables: dict[str, Table] = {ALL: Table()}
        for_all: list[Route] = []
        scopes: Scopes = Scopes()
        scoped = False
        counts: dict[tuple[str, str], int] = {}
        loaded = list(self._load())
        errors: dict[int, tuple[ErrorHandlers, ...]] = {}
        # HEAD is answered by GET without the body, from the same table unless there are routes for HEAD alone.
        get_methods = ("GET", "HEAD") if any(route.method == "HEAD" for route in loaded) else ("GET",)
        for order, given in enumerate(loaded):
            location = given.pattern.text if given.method is None else given.label
            middleware_here = [_place(middleware, location, counts) for middleware in given.middleware]
            for instrument in self.instruments:
                middleware_here = [instrument.middleware(middleware) for middleware in middleware_here]
            if given.method is None:
                scoped = scoped or bool(given.pattern.parts)
                if given.errors:
                    errors[order] = given.errors
                for middleware in middleware_here:
                    scopes.add(order, given.pattern, middleware)
                continue
            routes = [
                Route(given.method, own, middleware_here, given.handler, given.errors) for own in given.pattern.variants
            ]
            for route in routes:
                route.index(order)
            methods: Iterable[str]
            if given.method == ALL:
                for_all += routes
                methods = tables
            else:
                methods = get_methods if given.method == "GET" else (given.method,)
                for method in methods:
                    if method not in tables:
                        table = tables[method] = Table()
                        for earlier in for_all:
                            table.add(earlier)
            for method in methods:
                for route in routes:
                    tables[method].add(route)
        if "GET" in tables:
            tables.setdefault("HEAD", tables["GET"])
        self.chains.update({method: table.chains for method, table in tables.items()})
        self.tables, self._scopes, self._scoped = tables, scopes, scoped
        self._missing, self._chains = None, {}
        self._errors = errors
        self._loaded = True


def build_scoped(scopes: Covering, end: Run, route: Route | None = None) -> Run:
    """The chain of the middleware of `scopes`, then `end`."""
    known = frozenset(route.names) if route is not None else frozenset[tuple[str, int]]()
    middleware = [
        # A prefix may name parameters that the route does not.
        scope.value if known.issuperset(scope.names) else set_own_parameters(scope.value, scope.names)
        for scope in scopes
    ]
    return build_chain(middleware, end)


def _place(middleware: Middleware[Any, Any], location: str, counts: dict[tuple[str, str], int]) -> Middleware[Any, Any]:
    """The middleware for one location, which `counts` numbers among others of its name there."""
    info = info_of(middleware)
    if info is None or info.for_location is None:
        return middleware
    number = counts[location, info.name] = counts.get((location, info.name), 0) + 1
    return info.for_location(location, number)
