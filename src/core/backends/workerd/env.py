"""The application's `Env` over the runtime's `env` object, built once in an isolate.

What stands under a name is told by its JavaScript class; where that is a plain JSON-RPC stub, by the annotation.
Every kind has its file; a file is imported when the first binding of its kind is met.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar, cast

from core.backends.workerd.crossing import bare, bridge, constructor_name, is_null, structured
from core.env import EnvField, inject

__all__ = ["build_env", "wrap"]

E = TypeVar("E")

# The file and the class that stand for each Protocol of `core.bindings`.
_BY_PROTOCOL: Final = {
    "KVNamespace": ("kv", "WorkerdKVNamespace"),
    "D1Database": ("d1", "WorkerdD1Database"),
    "R2Bucket": ("r2", "WorkerdR2Bucket"),
    "Queue": ("queue", "WorkerdQueue"),
    "DurableObjectNamespace": ("durable_object", "WorkerdDurableObjectNamespace"),
    "Ai": ("ai", "WorkerdAi"),
    "Fetcher": ("fetcher", "WorkerdFetcher"),
    "RateLimit": ("rate_limit", "WorkerdRateLimit"),
    "Vectorize": ("vectorize", "WorkerdVectorize"),
    "AnalyticsEngineDataset": ("analytics_engine", "WorkerdAnalyticsEngineDataset"),
    "Hyperdrive": ("hyperdrive", "WorkerdHyperdrive"),
    "Workflow": ("workflow", "WorkerdWorkflow"),
    "SendEmail": ("email", "WorkerdSendEmail"),
    "Images": ("images", "WorkerdImages"),
    "SecretsStoreSecret": ("secret_store", "WorkerdSecretsStoreSecret"),
}
# The JavaScript classes that tell the Protocol by themselves. A `Fetcher` is many things: its annotation counts first.
_BY_CONSTRUCTOR: Final = {
    "KvNamespace": "KVNamespace",
    "D1Database": "D1Database",
    "R2Bucket": "R2Bucket",
    "WorkerQueue": "Queue",
    "DurableObjectNamespace": "DurableObjectNamespace",
    "Ai": "Ai",
    "Ratelimit": "RateLimit",
    "VectorizeIndexImpl": "Vectorize",
    "AnalyticsEngine": "AnalyticsEngineDataset",
    "AnalyticsEngineDataset": "AnalyticsEngineDataset",
    "LocalAnalyticsEngineDataset": "AnalyticsEngineDataset",
    "Hyperdrive": "Hyperdrive",
    "WorkflowImpl": "Workflow",
    "SendEmail": "SendEmail",
    "ImagesBindingImpl": "Images",
    "HostedImagesBindingImpl": "Images",
}


def build_env(env_class: type[E] | None, env: Any) -> E:
    """The Env. Raises EnvError for everything that is missing or of the wrong kind."""
    source = bare(env)

    def lookup(name: str) -> object:
        value = getattr(source, name, None)
        if is_null(value):
            return None
        found = wrap(value)
        # Without an Env class there is no annotation to wait for.
        return _loose(found) if env_class is None and isinstance(found, bridge().JsProxy) else found

    return inject(env_class, lookup, adapt=_adapt)


def wrap(value: Any) -> Any:
    """A value of the runtime's `env` as Python's, as far as its JavaScript class tells what it is."""
    value = bare(value)
    if not isinstance(value, bridge().JsProxy):
        return value
    constructor = constructor_name(value)
    if constructor in ("Object", "Array"):
        return structured(value)
    if constructor == "DurableObjectNamespace":
        # Its class may be in the annotation, which `_adapt` has.
        return value
    protocol = _BY_CONSTRUCTOR.get(constructor)
    return value if protocol is None else _made(protocol, value)


def _adapt(value: Any, field: EnvField) -> object:
    """What only the annotation tells: the class behind an object's namespace, the kind of what merely fetches."""
    protocol = next(
        (base.__name__ for base in getattr(field.kind, "__mro__", ()) if base.__module__.startswith("core.bindings.")),
        "",
    )
    if protocol == "VersionMetadata" and isinstance(value, dict):
        from core.backends.workerd.version_metadata import WorkerdVersionMetadata

        return WorkerdVersionMetadata.of(cast("dict[str, object]", value))
    if not isinstance(value, bridge().JsProxy):
        return value
    if protocol == "DurableObjectNamespace":
        arguments = typing.get_args(field.annotation)
        return _made(protocol, value, arguments[0] if arguments else None)
    if protocol in ("Fetcher", "Assets"):
        return _made("Fetcher", value, field.kind)
    return _made(protocol, value) if protocol in _BY_PROTOCOL else _loose(value)


def _loose(value: Any) -> Any:
    """What an Env without annotations has, for classes that need none."""
    match constructor_name(value):
        case "DurableObjectNamespace":
            return _made("DurableObjectNamespace", value)
        case "Fetcher":
            return _made("Fetcher", value)
        case _:
            return value


def _made(protocol: str, *arguments: Any) -> Any:
    file, cls = _BY_PROTOCOL[protocol]
    make: Callable[..., Any] = getattr(import_module(f"core.backends.workerd.{file}"), cls)
    return make(*arguments)
