"""The types of the values inside a JSON variable, by mypy's types, as `core.analysis.variables` asks for it."""

from __future__ import annotations

from mypy.nodes import TypeInfo, Var
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

from core.analysis.variables import JSON_KINDS, UNKNOWN, JsonField, JsonType
from core.mypy_plugin.types import attrs_fields, given_fields, shown

__all__ = ["json_type"]


def json_type(type_: Type, seen: tuple[TypeInfo, ...] = ()) -> JsonType:
    """A type as JSON sees it."""
    proper = get_proper_type(type_)
    match proper:
        case NoneType():
            return JsonType("None", "None")
        case UnionType():
            members = tuple(json_type(item, seen) for item in proper.items)
            if all(member.kind == "Literal" for member in members):
                return JsonType("Literal", shown(proper), literals=tuple(m.literals[0] for m in members))
            return JsonType("union", shown(proper), members) if all(member.kind for member in members) else UNKNOWN
        case LiteralType() if not proper.fallback.type.is_enum:
            return JsonType("Literal", shown(proper), literals=(proper.value,))
        case TypedDictType():
            fields = tuple(
                JsonField(name, json_type(item, seen), name in proper.required_keys)
                for name, item in proper.items.items()
            )
            return JsonType("table", shown(proper), fields=fields)
        case TupleType():
            return JsonType("list", shown(proper))
        case Instance():
            return _instance(proper, seen)
        case _:
            return UNKNOWN


def _instance(type_: Instance, seen: tuple[TypeInfo, ...]) -> JsonType:
    kind = JSON_KINDS.get(type_.type.fullname, "")
    if kind in ("list", "dict", "tuple"):
        return JsonType("dict" if kind == "dict" else "list", shown(type_), (json_type(type_.args[-1], seen),))
    if kind:
        return JsonType(kind, shown(type_))
    info = type_.type
    recorded = attrs_fields(info)
    if info in seen or not recorded or info.fallback_to_any or type_.args:
        return UNKNOWN
    fields: list[JsonField] = []
    for name, record, node in given_fields(info, recorded):
        known = isinstance(node, Var) and not (record.get("converter_init_type") or record.get("has_converter"))
        declared = node.type if isinstance(node, Var) else None
        inner = json_type(declared, (*seen, info)) if known and declared is not None else UNKNOWN
        alias = str(record.get("alias") or name.lstrip("_"))
        fields.append(JsonField(alias, inner, not record.get("has_default")))
    return JsonType("table", shown(type_), fields=tuple(fields))
