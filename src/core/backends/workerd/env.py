"""The application's `Env` over the runtime's `env` object, built once in an isolate.

The kind of a binding is told by its JavaScript class; where that is a plain JSON-RPC stub, by the annotation.
Every kind has its file; a file is imported when the first binding of its kind is met, or for a memory snapshot.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, TypeVar

from core.backends.workerd.conversion import bridge, constructor_name, is_null, structured, unwrap
from core.bindings.absent import AbsentBinding
from core.bindings.kinds import KINDS, Kind
from core.env import EnvField, fields_of, inject, kind_of

ABSENT_BINDING = "CORE_ABSENT"
"""The JSON binding that has the names without a service, each with the reason."""

E = TypeVar("E")

_KINDS: Final[Mapping[str, str]] = {
    "KvNamespace": "kv",
    "D1Database": "d1",
    "R2Bucket": "r2",
    "WorkerQueue": "queue",
    "Ai": "ai",
    "Ratelimit": "rate_limit",
    "VectorizeIndexImpl": "vectorize",
    "AnalyticsEngine": "analytics_engine",
    "AnalyticsEngineDataset": "analytics_engine",
    "LocalAnalyticsEngineDataset": "analytics_engine",
    "Hyperdrive": "hyperdrive",
    "WorkflowImpl": "workflow",
    "SendEmail": "send_email",
    "ImagesBindingImpl": "images",
    "HostedImagesBindingImpl": "images",
}
"""The kinds that a JavaScript class tells by itself. That of a Durable Object's namespace leaves open the class of the
objects, and `Fetcher` is the class of many kinds: there the annotation counts first.
"""


def build_env(env_class: type[E] | None, env: object, secrets: Mapping[str, str] | None = None) -> E:
    """The Env, `secrets` before what the runtime has. Raises EnvError for everything that is missing or of the wrong
    kind.
    """
    source = unwrap(env)
    absent = _absent(env_class, source)

    def lookup(name: str) -> object:
        value = getattr(source, name, None)
        if is_null(value):
            return absent.get(name)
        found = wrap(value)
        # Without an Env class there is no annotation to wait for.
        if env_class is None and isinstance(found, bridge().JsProxy):
            found = _loose(found)
        return found

    return inject(env_class, lookup, secrets=secrets, adapt=_adapt)


def preload(env_class: type) -> None:
    """Import the files of the kinds that an Env declares, for a memory snapshot to have them. Raises EnvError."""
    for field in fields_of(env_class):
        kind = kind_of(field.kind)
        if kind is not None and kind.engine("Workerd"):
            import_module(_module(kind))


def _absent(env_class: type | None, source: object) -> Mapping[str, object]:
    """The bindings that the runtime has no service for. Those that the Env can do without are left to be None."""
    reasons = getattr(source, ABSENT_BINDING, None)
    if is_null(reasons):
        return {}
    optional = {field.name for field in fields_of(env_class) if field.optional} if env_class is not None else ()
    return {
        name: AbsentBinding(name, reason)
        for name, reason in structured(unwrap(reasons)).items()
        if name not in optional
    }


def wrap(value: object) -> object:
    """A value of the runtime's `env` as Python's, as far as its JavaScript class tells its kind."""
    value = unwrap(value)
    if not isinstance(value, bridge().JsProxy):
        return value
    constructor = constructor_name(value)
    if constructor in ("Object", "Array"):
        return structured(value)
    return _made(KINDS[_KINDS[constructor]], value) if constructor in _KINDS else value


def _adapt(value: Any, field: EnvField) -> object:
    """Return the facts that only the annotation has: the class behind an object's namespace, the kind of a plain
    fetcher.
    """
    kind = kind_of(field.kind)
    given = value  # not narrowed by what follows
    if kind is not None and kind.name == "version_metadata" and isinstance(value, dict):
        from core.backends.workerd.version_metadata import WorkerdVersionMetadata

        return WorkerdVersionMetadata.of(given)
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


def _loose(value: object) -> object:
    """Return the bindings of an Env without annotations, for classes that need none."""
    kind = {"DurableObjectNamespace": "durable_object", "Fetcher": "service"}.get(constructor_name(value))
    return value if kind is None else _made(KINDS[kind], value)


def _made(kind: Kind, *arguments: object) -> object:
    make: Callable[..., object] = getattr(import_module(_module(kind)), kind.engine("Workerd"))
    return make(*arguments)


def _module(kind: Kind) -> str:
    return f"core.backends.workerd.{kind.module}"
