"""The callables that an application gives to the framework: what they declare, and how a handler is distinguished from
a middleware.

Their types are in `types.py`.

The kind of a callable is decided once, when it is registered, by the number of its arguments. The signature is
read from the code object, since `inspect.signature` costs more than all the rest of a registration.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from core.errors import HandlerError
from core.request import AnyRequest, Request
from core.response import Response

if TYPE_CHECKING:
    from typing import TypeVar

    from core.types import Middleware, Next

    M = TypeVar("M", bound=Callable[..., Any])

__all__ = [
    "MiddlewareInfo",
    "PREFLIGHTS",
    "arguments_of",
    "attach_info",
    "before",
    "declare",
    "info_of",
    "name_of",
    "public",
    "require_async",
]

Before = Callable[[AnyRequest, Response], Awaitable[Any] | None]
"""The part of a middleware before the rest of the chain. It returns None to go on, or an awaitable to await instead."""


PREFLIGHTS = "preflights"
"""The name that `cors` provides, and that an authenticator of tokens reads: `cors` answers preflights, which bring no
token.
"""


class MiddlewareInfo:
    """Declares the names that a middleware provides and requires, and whether it authenticates.

    `provides` and `reads` are names such as `req.id`. A middleware that reads a name that only a later one provides is
    refused at registration; `requires` refuses its absence too. One that `refuses` clients is refused behind one that
    `repeats` answers.
    """

    def __init__(
        self,
        name: str,
        provides: Iterable[str] = (),
        reads: Iterable[str] = (),
        requires: Iterable[str] = (),
        authenticates: bool = False,
        public: bool = False,
        serves: bool = False,
        for_location: Callable[[str, int], Middleware[Any, Any]] | None = None,
        before: Before | None = None,
        optional: bool = False,
        varies: tuple[str, ...] = (),
        refuses: bool = False,
        repeats: bool = False,
    ) -> None:
        self.name: str = name
        self.serves: bool = serves
        """True if it answers with content of its own, as a route does, so that `default_deny` asks who may have it."""
        self.public: bool = public
        """True if it is the mark `public()`, which does nothing."""
        self.provides: frozenset[str] = frozenset(provides)
        self.requires: frozenset[str] = frozenset(requires)
        self.reads: frozenset[str] = frozenset(reads) | self.requires
        self.authenticates: bool = authenticates
        self.optional: bool = optional
        """True if it looks for a user and lets everyone else in too, so that it guards nothing. See `core.optional`."""
        self.varies: tuple[str, ...] = varies
        """Headers of the request that an authenticator reads and no cache knows of: `Vary` names them."""
        # An authenticator of users leaves `req.user`, by which a cache knows what it may keep; any other, nothing.
        self.refuses: bool = refuses or (authenticates and "req.user" not in self.provides | self.requires)
        """True if it decides for each request whether the client may have the answer, so that it must run before one
        that `repeats`.
        """
        self.repeats: bool = repeats
        """True if it may give an answer to one request that the rest of the chain made for another, as a cache does."""
        self.for_location: Callable[[str, int], Middleware[Any, Any]] | None = for_location
        """Makes the middleware for one location, for one that keeps its locations apart.

        It is given the location, such as `/api` or `GET /users/:id`, and the number of this one among those of its name
        there, from 1 on.
        """
        self.before: Before | None = before
        """All that the middleware does, for one that does nothing after the rest of the chain. See `before`."""


def declare(
    middleware: M,
    *,
    name: str,
    provides: Iterable[str] = (),
    reads: Iterable[str] = (),
    requires: Iterable[str] = (),
    authenticates: bool = False,
    optional: bool = False,
    serves: bool = False,
    for_location: Callable[[str, int], Middleware[Any, Any]] | None = None,
    refuses: bool = False,
    repeats: bool = False,
) -> M:
    """Declare the `MiddlewareInfo` of a middleware, and return it. `app.routes` and messages call it `name`."""
    info = MiddlewareInfo(
        name,
        provides,
        reads,
        requires,
        authenticates,
        serves=serves,
        for_location=for_location,
        optional=optional,
        refuses=refuses,
        repeats=repeats,
    )
    attach_info(middleware, info)
    return middleware


def attach_info(middleware: Any, info: MiddlewareInfo) -> None:
    """Let `info` be the declaration of a middleware."""
    middleware.__core_info__ = info


def before(
    function: Before, *, name: str, provides: Iterable[str] = (), reads: Iterable[str] = ()
) -> Middleware[Any, Any]:
    """A middleware that runs `step(req, res)` and then the rest of the chain, or awaits the awaitable that `function`
    returned instead.

    It needs no `next`, so a chain makes none for it: several of them in a row are one call each. `name`, `provides` and
    `reads` as in `declare`.
    """

    def middleware(req: AnyRequest, res: Response, next: Next, /) -> Awaitable[Any]:
        instead = function(req, res)
        return next() if instead is None else instead

    attach_info(middleware, MiddlewareInfo(name, provides, reads, before=function))
    return middleware


def public() -> Middleware[object, object]:
    """Mark a route, or all below a prefix, as open to everyone, for `App(Env, default_deny=True)`.

        app.get("/health", public(), health)

    It is a mark and not a step: it costs a request nothing.
    """

    async def mark(req: Request[object, object, Any], res: Response, next: Next, /) -> None:
        await next()

    attach_info(mark, MiddlewareInfo("public", public=True))
    return mark


def info_of(middleware: object) -> MiddlewareInfo | None:
    """The declaration of a middleware, if it has one."""
    info = getattr(middleware, "__core_info__", None)
    return info if isinstance(info, MiddlewareInfo) else None


def name_of(callable_: object) -> str:
    """The name of a callable in messages and tables."""
    info = info_of(callable_)
    if info is not None:
        return info.name
    wrapped = getattr(callable_, "func", callable_)  # functools.partial
    name = getattr(wrapped, "__qualname__", None) or type(wrapped).__name__
    return str(name).rpartition("<locals>.")[2]


_COROUTINE = 0x80  # inspect.CO_COROUTINE
_YIELDS = 0x20 | 0x200  # inspect.CO_GENERATOR, CO_ASYNC_GENERATOR
_VARIADIC = 0x04  # inspect.CO_VARARGS


def arguments_of(callable_: object) -> int | None:
    """The number of positional arguments that a callable demands, or None where that cannot be known.

    A parameter with a default is not demanded. Keyword-only parameters without one make a callable
    unfit, which is None too. What `functools.wraps` names is asked only where the wrapper takes anything (`*args`).
    """
    # A bound method answers for its function's attributes, `__code__` included: it is asked for first.
    function: Any = getattr(callable_, "__func__", None)
    bound = 0 if function is None or not hasattr(callable_, "__self__") else 1  # a staticmethod has none
    if function is None:
        function = callable_
    if not hasattr(function, "__code__"):
        if isinstance(callable_, type):
            return None
        function = getattr(type(callable_), "__call__", None)
        bound = 1
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _VARIADIC and hasattr(function, "__wrapped__"):
        demanded = arguments_of(function.__wrapped__)
        return None if demanded is None else demanded - bound
    if code is None or code.co_flags & _VARIADIC or code.co_kwonlyargcount:
        is_compiled = code is None and not hasattr(callable_, "func")  # `lru_cache` and the like, and no partial
        return _arguments_by_signature(callable_, follow_wrapped=is_compiled)
    defaults: tuple[object, ...] = getattr(function, "__defaults__", None) or ()
    return int(code.co_argcount) - len(defaults) - bound


def _arguments_by_signature(callable_: object, follow_wrapped: bool) -> int | None:
    import inspect

    if not callable(callable_):
        return None
    try:
        parameters = inspect.signature(callable_, follow_wrapped=follow_wrapped).parameters.values()
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
    if info_of(callable_) is not None:
        return  # it was declared, and returns an awaitable by another way
    import inspect

    target: Any = getattr(callable_, "__func__", callable_)
    while True:
        inner = getattr(target, "func", None)  # functools.partial
        if inner is None or inspect.isfunction(target):
            break
        target = inner
    call = getattr(target.__class__, "__call__", None)
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(call):
        return
    from core.errors.mistakes import not_async, not_callable

    if not callable(callable_):
        raise HandlerError(f"{where}: {not_callable(callable_)}")
    yields = bool(getattr(getattr(target, "__code__", None), "co_flags", 0) & _YIELDS)
    raise HandlerError(f"{where}: {not_async(name_of(callable_), yields=yields)}")
