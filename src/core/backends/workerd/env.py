"""The application's `Env` over the runtime's `env` object, built once in an isolate.

What stands under a name is told by its JavaScript class; where that is a plain JSON-RPC stub, by the annotation.
Every kind has its file; a file is imported when the first binding of its kind is met.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

from core.backends.workerd.crossing import bare, bridge, constructor_name, is_null, structured
from core.env import EnvField, inject

__all__ = ["build_env", "wrap"]

E = TypeVar("E")

# The JavaScript class of a binding, and the file and class that stand for it here.
_BY_CONSTRUCTOR: Final = {
    "KvNamespace": ("kv", "WorkerdKVNamespace"),
    "KVNamespace": ("kv", "WorkerdKVNamespace"),
    "D1Database": ("d1", "WorkerdD1Database"),
    "R2Bucket": ("r2", "WorkerdR2Bucket"),
    "WorkerQueue": ("queue", "WorkerdQueue"),
    "Queue": ("queue", "WorkerdQueue"),
    "DurableObjectNamespace": ("durable_object", "WorkerdDurableObjectNamespace"),
    "Ai": ("ai", "WorkerdAi"),
}
# The same by the Protocol that the annotation names, for bindings whose class says nothing (a `Fetcher` is many things).
_BY_PROTOCOL: Final = {
    "KVNamespace": ("kv", "WorkerdKVNamespace"),
    "D1Database": ("d1", "WorkerdD1Database"),
    "R2Bucket": ("r2", "WorkerdR2Bucket"),
    "Queue": ("queue", "WorkerdQueue"),
    "DurableObjectNamespace": ("durable_object", "WorkerdDurableObjectNamespace"),
    "Ai": ("ai", "WorkerdAi"),
}


def build_env(env_class: type[E] | None, env: Any) -> E:
    """The Env. Raises EnvError for everything that is missing or of the wrong kind."""
    source = bare(env)

    def lookup(name: str) -> object:
        value = getattr(source, name, None)
        return None if is_null(value) else wrap(value)

    return inject(env_class, lookup, adapt=_adapt)


def wrap(value: Any, kind: Any = None, annotation: Any = None) -> Any:
    """A value of the runtime's `env` as Python's: a binding, a text, or a JSON variable."""
    value = bare(value)
    if not isinstance(value, bridge().JsProxy):
        return value
    constructor = constructor_name(value)
    if constructor in ("Object", "Array"):
        return structured(value)
    place = _BY_CONSTRUCTOR.get(constructor) or _BY_PROTOCOL.get(getattr(kind, "__name__", ""))
    if place is None:
        return value
    file, cls = place
    make: Callable[..., Any] = getattr(import_module(f"core.backends.workerd.{file}"), cls)
    if file == "durable_object":
        arguments = typing.get_args(annotation)
        return make(value, arguments[0] if arguments else None)
    return make(value)


def _adapt(value: Any, field: EnvField) -> object:
    """What only the annotation tells: the class behind a Durable Object namespace, the kind of a bare stub."""
    if isinstance(value, bridge().JsProxy):
        return wrap(value, field.kind, field.annotation)
    if type(value).__name__ == "WorkerdDurableObjectNamespace":
        return wrap(value._namespace, field.kind, field.annotation)
    return value
