"""The application's `Env` over the runtime's `env` object, built once in an isolate.

What stands under a name is told by its JavaScript class; where that is a plain JSON-RPC stub, by the annotation.
Every kind has its file; a file is imported when the first binding of its kind is met.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar, cast

from core.backends.workerd.conversion import bridge, constructor_name, is_null, structured, unwrap
from core.bindings.kinds import KINDS, Kind
from core.calls import CallHook, add_hook
from core.env import EnvField, inject, kind_of

__all__ = ["build_env", "wrap"]

E = TypeVar("E")

_BY_CONSTRUCTOR: Final = {constructor: kind for kind in KINDS.values() for constructor in kind.constructors}
"""The kinds that their JavaScript classes tell. A `Fetcher` is many things: its annotation counts first."""


def build_env(env_class: type[E] | None, env: Any, *, hook: CallHook | None = None) -> E:
    """The Env, with `hook` on every binding. Raises EnvError for everything that is missing or of the wrong kind."""
    source = unwrap(env)

    def lookup(name: str) -> object:
        value = getattr(source, name, None)
        if is_null(value):
            return None
        found = wrap(value)
        # Without an Env class there is no annotation to wait for.
        if env_class is None and isinstance(found, bridge().JsProxy):
            found = _loose(found)
        return hooked(found, name)

    def adapt(value: Any, field: EnvField) -> object:
        adapted = _adapt(value, field)
        return adapted if adapted is value else hooked(adapted, field.name)

    def hooked(value: Any, name: str) -> Any:
        if hook is not None:
            kind = next((kind.name for kind in KINDS.values() if kind.workerd == type(value).__name__), "")
            add_hook(value, hook, name=name, kind=kind)
        return value

    return inject(env_class, lookup, adapt=adapt)


def wrap(value: Any) -> Any:
    """A value of the runtime's `env` as Python's, as far as its JavaScript class tells what it is."""
    value = unwrap(value)
    if not isinstance(value, bridge().JsProxy):
        return value
    constructor = constructor_name(value)
    if constructor in ("Object", "Array"):
        return structured(value)
    if constructor == "DurableObjectNamespace":
        # Its class may be in the annotation, which `_adapt` has.
        return value
    kind = _BY_CONSTRUCTOR.get(constructor)
    return value if kind is None else _made(kind, value)


def _adapt(value: Any, field: EnvField) -> object:
    """Return the facts that only the annotation has: the class behind an object's namespace, the kind of a plain
    fetcher.
    """
    kind = kind_of(field.kind)
    if kind is not None and kind.name == "version_metadata" and isinstance(value, dict):
        from core.backends.workerd.version_metadata import WorkerdVersionMetadata

        return WorkerdVersionMetadata.of(cast("dict[str, object]", value))
    if not isinstance(value, bridge().JsProxy):
        return value
    if kind is None:
        return _loose(value)
    if kind.name == "durable_object":
        arguments = typing.get_args(field.annotation)
        return _made(kind, value, arguments[0] if arguments else None)
    if kind.protocol == "Fetcher":
        return _made(KINDS["service"], value, field.kind)
    return _made(kind, value)


def _loose(value: Any) -> Any:
    """Return the bindings of an Env without annotations, for classes that need none."""
    match constructor_name(value):
        case "DurableObjectNamespace":
            return _made(KINDS["durable_object"], value)
        case "Fetcher":
            return _made(KINDS["service"], value)
        case _:
            return value


def _made(kind: Kind, *arguments: Any) -> Any:
    make: Callable[..., Any] = getattr(import_module(f"core.backends.workerd.{kind.module}"), kind.workerd)
    return make(*arguments)
