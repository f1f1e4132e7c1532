"""The kinds of types that values are read as, and their names in messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints


def is_class(type_: Any) -> bool:
    """A class with fields: of attrs, or a dataclass."""
    from attrs import has

    cls = get_origin(type_) or type_
    return has(cls) or (isinstance(cls, type) and hasattr(cls, "__dataclass_fields__"))


def attrs_fields(type_: object) -> Sequence[Any]:
    """The fields of a class as attrs has them."""
    from attrs import has, resolve_types
    from cattrs import _compat  # it has no public name

    cls: Any = get_origin(type_) or type_
    found: Sequence[Any] = cast("Any", _compat).adapted_fields(cls)
    if not any(_has_quotes(field.type) for field in found):
        return found
    # cattrs resolves a type that is in quotes as a whole, and not `list["Node"]`.
    with suppress(NameError):  # an alias of another module, which `named` finds
        if has(cls):
            resolve_types(cls)
        else:
            for name, hint in get_type_hints(cls).items():
                cls.__dataclass_fields__[name].type = hint
    return cast("Sequence[Any]", cast("Any", _compat).adapted_fields(cls))


def _has_quotes(type_: object) -> bool:
    return isinstance(type_, str | ForwardRef) or (not is_literal(type_) and any(map(_has_quotes, get_args(type_))))


def filled(type_: object, hints: Mapping[str, object]) -> Mapping[str, object]:
    """The hints of the fields of a class, with the arguments of a generic one and of its generic bases."""
    given = _arguments(type_)
    return {name: _with(hint, given) for name, hint in hints.items()} if given else hints


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


def is_exactly(exact: object, type_: object) -> bool:
    return type_ is exact


def is_literal(type_: object) -> bool:
    return is_exactly(Literal, get_origin(type_))


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
