"""The application's own table of routes, with the functions that stand behind it.

An application registers its routes by running, so it is imported and asked: that gives every mount, every router
made in a loop and every authenticator exactly as requests meet them, with the functions as they run: the type checker
knows the code, and not which function a decorator returned, which repository a handler was made with, or which bound a
constant gives a validator. The answers of the framework's middleware are written here, since no type has them.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

import attrs

from core.app import App
from core.description import description_of
from core.dispatch.answers import ErrorHandlers
from core.explain.frames import is_own
from core.handlers import info_of
from core.middleware.authentication import Authentication, TokenSource
from core.middleware.jwks import FetchedKeySet
from core.openapi.facts import (
    NOTHING,
    ApplicationFacts,
    ClassDetails,
    Held,
    Levels,
    MiddlewareFacts,
    RouteFacts,
    Security,
)
from core.openapi.failures import UNAUTHORIZED, error
from core.routing.pattern import ROOT
from core.routing.table import ALL, Route
from core.validation.kinds import attributes_of
from core.validation.schema import Schema, demands_of, plain

_COUNTS: Final = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_SAFE: Final = frozenset(["GET", "HEAD", "OPTIONS"])
_DEEPEST: Final = 4
_MOST_ITEMS: Final = 64


def application_facts(
    app: App[Any],
    *,
    title: str,
    version: str = "0.1.0",
    description: str | None = None,
    module: str = "",
    servers: Sequence[str] = (),
) -> ApplicationFacts:
    """The routes of an application in order, with the middleware before each. `module` is the application's own."""
    routes: list[RouteFacts] = []
    mounts: dict[str, None] = {}
    everywhere: tuple[MiddlewareFacts, ...] = ()
    for entry, middleware in app._chains():
        if entry.method is None and entry.pattern == ROOT:
            everywhere = _middleware_facts(middleware, ALL)
        prefix = entry.pattern.text.removesuffix("*").rstrip("/")
        if entry.method is None or entry.handler is None:
            # It goes on to the next route that matches; what files are below it only a request can tell.
            if prefix and any((info := info_of(each)) is not None and info.serves for each in entry.middleware):
                mounts.setdefault(prefix)
            continue
        if getattr(entry.handler, "__module__", "") == "core.dispatch.mounts":
            mounts.setdefault(prefix or "/")
            continue
        handler = getattr(entry.handler, "__core_opens__", entry.handler)  # of what opens a WebSocket
        said = description_of(handler) or NOTHING
        if said.hidden:
            continue
        if said.answers is not None:
            said = said._replace(answers={status: hold(each) for status, each in said.answers.items()})
        own = getattr(_innermost(handler), "__module__", "")
        routes.append(
            RouteFacts(
                entry.method,
                entry.pattern.text,
                hold(handler),
                full_name(handler),
                _middleware_facts(middleware, entry.method),
                own if own != module else None,
                handler is not entry.handler,
                any((info := info_of(each)) is not None and info.public for each, _ in middleware),
                _levels(entry),
                said,
            )
        )
    dispatcher = app.dispatcher
    return ApplicationFacts(
        routes,
        title,
        version,
        description,
        _by_class(dispatcher.failures.handlers),
        None if dispatcher.not_found is None else hold(dispatcher.not_found),
        dispatcher.method_not_allowed,
        dispatcher.problem_details,
        [*mounts],
        _authenticators(),
        class_details(),
        servers,
        everywhere,
    )


def _authenticators() -> dict[str, MiddlewareFacts]:
    """The framework's authenticators in the variables of modules, of which a function of the application may call
    one.
    """
    return {
        f"{module}.{name}": _authenticator(value)
        for module, loaded in list(sys.modules.items())
        if not module.startswith("core.")
        for name, value in list(getattr(loaded, "__dict__", {}).items())
        if isinstance(value, Authentication)
    }


def _levels(entry: Route) -> Levels:
    """The error handlers of the routers that an entry is registered on, the nearest first."""
    return tuple(_by_class(handlers) for handlers in reversed(entry.errors))


def _by_class(handlers: ErrorHandlers) -> dict[str, Held]:
    return {f"{cls.__module__}.{cls.__qualname__}": hold(handler) for cls, handler in handlers.items()}


def full_name(function: Callable[..., object]) -> str:
    """The full name of the function that somebody wrote."""
    inner = _innermost(function)
    return f"{inner.__module__}.{inner.__qualname__}"


def _innermost(function: Callable[..., object]) -> Any:
    """The function that somebody wrote: behind `functools.partial`, a decorator, or an object that is called."""
    inner: Any = function
    while hasattr(inner, "func"):  # functools.partial
        inner = inner.func
    inner = inspect.unwrap(inner)
    while "<locals>" in getattr(inner, "__qualname__", ""):
        wrapped = [value for value in _closure(inner).values() if inspect.isfunction(value)]
        if len(wrapped) != 1 or inspect.iscoroutinefunction(wrapped[0]) != inspect.iscoroutinefunction(inner):
            break
        first, other = _first(inner), _first(wrapped[0])
        if first and other and first != other:
            break  # no decorator: a handler that calls a function
        inner = inspect.unwrap(wrapped[0])  # a decorator without functools.wraps
    return inner if hasattr(inner, "__qualname__") else type(inner).__call__


def _first(function: Any) -> tuple[str, ...]:
    """The name of the first parameter; () of one that takes anything."""
    code: types.CodeType = function.__code__
    return code.co_varnames[: min(code.co_argcount, 1)]


def _closure(function: Any) -> Mapping[str, Any]:
    try:
        return inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        return {}


def _middleware_facts(chain: Sequence[tuple[Any, Route]], method: str) -> tuple[MiddlewareFacts, ...]:
    found = ((_facts_of(middleware, method), scope) for middleware, scope in chain)
    return tuple(attrs.evolve(facts, errors=_levels(scope)) for facts, scope in found if facts is not None)


def _facts_of(middleware: Any, method: str) -> MiddlewareFacts | None:
    info = info_of(middleware)
    if info is None:
        return MiddlewareFacts(hold(middleware))
    if info.public:
        return None
    inside = _closure(middleware)
    if (info.authenticates or info.optional) and "authenticator" in inside:
        return _authenticator(inside["authenticator"])
    made = info.before if info.before is not None else middleware
    home = getattr(_innermost(made), "__module__", "")
    if not home.startswith("core."):
        return MiddlewareFacts(hold(made), authenticates=info.authenticates)
    if info.authenticates or info.optional:
        return _authenticator(middleware)
    if info.for_location is not None:
        inside = {**_closure(info.for_location), **inside}
    return _declared(info.name, {**_closure(made), **inside}, method)


def _authenticator(authenticator: Any) -> MiddlewareFacts:
    declared = info_of(authenticator)
    if declared is None:
        return MiddlewareFacts(hold(authenticator), authenticates=True)
    if declared.optional:
        inner = _closure(getattr(authenticator, "_authenticate", None)).get("authenticator")
        return attrs.evolve(_authenticator(inner), optional=True)
    match declared.name:
        case "jwt_auth":
            facts = _authentication("jwt", _token_scheme(authenticator.source, bearerFormat="JWT"))
            if isinstance(authenticator.keys, FetchedKeySet):
                facts = attrs.evolve(facts, answers=(*facts.answers, error(503, "Service Unavailable")))
        case "bearer_auth":
            facts = _authentication("bearer", _token_scheme(authenticator.source))
        case "basic_auth":
            facts = _authentication("basic", {"type": "http", "scheme": "basic"})
        case "allow":
            message = _closure(authenticator._authenticate).get("message", "Forbidden")
            facts = MiddlewareFacts(answers=(error(403, message),))
        case _:
            return MiddlewareFacts(hold(authenticator), authenticates=True)
    return facts


def _token_scheme(source: TokenSource, **more: str) -> Mapping[str, object]:
    """The security scheme of a token: by its cookie, by its header, or by its scheme in `Authorization`."""
    if source.cookie is not None:
        return {"type": "apiKey", "in": "cookie", "name": source.cookie}
    if source.header != "authorization" or source.scheme is None:
        return {"type": "apiKey", "in": "header", "name": source.header}
    return {"type": "http", "scheme": source.scheme.lower(), **(more if source.scheme == "Bearer" else {})}


def _authentication(name: str, scheme: Mapping[str, object]) -> MiddlewareFacts:
    return MiddlewareFacts(answers=(UNAUTHORIZED,), security=Security(name, scheme), authenticates=True)


def _declared(name: str, options: Mapping[str, object], method: str) -> MiddlewareFacts | None:
    """Return the answers that a middleware of the framework gives by itself, with the options that it was built
    with.
    """

    def option(key: str, otherwise: object) -> Any:
        value = options.get(key, otherwise)
        return value if isinstance(value, type(otherwise)) else otherwise

    match name:
        case "rate_limit":
            many = error(429, option("message", "Too Many Requests"), headers=[*_COUNTS, "Retry-After"])
            answers = [many]
            if option("on_store_error", "open") == "closed":
                answers.append(error(503, "Service Unavailable"))
            return MiddlewareFacts(answers=tuple(answers), headers=_COUNTS)
        case "timeout":
            return MiddlewareFacts(answers=(error(option("status", 408), option("message", "Request Timeout")),))
        case "body_limit":
            refusal = error(option("status", 413), option("message", "Payload Too Large"))
            return MiddlewareFacts(answers=(refusal,), limits_bodies=True)
        case "trusted_hosts":
            return MiddlewareFacts(answers=(error(option("status", 400), option("message", "Unknown host")),))
        case "ip_restriction":
            return MiddlewareFacts(answers=(error(option("status", 403), option("message", "Forbidden")),))
        case "csrf" if method not in _SAFE:
            code: Schema = {"const": "CROSS_SITE_REQUEST"}
            return MiddlewareFacts(answers=(error(option("status", 403), option("message", "Forbidden"), code=code),))
        case "etag" if method in ("GET", "*"):
            return MiddlewareFacts(tags=True)
        case "request_id":
            return MiddlewareFacts(headers=(option("key", "x-request-id").title(),))
        case "sessions":
            scheme = {"type": "apiKey", "in": "cookie", "name": option("cookie", "session")}
            return MiddlewareFacts(security=Security("session", scheme), optional=True)
        case _:
            return None


# What it holds ------------------------------------------------------------------------------------------------------


def hold(value: object, depth: int = 0) -> Held:
    """A value as plain facts; of an object its class and, a few steps deep, its attributes."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, enum.Enum)):
        return Held("constant", constant=value)
    if isinstance(value, functools.partial):
        inner = hold(value.func, depth)
        named = {**inner.holds, **{name: hold(given, depth + 1) for name, given in value.keywords.items()}}
        given = (*inner.given, *(hold(each, depth + 1) for each in value.args))
        return attrs.evolve(inner, holds=named, given=given)
    if inspect.ismethod(value):
        inner = hold(value.__func__, depth)
        return attrs.evolve(inner, given=(hold(value.__self__, depth + 1), *inner.given))
    if inspect.isfunction(value):
        code = value.__code__
        around: Mapping[str, object] = inspect.getclosurevars(value).nonlocals if depth < _DEEPEST else {}
        return Held(
            "function",
            f"{value.__globals__.get('__name__')}.{code.co_qualname}",
            (code.co_filename, code.co_firstlineno),
            holds={name: hold(each, depth + 1) for name, each in around.items()},
        )
    if isinstance(value, type) or typing.get_origin(value) is not None or isinstance(value, typing.TypeVar):
        return _type(value)
    attributes: Mapping[str, object] = _attributes(value) if depth < _DEEPEST else {}
    items = [*value] if _is_collection(value) and depth < _DEEPEST else []
    return Held(
        "object",
        _name(type(value)),
        holds={name: hold(each, depth + 1) for name, each in attributes.items()},
        given=[hold(each, depth + 1) for each in items] if len(items) <= _MOST_ITEMS else (),
    )


def _is_collection(value: object) -> TypeGuard[Collection[object]]:
    return isinstance(value, tuple | list | set | frozenset | dict)


def _attributes(value: object) -> Mapping[str, object]:
    if not is_own(getattr(sys.modules.get(type(value).__module__), "__file__", None) or ""):
        return {}  # of which nothing is followed
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if isinstance(name, str)]
    found = {name: getattr(value, name) for name in slots if name != "__weakref__" and hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}


def _type(value: object) -> Held:
    origin, arguments = typing.get_origin(value), typing.get_args(value)
    if origin in (typing.Union, types.UnionType):
        return Held("type", "|", given=[_type(each) for each in arguments])
    if origin is typing.Literal:
        return Held("type", "|", given=[hold(each) for each in arguments])
    if origin is typing.Annotated:
        return _type(arguments[0])
    if value is None or value is type(None):
        return Held("constant")
    name = _name(origin or value)
    return Held("type", name, given=[_type(each) for each in arguments if each is not ...])


def _name(cls: object) -> str:
    return f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', '')}"


# Classes ------------------------------------------------------------------------------------------------------------


def class_details() -> dict[str, ClassDetails]:
    """Everything that the classes of loaded modules say, those of the standard library left out, by full name."""
    found: dict[str, ClassDetails] = {}
    for name, cls in _classes(object, set[type]()):
        if issubclass(cls, enum.Enum):
            found[name] = ClassDetails(members={key: plain(each.value) for key, each in cls.__members__.items()})
        elif (attributes := attributes_of(cls)) is not None:
            found[name] = ClassDetails({each.name: {**demands_of(each), **_default_of(each)} for each in attributes})
        elif typing.is_typeddict(cls):
            found[name] = ClassDetails({key: {} for key in cls.__annotations__})
    return found


def _classes(above: type[object], seen: set[type]) -> Iterator[tuple[str, type[object]]]:
    classes: list[type[object]] = type.__subclasses__(above)
    for cls in classes:
        if cls not in seen:
            seen.add(cls)
            module = cls.__dict__.get("__module__")
            if isinstance(module, str) and module.partition(".")[0] not in sys.stdlib_module_names:
                # The type checker knows a class inside a function by its module and its name.
                yield f"{module}.{cls.__name__}" if "<locals>" in cls.__qualname__ else _name(cls), cls
            if not issubclass(cls, type):  # a class of classes
                yield from _classes(cls, seen)


def _default_of(field: Any) -> Schema:
    """The default of a field, in plain JSON."""
    default = field.default
    factory = getattr(default, "factory", None) or getattr(field, "default_factory", dataclasses.MISSING)
    if factory is not dataclasses.MISSING:
        return {"$default": [[]] if factory is list else [{}] if factory is dict else []}
    if default is attrs.NOTHING or default is dataclasses.MISSING:
        return {}
    given = plain(default)
    return {"$default": [given] if given is not None or default is None else []}
