"""The kinds of types that values are read as, and their names in messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints


class Field(NamedTuple):
    """A field of a class, or a key of a TypedDict."""

    name: str
    key: str
    """Its name in JSON."""
    type: Any
    is_required: bool
    is_read: bool = True
    """False for a field that a class works out itself."""
    made_as: Any = None
    """The attribute of attrs, or the field of a dataclass, that it is; None for a key."""


def is_class(type_: Any) -> bool:
    """A class with fields: of attrs, or a dataclass."""
    return attributes_of(get_origin(type_) or type_) is not None


def attributes_of(cls: Any) -> Sequence[Any] | None:
    """What attrs, or dataclasses, know of the fields of a class; None for any other."""
    found: Sequence[Any] | None = getattr(cls, "__attrs_attrs__", None) if isinstance(cls, type) else None
    if found is None and isinstance(cls, type) and hasattr(cls, "__dataclass_fields__"):
        import dataclasses

        found = dataclasses.fields(cls)
    return found


def fields_of(type_: Any) -> Sequence[Field] | None:
    """The fields of a class, with the arguments of a generic one; None for neither a class nor a TypedDict.

    Raises NameError for one whose annotations name what is not there.
    """
    cls = get_origin(type_) or type_
    attributes, required = attributes_of(cls), getattr(cls, "__required_keys__", frozenset[str]())
    if attributes is None and not hasattr(cls, "__required_keys__"):
        return None
    hints: dict[str, Any] = {each.name: each.type for each in attributes or ()}
    try:
        hints |= get_type_hints(cls, include_extras=True)
    except NameError:
        # An alias of another module may be left inside a type: `named` finds it.
        if attributes is None or any(isinstance(hint, str) for hint in hints.values()):
            raise
    given = _arguments(type_)
    types = {name: _with(hint, given) for name, hint in hints.items()} if given else hints
    if attributes is None:
        return [Field(name, name, *_key(hint, name in required)) for name, hint in types.items()]
    return [
        Field(
            each.name,
            getattr(each, "alias", each.name),
            Any if types[each.name] is None else types[each.name],
            _is_required(each),
            each.init,
            each,
        )
        for each in attributes
    ]


def _is_required(attribute: Any) -> bool:
    default, factory = (type(getattr(attribute, name, None)).__name__ for name in ("default", "default_factory"))
    return default in ("_Nothing", "_MISSING_TYPE") and factory in ("_MISSING_TYPE", "NoneType")


def _key(hint: Any, required: bool) -> tuple[object, bool]:
    """A key of a TypedDict. Where its annotation is a text, the class itself has not read `NotRequired` in it."""
    while (mark := getattr(get_origin(hint), "_name", "")) in ("Required", "NotRequired", "ReadOnly"):
        hint, required = get_args(hint)[0], required if mark == "ReadOnly" else mark == "Required"
    return hint, required


def _arguments(type_: object) -> dict[object, object]:
    """The arguments of a generic class and of its bases, by their parameters."""
    cls = get_origin(type_) or type_
    found: dict[object, object] = dict(zip(getattr(cls, "__parameters__", ()), get_args(type_), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        found |= {parameter: _with(given, found) for parameter, given in _arguments(base).items()}
    return found


def _with(hint: Any, given: Mapping[object, object]) -> object:
    if isinstance(hint, TypeVar):
        return given.get(hint, hint)
    inside = getattr(hint, "__parameters__", ()) if get_origin(hint) is not None else ()
    return hint[tuple(given.get(each, each) for each in inside)] if inside else hint


def is_literal(type_: object) -> bool:
    return get_origin(type_) is Literal


def is_tuple(type_: object) -> bool:
    return type_ is tuple or get_origin(type_) is tuple


def is_named_tuple(type_: object) -> bool:
    names: object = getattr(type_, "_fields", None)
    return isinstance(type_, type) and issubclass(type_, tuple) and names is not None


def is_open_tuple(type_: object) -> bool:
    arguments = get_args(type_)
    return (not arguments and get_origin(type_) is None) or (len(arguments) == 2 and arguments[1] is ...)


def is_mixed_union(type_: object) -> bool:
    """A union of several kinds of value, `T | None` being none: cattrs has its own words for what fits none of them."""
    return is_union(type_) and len([member for member in get_args(type_) if member is not type(None)]) > 1


def is_optional(type_: object) -> bool:
    return is_union(type_) and not is_mixed_union(type_)


def is_union(type_: object) -> bool:
    return get_origin(type_) in (Union, UnionType)


def named(type_: object) -> object:
    """The type that a `type` statement gives a name, such as `type Author = …`; None for any other type.

    A `TypeAlias` that has itself in it has its name in quotes there, which `get_type_hints` leaves: it is looked up.
    """
    if isinstance(type_, str | ForwardRef):
        name = type_ if isinstance(type_, str) else type_.__forward_arg__
        modules = [*sys.modules.values()]
        found = [value for module in modules if _mentions(value := getattr(module, "__dict__", {}).get(name), name)]
        return found[0] if found and all(value is found[0] for value in found) else None
    origin, arguments = get_origin(type_) or type_, get_args(type_)
    value = getattr(origin, "__value__", None) if hasattr(origin, "__type_params__") else None
    return value[arguments] if value is not None and arguments else value


def _mentions(type_: object, name: str) -> bool:
    parts = get_args(type_)
    return any(part == name or getattr(part, "__forward_arg__", "") == name or _mentions(part, name) for part in parts)


def members(type_: Any) -> Iterator[Any]:
    """The members of a union, through the names that types are given."""
    origin = get_origin(type_) or type_
    if is_union(type_):
        for member in get_args(type_):
            yield from members(member)
    elif origin is Annotated:
        yield from members(get_args(type_)[0])
    elif hasattr(type_, "__supertype__"):  # NewType
        yield from members(type_.__supertype__)
    elif (meant := named(type_)) is not None:
        yield from members(meant)
    else:
        yield type_


def name_of(type_: Any) -> str:
    simple = {str: "a string", int: "an integer", float: "a number", bool: "true or false", type(None): "null"}
    if type_ in simple:
        return simple[type_]
    origin = get_origin(type_)
    if origin in (list, tuple, set, frozenset):
        return "an array"
    if origin is dict:
        return "an object"
    return getattr(origin or type_, "__name__", None) or str(type_)
