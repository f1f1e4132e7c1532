"""What an application gives to the framework: the shapes of its callables, and how they are told apart.

All are Protocols with positional-only parameters, so that any parameter names fit. They return None
or the response they sent, so that `return res.status(401).json(…)` reads the same everywhere.

Which kind a callable is, is decided once, when it is registered, by how many arguments it takes;
the signature is read from the code object, since `inspect.signature` costs more than all the rest
of a registration.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

from typing_extensions import TypeVar

from core.errors import HandlerError
from core.request import Request
from core.response import Block, Hook, Response

__all__ = [
    "Authenticator",
    "ErrorHandler",
    "Handler",
    "Middleware",
    "Next",
    "Traits",
    "WebSocketHandler",
    "always",
    "arguments_of",
    "before",
    "declare",
    "name_of",
    "public",
    "require_async",
    "traits_of",
]

E_contra = TypeVar("E_contra", contravariant=True, default=Any)
U_contra = TypeVar("U_contra", contravariant=True, default=Any)
U_co = TypeVar("U_co", covariant=True, default=Any)
M = TypeVar("M", bound=Callable[..., Any])


class Next(Protocol):
    """The rest of the chain. `await next()` runs it; `await next(err)` goes to the error handler, as raising does."""

    def __call__(self, err: BaseException | None = None, /) -> Awaitable[None]:
        """Run the rest of the chain, once."""
        ...


class Handler(Protocol[E_contra, U_contra]):
    """`async (req, res)`: answers a request."""

    def __call__(self, req: Request[E_contra, U_contra, Any], res: Response, /) -> Awaitable[Response | None]:
        """Send something on `res`."""
        ...


class Middleware(Protocol[E_contra, U_contra]):
    """`async (req, res, next)`: stands before handlers."""

    def __call__(
        self, req: Request[E_contra, U_contra, Any], res: Response, next: Next, /
    ) -> Awaitable[Response | None]:
        """Send something on `res`, or `await next()`."""
        ...


if TYPE_CHECKING:
    from core.http.websocket import WebSocket

    N_co = TypeVar("N_co", bound=str, covariant=True, default=str)

    class BoundMiddleware(Middleware[E_contra, U_contra], Protocol[E_contra, U_contra, N_co]):
        """A middleware that finds a binding by the name `N`, for the mypy plugin: it carries the name to the router."""


class ErrorHandler(Protocol[E_contra]):
    """`async (err, req, res, next)`: answers a request that failed."""

    def __call__(
        self, err: Exception, req: Request[E_contra, Any, Any], res: Response, next: Next, /
    ) -> Awaitable[Response | None]:
        """Send something on `res`; raising or `await next(err)` falls back to the default answer."""
        ...


class WebSocketHandler(Protocol[E_contra, U_contra]):
    """`async (req, socket)`: talks on an open WebSocket, which is closed when it returns."""

    def __call__(self, req: Request[E_contra, U_contra, Any], socket: WebSocket, /) -> Awaitable[None]:
        """Receive and send until either side has enough."""
        ...


class Authenticator(Protocol[E_contra, U_co]):
    """`async (req)`: finds out who is asking, or raises CoreError to refuse."""

    def __call__(self, req: Request[E_contra, Any, Any], /) -> Awaitable[U_co]:
        """Return the user."""
        ...


Step = Callable[[Request[Any, Any, Any], Response], Awaitable[Any] | None]
"""What a middleware does before the rest of the chain: None to go on to it, or what is awaited in its stead."""


class Traits:
    """What a middleware says of itself: what it puts on a request, what it reads, and whether it lets in.

    `provides` and `reads` are names such as `req.id`. A middleware that reads what only a later one provides is
    refused at registration; `requires` refuses its absence too.
    """

    __slots__ = (
        "always",
        "authenticates",
        "before",
        "name",
        "placed",
        "provides",
        "public",
        "reads",
        "requires",
        "stages",
    )

    def __init__(
        self,
        name: str,
        provides: Iterable[str] = (),
        reads: Iterable[str] = (),
        requires: Iterable[str] = (),
        authenticates: bool = False,
        public: bool = False,
    ) -> None:
        self.name: str = name
        self.public: bool = public
        self.provides: frozenset[str] = frozenset(provides)
        self.requires: frozenset[str] = frozenset(requires)
        self.reads: frozenset[str] = frozenset(reads) | self.requires
        self.authenticates: bool = authenticates
        self.placed: Callable[[str], Middleware[Any, Any]] | None = None
        """Makes the middleware for one place where it stands, for one that keeps its places apart."""
        self.before: Step | None = None
        """All that the middleware does, for one that does nothing after the rest of the chain. See `before`."""
        self.stages: frozenset[str] | None = None
        """The headers that `before` stages, if it does nothing else that what comes behind it could tell."""
        self.always: Hook | Block | None = None
        """All that the middleware does, for one that does the same for every response. See `always`."""


def declare(
    middleware: M,
    *,
    name: str,
    provides: Iterable[str] = (),
    reads: Iterable[str] = (),
    requires: Iterable[str] = (),
    authenticates: bool = False,
) -> M:
    """Write `Traits` on a middleware, and return it. `name` is what `app.routes` and messages call it."""
    traits = Traits(name, provides, reads, requires, authenticates)
    middleware.__core_traits__ = traits  # type: ignore[attr-defined]  # functions carry attributes
    return middleware


def before(
    step: Step,
    *,
    name: str,
    provides: Iterable[str] = (),
    reads: Iterable[str] = (),
    stages: Iterable[str] | None = None,
) -> Middleware[Any, Any]:
    """A middleware that runs `step(req, res)` and then the rest of the chain, or what `step` returned in its stead.

    What such a middleware would do with `next` is known, so a chain makes none for it: a handful of steps in a row is
    one call each. `name`, `provides` and `reads` as in `declare`. `stages` is for a step that neither answers nor
    raises, sends nothing and waits for nothing: the response headers that it stages.
    """

    def middleware(req: Request[Any, Any, Any], res: Response, next: Next, /) -> Awaitable[Any]:
        instead = step(req, res)
        return next() if instead is None else instead

    declare(middleware, name=name, provides=provides, reads=reads)
    traits: Traits = middleware.__core_traits__  # type: ignore[attr-defined]  # as `declare` does
    traits.before = step
    traits.stages = None if stages is None else frozenset(stages)
    return middleware


def always(what: Hook | Block, *, name: str, reads: Iterable[str] = ()) -> Middleware[Any, Any]:
    """A middleware that puts a block of headers on every response, or has a hook called when it leaves.

    A chain does what several of them ask for at once, without a step for each. `name` and `reads` as in `declare`.
    """

    def step(req: Request[Any, Any, Any], res: Response) -> None:
        if isinstance(what, Block):
            res.put(what)
        else:
            res.on_leave(what)

    middleware = before(step, name=name, reads=reads, stages=what.values if isinstance(what, Block) else ())
    middleware.__core_traits__.always = what  # type: ignore[attr-defined]  # as `declare` does
    return middleware


def public() -> Middleware[object, object]:
    """Mark a route, or all below a prefix, as open to everyone, for `App(Env, default_deny=True)`.

    app.get("/health", public(), health)

    It is a mark and not a step: it costs a request nothing.
    """

    async def mark(req: Request[object, object, Any], res: Response, next: Next, /) -> None:
        await next()

    mark.__core_traits__ = Traits("public", public=True)  # type: ignore[attr-defined]  # functions carry attributes
    return mark


def traits_of(middleware: object) -> Traits | None:
    """What a middleware declared, if anything."""
    traits = getattr(middleware, "__core_traits__", None)
    return traits if isinstance(traits, Traits) else None


def name_of(callable_: object) -> str:
    """What to call a callable in messages and tables."""
    traits = traits_of(callable_)
    if traits is not None:
        return traits.name
    wrapped = getattr(callable_, "func", callable_)  # functools.partial
    name = getattr(wrapped, "__qualname__", None) or type(wrapped).__name__
    return str(name).rpartition("<locals>.")[2]


_COROUTINE = 0x80  # inspect.CO_COROUTINE
_VARIADIC = 0x04  # inspect.CO_VARARGS


def arguments_of(callable_: object) -> int | None:
    """How many positional arguments a callable demands, or None where that cannot be told.

    A parameter with a default is not demanded. Keyword-only parameters without one make a callable
    unfit, which is None too.
    """
    # A bound method answers for its function's attributes, `__code__` included: it is asked for first.
    function = getattr(callable_, "__func__", None)
    bound = 0 if function is None else 1
    if function is None:
        function = callable_
    if not hasattr(function, "__code__"):
        if isinstance(callable_, type):
            return None
        function = getattr(type(callable_), "__call__", None)
        bound = 1
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & _VARIADIC or hasattr(function, "__wrapped__") or code.co_kwonlyargcount:
        return _arguments_by_signature(callable_)
    defaults: tuple[object, ...] = getattr(function, "__defaults__", None) or ()
    return int(code.co_argcount) - len(defaults) - bound


def _arguments_by_signature(callable_: object) -> int | None:
    import inspect

    if not callable(callable_):
        return None
    try:
        parameters = inspect.signature(callable_).parameters.values()
    except (TypeError, ValueError):
        return None
    demanded = 0
    for parameter in parameters:
        if parameter.default is not parameter.empty:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            demanded += 1
        else:
            return None
    return demanded


def require_async(callable_: object, where: str) -> None:
    """Refuse a callable that is not async.

    Raises HandlerError, which names it and `where` it was given.
    """
    code = getattr(callable_, "__code__", None)
    if code is not None and code.co_flags & _COROUTINE:
        return
    if traits_of(callable_) is not None:
        return  # it declared what it is, and returns an awaitable by another way
    import inspect

    target: Any = callable_
    while True:
        inner = getattr(target, "func", None)  # functools.partial
        if inner is None or inspect.isfunction(target):
            break
        target = inner
    call = getattr(cast("object", target).__class__, "__call__", None)
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(call):
        return
    if not callable(callable_):
        raise HandlerError(f"{where}: {callable_!r} is not callable. Give an async function")
    raise HandlerError(f"{where}: {name_of(callable_)} is not async. Write `async def {name_of(callable_)}(…)`")
