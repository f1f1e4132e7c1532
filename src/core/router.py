"""The registrations in their order: routes, middleware, routers under prefixes.

Everything that can be known to be wrong is refused here, by name, when it is written down: a path
that never matches, a callable of the wrong shape, a middleware that reads a name that only a later one
provides. How a request runs through it is not decided here.

A router keeps its own list. `entries` lays it out flat with whole paths, mounted routers in the
place where they were mounted, so a route that is added to a router later still counts.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain as joined
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from typing_extensions import TypeVar

from core.dispatch.answers import ErrorHandlers
from core.dispatch.dispatcher import Dispatcher
from core.errors import CoreError, DeveloperError, HandlerError, OrderError, RegistrationError
from core.handlers import PREFLIGHTS, MiddlewareInfo, arguments_of, declare, info_of, name_of, require_async
from core.request import AnyRequest, Request
from core.response import Response
from core.routing.pattern import ROOT, Pattern, parse, require_prefix
from core.routing.table import ALL, Route

if TYPE_CHECKING:
    from typing import TypeAlias

    from core.http.websocket import WebSocket
    from core.types import Authenticator, ErrorHandler, Handler, Middleware, Next

    U2 = TypeVar("U2")
    K = TypeVar("K", bound=str)
    R = TypeVar("R", bound="Response | None")
    S = TypeVar("S", bound=str, default=str)
    X = TypeVar("X", bound=Exception)
    X2 = TypeVar("X2", bound=Exception)
    X3 = TypeVar("X3", bound=Exception)
    X4 = TypeVar("X4", bound=Exception)

E = TypeVar("E", default=Any)
U = TypeVar("U", default=object)
M_contra = TypeVar("M_contra", contravariant=True, default=U)


if TYPE_CHECKING:
    RouteCallable: TypeAlias = Middleware[E, U] | Handler[E, U]

    # At run time each of these is the function that registers.

    class RouteDecorator(Generic[E, U, S]):
        """Returned by `app.get(path, …)`: appends the decorated handler to that route."""

        def __call__(
            self, handler: Callable[[Request[E, U, K], Response], Awaitable[R]], /
        ) -> Callable[[Request[E, U, K], Response], Awaitable[R]]:
            """Append `handler` to the route, and return it. Raises HandlerError where it is not a handler."""
            ...

    class ErrorDecorator(Generic[X, E]):
        """Returned by `on_error(SomeError)`: registers the decorated handler for errors of those classes."""

        def __call__(
            self, handler: Callable[[X, Request[E, object, K], Response, Next], Awaitable[R]], /
        ) -> Callable[[X, Request[E, object, K], Response, Next], Awaitable[R]]:
            """Register `handler`, and return it. Raises HandlerError unless it is `async (err, req, res, next)`."""
            ...

    class WebSocketDecorator(Generic[E, U]):
        """Returned by `app.websocket(path, …)`: registers the decorated handler for the connections on that path."""

        def __call__(
            self, handler: Callable[[Request[E, U, K], WebSocket], Awaitable[None]], /
        ) -> Callable[[Request[E, U, K], WebSocket], Awaitable[None]]:
            """Register `handler`, and return it. Raises HandlerError unless it is `async (req, socket)`."""
            ...


class Router(Generic[E, U, M_contra]):
    """Routes and middleware that may be mounted under a prefix.

    A router is itself a middleware, so a `Router[HasSessions]` fits every application whose `Env` has
    `SESSIONS`.

        users: Router[HasDB] = Router()

        @users.get("/:id")
        async def show(req: Request[HasDB], res: Response) -> None: ...

        app.use("/users", users)

    `U` is the type of `req.user` for everything registered here. A `Router[Env, User]` fits only where an authenticator
    has found a `User`: `app.authenticated(who).use("/account", account)`. The view that `authenticated` gives brings
    its authenticator along and fits wherever the router it was made from does: that is the third parameter, the user
    that a router demands where it is mounted.
    """

    is_root = False
    """True if it is at the top and cannot be mounted."""

    def __init__(self) -> None:
        self._registered: list[Route] = []
        self._above: weakref.WeakSet[Router[Any, Any, Any]] = weakref.WeakSet()
        self._guards: tuple[Middleware[Any, Any], ...] = ()
        self._view_of: Router[Any, Any, Any] = self
        self._alone: Dispatcher | None = None
        self._traited: list[Route] = []  # the middleware here that declare the names they provide or read
        self._errors: dict[type[Exception], ErrorHandler[Any]] = {}

    # -- routes

    def get(self, path: str, /, *handlers: RouteCallable[E, U], tool: bool = False) -> RouteDecorator[E, U]:
        """Register a route for GET, and for HEAD without the body.

        `tool`, of this method and of those for writing: True lets models call the route, by the application's MCP
        server (`core.mcp.MCP`). For a handler that reads a query or a body, use `mcp.expose`, which takes its types.
        """
        return self._register("GET", path, handlers, tool)

    def post(self, path: str, /, *handlers: RouteCallable[E, U], tool: bool = False) -> RouteDecorator[E, U]:
        """Register a route for POST."""
        return self._register("POST", path, handlers, tool)

    def put(self, path: str, /, *handlers: RouteCallable[E, U], tool: bool = False) -> RouteDecorator[E, U]:
        """Register a route for PUT."""
        return self._register("PUT", path, handlers, tool)

    def delete(self, path: str, /, *handlers: RouteCallable[E, U], tool: bool = False) -> RouteDecorator[E, U]:
        """Register a route for DELETE."""
        return self._register("DELETE", path, handlers, tool)

    def patch(self, path: str, /, *handlers: RouteCallable[E, U], tool: bool = False) -> RouteDecorator[E, U]:
        """Register a route for PATCH."""
        return self._register("PATCH", path, handlers, tool)

    def options(self, path: str, /, *handlers: RouteCallable[E, U]) -> RouteDecorator[E, U]:
        """Register a route for OPTIONS."""
        return self.on("OPTIONS", path, *handlers)

    def head(self, path: str, /, *handlers: RouteCallable[E, U]) -> RouteDecorator[E, U]:
        """Register a route for HEAD alone. It must come before a GET route of the same path to be reached."""
        return self.on("HEAD", path, *handlers)

    def all(self, path: str, /, *handlers: RouteCallable[E, U]) -> RouteDecorator[E, U]:
        """Register a route for every method."""
        return self._register(ALL, path, handlers)

    def on(self, method: str, path: str, /, *handlers: RouteCallable[E, U]) -> RouteDecorator[E, U]:
        """Register a route: middleware first, the handler last, here or as the decorated function.

            @app.on("PURGE", "/cache/:key")
            async def purge(req: Request[Env], res: Response) -> None: ...

        Raises PathError for anything but a path, HandlerError for a callable of the wrong shape, OrderError for a
        middleware that reads a name that only a later one provides.
        """
        word = method.replace("-", "").replace("_", "") if type(method) is str else ""
        if not word.isalnum():
            raise RegistrationError(
                f'on({method!r}, …): a method is a word, for example on("PURGE", "/cache"). Write one decorator below '
                "the other for several"
            )
        return self._register(method.upper(), path, handlers)

    def _register(
        self, method: str, path: str, handlers: tuple[RouteCallable[E, U], ...], tool: bool = False
    ) -> RouteDecorator[E, U]:
        route = Route(method, parse(path), self._guards, tool=tool)
        self._append(route, handlers)
        self._registered.append(route)

        def append(handler: object) -> object:
            self._append(route, (handler,), decorated=True)
            return handler

        return cast("RouteDecorator[E, U]", append)

    def _append(self, route: Route, handlers: tuple[object, ...], *, decorated: bool = False) -> None:
        for handler in handlers:
            where = f"{'all' if route.method == ALL else route.method} {route.pattern.text}"
            if route.handler is not None:
                raise HandlerError(
                    f"{where}: {name_of(handler)} comes after the handler {name_of(route.handler)}, where it would "
                    "never run. The handler comes last; middleware (req, res, next) before it"
                )
            if self._is_middleware(handler, where, decorated=decorated):
                route.middleware = (*route.middleware, handler)
            else:
                route.handler = handler
        if any(_ordered(middleware) for middleware in route.middleware):
            prove_order([*self._traited, route])
        self._changed()

    def websocket(
        self,
        path: str,
        /,
        *middleware: Middleware[E, U],
        protocols: Iterable[str] = (),
        origins: Iterable[str] = (),
        headers: Mapping[str, str]
        | Callable[[Request[E, U, Any]], Mapping[str, str] | Awaitable[Mapping[str, str]]]
        | None = None,
    ) -> WebSocketDecorator[E, U]:
        """Open a WebSocket on `path` for the decorated `async (req, socket)`.

            @app.websocket("/rooms/:id", protocols=("chat",))
            async def chat(req: Request[Env], socket: WebSocket) -> None:
                async for message in socket:
                    await socket.send(message)

        The middleware before it runs as for any GET, and may refuse. `protocols`: the subprotocols spoken here, the
        preferred first. `origins`: pages of other origins that may connect (`"*"` for all); by default only the
        server's own may, since a browser sends cookies along. `headers`: the application's own on the answer to the
        handshake, or a function of the request that gives them; headers that middleware stages on every response stay
        off it, cookies excepted.

        A request that asks for no WebSocket goes on to the next route of the path, past the middleware given here, and
        gets 426 where there is none: `app.get(path)` behind it answers with a page. Raises as `on` does, and
        RegistrationError where a GET of the same path is registered before it, which would take every handshake.
        """
        from core.dispatch.upgrade import upgrade_handler

        where = f"websocket {path}"

        def register(handler: Any) -> object:
            if arguments_of(handler) != 2:
                raise HandlerError(f"{where}: {name_of(handler)} must be `async def (req, socket)`")
            require_async(handler, where)
            opening = upgrade_handler(handler, tuple(protocols), tuple(origins), headers)
            pattern = parse(path)
            for there in self._registered:
                if there.method in ("GET", ALL) and there.pattern.text == pattern.text and there.handler is not None:
                    raise RegistrationError(
                        f"{where}: {there.method.replace(ALL, 'all')} {pattern.text} "
                        f"({name_of(there.handler)}) is registered before it and takes every handshake. Register the WebSocket first"
                    )
            self.get(path, *middleware, opening)
            return handler

        return cast("WebSocketDecorator[E, U]", register)

    # -- middleware and routers

    def use(self, first: str | Middleware[E, U], /, *more: Middleware[E, U]) -> None:
        """Register middleware, or mount routers, for all below this router or below a prefix.

            app.use(logger())
            app.use("/admin", require_admin, admin)      # a middleware, then a router

        They run in the order of registration: middleware registered before them does not see them.
        Raises as `on` does.
        """
        if isinstance(first, str):
            prefix, given = parse(first), cast("tuple[object, ...]", more)
            if not given:
                raise RegistrationError(
                    f'use("{first}") mounts nothing. Name a middleware or a router after the prefix: use("{first}", name). '
                    "A decorator takes no prefix: @app.use"
                )
        else:
            prefix, given = ROOT, (first, *more)
        require_prefix(prefix)
        for middleware in given:
            entry = Route(None, prefix, self._guards)
            if isinstance(middleware, Router):
                self._mount(entry, middleware)  # pyright: ignore[reportUnknownArgumentType]  # narrowed without arguments
            elif self._is_middleware(middleware, f"use({prefix.text})"):
                entry.middleware = (*self._guards, middleware)
            else:
                from core.errors.mistakes import handler_in_use

                raise HandlerError(f"use({prefix.text}): {handler_in_use(name_of(middleware), prefix.text)}")
            scopes = [Route(None, prefix, (step,)) for step in entry.middleware if _ordered(step)]
            if scopes:
                prove_order([*self._traited, *scopes])
                self._traited += scopes
            self._registered.append(entry)
        self._changed()

    def _mount(self, entry: Route, router: Router[Any, Any, Any]) -> None:
        below = router._view_of
        if below.is_root and below is self._view_of:
            raise RegistrationError(
                "this is a view of the application itself, and what is registered on it is served already. Leave the "
                "call out, or make app.Router() for another prefix"
            )
        if below.is_root:
            raise RegistrationError(
                "an App cannot be mounted: it has an error handler and an entry point of its own. Mount a Router"
            )
        if self._view_of in below._everything_below():
            raise RegistrationError("a router cannot be mounted below itself. Make another Router() for the inner one")
        below._above.add(self._view_of)
        entry.mounted = router
        # An order, or names of parameters, that cannot work are refused here rather than at the first request.
        prove_order([*self._traited, *router.entries(entry.pattern)])

    def authenticated(self, authenticator: Authenticator[E, U2, U], /) -> Router[E, U2, M_contra]:
        """A view of this router whose handlers see `req.user: U2`.

        A registration on the view is one in this router, in the same order, behind the authenticator, which
        runs once per request and refuses by raising CoreError.

            admin = app.authenticated(require_admin)

            @admin.get("/stats")
            async def stats(req: Request[Env, Admin], res: Response) -> None: ...
        """
        if arguments_of(authenticator) != 1:
            raise HandlerError(
                f"authenticated({name_of(authenticator)}): an authenticator is `async def (req)` and returns the user"
            )
        require_async(authenticator, "authenticated")
        view: Router[E, U2, M_contra] = Router()
        view._registered = self._registered
        view._traited = self._traited
        view._view_of = self._view_of
        view._errors = self._errors
        view._guards = (*self._guards, guard_of(authenticator))
        return view

    # -- errors

    @overload
    def on_error(self, cls: type[X], /) -> ErrorDecorator[X, E]: ...
    @overload
    def on_error(self, cls: type[X], cls2: type[X2], /) -> ErrorDecorator[X | X2, E]: ...
    @overload
    def on_error(self, cls: type[X], cls2: type[X2], cls3: type[X3], /) -> ErrorDecorator[X | X2 | X3, E]: ...
    @overload
    def on_error(
        self, cls: type[X], cls2: type[X2], cls3: type[X3], cls4: type[X4], /
    ) -> ErrorDecorator[X | X2 | X3 | X4, E]: ...
    @overload
    def on_error(
        self, handler: Callable[[Exception, Request[E, object, K], Response, Next], Awaitable[R]], /
    ) -> Callable[[Exception, Request[E, object, K], Response, Next], Awaitable[R]]: ...
    def on_error(self, first: object, /, *more: Any) -> Any:
        """Let the decorated `async (err, req, res, next)` answer errors: all of them, or those of the classes given.

            @app.on_error(OutOfStock)
            async def sold_out(err: OutOfStock, req: Request[Env], res: Response, next: Next) -> None:
                res.status(409).json({"error": "Sold out", "item": err.item})

            @app.on_error
            async def failed(err: Exception, req: Request[Env], res: Response, next: Next) -> None: ...

        The handler of the nearest class in the error's ancestry answers. A router's handlers answer the errors that its
        routes, and the middleware before them on that router, raise; an error they do not answer goes to the router
        above, and then to the application. `await next(err)` goes on to the next handler that fits, and behind the last
        to the default answer. So does a handler that raises: with the CoreError that it raised, else with the first
        error.

        Raises RegistrationError for a class that has a handler here already, HandlerError for a callable of another
        shape, or a class that is not one of exceptions.
        """
        if isinstance(first, type):
            classes: tuple[type[object], ...] = (cast("type[object]", first), *more)

            def register(handler: object) -> object:
                self._register_error_handler(classes, handler)
                return handler

            return register
        if more:
            raise HandlerError(f"on_error({name_of(first)}, …): give classes of exceptions, or one handler alone")
        self._register_error_handler((Exception,), first)
        return first

    def _register_error_handler(self, given: tuple[type[object], ...], handler: Any) -> None:
        classes = [cls for cls in given if issubclass(cls, Exception)]
        if len(classes) < len(given):
            names = ", ".join(cls.__name__ for cls in given if cls not in classes)
            raise HandlerError(
                f"on_error({names}): not a class of exceptions that are answered. Give subclasses of Exception"
            )
        for cls in classes:
            where = "on_error" if cls is Exception else f"on_error({cls.__name__})"
            require_first(where, self._errors.get(cls), handler)
            require_signature(handler, 4, where, "(err, req, res, next)")
        for cls in classes:
            self._errors[cls] = handler
        self._changed()

    # -- laying out

    def entries(self, prefix: Pattern = ROOT, errors: tuple[ErrorHandlers, ...] = ()) -> Iterator[Route]:
        """Everything registered here and below, flat, in order, with whole paths under `prefix`.

        `errors` are the error handlers of the routers above. Those of the application itself are not among them.
        """
        if self._errors and not self._view_of.is_root:
            errors = (*errors, self._errors)
        for registered in self._registered:
            yield from self._laid_out(registered, prefix, errors)

    def _laid_out(self, registered: Route, prefix: Pattern, errors: tuple[ErrorHandlers, ...]) -> Iterator[Route]:
        pattern = registered.pattern.below(prefix)
        if registered.method is None:
            for middleware in registered.middleware:
                yield Route(None, pattern, (middleware,), errors=errors)
            if registered.mounted is not None:
                yield from registered.mounted.entries(pattern, errors)
        elif registered.handler is None and not registered.middleware:
            raise RegistrationError(
                f"{registered.method} {pattern.text} has no handler. Give one to the call, or decorate one"
            )
        else:
            yield Route(
                registered.method, pattern, registered.middleware, registered.handler, errors, tool=registered.tool
            )

    def _everything_below(self) -> Iterator[Router[Any, Any, Any]]:
        yield self
        for registered in self._registered:
            if registered.mounted is not None:
                yield from registered.mounted._view_of._everything_below()

    def _changed(self) -> None:
        root = self._view_of
        if root._alone is not None:
            root._alone.reload()
        if root._above:  # asking a weak set is quicker than walking an empty one
            for above in root._above:
                above._changed()

    async def __call__(self, req: Request[E, M_contra, Any], res: Response, next: Next, /) -> None:
        """Run a request through this router as a middleware; one that matches nothing here goes on to `next`.

        A mounted router is laid out instead and never called; this is for one that a middleware calls itself. Its
        paths are then whole paths.
        """
        scope: Any = req
        if isinstance(scope, dict):
            text = (
                f"an ASGI server called the {type(self).__name__} itself, which has no bindings yet. Give the server "
                "`asgi(app, env)` of core.hosts.asgi, or run `core dev`"
            )
            if scope["type"] == "lifespan":  # a server that asks first stops here, and writes the message
                await cast("Any", next)({"type": "lifespan.startup.failed", "message": text})
                return
            raise DeveloperError(text)
        root = self._view_of
        if root._alone is None:
            root._alone = Dispatcher(root.entries, {})
        await root._alone.finder.run_within(scope, res, next)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            # For names of other frameworks alone: Python calls this for missing attributes only.
            if name[:1] == "_" or name == "func":  # which the framework itself asks for
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            from core.explain.diagnosis import foreign_name

            raise foreign_name(self, name)

    # -- checks

    def _is_middleware(self, callable_: object, where: str, *, decorated: bool = False) -> bool:
        if isinstance(callable_, Router):
            raise HandlerError(
                f'{where}: this is a router. Mount it: app.use("{where.partition(" ")[2] or "/"}", router)'
            )
        if info_of(callable_) is not None:
            return True
        demanded = arguments_of(callable_)
        if demanded not in (2, 3):
            from core.errors.mistakes import wrong_number

            in_use = where.startswith("use(")
            raise HandlerError(
                f"{where}: {wrong_number(name_of(callable_), callable_, demanded, is_middleware=in_use)}"
            )
        require_async(callable_, where)
        function: Any = getattr(callable_, "func", callable_)  # of a functools.partial
        code = getattr(function, "__code__", None)
        given = 0 if function is callable_ else len(getattr(callable_, "args", ()))
        names: Sequence[str] = code.co_varnames[given : code.co_argcount] if code is not None else ()
        if names and (names[0] in _NOT_FIRST or "next" in names[:2] or (demanded == 3 and names[1:3] in _AFTER_ONE)):
            from core.errors.mistakes import turned

            if (order := turned(name_of(callable_), names)) is not None:
                raise HandlerError(f"{where}: {order}")
        if demanded == 3 and len(names) == 3 and names[2] != "next":
            in_path = f":{names[2]}" in where
            # A decorator is for the handler. A middleware of the same shape may call its `next` what it likes.
            if in_path or (decorated and _is_value(function, names[2])):
                from core.errors.mistakes import third_argument

                raise HandlerError(f"{where}: {third_argument(name_of(callable_), names[2], in_path=in_path)}")
        return demanded == 3


def require_first(where: str, there: object, handler: object) -> None:
    """Refuse a second handler where there is one."""
    if there is not None:
        raise RegistrationError(
            f"{where}: {name_of(there)} is registered already, and {name_of(handler)} would replace it. There is one: "
            "choose inside it"
        )


def require_signature(callable_: object, arguments: int, where: str, signature: str) -> None:
    """Refuse a callable that is not async or demands another number of arguments."""
    if arguments_of(callable_) != arguments:
        raise HandlerError(f"{where}: {name_of(callable_)} must be `async def {signature}`")
    require_async(callable_, where)


_NOT_FIRST = frozenset(["res", "response", "next"])
"""Names of parameters that show by themselves that they are in the wrong order."""
_TYPES_OF_NEXT = ("Next", "Call", "Any", "object")
_AFTER_ONE = (("req", "res"), ("request", "response"))
"""The names behind a first parameter that nobody gives."""


def _is_value(function: object, name: str) -> bool:
    """Return True for a parameter whose annotation says that it is no `next`."""
    try:
        annotation = function.__annotations__[name]
    except (AttributeError, KeyError, NameError):  # not annotated, or by a name for type checkers alone
        return False
    return not any(word in str(annotation) for word in _TYPES_OF_NEXT)


def _ordered(middleware: object) -> MiddlewareInfo | None:
    """The declaration of a middleware whose place among others matters."""
    info = info_of(middleware)
    if info is not None and (info.provides or info.reads or info.refuses or info.repeats):
        return info
    return None


def chained(entries: Iterable[Route]) -> Iterator[tuple[Route, Iterator[tuple[Middleware[Any, Any], Route]]]]:
    """Each entry with all the middleware that a request meets up to it, its own included, each with its entry."""
    # A chain is found as far as it is read, which is before the next entry.
    scopes: list[Route] = []
    for entry in entries:
        covering = (scope for scope in scopes if scope.pattern.covers(entry.pattern))
        yield entry, ((middleware, scope) for scope in joined(covering, (entry,)) for middleware in scope.middleware)
        if entry.method is None:
            scopes.append(entry)


_KEPT = (None, ALL, "GET", "HEAD")
"""Methods of entries whose answers a cache may give again."""


def prove_order(entries: Iterable[Route]) -> None:
    """Refuse what is proven to be in the wrong order on one way: a middleware that provides a name behind one that has
    read it and missed it, and one that refuses clients behind a cache, whose answers they would get all the same.

    Raises OrderError, which names both.
    """
    for entry, chain in chained(entry for entry in entries if any(map(_ordered, entry.middleware))):
        waiting: list[tuple[MiddlewareInfo, frozenset[str]]] = []
        provided: frozenset[str] = frozenset()
        for info in (info for middleware, _ in chain if (info := _ordered(middleware)) is not None):
            for reader, missed in waiting:
                late = missed & info.provides
                if PREFLIGHTS in late:
                    raise OrderError(
                        f"{reader.name}() is registered before {info.name}() on {entry.pattern.text} and refuses the "
                        f"preflights that {info.name}() answers, which bring no token. Register {info.name}() first"
                    )
                if late:
                    raise OrderError(
                        f"{reader.name}() is registered before {info.name}() on {entry.pattern.text} but reads "
                        f"{', '.join(sorted(late))}, which {info.name}() provides. Register {info.name}() first"
                    )
                if reader.repeats and info.refuses and entry.method in _KEPT:
                    raise OrderError(
                        f"{reader.name}() is registered before {info.name}() on {entry.pattern.text} and gives the "
                        f"answers it keeps to clients that {info.name}() never saw. Register {info.name}() first"
                    )
            waiting.append((info, info.reads - info.provides - provided))
            provided |= info.provides


def guard_of(
    authenticator: Authenticator[Any, Any, Any], refused: Callable[[AnyRequest, CoreError], CoreError] | None = None
) -> Middleware[Any, Any]:
    """The middleware that an authenticator becomes. It asks once per request, on however many levels it is used.

    `refused` gives the error that a refusal becomes, which is the refusal itself without it.
    """
    declared = info_of(authenticator) or MiddlewareInfo("")
    varies = declared.varies

    async def guard(req: AnyRequest, res: Response, next: Next, /) -> None:
        for name in varies:
            res.vary(name)
        users = req.users
        if authenticator not in users:
            try:
                users[authenticator] = await authenticator(req)
            except CoreError as error:
                if refused is None:
                    raise
                raise refused(req, error) from None
        req.user = users[authenticator]
        await next()

    return declare(
        guard,
        name=name_of(authenticator),
        provides=("req.user",),
        reads=declared.reads,
        requires=declared.requires,
        authenticates=not declared.optional,
        optional=declared.optional,
    )
