"""A whole `Env` for a test, from its annotations: a fake for every binding, something plain for every variable.

A test writes only the bindings that it is about. One that cannot be made up is an error, with the line to write.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from typing_extensions import is_typeddict

from core.bindings.secret import Secret
from core.context import Clock, system_clock
from core.env import EnvField, fields_of, inject, kind_of
from core.errors import EnvError

if TYPE_CHECKING:
    from core.config.model import Configuration

E = TypeVar("E")

_PLAIN: tuple[Callable[[], object], ...] = (str, int, float, bool, list, dict)


def env(
    env_class: type[E],
    /,
    *,
    config: str | Path | Configuration | None = None,
    clock: Clock = system_clock,
    **overrides: object,
) -> E:
    """An `Env` of fakes, each of its own store, all on one `clock`.

        env(Env, ALLOWED_ORIGINS="https://example.test", SESSIONS=FakeKVNamespace({"a": "1"}))

    `overrides` are attributes by name, taken as they are. `config` is a configuration file (or one already loaded): its
    variables are used, queues have its names and delays, rate limits its numbers, and D1 databases get its migrations
    applied. Without it a variable is "", 0 or False, and a secret a string of its own; an optional attribute is left
    at its default.

    Beside its bindings the Env has `await made.crash()`, unless an attribute has that name: the isolate of its clients
    dies. Requests in flight are answered 500, work given to `wait_until` ends where it is, WebSockets are lost (1006),
    and lifespans are left, and begin again with the next request. The bindings keep what was written. Modules stay
    loaded, with what they hold: a test resets what a handler keeps in a global. Durable Objects are elsewhere, and
    `FakeDurableObjectNamespace.evict` ends one. A type checker does not find `crash` on your class: annotate such an
    Env as `Any`.

    Raises EnvError, once, for an override that is not an attribute and for attributes of which no fake can be made.
    """
    configuration = _loaded(config)
    problems: list[str] = []
    values: dict[str, object] = {}
    fields = fields_of(env_class)
    for name in overrides:
        if all(name not in (field.name, field.attribute) for field in fields):
            known = ", ".join(field.name for field in fields)
            problems.append(f"env({env_class.__name__}, {name}=…): it has no such attribute. It has {known}")
    for field in fields:
        given = overrides.get(field.name, overrides.get(field.attribute, _UNSET))
        if given is not _UNSET:
            values[field.name] = given
            continue
        try:
            value = _made(field, configuration, clock)
        except _NoFakeError as missing:
            if not field.optional:
                problems.append(f"{env_class.__name__}.{field.attribute}: {missing}")
            continue
        if value is not None:
            values[field.name] = value
    if problems:
        raise EnvError(problems)
    made: E = inject(_mortal(cast("Any", env_class)), values)
    for value in values.values():
        # Durable Objects have the Env that they are in; a fake that came with an Env of its own keeps it.
        objects = getattr(value, "objects", None)
        if objects is not None and getattr(objects, "env", made) is None:
            objects.env = made
    return made


async def _crash(made: object) -> None:
    from core.testing.client import clients

    for client in [client for client in clients if client.env is made]:
        await client._die()


@lru_cache(maxsize=64)
def _mortal(env_class: Any) -> Any:
    """The class with `crash`. A TypedDict, whose values are dicts, has no methods."""
    if is_typeddict(env_class) or any(field.attribute == "crash" for field in fields_of(env_class)):
        return env_class
    named = {name: getattr(env_class, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(env_class)(env_class.__name__, (env_class,), {**named, "__slots__": (), "crash": _crash})


_UNSET = object()


class _NoFakeError(Exception):
    """Nothing can be made up for an attribute."""


def _made(field: EnvField, configuration: Configuration | None, clock: Clock) -> object:
    kind = kind_of(field.kind)
    if kind is not None:
        if not kind.engine("Fake"):
            raise _NoFakeError(f"{field.kind.__name__} has no fake. Pass one of your own: env(Env, {field.name}=…)")
        # Imported by name, so that a test loads the fakes it uses and no others.
        maker: Callable[..., object] = getattr(import_module(f"core.testing.{kind.module}"), kind.engine("Fake"))
        options = {"clock": clock, **_from_configuration(configuration, field.name, kind.name)}
        if kind.name == "durable_object":
            return maker(_class_of(field, configuration), **options)
        return maker(**options)
    if configuration is not None and field.name in configuration.worker.vars:
        return configuration.worker.vars[field.name]
    if field.has_default or (field.optional and field.kind is not Secret):
        return None
    if field.kind is Secret:
        # Long enough for any HMAC, which some libraries demand, and without what a header of credentials cannot have.
        return Secret(f"the-{field.name}-of-a-test-and-of-nothing-else")
    for plain in _PLAIN:
        if field.kind is plain:
            return plain()
    raise _NoFakeError(f"nothing is known of {field.annotation}. Pass a value: env(Env, {field.name}=…)")


def _class_of(field: EnvField, configuration: Configuration | None) -> object:
    """The class of Durable Objects that an annotation names, `DurableObjectNamespace[Counter]`, or the configuration.

    Where a module imports the class under `if TYPE_CHECKING` alone, the annotation does not have it.
    """
    from core.bindings.durable_object import DurableObject

    arguments: tuple[object, ...] = get_args(field.annotation)
    first = arguments[0] if arguments else None
    if isinstance(first, type) and issubclass(first, DurableObject):
        return cast("type[DurableObject[object]]", first)
    binding = None if configuration is None else configuration.bindings.get(field.name)
    name = getattr(getattr(binding, "entry", None), "class_name", None)
    loaded = [*DurableObject.__subclasses__()]
    for cls in loaded:
        loaded += cls.__subclasses__()
        if cls.__name__ == name:
            return cls
    raise _NoFakeError(
        "no class of Durable Objects is found. Write DurableObjectNamespace[Counter], with Counter imported outside "
        f"`if TYPE_CHECKING:`, or pass your own: env(Env, {field.name}=FakeDurableObjectNamespace(Counter))"
    )


def _from_configuration(configuration: Configuration | None, name: str, kind: str) -> dict[str, object]:
    """The migrations of a database, the name of a queue and the delay of what is sent to it, the numbers of a limit."""
    binding = None if configuration is None else configuration.bindings.get(name)
    if configuration is None or binding is None or binding.kind != kind:
        return {}
    from core.config.model import D1Table, QueueProducer, RateLimitTable

    match binding.entry:
        case D1Table() as entry:
            folder = configuration.migrations_directory(entry)
            return {"migrations": folder} if folder.is_dir() else {}
        case QueueProducer() as entry:
            return {"name": entry.queue, "delivery_delay": entry.delivery_delay}
        case RateLimitTable() as entry:
            return {"limit": entry.simple.limit, "period": entry.simple.period}
        case _:
            return {}


def _loaded(config: str | Path | Configuration | None) -> Configuration | None:
    if config is None or not isinstance(config, str | Path):
        return config
    from core.config.load import load

    return load(Path(config))
