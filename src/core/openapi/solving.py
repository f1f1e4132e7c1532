"""Types of mypy: type variables, the class of a value and its fields, and a function whose arguments are given."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from mypy.constraints import SUPERTYPE_OF, infer_constraints
from mypy.expandtype import expand_type
from mypy.nodes import SymbolNode, TypeInfo
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    Overloaded,
    TupleType,
    Type,
    TypedDictType,
    TypeOfAny,
    TypeType,
    TypeVarId,
    TypeVarType,
    UninhabitedType,
    get_proper_type,
)

UNKNOWN: Final = AnyType(TypeOfAny.explicit)


def solved(declared: Type, given: Type) -> dict[TypeVarId, Type]:
    """What the type variables of a declared type stand for, by a type that was handed over."""
    found: dict[TypeVarId, Type] = {}
    for each in infer_constraints(declared, given, SUPERTYPE_OF):
        if not isinstance(get_proper_type(each.target), TypeVarType | UninhabitedType):
            found.setdefault(each.type_var, each.target)
    return found


def info_in(type_: Type | None) -> TypeInfo | None:
    """The class of a value of a type."""
    proper = get_proper_type(type_)
    match proper:
        case Instance():
            return proper.type
        case TypeVarType():
            return info_in(proper.upper_bound)
        case TupleType():
            return proper.partial_fallback.type
        case TypedDictType():
            return proper.fallback.type
        case _:
            return None


def member(info: TypeInfo | None, name: str) -> SymbolNode | None:
    """What a class or one of its bases has under a name."""
    symbol = info.get(name) if info is not None else None
    return symbol.node if symbol is not None else None


def attrs_fields(info: TypeInfo) -> dict[str, dict[str, Any]]:
    """Return the fields that mypy's attrs plugin, or its dataclass plugin, has recorded for a class, by name."""
    fields: dict[str, dict[str, object]] = {}
    for base in reversed(info.mro):
        if metadata := base.metadata:
            for key in ("attrs", "dataclass"):
                for record in metadata.get(key, {}).get("attributes", ()):
                    node = base.get(record["name"])
                    type_ = get_proper_type(node.type) if node is not None else None
                    # mypy takes the mark `_: KW_ONLY` for a field.
                    if not isinstance(type_, Instance) or type_.type.fullname != "dataclasses.KW_ONLY":
                        fields[record["name"]] = record
    return fields


def instance_of(info: TypeInfo) -> Instance:
    """A class as a type, its arguments unknown."""
    return Instance(info, [UNKNOWN] * len(info.defn.type_vars))


def returned_for(declared: CallableType | Overloaded, wanted: Type) -> Type | None:
    """What a function returns where its argument `type[T]` is this type; of a coroutine its result."""
    for item in declared.items:
        for type_ in map(get_proper_type, item.arg_types):
            if isinstance(type_, TypeType) and isinstance(type_.item, TypeVarType):
                returned = get_proper_type(expand_type(item.ret_type, {type_.item.id: wanted}))
                if isinstance(returned, Instance) and returned.type.fullname == "typing.Coroutine":
                    return returned.args[-1]
                return returned
    return None


def without(declared: CallableType, given: int, named: Collection[str]) -> CallableType:
    """The type of a function without the first arguments, and without those of these names."""
    names = declared.arg_names
    left = [at for at in range(given, len(names)) if names[at] not in named]
    return CallableType(
        [declared.arg_types[at] for at in left],
        [declared.arg_kinds[at] for at in left],
        [names[at] for at in left],
        declared.ret_type,
        declared.fallback,
        variables=declared.variables,
    )
