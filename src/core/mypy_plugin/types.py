"""The values that mypy's types have, in the words of `core.sql.rows`. A type that is not understood has any."""

from __future__ import annotations

from collections.abc import Sequence
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
    UnpackType,
    get_proper_type,
)

from core.sql.rows import ROW_KINDS, Given, Kind

_ANY: Final[frozenset[Kind]] = frozenset(["any"])
_STR: Final[frozenset[Kind]] = frozenset(["str"])
_ABSENT: Final[frozenset[Kind]] = frozenset(["none", "unset"])
_NO_TEXTS: Final[frozenset[str]] = frozenset()


def kinds_of(type_: Type) -> frozenset[Kind]:
    """Return the kinds of the values of a type."""
    proper = get_proper_type(type_)
    match proper:
        case UnionType():
            return frozenset(kind for item in proper.items for kind in kinds_of(item))
        case NoneType():
            return frozenset(["none"])
        case LiteralType():
            return kinds_of(proper.fallback)
        case TypedDictType():
            return frozenset(["json"])
        case TupleType() if proper.partial_fallback.type.fullname == "builtins.tuple":
            return frozenset(["json"])
        case Instance() if proper.type.fullname in ROW_KINDS:
            return frozenset([ROW_KINDS[proper.type.fullname]])
        case Instance() if proper.type.is_enum and proper.type.has_base("builtins.int"):
            return frozenset(["int"])
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
    texts = _NO_TEXTS if kinds <= _ABSENT else _texts_of(literal if isinstance(literal, LiteralType) else proper)
    # An Enum of texts is one of the values that `bind` takes as they are.
    kinds = (kinds - _ANY) | _STR if texts else kinds
    return Given(kinds, texts=texts) if kinds - {"date"} or not kinds else None


def items_of(type_: Type) -> Sequence[Type] | None:
    """The types of a tuple's items; None for any other type, and for a tuple of a length that is not known."""
    proper = get_proper_type(type_)
    if not isinstance(proper, TupleType) or any(isinstance(item, UnpackType) for item in proper.items):
        return None
    return proper.items


def _texts_of(type_: Type) -> frozenset[str]:
    """The texts of a Literal or an Enum, None and UNSET left out; none for a type that has others."""
    proper = get_proper_type(type_)
    match proper:
        case UnionType():
            each = [_texts_of(item) for item in proper.items if not kinds_of(item) <= _ABSENT]
            return frozenset(text for texts in each for text in texts) if all(each) else _NO_TEXTS
        case LiteralType() if proper.fallback.type.is_enum:
            return _texts_of_members(proper.fallback.type, [str(proper.value)])
        case LiteralType(value=str() as text):
            return frozenset([text])
        case Instance() if proper.type.is_enum:
            return _texts_of_members(proper.type, proper.type.enum_members)
        case _:
            return _NO_TEXTS


def _texts_of_members(enum: TypeInfo, names: list[str]) -> frozenset[str]:
    texts: list[str] = []
    for name in names:
        node: Any = enum.names[name].node
        type_: Type | None = node.type
        value = get_proper_type(type_)
        literal = value.last_known_value if isinstance(value, Instance) else None
        if literal is not None and isinstance(literal.value, str):
            texts.append(literal.value)
    return frozenset(texts) if len(texts) == len(names) else _NO_TEXTS
