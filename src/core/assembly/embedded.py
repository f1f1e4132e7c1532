"""All bindings of a configuration at once, embedded, for `core dev` and tests of a whole worker to hand to `inject`.

Two bindings of one id share one namespace, database or bucket, as on the platform. A kind that cannot be embedded is
still there, so that the worker starts: it says so when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

import attrs
from typing_extensions import Unpack

from core.backends.embedded.store import Database, Store
from core.bindings.absent import AbsentBinding
from core.bindings.calls import CallHook, add_hook
from core.bindings.kinds import KINDS
from core.config.model import Binding, Configuration, D1Table

if TYPE_CHECKING:
    from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace


class Embedding(TypedDict, total=False):
    """The options of `embed`.

    `secrets` has the values of secrets by name; one without a value is left out, so that `inject` can say where to
    write it. `classes` has the classes of Durable Objects by name: the names of the worker's main module will do.
    `hook` sees every call of every binding. With `objects_at`, the path of a socket, Durable Objects live in the
    process that answers there. `count_rows` has the databases count the rows that statements read, as the fakes do:
    each statement then runs twice.
    """

    secrets: Mapping[str, str] | None
    classes: Mapping[str, object]
    hook: CallHook | None
    objects_at: str | None
    count_rows: bool


def embed(configuration: Configuration, store: Store, **given: Unpack[Embedding]) -> EmbeddedBindings:
    """Build every binding of `configuration` on `store`."""
    secrets, hook = given.get("secrets") or {}, given.get("hook")
    made = EmbeddedBindings(configuration, store, secrets, given.get("classes", {}), given.get("objects_at"))
    # Those that only the fields of the Env name; an entry of the configuration wins.
    made.values.update(secrets)
    for name, binding in configuration.bindings.items():
        made.make(name, binding)
        if given.get("count_rows") and binding.kind == "d1":
            _count_rows(made.values[name], store)
        if hook is not None:
            add_hook(made.values.get(name), hook, name=name, kind=binding.kind)
    return made


_IDLE: Final = 10.0
"""Seconds after which the instance of a Durable Object that nobody calls is freed."""


@attrs.define(eq=False)
class EmbeddedBindings:
    """The bindings by name. `absent` has the names of those that are not embedded, with the reason; `namespaces` the
    Durable Objects, which are yet to be given their Env, started once the event loop runs, and closed before the store.
    """

    _configuration: Configuration
    _store: Store
    _secrets: Mapping[str, str]
    _classes: Mapping[str, object]
    _objects_at: str | None
    values: dict[str, object] = attrs.field(init=False, factory=dict[str, object])
    absent: dict[str, str] = attrs.field(init=False, factory=dict[str, str])
    namespaces: dict[str, EmbeddedDurableObjectNamespace[Any]] = attrs.field(init=False, factory=dict[str, Any])

    def make(self, name: str, binding: Binding) -> None:
        """Build one binding, or what says that it is absent."""
        match binding.kind:
            case "secret":
                pass  # its value is there, or there is none
            case "var":
                # `.dev.vars` wins over [vars], as with the platform's own tools.
                self.values[name] = self._secrets.get(name, binding.entry)
            case "ai":
                self.values[name] = self._ai(name)
            case "hyperdrive":
                self._hyperdrive(name, binding)
            case "durable_object":
                self._durable_object(name, binding)
            case kind:
                described = KINDS[kind]
                if engine := described.engine("Embedded"):
                    cls = getattr(import_module(f"core.backends.embedded.{described.module}"), engine)
                    named = name_in_store(binding)
                    made = cls(self._store, named) if named else _MAKERS[kind](cls, binding.entry, self._store)
                    self.values[name] = made
                else:
                    self._leave_out(name, binding, f"{described.title}s are not embedded")

    def _leave_out(self, name: str, binding: Binding, reason: str) -> None:
        self.absent[name] = reason
        advice = "Run the worker in workerd with `core serve`, or give a stand-in where the Env is built"
        self.values[name] = AbsentBinding(name, f"{reason} ({binding.place}). {advice}")

    def _ai(self, name: str) -> object:
        from core.backends.embedded.ai import AiServer, EmbeddedAi

        named = self._configuration.worker.core.ai
        if named is None:
            # Whoever runs a model is told then how to name a server; the rest of the worker needs none.
            self.absent[name] = "no AI server is named ([core.ai] url)"
            return EmbeddedAi(None, binding=name)
        key = None if named.key is None else self._secrets.get(named.key)
        return EmbeddedAi(AiServer(named.url, key, named.model, named.models), binding=name)

    def _hyperdrive(self, name: str, binding: Binding) -> None:
        from core.backends.embedded.hyperdrive import VARIABLES, EmbeddedHyperdrive

        entry: Any = binding.entry
        names = [variable + name for variable in VARIABLES]
        found = [os.environ.get(variable) or self._secrets.get(variable) for variable in names]
        address = next(filter(None, found), entry.localConnectionString)
        if address is None:
            # Whoever connects is told then how to name it; the rest of the worker needs none.
            self.absent[name] = f"no database is named for this machine (set {names[0]})"
        self.values[name] = EmbeddedHyperdrive(address, binding=name)

    def _durable_object(self, name: str, binding: Binding) -> None:
        from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
        from core.bindings.durable_object import object_class

        entry: Any = binding.entry
        if entry.script_name is not None:
            self._leave_out(name, binding, f"the objects of another worker ({entry.script_name}) are not embedded")
            return
        cls = object_class(self._classes.get(entry.class_name))
        if cls is None:
            reason = f"{self._configuration.worker.main} has no Durable Object {entry.class_name}"
            self._leave_out(name, binding, reason)
            return
        if self._objects_at is not None:
            from core.backends.remote.durable_object import RemoteObjects

            remote = RemoteObjects(entry.class_name, cls, self._objects_at)
            self.values[name] = EmbeddedDurableObjectNamespace.over(remote)
            return
        namespace = EmbeddedDurableObjectNamespace(self._store, entry.class_name, cls)
        # As in workerd, which lets an object without work go after that long.
        namespace.objects.evict_after = _IDLE
        self.values[name] = self.namespaces[name] = namespace


def _count_rows(database: Any, store: Store) -> None:
    from core.backends.embedded.d1.reads import RowsRead

    engine = database.engine
    if engine.reads is None:
        engine.reads = RowsRead(engine.database, store.clock, most=_MOST_COUNTED)


_MOST_COUNTED: Final = 1_000_000
"""Rows of one statement after which counting them is given up: half a second of the event loop's time."""


def d1_name(entry: D1Table) -> str:
    """The name of a database in a store: two bindings of one id share it."""
    return entry.database_id or entry.database_name or entry.binding


_NAMES: Final[Mapping[str, Callable[[Any], str]]] = {
    "kv": lambda entry: entry.id or entry.binding,
    "d1": d1_name,
    "r2": lambda entry: entry.bucket_name or entry.binding,
}
"""The name of the one database of a binding in a store, for the kinds that have one each."""


def name_in_store(binding: Binding) -> str | None:
    """The name of the one database of a binding in a store; None for a kind that has no such database."""
    return _NAMES[binding.kind](binding.entry) if binding.kind in _NAMES else None


def databases_of(configuration: Configuration, store: Store) -> dict[str, Database]:
    """The databases of the bindings that have one each, by kind and name: `d1/users`."""
    found = ((binding.kind, name_in_store(binding)) for binding in configuration.bindings.values())
    return {f"{kind}/{name}": store.database(kind, name) for kind, name in found if name is not None}


def databases_of_objects(bindings: EmbeddedBindings) -> dict[str, Database | Path]:
    """The databases of the Durable Objects there are, or their files: `durable_object/Counter/` and the id's digits."""
    found = {namespace.objects.name: namespace.objects.stored() for namespace in bindings.namespaces.values()}
    return {f"durable_object/{name}/{digits}": each for name, all in found.items() for digits, each in all.items()}


_MAKERS: Final[Mapping[str, Callable[[Any, Any, Store], object]]] = {
    "queue": lambda cls, entry, store: cls(store, entry.queue, delivery_delay=entry.delivery_delay),
    "rate_limit": lambda cls, entry, store: cls(entry.simple.limit, entry.simple.period, clock=store.clock),
    "version_metadata": lambda cls, entry, store: cls.of(store.clock),
}
"""The other kinds: a binding by its embedded class and the table of the configuration."""
