"""All bindings of a configuration at once, embedded: what `core dev` and tests of a whole worker hand to `inject`.

Two bindings of one id share one namespace, database or bucket, as on the platform. A kind that cannot be embedded is
still there, so that the worker starts: it says so when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import attrs

from core.backends.embedded.store import Store
from core.config.model import KINDS, Binding, Configuration
from core.errors import UnsupportedBindingError

if TYPE_CHECKING:
    from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
    from core.bindings.durable_object import DurableObject

__all__ = ["EmbeddedBindings", "NotEmbedded", "embed"]


@attrs.frozen
class EmbeddedBindings:
    """The bindings by name. `absent` has the names of those that are not embedded, with the reason.

    Where there are Durable Objects, their life is the bindings': `attach` gives them the Env, `start` takes up their
    alarms once the event loop runs, `close` ends them before the store is closed.
    """

    values: Mapping[str, object]
    absent: Mapping[str, str]
    namespaces: Mapping[str, EmbeddedDurableObjectNamespace[Any]]

    def attach(self, env: object) -> None:
        """Let every Durable Object have `env` as its own."""
        for namespace in self.namespaces.values():
            namespace.objects.env = env

    def start(self) -> None:
        """Take up the alarms that were set before. Raises DurableObjectError when another process has the objects."""
        for namespace in self.namespaces.values():
            namespace.start()

    async def close(self) -> None:
        """End the Durable Objects, after the calls that are running."""
        for namespace in self.namespaces.values():
            await namespace.close()


def embed(
    configuration: Configuration,
    store: Store,
    *,
    secrets: Mapping[str, str] | None = None,
    classes: Mapping[str, object] | None = None,
) -> EmbeddedBindings:
    """Build every binding of `configuration` on `store`.

    `secrets` has the values of secrets by name; one without a value is left out, so that `inject` can say where to
    write it. `classes` has the classes of Durable Objects by name: the names of the worker's main module will do.
    """
    maker = _Maker(configuration, store, secrets or {}, classes or {})
    for name, binding in configuration.bindings.items():
        maker.make(name, binding)
    return EmbeddedBindings(maker.values, maker.absent, maker.namespaces)


class _Maker:
    def __init__(
        self, configuration: Configuration, store: Store, secrets: Mapping[str, str], classes: Mapping[str, object]
    ) -> None:
        self.configuration = configuration
        self.store = store
        self.secrets = secrets
        self.classes = classes
        self.values: dict[str, object] = {}
        self.absent: dict[str, str] = {}
        self.namespaces: dict[str, EmbeddedDurableObjectNamespace[Any]] = {}

    def make(self, name: str, binding: Binding) -> None:
        match binding.kind:
            case "secret":
                if name in self.secrets:
                    self.values[name] = self.secrets[name]
            case "var":
                # `.dev.vars` wins over [vars], as with the platform's own tools.
                self.values[name] = self.secrets.get(name, binding.entry)
            case "ai":
                self.values[name] = self.ai(name)
            case "durable_object":
                self.durable_object(name, binding)
            case kind:
                build = _BUILDERS.get(kind)
                if build is None:
                    self.leave_out(name, binding, f"{KINDS[kind].title}s are not embedded")
                else:
                    self.values[name] = build(binding.entry, self.store)

    def leave_out(self, name: str, binding: Binding, reason: str) -> None:
        self.absent[name] = reason
        self.values[name] = NotEmbedded(binding, reason)

    def ai(self, name: str) -> object:
        from core.backends.embedded.ai import AiServer, EmbeddedAi

        named = self.configuration.worker.core.ai
        if named is None:
            # Whoever runs a model is told then how to name a server; the rest of the worker needs none.
            self.absent[name] = "no AI server is named ([core.ai] url)"
            return EmbeddedAi(None, binding=name)
        key = None if named.key is None else self.secrets.get(named.key)
        return EmbeddedAi(AiServer(named.url, key, named.model, named.models), binding=name)

    def durable_object(self, name: str, binding: Binding) -> None:
        from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
        from core.bindings.durable_object import DurableObject

        entry: Any = binding.entry
        if entry.script_name is not None:
            self.leave_out(name, binding, f"the objects of another worker ({entry.script_name}) are not embedded")
            return
        found = self.classes.get(entry.class_name)
        whole: Any = found
        if not (isinstance(found, type) and issubclass(found, DurableObject)):
            reason = f"the worker's main module has no class {entry.class_name} that derives from core.DurableObject"
            self.leave_out(name, binding, reason)
            return
        cls: type[DurableObject[Any]] = whole
        namespace = EmbeddedDurableObjectNamespace(self.store, entry.class_name, cls)
        self.values[name] = self.namespaces[name] = namespace


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


def _rate_limit(entry: Any, store: Store) -> object:
    from core.backends.embedded.rate_limit import EmbeddedRateLimit

    return EmbeddedRateLimit(entry.simple.limit, entry.simple.period, clock=store.clock)


def _version_metadata(entry: Any, store: Store) -> object:
    from core.backends.embedded.version_metadata import EmbeddedVersionMetadata

    return EmbeddedVersionMetadata.of(store.clock)


_BUILDERS: Mapping[str, Callable[[Any, Store], object]] = {
    "kv": _kv,
    "d1": _d1,
    "r2": _r2,
    "queue": _queue,
    "rate_limit": _rate_limit,
    "version_metadata": _version_metadata,
}
