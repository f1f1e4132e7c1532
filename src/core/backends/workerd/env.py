"""The application's `Env` over the runtime's `env` object, built once in an isolate.

The kind of a binding is told by its JavaScript class; where that is a plain JSON-RPC stub, by the annotation.
Every kind has its file; a file is imported when the first binding of its kind is met, or for a memory snapshot.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, TypeVar, cast

from core.backends.workerd.conversion import bridge, constructor_name, is_null, of_fields, structured, unwrap
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
    """The Env, `secrets` before what the runtime has. Raises EnvError for all that is missing or of the wrong kind."""
    source = unwrap(env)
    absent = _absent(env_class, source)
    # An Env without annotations has every binding as it is told without one.
    loose = env_class is None or cast("Any", env_class) is Any

    def lookup(name: str) -> object:
        value = getattr(source, name, None)
        if is_null(value):
            return absent.get(name)
        return _binding(value) if loose else value

    return inject(env_class, lookup, secrets=secrets, adapt=_binding)


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


def _binding(value: object, field: EnvField | None = None) -> object:
    """A value of the runtime's `env` as Python's: a binding, JSON, or a text."""
    found = unwrap(value)
    kind = None if field is None else kind_of(field.kind)
    constructor = constructor_name(found)
    if constructor in _KINDS:
        return _made(KINDS[_KINDS[constructor]], found)
    plain = structured(found) if constructor in ("Object", "Array") else found
    if not isinstance(plain, bridge().JsProxy):
        if kind is not None and kind.name == "version_metadata" and isinstance(plain, dict):
            from core.backends.workerd.version_metadata import WorkerdVersionMetadata

            return of_fields(WorkerdVersionMetadata, structured(found))
        return plain
    if field is None or kind is None:
        meant = {"DurableObjectNamespace": "durable_object", "Fetcher": "service"}.get(constructor)
        return plain if meant is None else _made(KINDS[meant], plain)
    if kind.name == "durable_object":
        arguments = typing.get_args(field.annotation)
        return _made(kind, plain, arguments[0] if arguments else None)
    if kind.protocol == "Fetcher":
        return _made(KINDS["service"], plain, field.kind)
    return _made(kind, plain)


def _made(kind: Kind, *arguments: object) -> object:
    make: Callable[..., object] = getattr(import_module(_module(kind)), kind.engine("Workerd"))
    return make(*arguments)


def _module(kind: Kind) -> str:
    return f"core.backends.workerd.{kind.module}"
