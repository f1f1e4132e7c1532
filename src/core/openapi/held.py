"""What an application holds while it runs, as plain values: its functions with the variables around them, its types and
objects, and what its classes say of their fields.

The type checker knows the code, and not which function a decorator returned, which repository a handler was made with,
or which bound a constant gives a validator.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from core.openapi.facts import ClassDetails, Held
from core.validation.schema import Schema, demanded, plain

_DEEPEST: Final = 4


def hold(value: object, depth: int = 0) -> Held:
    """A value as plain facts; of an object its class and, a few steps deep, its attributes."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, enum.Enum)):
        return Held("constant", constant=value)
    if isinstance(value, functools.partial):
        inner = hold(value.func, depth)
        named = {**inner.holds, **{name: hold(given, depth + 1) for name, given in value.keywords.items()}}
        given = (*inner.given, *(hold(each, depth + 1) for each in value.args))
        return attrs.evolve(inner, holds=named, given=given)
    if inspect.ismethod(value):
        inner = hold(value.__func__, depth)
        return attrs.evolve(inner, given=(hold(value.__self__, depth + 1), *inner.given))
    if inspect.isfunction(value):
        code = value.__code__
        around: Mapping[str, object] = inspect.getclosurevars(value).nonlocals if depth < _DEEPEST else {}
        return Held(
            "function",
            f"{value.__globals__.get('__name__')}.{code.co_qualname}",
            (code.co_filename, code.co_firstlineno),
            holds={name: hold(each, depth + 1) for name, each in around.items()},
        )
    if isinstance(value, type) or typing.get_origin(value) is not None or isinstance(value, typing.TypeVar):
        return _type(value)
    attributes: Mapping[str, object] = _attributes(value) if depth < _DEEPEST else {}
    return Held("object", _name(type(value)), holds={name: hold(each, depth + 1) for name, each in attributes.items()})


def _attributes(value: object) -> Mapping[str, object]:
    file = getattr(sys.modules.get(type(value).__module__), "__file__", None)
    if type(value).__module__.partition(".")[0] in (*sys.stdlib_module_names, "core") or "site-packages" in str(file):
        return {}  # of which nothing is followed
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if isinstance(name, str)]
    found = {name: getattr(value, name) for name in slots if name != "__weakref__" and hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}


def _type(value: object) -> Held:
    origin, arguments = typing.get_origin(value), typing.get_args(value)
    if origin in (typing.Union, types.UnionType):
        return Held("type", "|", given=[_type(each) for each in arguments])
    if origin is typing.Literal:
        return Held("type", "|", given=[hold(each) for each in arguments])
    if origin is typing.Annotated:
        return _type(arguments[0])
    if value is None or value is type(None):
        return Held("constant")
    name = _name(origin or value)
    return Held("type", name, given=[_type(each) for each in arguments if each is not ...])


def _name(cls: object) -> str:
    return f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', '')}"


# Classes ------------------------------------------------------------------------------------------------------------


def class_details() -> dict[str, ClassDetails]:
    """Everything that the classes of loaded modules say, those of the standard library left out, by full name."""
    found: dict[str, ClassDetails] = {}
    for name, cls in _classes(object, set[type]()):
        if issubclass(cls, enum.Enum):
            found[name] = ClassDetails(members={key: plain(each.value) for key, each in cls.__members__.items()})
        elif attrs.has(cls):
            found[name] = ClassDetails({field.name: _of_attrs(field) for field in attrs.fields(cls)})
        elif dataclasses.is_dataclass(cls):
            found[name] = ClassDetails({field.name: _of_dataclass(field) for field in dataclasses.fields(cls)})
        elif typing.is_typeddict(cls):
            found[name] = ClassDetails({key: {} for key in cls.__annotations__})
    return found


def _classes(above: type[object], seen: set[type]) -> Iterator[tuple[str, type[object]]]:
    classes: list[type[object]] = type.__subclasses__(above)
    for cls in classes:
        if cls not in seen:
            seen.add(cls)
            module = cls.__dict__.get("__module__")
            if isinstance(module, str) and module.partition(".")[0] not in sys.stdlib_module_names:
                # The type checker knows a class inside a function by its module and its name.
                yield f"{module}.{cls.__name__}" if "<locals>" in cls.__qualname__ else _name(cls), cls
            if not issubclass(cls, type):  # a class of classes
                yield from _classes(cls, seen)


def _of_attrs(field: attrs.Attribute[object]) -> Schema:
    schema = demanded(field.validator) if field.validator is not None else {}
    given: object = field.default
    factory = getattr(given, "factory", None)
    if factory is not None:
        return {**schema, "$default": [factory()] if factory in (list, dict) else []}
    return schema if given is attrs.NOTHING else {**schema, "$default": _default(given)}


def _of_dataclass(field: dataclasses.Field[object]) -> Schema:
    factory: Any = field.default_factory
    if factory is not dataclasses.MISSING:
        return {"$default": [factory()] if factory in (list, dict) else []}
    return {} if field.default is dataclasses.MISSING else {"$default": _default(field.default)}


def _default(value: object) -> list[object]:
    given = plain(value)
    return [given] if given is not None or value is None else []
