"""All bindings of a configuration at once, embedded: what `core dev` and tests of a whole worker hand to `inject`.

Two bindings of one id share one namespace, database or bucket, as on the platform. A kind that cannot be embedded is
still there, so that the worker starts: it says so when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import attrs

from core.backends.embedded.store import Store
from core.bindings.secret import Secret
from core.config.model import KINDS, Binding, Configuration
from core.errors import UnsupportedBindingError

__all__ = ["EmbeddedBindings", "NotEmbedded", "embed"]


@attrs.frozen
class EmbeddedBindings:
    """The bindings by name. `absent` has the names of those that are not embedded, with the reason."""

    values: Mapping[str, object]
    absent: Mapping[str, str]


def embed(
    configuration: Configuration, store: Store, *, secrets: Mapping[str, Secret] | None = None
) -> EmbeddedBindings:
    """Build every binding of `configuration` on `store`. `secrets` has the values of secrets by name.

    A secret without a value is left out, so that `inject` can say where to write it.
    """
    values: dict[str, object] = {}
    absent: dict[str, str] = {}
    for name, binding in configuration.bindings.items():
        if binding.kind == "secret":
            value = (secrets or {}).get(name)
            if value is not None:
                values[name] = value
            continue
        if binding.kind == "var":
            values[name] = binding.entry
            continue
        build = _BUILDERS.get(binding.kind)
        if build is None:
            reason = f"{KINDS[binding.kind].title}s are not embedded"
            absent[name] = reason
            values[name] = NotEmbedded(binding, reason)
        else:
            values[name] = build(binding.entry, store)
    return EmbeddedBindings(values, absent)


class NotEmbedded:
    """Stands for a binding that only the platform has. Whatever is called on it raises UnsupportedBindingError."""

    def __init__(self, binding: Binding, reason: str) -> None:
        self._binding = binding
        self._reason = reason

    def __repr__(self) -> str:
        return f"<{self._binding.name}: not embedded>"

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)

        def refuse(*args: object, **options: object) -> NoReturn:
            raise UnsupportedBindingError(
                f"{self._binding.name}.{method}(): {self._reason} ({self._binding.place}). "
                "Run the worker in workerd with `core serve`, or give a stand-in where the Env is built"
            )

        return refuse


def _kv(entry: Any, store: Store) -> object:
    from core.backends.embedded.kv import EmbeddedKVNamespace

    return EmbeddedKVNamespace(store, entry.id or entry.binding)


def _d1(entry: Any, store: Store) -> object:
    from core.backends.embedded.d1 import EmbeddedD1Database

    return EmbeddedD1Database(store, entry.database_id or entry.database_name or entry.binding)


def _r2(entry: Any, store: Store) -> object:
    from core.backends.embedded.r2 import EmbeddedR2Bucket

    return EmbeddedR2Bucket(store, entry.bucket_name or entry.binding)


def _queue(entry: Any, store: Store) -> object:
    from core.backends.embedded.queue import EmbeddedQueue

    return EmbeddedQueue[Any](store, entry.queue, delivery_delay=entry.delivery_delay)


_BUILDERS: Mapping[str, Callable[[Any, Store], object]] = {"kv": _kv, "d1": _d1, "r2": _r2, "queue": _queue}
