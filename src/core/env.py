"""`Env` from its annotations: each attribute is looked up by its name and checked by its kind, once.

Decides which names an Env asks for, the kinds allowed under each, and how missing ones are reported. It runs
in the worker before the first request, so it imports no configuration and knows no backend.
"""

from __future__ import annotations

import builtins
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import attrs
import typing_extensions

from core.bindings.secret import Secret
from core.errors import EnvError

if TYPE_CHECKING:
    from core.bindings.kinds import Kind

    E = typing_extensions.TypeVar("E", default=Any)


class Bindings:
    """The base class that marks a class as an Env: one attribute for each binding of the configuration file.

        @attrs.frozen
        class Env(Bindings):
            SESSIONS: KVNamespace
            DB: D1Database
            ALLOWED_ORIGINS: str
            JWT_SECRET: Secret

    It has nothing of its own. It is how the mypy plugin and `core check` find the class.
    """

    __slots__ = ()


def kind_of(annotation: object) -> Kind | None:
    """The kind of binding that a class stands for, itself or by a base; None for any other class."""
    # Imported here: a worker asks for it only when a binding is missing.
    from core.bindings.kinds import PROTOCOLS

    for base in getattr(annotation, "__mro__", ()):
        if base.__module__.startswith("core.bindings.") and base.__name__ in PROTOCOLS:
            return PROTOCOLS[base.__name__]
    return None


# By hand: a NamedTuple takes ten times as long to be defined, an attrs class more, and every worker pays as it starts.
class EnvField:
    """One attribute of an Env: the binding it asks for and the values it takes.

    `name` is the binding's name: the attribute's alias, which for attrs is the name without leading underscores.
    `annotation` is resolved and comes without `Annotated` and `None`; `kind` is `annotation` without type arguments.
    `optional` says that the binding may be absent, `converted` that the attribute has a converter of its own, so that
    only it knows what it takes.
    """

    def __init__(
        self,
        name: str,
        attribute: str,
        annotation: object,
        kind: object = None,
        optional: bool = False,
        has_default: bool = False,
        converted: bool = False,
    ) -> None:
        self.name: str = name
        self.attribute: str = attribute
        self.kind: Any = kind
        self.annotation: Any = annotation
        self.optional: bool = optional
        self.has_default: bool = has_default
        self.converted: bool = converted


class AnyEnv:
    """The Env of an application without one (`create_app()`): every binding, by attribute, unchecked."""

    def __init__(self, lookup: Callable[[str], object], /) -> None:
        self.__lookup = lookup

    def __getattr__(self, name: str, /) -> Any:
        # Called only for a name that is not there yet: each binding is looked up once.
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.__lookup(name)
        if value is None:
            raise AttributeError(f"Env.{name}: no binding of that name. Declare it in the configuration file.")
        setattr(self, name, value)
        return value


def inject(
    env_class: type[E] | None,
    lookup: Mapping[str, object] | Callable[[str], object],
    /,
    *,
    secrets: Mapping[str, str | Secret] | None = None,
    adapt: Callable[[object, EnvField], object] | None = None,
) -> E:
    """Build an Env: each attribute from `lookup`, by its name, checked by its annotation.

    `lookup` is a mapping, or a function that returns None (or raises KeyError) for a name that it does not know.
    `secrets` win over it. `adapt` turns a found value into one that the annotation asks for, where a runtime has
    objects of its own. Bindings are checked by the methods that their class has; a `str` takes a string or a secret, a
    `Secret` takes a string; other annotations describe JSON variables, and are strict: no `"1"` becomes `1`.

    `env_class` is an attrs class, a dataclass or a TypedDict. With None or `Any` the result has every binding as an
    attribute, unchecked.

    Raises EnvError, once, for everything that is missing or of the wrong kind.
    """
    find = _finder(lookup, secrets or {})
    if env_class is None or cast(Any, env_class) is Any:
        return cast("E", AnyEnv(find))
    named: Mapping[str, object] = {} if callable(lookup) else lookup
    problems: list[str] = []
    values: dict[str, object] = {}
    title = env_class.__name__
    fields = _collect(env_class, problems)
    for field in fields:
        value = find(field.name)
        if value is None:
            if not field.optional:
                taken = {field.name for field in fields}
                unread = {name: find(name) for name in [*(secrets or {}), *named] if name not in taken}
                problems.append(_missing(title, field, unread))
            elif not field.has_default:
                values[field.name] = None
            continue
        if adapt is not None:
            value = adapt(value, field)
        if not field.converted:
            try:
                value = _checked(value, field)
            except _Mismatch as mismatch:
                problems.append(f"{title}.{field.attribute}: {mismatch}")
                continue
        values[field.name] = value
    if problems:
        raise EnvError(problems)
    try:
        return env_class(**values)
    except (TypeError, ValueError) as error:
        # A converter or validator of the application's own.
        raise EnvError([f"{title} cannot be built: {error}"]) from error


def fields_of(env_class: type, /) -> Sequence[EnvField]:
    """The attributes of an Env, in order, with their annotations resolved.

    Raises EnvError for a class that is not an Env, and for annotations that cannot be resolved.
    """
    problems: list[str] = []
    fields = _collect(env_class, problems)
    if problems:
        raise EnvError(problems)
    return fields


# Fields of an Env ---------------------------------------------------------------------------------------------------


def _finder(
    lookup: Mapping[str, object] | Callable[[str], object], secrets: Mapping[str, str | Secret]
) -> Callable[[str], object]:
    plain: Callable[[str], object] = lookup if callable(lookup) else lookup.get

    def find(name: str) -> object:
        secret = secrets.get(name)
        if secret is not None:
            return secret if isinstance(secret, Secret) else Secret(secret)
        try:
            return plain(name)
        except KeyError:
            return None

    return find


def _collect(env_class: type, problems: list[str]) -> list[EnvField]:
    """The fields, and into `problems` the attributes that cannot be one."""
    fields: list[EnvField] = []
    # The class of each annotation, in whose module it was written.
    owners = {
        name: base
        for base in env_class.__mro__[::-1]
        for name in typing_extensions.get_annotations(base, format=typing_extensions.Format.FORWARDREF)
    }
    for field in _members(env_class):
        owner = owners.get(field.attribute, env_class)
        place = f"{env_class.__name__}.{field.attribute}"
        try:
            annotation = _resolve(field.annotation, owner)
        except Exception as error:  # an annotation is code, and may raise anything
            problems.append(f"{place}: its annotation {field.annotation!r} cannot be resolved: {error}")
            continue
        field.has_default |= typing.get_origin(annotation) is typing_extensions.NotRequired
        annotation, optional = _without_none(annotation)
        if isinstance(annotation, _Unknown):
            problems.append(
                f"{place}: {annotation.name} is not defined in {owner.__module__} when the program runs. "
                f"Import it outside `if TYPE_CHECKING:`"
            )
            continue
        field.annotation = annotation
        field.kind = typing.get_origin(annotation) or annotation
        field.optional = optional or field.has_default
        fields.append(field)
    return fields


def _members(env_class: type) -> list[EnvField]:
    """The attributes as they are declared, their annotations unresolved."""
    if attrs.has(env_class):
        if env_class.__dict__.get("__attrs_attrs__") is None and "__annotations__" in env_class.__dict__:
            raise EnvError(
                [f"{env_class.__name__} has attributes of its own but no decorator. Put @attrs.frozen above it"]
            )
        return [
            EnvField(
                a.alias or a.name.lstrip("_"),
                a.name,
                a.type,
                has_default=a.default is not attrs.NOTHING,
                converted=a.converter is not None,
            )
            for a in attrs.fields(env_class)
            if a.init
        ]
    if typing_extensions.is_typeddict(env_class):
        defaults: Any = getattr(env_class, "__optional_keys__", ())
        given = typing_extensions.get_annotations(env_class, format=typing_extensions.Format.FORWARDREF)
        return [EnvField(name, name, annotation, has_default=name in defaults) for name, annotation in given.items()]
    if hasattr(env_class, "__dataclass_fields__"):
        dataclasses = sys.modules["dataclasses"]  # loaded, or the class would not be one
        missing = dataclasses.MISSING
        return [
            EnvField(f.name, f.name, f.type, has_default=f.default is not missing or f.default_factory is not missing)
            for f in dataclasses.fields(env_class)
            if f.init
        ]
    raise EnvError([f"{env_class.__name__} is not an attrs class. Put @attrs.frozen above it"])


# Annotations --------------------------------------------------------------------------------------------------------


class _Unknown:
    """A name that is not there at run time: only a type checker's. As a type argument it does not matter."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str, /) -> _Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unknown(f"{self.name}.{name}")

    def __getitem__(self, item: object, /) -> _Unknown:
        return self

    def __or__(self, other: object, /) -> Any:
        return typing.Union[self, other]  # noqa: UP007  # built at run time

    def __ror__(self, other: object, /) -> Any:
        return typing.Union[other, self]  # noqa: UP007  # built at run time


class _Names(dict[str, object]):
    def __missing__(self, name: str, /) -> object:
        return _Unknown(name)


def _resolve(annotation: object, owner: type) -> object:
    """The type that an annotation means, where it was written; strings and forward references are evaluated."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", None)
    if text is None:
        return annotation
    module = sys.modules.get(owner.__module__)
    names = _Names(vars(builtins))
    names.update(vars(module) if module is not None else {})
    names.update(vars(owner))
    return _resolve(eval(text, {"__builtins__": vars(builtins)}, names), owner)  # the application's own annotation


def _without_none(annotation: Any) -> tuple[object, bool]:
    """The annotation without Annotated, Required, Final and None, and whether None was there."""
    optional = False
    while True:
        origin = typing.get_origin(annotation)
        if origin in _WRAPPERS:
            optional = optional or origin is typing_extensions.NotRequired
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, types.UnionType) and type(None) in typing.get_args(annotation):
            optional = True
            rest = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
            annotation = typing.Union[tuple(rest)]  # noqa: UP007  # built at run time
        elif hasattr(annotation, "__value__") and hasattr(annotation, "__type_params__"):
            annotation = annotation.__value__  # a `type` statement
        elif type(annotation).__name__ == "NewType":
            annotation = annotation.__supertype__
        else:
            return annotation, optional


_WRAPPERS: Final = (
    typing.Annotated,
    typing.Final,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)


# Problems found -----------------------------------------------------------------------------------------------------


class _Mismatch(Exception):
    """The value found does not match the annotation."""


def _checked(value: object, field: EnvField) -> object:
    """`value` as the annotation asks for it. Raises _Mismatch; its text never has the value, which may be a secret."""
    kind = field.kind
    if kind is str:
        if isinstance(value, Secret):
            return value.reveal()
        if isinstance(value, str):
            return value
        raise _Mismatch(f"expected a str, found {_found(value)}. {_write(field)}")
    if kind is Secret:
        if isinstance(value, str):
            value = Secret(value)
        if isinstance(value, Secret):
            if not value:
                # An empty key signs, and verifies, whatever a stranger signed with one.
                raise _Mismatch("the secret is empty. Give it a value, or leave it out where the Env can do without")
            return value
        raise _Mismatch(f"expected a Secret, found {_found(value)}. {_write(field)}")
    if kind is Any or kind is object or isinstance(kind, TypeVar):
        return value
    if isinstance(kind, type) and typing_extensions.is_protocol(kind):
        lacks = [name for name in sorted(typing_extensions.get_protocol_members(kind)) if not _has(value, name)]
        if lacks:
            problem = f"expected {with_article(kind.__name__)}, found {_found(value)}, which has no {_listed(lacks)}"
            wanted, given = kind_of(kind), kind_of(type(value))
            if wanted is None or given is None:
                raise _Mismatch(f"{problem}. {_write(field)}")
            raise _Mismatch(f"{problem}. Write {field.attribute}: {given.protocol}, or {wanted.write(field.name)}")
        return value
    if isinstance(value, Secret):
        raise _Mismatch(f"expected {with_article(_shown(field.annotation))}, found a secret. {_write(field)}")
    if type(value) not in (bool, int, float, str, list, dict):
        if isinstance(kind, type) and isinstance(value, kind):
            return value
        raise _Mismatch(f"expected {with_article(_shown(field.annotation))}, found {_found(value)}. {_write(field)}")
    return _variable(value, field)


def _is(value: object, field: EnvField) -> bool:
    """True if a binding is of the kind of a field."""
    try:
        _checked(value, field)
    except _Mismatch:
        return False
    return True


def _has(value: object, name: str) -> bool:
    """Return True if a value has a method, by its class; the value itself is asked only where its class answers for any
    name.

    `isinstance` of a runtime Protocol would read every property, and cross into JavaScript for each.
    """
    kind = type(value)
    if hasattr(kind, name) or name in getattr(value, "__dict__", ()):
        return True
    return hasattr(kind, "__getattr__") and hasattr(value, name)


def _variable(value: object, field: EnvField) -> object:
    """A JSON variable as its annotation asks: scalars by hand, and the rest by the strict rules of request bodies."""
    annotation, kind = field.annotation, field.kind
    if type(value) is kind and kind in (bool, int, float):
        return value
    wanted = f"expected {with_article(_shown(annotation))}, found {_found(value)}"
    if kind in (bool, int) or kind_of(kind) is not None:
        raise _Mismatch(f"{wanted}. {_write(field)}")
    # Imported here: it takes a while to load, and few Envs have variables that are lists or objects.
    from core.validation.mistakes import StructureError
    from core.validation.structure import structure

    try:
        return structure(value, annotation)
    except StructureError as error:
        inside = [f"{issue['path']} {issue['message']}" for issue in error.issues if issue["path"]]
        reasons = f": {'; '.join(inside)}" if inside else ""
        raise _Mismatch(f"{wanted}{reasons}. {_write(field)}") from error
    except TypeError as error:
        raise _Mismatch(f"{wanted}: {error}") from error


# Words --------------------------------------------------------------------------------------------------------------


def _missing(title: str, field: EnvField, unread: Mapping[str, object]) -> str:
    """`unread`: the bindings that no field has. One that is spelt nearly so is meant, or the only one of the kind."""
    from difflib import get_close_matches

    near = get_close_matches(field.name, unread, n=1)
    if not near and kind_of(field.kind) is not None:
        near = [name for name, value in unread.items() if _is(value, field)]
    hint = f" Did you mean {near[0]}?" if len(near) == 1 else ""
    return f"{title}.{field.attribute}: no binding of that name.{hint} {_write(field)}"


def _write(field: EnvField) -> str:
    """Return the configuration to write for the field's kind."""
    name, kind = field.name, field.kind
    declared = kind_of(kind)
    if declared is not None:
        return f"Write {declared.write(name)}"
    if kind is Secret:
        return f'Write {name}=… in .dev.vars, and [secrets] required = ["{name}"]'
    if kind is str:
        return f'Write [vars] {name} = "…", or {name}=… in .dev.vars if it is a secret'
    if isinstance(kind, type) and typing_extensions.is_protocol(kind):
        return f'Declare a binding called "{name}" in the configuration file'
    return f"Write [vars] {name} = {_EXAMPLES.get(kind, '{ … }')}"


_EXAMPLES: Final[Mapping[Any, str]] = {bool: "true", int: "1", float: "0.5", list: "[…]", tuple: "[…]"}


def _found(value: object) -> str:
    """Return a value's kind, in the words of the configuration file, and never the value."""
    return _KINDS.get(type(value)) or with_article(type(value).__name__)


_KINDS: Final[Mapping[type, str]] = {
    bool: "a bool",
    int: "a number",
    float: "a number",
    str: "a string",
    Secret: "a secret",
    list: "a list",
    dict: "a table",
}


def _shown(annotation: object) -> str:
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return annotation.__name__
    return repr(annotation).replace("typing.", "")


def with_article(words: str) -> str:
    """Return words with `a` or `an` before them."""
    return f"{'an' if words[:1] in 'AEIOaeio' or words.startswith('R2') else 'a'} {words}"


def _listed(names: Sequence[str]) -> str:
    return " and no ".join(f"{name}()" for name in names) if len(names) <= 2 else f"{', '.join(names)}"
