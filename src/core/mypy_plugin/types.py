"""mypy's types in the words of `core.program`: the kind of binding of an annotation, and the values that a row's
fields take.

A type that is not understood has no kind, and nothing is reported about it.
"""

from __future__ import annotations

from typing import Any, Final

from mypy.nodes import TypeInfo
from mypy.types import (
    Instance,
    LiteralType,
    NoneType,
    TupleType,
    Type,
    TypedDictType,
    UnionType,
    get_proper_type,
)

from core.sql.parameters import Given
from core.sql.rows import ROW_KINDS, Kind

# Env ----------------------------------------------------------------------------------------------------------------


def attrs_fields(info: TypeInfo) -> dict[str, dict[str, Any]]:
    """Return the fields that mypy's attrs plugin, or its dataclass plugin, has recorded for a class, by name."""
    fields: dict[str, dict[str, Any]] = {}
    for base in reversed(info.mro):
        if metadata := base.metadata:
            for key in ("attrs", "dataclass"):
                for record in metadata.get(key, {}).get("attributes", ()):
                    fields[record["name"]] = record
    return fields


# Rows ---------------------------------------------------------------------------------------------------------------


# Most fields are of one of these, or of one of these or None: how they are shown, and the values they take.
_ANY: Final[frozenset[Kind]] = frozenset(["any"])


def kinds_of(type_: Type) -> frozenset[Kind]:
    """Return the kinds of values that a field of a row accepts."""
    proper = get_proper_type(type_)
    match proper:
        case UnionType():
            return frozenset(kind for item in proper.items for kind in kinds_of(item))
        case NoneType():
            return frozenset(["none"])
        case LiteralType():
            fallback = proper.fallback
            return kinds_of(fallback) if fallback.type.fullname in ROW_KINDS or not fallback.type.is_enum else _ANY
        case TypedDictType():
            return frozenset(["json"])
        case TupleType() if proper.partial_fallback.type.fullname == "builtins.tuple":
            return frozenset(["json"])
        case Instance() if proper.type.fullname in ROW_KINDS:
            return frozenset([ROW_KINDS[proper.type.fullname]])
        case Instance() if proper.type.is_newtype and len(proper.type.bases) == 1:
            return kinds_of(proper.type.bases[0])
        case _:
            return _ANY


_REFUSED: Final = frozenset(["builtins.dict", "builtins.set", "builtins.frozenset"])


def given_value(type_: Type) -> Given | None:
    """The values that an argument of `bind` may have; None where that is not known, and for types that mypy refuses by
    itself.
    """
    proper = get_proper_type(type_)
    literal = proper.last_known_value if isinstance(proper, Instance) else proper
    if isinstance(literal, LiteralType) and not literal.fallback.type.is_enum:
        return Given(kinds_of(literal.fallback), literal.value if isinstance(literal.value, str) else None)
    if isinstance(proper, TypedDictType) or (isinstance(proper, Instance) and proper.type.fullname in _REFUSED):
        return None
    kinds = kinds_of(proper)
    return Given(kinds) if kinds - {"date"} or not kinds else None
