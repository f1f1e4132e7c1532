"""mypy's types in the words of `core.analysis`: the kind of binding of an annotation, and the values that a row's
fields take.

A type that is not understood has no kind, and nothing is reported about it.

One file, since each function reads one of mypy's types for one question, and the questions share those steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mypy.nodes import AssignmentStmt, Decorator, FuncDef, NameExpr, Node, RefExpr, SymbolNode, TypeAlias, TypeInfo, Var
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    LiteralType,
    NoneType,
    Overloaded,
    ProperType,
    TupleType,
    Type,
    TypedDictType,
    TypeType,
    UnionType,
    get_proper_type,
)
from mypy.typevars import fill_typevars_with_any

from core.analysis.envs import EnvAttribute, EnvShape
from core.analysis.extensions import declared
from core.analysis.findings import Location
from core.analysis.variables import UNKNOWN, JsonType
from core.config.model import KINDS
from core.sql.parameters import Given
from core.sql.rows import ROW_KINDS, Kind, RowField

__all__ = [
    "attrs_fields",
    "env_shape",
    "full_name",
    "given_value",
    "has_base",
    "instance_of",
    "kinds_of",
    "literal_names",
    "named_type",
    "required_arguments",
    "row_fields",
    "shown",
    "without_none",
]

PROTOCOLS: Final = frozenset(kind.protocol for kind in KINDS.values() if kind.protocol is not None)
BINDINGS: Final = "core.env.Bindings"


def has_base(info: TypeInfo, fullname: str) -> bool:
    """Return True if a class is another one or derives from it."""
    return any(base.fullname == fullname for base in info.mro)


def instance_of(type_: Type | None, ancestor: str) -> Instance | None:
    """A type as the generic ancestor that it has, with the ancestor's arguments."""
    proper: ProperType | None = get_proper_type(type_) if type_ is not None else None
    if isinstance(proper, UnionType):
        found = [instance_of(item, ancestor) for item in proper.items]
        return found[0] if found and all(found) else None
    if not isinstance(proper, Instance):
        return None
    if proper.type.fullname == ancestor:
        return proper
    for base in proper.type.mro:
        if base.fullname == ancestor:
            from mypy.maptype import map_instance_to_supertype

            return map_instance_to_supertype(proper, base)
    return None


def shown(type_: Type) -> str:
    """A type as it is written, with bare names."""
    proper = get_proper_type(type_)
    match proper:
        case Instance():
            arguments = [get_proper_type(argument) for argument in proper.args]
            if not arguments or all(isinstance(argument, AnyType) for argument in arguments):
                return proper.type.name
            return f"{proper.type.name}[{', '.join(shown(argument) for argument in arguments)}]"
        case UnionType():
            return " | ".join(_grouped(proper))
        case NoneType():
            return "None"
        case AnyType():
            return "Any"
        case LiteralType():
            return f"Literal[{_literal(proper)}]"
        case TypedDictType():
            return proper.fallback.type.name
        case TupleType():
            return f"tuple[{', '.join(shown(item) for item in proper.items)}]"
        case TypeType():
            return f"type[{shown(proper.item)}]"
        case _:
            return str(proper)


def _grouped(union: UnionType) -> Iterator[str]:
    """The members of a union; its literals together, in the place of the first one."""
    members = [get_proper_type(item) for item in union.items]
    literals = [member for member in members if isinstance(member, LiteralType)]
    told = False
    for member in members:
        if not isinstance(member, LiteralType):
            yield shown(member)
        elif not told:
            told = True
            yield f"Literal[{', '.join(_literal(literal) for literal in literals)}]"


def _literal(type_: LiteralType) -> str:
    if isinstance(type_.value, str) and not type_.fallback.type.is_enum:
        return f'"{type_.value}"'
    return f"{type_.fallback.type.name}.{type_.value}" if type_.fallback.type.is_enum else repr(type_.value)


def full_name(type_: Type) -> str:
    """The full name of a class, with its arguments; nothing for a type that has none."""
    proper = get_proper_type(type_)
    if isinstance(proper, Instance):
        arguments = ", ".join(full_name(argument) for argument in proper.args)
        return f"{proper.type.fullname}[{arguments}]" if arguments else proper.type.fullname
    if isinstance(proper, TypedDictType):
        return proper.fallback.type.fullname
    if isinstance(proper, AnyType):
        return "typing.Any"
    return ""


def without_none(type_: Type) -> tuple[ProperType, bool]:
    """A type without None, and whether None was in it."""
    proper = get_proper_type(type_)
    if isinstance(proper, NoneType):
        return proper, True
    if not isinstance(proper, UnionType):
        return proper, False
    members = [get_proper_type(item) for item in proper.items]
    rest = [member for member in members if not isinstance(member, NoneType)]
    return get_proper_type(UnionType.make_union(list(rest))), len(rest) < len(members)


def literal_names(type_: Type) -> tuple[str, ...] | None:
    """The texts of a `Literal`; None for another type."""
    proper = get_proper_type(type_)
    if not isinstance(proper, LiteralType | UnionType):
        return None
    items = [get_proper_type(i) for i in proper.items] if isinstance(proper, UnionType) else [proper]
    names = [item.value for item in items if isinstance(item, LiteralType) and isinstance(item.value, str)]
    return tuple(names) if len(names) == len(items) else None


# Env ----------------------------------------------------------------------------------------------------------------


def env_shape(
    info: TypeInfo,
    path: str,
    *,
    is_env: Mapping[TypeInfo, bool],
    inside: Callable[[Type], JsonType],
    partial: bool = False,
) -> EnvShape:
    """An Env class as `core.analysis.envs` wants it.

    `is_env` tells of each base whether it is checked by itself, `inside` the type inside a variable that is not a
    scalar.
    """
    home = Location(path, info.line, info.column + 1)
    attributes: list[EnvAttribute] = []
    recorded = attrs_fields(info)
    lines = _lines(info)
    for name, owner, type_ in _members(info, recorded, lines):
        record = recorded.get(name, {})
        inner, optional = without_none(type_)
        kind, arguments, literals = _kind(inner)
        own = owner is info
        line, column = lines.get(name, (int(record.get("context_line", 0) or 0), 0)) if own else (0, 0)
        attributes.append(
            EnvAttribute(
                name=str(record.get("alias") or name.lstrip("_")),
                kind=kind,
                shown=shown(inner),
                location=Location(path, line, column + 1) if line > 0 else home,
                attribute=name,
                optional=optional or bool(record.get("has_default")),
                arguments=arguments,
                literals=literals,
                converted=bool(record.get("converter_init_type") or record.get("has_converter")),
                inherited=not own and is_env.get(owner, False),
                json=inside(inner) if kind in ("list", "dict", "table") else UNKNOWN,
            )
        )
    return EnvShape(info.name, home, attributes, partial)


def attrs_fields(info: TypeInfo) -> dict[str, dict[str, Any]]:
    """Return the fields that mypy's attrs plugin, or its dataclass plugin, has recorded for a class, by name."""
    fields: dict[str, dict[str, Any]] = {}
    for base in reversed(info.mro):
        if metadata := base.metadata:
            for key in ("attrs", "dataclass"):
                for record in metadata.get(key, {}).get("attributes", ()):
                    fields[record["name"]] = record
    return fields


def given_fields(
    info: TypeInfo, recorded: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any], SymbolNode | None]]:
    """The recorded fields that `__init__` takes: name, record and node of each."""
    for name, record in recorded.items():
        if record.get("init", True) is not False and record.get("is_in_init", True) is not False:
            symbol = info.get(name)
            yield name, record, symbol.node if symbol is not None else None


def _members(
    info: TypeInfo, recorded: Mapping[str, Any], lines: Mapping[str, object]
) -> Iterator[tuple[str, TypeInfo, Type]]:
    """The attributes of a class, with the class that has them; those of a Protocol are its variables and properties.

    `lines` are those of the class's own statements.
    """
    seen: set[str] = set()
    for base in info.mro[:-1]:
        if base.fullname.startswith(("builtins.", "typing.", "typing_extensions.")):
            continue
        for name, symbol in base.names.items():
            if name in seen or (name.startswith("__") and name.endswith("__")):
                continue
            # A frozen class has a copy of each attribute of its bases, made by mypy: it is still the base's.
            if base is info and name not in lines and any(name in other.names for other in info.mro[1:]):
                continue
            seen.add(name)
            node = symbol.node
            if isinstance(node, Var) and node.type is not None and not node.is_classvar:
                if name in recorded or not recorded:
                    if recorded.get(name, {}).get("init") is False:
                        continue
                    yield name, base, node.type
            elif isinstance(node, Decorator) and node.var.is_property and info.is_protocol:
                type_ = get_proper_type(node.func.type)
                if isinstance(type_, CallableType):
                    yield name, base, type_.ret_type


def _lines(info: TypeInfo) -> dict[str, tuple[int, int]]:
    lines: dict[str, tuple[int, int]] = {}
    for statement in info.defn.defs.body:
        if isinstance(statement, AssignmentStmt):
            for target in statement.lvalues:
                if isinstance(target, NameExpr):
                    lines[target.name] = (statement.line, statement.column)
        elif isinstance(statement, Decorator):
            lines[statement.func.name] = (statement.func.line, statement.func.column)
    return lines


_SCALARS: Final = {
    "builtins.str": "str",
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.bool": "bool",
    "builtins.list": "list",
    "builtins.dict": "dict",
    "builtins.object": "object",
    "core.bindings.secret.Secret": "Secret",
}


def _kind(type_: ProperType) -> tuple[str, tuple[str, ...], tuple[Any, ...]]:
    """The kind of an annotation, the full names of its arguments, and its literals."""
    match type_:
        case AnyType():
            return "Any", (), ()
        case LiteralType():
            return "Literal", (), (type_.value,) if not type_.fallback.type.is_enum else ()
        case UnionType():
            members = [get_proper_type(item) for item in type_.items]
            if all(isinstance(m, LiteralType) and not m.fallback.type.is_enum for m in members):
                return "Literal", (), tuple(m.value for m in members if isinstance(m, LiteralType))
            return "", (), ()
        case TypedDictType():
            return "table", (), ()
        case Instance():
            for base in type_.type.mro:
                if base.fullname.startswith("core.bindings.") and base.name in PROTOCOLS:
                    own = type_.type is base
                    given = tuple(full_name(argument) for argument in type_.args) if own else ()
                    return base.name, given, ()
                if base.fullname in declared().types:
                    return declared().types[base.fullname], (), ()
                if base.fullname in _SCALARS:
                    return (
                        ("" if type_.type.is_enum else _SCALARS[base.fullname])
                        if base.name != "object"
                        else ("object" if type_.type is base else _structured(type_.type)),
                        (),
                        (),
                    )
            return _structured(type_.type), (), ()
        case _:
            return "", (), ()


def _structured(info: TypeInfo) -> str:
    return "table" if info.metadata.get("attrs") or "dataclass" in info.metadata else ""


# Rows ---------------------------------------------------------------------------------------------------------------


def named_type(expression: Node) -> Type | None:
    """The class or alias that an expression names."""
    node = expression.node if isinstance(expression, RefExpr) else None
    if isinstance(node, TypeInfo):
        if node.typeddict_type is not None:
            return node.typeddict_type.copy_modified(fallback=Instance(node, []))  # so that it has its name
        return fill_typevars_with_any(node)
    if isinstance(node, TypeAlias) and not node.alias_tvars:
        return get_proper_type(node.target)
    return None


def row_fields(type_: Type) -> tuple[str, list[RowField]] | None:
    """The class that rows become and its fields; None for a type that is not understood."""
    proper = get_proper_type(type_)
    if isinstance(proper, TypedDictType):
        keys = [_field(name, item, required=name in proper.required_keys) for name, item in proper.items.items()]
        return proper.fallback.type.name, keys
    if not isinstance(proper, Instance):
        return None
    info = proper.type
    recorded = attrs_fields(info)
    if not recorded:
        return None
    fields: list[RowField] = []
    for name, record, node in given_fields(info, recorded):
        if not isinstance(node, Var) or node.type is None:
            return None
        field = _field(name, node.type, required=not record.get("has_default"))
        if record.get("converter_init_type") or record.get("has_converter"):
            field = field._replace(kinds=_ANY)
        fields.append(field)
    return info.name, fields


def _field(name: str, type_: Type, *, required: bool) -> RowField:
    proper = get_proper_type(type_)
    if isinstance(proper, Instance):
        plain = _PLAIN.get(proper.type.fullname) if not proper.args else None
    elif isinstance(proper, UnionType) and len(proper.items) == 2 and isinstance(proper.items[1], NoneType):
        first = proper.items[0]
        plain = _OPTIONAL.get(first.type.fullname) if isinstance(first, Instance) and not first.args else None
    else:
        plain = None
    known, kinds = plain or (shown(proper), kinds_of(proper))
    return RowField(name, known, kinds, required)


# Most fields are of one of these, or of one of these or None: how they are shown, and the values they take.
_ANY: Final[frozenset[Kind]] = frozenset(["any"])
_PLAIN: Final[Mapping[str, tuple[str, frozenset[Kind]]]] = {
    fullname: (fullname.rpartition(".")[2], frozenset[Kind]([kind]))
    for fullname, kind in ROW_KINDS.items()
    if kind != "json"
}
_OPTIONAL: Final[Mapping[str, tuple[str, frozenset[Kind]]]] = {
    fullname: (f"{name} | None", frozenset[Kind]([*kinds, "none"])) for fullname, (name, kinds) in _PLAIN.items()
}


def kinds_of(type_: Type) -> frozenset[Kind]:
    """Return the kinds of values that a field of a row accepts."""
    proper = get_proper_type(type_)
    match proper:
        case UnionType():
            return frozenset(kind for item in proper.items for kind in kinds_of(item))
        case NoneType():
            return frozenset(["none"])
        case LiteralType():
            return kinds_of(proper.fallback) if not proper.fallback.type.is_enum else _ANY
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


def required_arguments(type_: Type) -> int | None:
    """Return the number of positional arguments a callable requires; None where that is unknown."""
    proper = get_proper_type(type_)
    if isinstance(proper, Overloaded):
        return None
    if isinstance(proper, Instance):
        symbol = proper.type.get("__call__")
        node = symbol.node if symbol is not None else None
        function = get_proper_type(node.type) if isinstance(node, FuncDef) and node.type is not None else None
        if not isinstance(function, CallableType) or not function.arg_kinds:
            return None
        return _demanded(function, skip=1)
    return _demanded(proper, skip=0) if isinstance(proper, CallableType) else None


def _demanded(function: CallableType, *, skip: int) -> int | None:
    kinds = function.arg_kinds[skip:]
    if any(kind.is_star() or (kind.is_named() and kind.is_required()) for kind in kinds):
        return None
    return sum(1 for kind in kinds if kind.is_positional() and kind.is_required())
