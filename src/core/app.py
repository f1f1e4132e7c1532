"""The application: a router with an error handler, an entry point, and consumers of queues and times.

`fetch` is the single door for tests and for every runtime. Hosts that have a request of their own kind
use the lower door, `app.dispatcher.respond`, with a `Request` of their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypeVar

from core import http
from core.dispatch.dispatcher import Dispatcher
from core.errors import DeveloperError, HandlerError, OptionError, OrderError, RegistrationError
from core.handlers import arguments_of, info_of, name_of
from core.request import Request
from core.response import Response
from core.router import Router as _Router  # App has a method of that name
from core.router import chained, prove_order, require_first, require_signature
from core.routing.pattern import parse, require_prefix
from core.routing.table import ALL, Route
from core.values import frozen

if TYPE_CHECKING:
    from typing import Generic

    from core.bindings.queue import MessageBatch
    from core.context import ExecutionContext, ScheduledEvent, StateKey
    from core.dispatch.exchange import AsgiApp
    from core.dispatch.instruments import Instrument, Work
    from core.dispatch.mounts import Fetch, FetchWithEnv
    from core.events.lifespan import Lifespans
    from core.routing.urls import Urls
    from core.types import Handler, Middleware

    M = TypeVar("M")
    T = TypeVar("T")

E = TypeVar("E", default=Any)

if TYPE_CHECKING:
    QueueConsumer = Callable[["MessageBatch[M]", E, ExecutionContext], Awaitable[None]]
    ScheduledHandler = Callable[[ScheduledEvent, E, ExecutionContext], Awaitable[None]]

_ASYNC_GENERATOR = 0x200  # inspect.CO_ASYNC_GENERATOR


@frozen
class RouteInfo:
    """One route, as tools show it."""

    method: str
    """The method in capitals, or `*` for any."""
    path: str
    handler: str
    """The handler's name; that of the last middleware where no handler follows."""
    middleware: tuple[str, ...]
    """The names of all that runs before the handler for every request to this route, in order."""
    authenticated: bool
    """True if an authenticator comes before the handler."""
    public: bool
    """True if the route was marked `public()`."""
    optional: bool = False
    """True if an `optional(…)` authenticator looks for a user before the handler and no other one demands one."""
    tools: tuple[str, ...] = ()
    """The names of the MCP tools that call it; for the route of an MCP server, of all its tools."""


if TYPE_CHECKING:  # at run time each is the function that registers

    class QueueDecorator(Generic[E]):
        """Returned by `app.queue(name)`: registers the decorated consumer of that queue."""

        def __call__(self, consumer: QueueConsumer[M, E], /) -> QueueConsumer[M, E]:
            """Register `consumer`, and return it. Raises HandlerError unless it is `async (batch, env, ctx)`."""
            ...

    class ScheduledDecorator(Generic[E]):
        """Returned by `app.scheduled(cron)`: registers the decorated handler of that trigger."""

        def __call__(self, handler: ScheduledHandler[E], /) -> ScheduledHandler[E]:
            """Register `handler`, and return it. Raises HandlerError unless it is `async (event, env, ctx)`."""
            ...


class App(_Router[E]):
    """An application over the bindings `Env`.

        app = App(Env)                    # create_app(Env) is the same

    `default_deny`: refuse to serve while a route, a WebSocket or a mount of `static(…)` is neither `public()` nor
    behind an authenticator. `method_not_allowed`: a path that has routes, but none for the method, is answered with 405
    and `Allow` instead of 404, which lists the methods there are. `problem_details`: errors are answered as
    `application/problem+json` (RFC 9457), unless an error handler answers otherwise.
    """

    is_root = True

    def __init__(
        self,
        env: type[E] | None = None,
        /,
        *,
        default_deny: bool = False,
        method_not_allowed: bool = False,
        problem_details: bool = False,
    ) -> None:
        super().__init__()
        given: object = env
        if given is not None and not isinstance(given, type):
            name = type(given).__name__
            raise RegistrationError(f"create_app takes the Env class, not an object of {name}. Write create_app(Env)")
        self.env_class: type[E] | None = env
        """The class of `req.env`, which hosts build from the configuration; None for an application without one."""
        self.default_deny = default_deny
        self.dispatcher: Dispatcher = Dispatcher(
            self._proven, self._errors, method_not_allowed=method_not_allowed, problem_details=problem_details
        )
        """The entry for hosts that have a request of their own kind."""
        self.instruments: list[Instrument] = self.dispatcher.finder.instruments
        """What stands around requests, message batches and scheduled events, the innermost first."""
        self._queues: dict[str, QueueConsumer[Any, E]] = {}
        self._urls: Urls | None = None
        self.lifespans: Lifespans | None = None
        """The registered lifespans, for hosts; None without any."""
        self._schedule: list[tuple[str | None, ScheduledHandler[E]]] = []

    def Router(self) -> _Router[E]:
        """A router over the same bindings, to be mounted with `app.use(prefix, router)`."""
        return _Router()

    # -- answering

    async def fetch(self, req: http.Request, env: E, ctx: ExecutionContext) -> http.Response:
        """Answer a request. It never raises for anything that a request can cause.

        `req` has an absolute URL; `env` is an `Env`, or anything with the bindings the handlers touch; `ctx` anything
        with `wait_until` and `pass_through_on_exception`. The answer to a WebSocket's opening handshake has the open
        connection as its `web_socket`.
        """
        response = Response()
        request = Request(req, env, ctx)
        request._app = self
        await self.dispatcher.respond(request, response)
        if response.upgrade is not None:
            from core.dispatch.upgrade import open_in_memory

            return open_in_memory(response.upgrade, request, response)
        return response.to_http()

    def not_found(self, handler: Handler[E], /) -> Handler[E]:
        """Let `handler(req, res)` answer requests that no route matches; usable as a decorator.

        The status is 404 unless it sets another. Raises RegistrationError for a second one.
        """
        require_first("not_found", self.dispatcher.not_found, handler)
        require_signature(handler, 2, "not_found", "(req, res)")
        self.dispatcher.not_found = handler
        return handler

    def url_for(self, handler: Callable[..., object], /, **params: object) -> str:
        """The path of the route that `handler` was registered for, with these parameters, percent-encoded.

            app.url_for(show_user, id=7)                    # "/users/7"
            app.url_for(download, **{"*": "2027/a.pdf"})    # "/files/2027/a.pdf"

        Of several routes it is the first with just these parameters; one that is optional may be left out, or None. A
        path of a mounted router begins with its prefix. `req.url_for` adds the root that a host mounts the application
        at.

        Raises PathError where the handler has no such route, or a value does not fit into its place; the mypy plugin
        and `core check` find that before it runs.
        """
        if self._urls is None:
            from core.routing.urls import Urls

            self._urls = Urls(self.entries())
        return self._urls.url_for(handler, name_of(handler), params)

    # -- start and end

    def lifespan(self, lifespan: Callable[[E], AsyncIterator[T]], /) -> StateKey[T]:
        """Open something when the application starts and close it when it ends; returns the key of its value.

            @app.lifespan
            async def pool(env: Env) -> AsyncIterator[Pool]:
                async with open_pool(env.DATABASE_URL) as opened:
                    yield opened

            @app.get("/")
            async def handler(req: Request[Env], res: Response) -> None:
                rows = await req.state[pool].fetch("SELECT 1")

        Hosts enter it before the first request and leave it after the last, several in order of registration and back.
        A worker enters it with its first event and never leaves it: a runtime ends workers without a word.

        Raises HandlerError for anything but an async generator of one argument.
        """
        code = getattr(lifespan, "__code__", None)
        if code is None or not code.co_flags & _ASYNC_GENERATOR or arguments_of(lifespan) != 1:
            raise HandlerError(
                f"lifespan({name_of(lifespan)}): give an async generator of the Env, `async def {name_of(lifespan)}(env)` "
                "with one `yield`"
            )
        return self._all_lifespans().add(lifespan, name_of(lifespan))

    def _all_lifespans(self) -> Lifespans:
        if self.lifespans is None:
            from core.events.lifespan import Lifespans

            self.lifespans = Lifespans()
        return self.lifespans

    async def startup(self, env: E) -> None:
        """Enter the lifespans for `env`. Hosts and `core.testing.Client` do it by themselves."""
        if self.lifespans is not None:
            await self.lifespans.start(env)

    async def shutdown(self, env: E) -> None:
        """Leave the lifespans for `env`, once for each `startup`."""
        if self.lifespans is not None:
            await self.lifespans.stop(env)

    def mount(self, prefix: str, target: AsgiApp | Fetch | FetchWithEnv, /) -> None:
        """Let another application answer `prefix` and everything below it, for every method.

            app.mount("/admin", django)                       # an ASGI application
            app.mount("/old", lambda request: fetch(request)) # or a function of http.Request

        An ASGI application, recognised by a first parameter called `scope`, sees its prefix as `root_path`, and its
        lifespan runs with this one's. A function `(request)` or `(request, env, ctx)` gets a URL without the prefix,
        and returns a `http.Response`. Middleware registered before runs before them. The WebSockets of an ASGI
        application are sessions like those of `app.websocket`; pages of other sites are refused unless `cors` before it
        names them.

        Raises PathError for anything but a prefix, HandlerError for any other callable.
        """
        from core.dispatch.mounts import asgi_lifespan, is_asgi, mounted_asgi, mounted_fetch

        pattern = parse(prefix)
        require_prefix(pattern)
        depth = len(pattern.parts)
        given: Any = target
        if isinstance(given, _Router):
            way = f'mount("{prefix}", other.fetch)' if given.is_root else f'use("{prefix}", router)'
            raise HandlerError(f"mount({prefix}): it is no ASGI application. Write app.{way}")
        if info_of(given) is not None:
            raise HandlerError(
                f'mount({prefix}): {name_of(given)}() makes a middleware, and no application. Write app.use("{prefix}", …)'
            )
        if is_asgi(target):
            handler = mounted_asgi(given, depth, self._all_lifespans().add(asgi_lifespan(given), name_of(target)))
        else:
            handler = mounted_fetch(given, depth)
        if depth:
            self.all(prefix, handler)
        self.all(f"{prefix.rstrip('/')}/*", handler)

    # -- queues and times

    def queue(self, name: str, /) -> QueueDecorator[E]:
        """Consume the queue `name` with the decorated `async (batch, env, ctx)`.

            @app.queue("jobs")
            async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None: ...

        Ending well acknowledges every message that was not retried; raising retries all that were not acknowledged.
        """
        if not name or not isinstance(name, str):
            raise RegistrationError('queue(…) takes the name of a queue. Write @app.queue("jobs")')

        def register(consumer: QueueConsumer[M, E]) -> QueueConsumer[M, E]:
            if name in self._queues:
                raise RegistrationError(
                    f'the queue "{name}" is consumed by {name_of(self._queues[name])} already. A queue has one consumer'
                )
            require_signature(consumer, 3, f'queue("{name}")', "(batch, env, ctx)")
            self._queues[name] = consumer
            return consumer

        return cast("QueueDecorator[E]", register)

    def scheduled(self, cron: str | None = None, /) -> ScheduledDecorator[E]:
        """Run the decorated `async (event, env, ctx)` when `cron` comes up; for every trigger when it is None.

        Raises RegistrationError for what is no cron expression, with the field that is wrong.
        """
        if cron is not None:
            if not isinstance(cron, str):
                raise RegistrationError('scheduled(…) takes a cron expression. Write @app.scheduled("0 * * * *")')
            # Imported here: few workers have a schedule.
            from core.events.cron import Cron

            try:
                Cron.parse(cron)
            except OptionError as error:
                raise RegistrationError(
                    f'scheduled(…): {error}. Write @app.scheduled("0 * * * *") for every hour'
                ) from None

        def register(handler: ScheduledHandler[E]) -> ScheduledHandler[E]:
            require_signature(handler, 3, "scheduled", "(event, env, ctx)")
            self._schedule.append((cron, handler))
            return handler

        return cast("ScheduledDecorator[E]", register)

    def add_instrument(self, instrument: Instrument, /) -> None:
        """Put an instrument around those that there are: tracing, metrics, or one of your own."""
        self.instruments.append(instrument)
        self.dispatcher.reload()

    async def consume(self, batch: MessageBatch[Any], env: E, ctx: ExecutionContext) -> None:
        """Hand a batch to the consumer of its queue.

        An error that it raises is the host's to act on: it retries the batch.
        """
        consumer = self._queues.get(batch.queue)
        if consumer is None:
            raise DeveloperError(
                f'a batch of the queue "{batch.queue}" came, which nothing consumes. '
                f'Register a consumer: @app.queue("{batch.queue}")'
            )
        # Imported here: few workers consume queues, and structuring takes a while to load.
        from core.events.messages import payload_of, typed

        run: Work = partial(consumer, typed(batch, payload_of(consumer)), env, ctx)
        await self._instrumented(run, lambda instrument, run: instrument.batch(batch, run))

    async def trigger(self, event: ScheduledEvent, env: E, ctx: ExecutionContext) -> None:
        """Run the functions scheduled for `event.cron`, in order of registration.
        One that raises does not stop the rest.

        Raises their errors, as one error or an ExceptionGroup.
        """
        handlers = [handler for cron, handler in self._schedule if cron is None or cron == event.cron]
        if not handlers:
            raise DeveloperError(
                f'the trigger "{event.cron}" came up, which nothing handles. '
                f'Register a handler: @app.scheduled("{event.cron}")'
            )
        errors: list[Exception] = []
        for handler in handlers:
            run: Work = partial(handler, event, env, ctx)
            try:
                await self._instrumented(run, lambda instrument, run: instrument.scheduled(event, run))
            except Exception as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup(f'handlers of the trigger "{event.cron}" failed', errors)

    async def _instrumented(self, run: Work, around: Callable[[Instrument, Work], Work]) -> None:
        for instrument in self.instruments:
            run = around(instrument, run)
        try:
            await run()
        except Exception as error:
            from core.explain.diagnosis import with_note

            with_note(error)
            raise

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues this application consumes."""
        return tuple(self._queues)

    @property
    def crons(self) -> tuple[str | None, ...]:
        """The cron expressions this application handles, None for a handler of every trigger."""
        return tuple(cron for cron, _ in self._schedule)

    # -- for tools

    @property
    def routes(self) -> list[RouteInfo]:
        """The table of routes, in order, each with the whole chain before its handler."""
        from core.routing.offered import offer_tools, servers_in

        entries = list(self.entries())
        offer_tools(entries)
        servers = servers_in(entries)
        return [described(entry, chain, servers) for entry, chain in self._chains() if entry.method is not None]

    def _chains(self) -> Iterator[tuple[Route, list[tuple[Middleware[Any, Any], Route]]]]:
        """Each entry with all the middleware that a request meets up to it, its own included, each with its entry."""
        return ((entry, list(chain)) for entry, chain in chained(self.entries()))

    def _open(self) -> Iterator[tuple[Route, str]]:
        """Everything that `default_deny` refuses: routes, and middleware that gives out content of its own to everyone,
        such as `use("/files", static(…))`.
        """
        for entry, chain in self._chains():
            infos = [its for middleware, _ in chain if (its := info_of(middleware)) is not None]
            if any(its.authenticates or its.public for its in infos):
                continue
            if entry.method is not None:
                yield entry, f"{entry.method} {entry.pattern.text}"
            elif (own := info_of(entry.middleware[0])) is not None and own.serves:
                yield entry, f'use("{entry.pattern.text}", {own.name}(…))'

    def check(self) -> None:
        """Check the rules of the application as a whole: order, the requirements of middleware, and `default_deny`.

        It runs by itself before the first request. Raises a RegistrationError that names each culprit.
        """
        self._proven()

    def _proven(self) -> list[Route]:
        entries = list(self.entries())
        prove_order(entries)
        _prove_requirements(entries)
        if any(entry.tool for entry in entries):
            from core.routing.offered import offer_tools

            offer_tools(entries)
        if self.default_deny and (refused := list(self._open())):
            from core.explain.unanswered import location_of

            error = RegistrationError(
                "default_deny: these are neither public nor behind an authenticator: "
                f"{', '.join(words for _, words in refused)}. Put public() before the handler or the middleware, or "
                "register it on router.authenticated(…)"
            )
            error.location = location_of(refused[0][0].handler)
            raise error
        return entries

    def _changed(self) -> None:
        super()._changed()
        self.dispatcher.reload()
        self._urls = None


def described(entry: Route, chain: list[tuple[Middleware[Any, Any], Route]], servers: list[object]) -> RouteInfo:
    """A route as tools show it, with the chain before it."""
    from core.routing.offered import tools_at

    infos = [info_of(each) for each, _ in chain]
    middleware = [each for (each, _), its in zip(chain, infos, strict=True) if its is None or not its.public]
    handler: object = entry.handler
    if handler is None:
        handler = middleware.pop() if middleware else None
    authenticated = any(its is not None and its.authenticates for its in infos)
    return RouteInfo(
        entry.method or ALL,
        entry.pattern.text,
        name_of(handler),
        tuple(map(name_of, middleware)),
        authenticated,
        any(its is not None and its.public for its in infos),
        not authenticated and any(its is not None and its.optional for its in infos),
        tools_at(entry, servers),
    )


def _prove_requirements(entries: list[Route]) -> None:
    """Refuse a middleware whose requirements nothing before it provides."""
    for entry, chain in chained(entries):
        if not any((info := info_of(middleware)) is not None and info.requires for middleware in entry.middleware):
            continue
        provided: set[str] = set()
        for middleware, scope in chain:
            if (info := info_of(middleware)) is None:
                continue
            if scope is entry and (missing := info.requires - provided):
                raise OrderError(
                    f"{info.name}() on {entry.pattern.text} requires {', '.join(sorted(missing))}, which nothing "
                    "before it provides. Register what provides it first"
                )
            provided |= info.provides


def create_app(
    env: type[E] | None = None,
    /,
    *,
    default_deny: bool = False,
    method_not_allowed: bool = False,
    problem_details: bool = False,
) -> App[E]:
    """Make an application over the bindings `env`, the class of `req.env`. The options are those of `App`."""
    return App(env, default_deny=default_deny, method_not_allowed=method_not_allowed, problem_details=problem_details)
