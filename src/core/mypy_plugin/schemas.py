"""Types of mypy as JSON Schema, as `core.http.json` writes their values and `core.structure` reads them.

A class is under its name (`{"$class": …}`), so that one that holds itself has an end. A value that JSON cannot
have, or that mypy does not know, is `{"$unknown": …}`.
"""

from __future__ import annotations

import http
from collections.abc import Iterable, Mapping
from typing import Final

from mypy.constant_fold import constant_fold_expr
from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    ARG_POS,
    AssignmentStmt,
    CallExpr,
    ClassDef,
    Expression,
    ExpressionStmt,
    ListExpr,
    NameExpr,
    RefExpr,
    SetExpr,
    StrExpr,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    Var,
)
from mypy.types import (
    AnyType,
    Instance,
    LiteralType,
    NoneType,
    TupleType,
    Type,
    TypedDictType,
    TypeType,
    TypeVarType,
    UninhabitedType,
    UnionType,
    get_proper_type,
)

from core.mypy_plugin.types import attrs_fields
from core.openapi.facts import ClassFacts, Field, Schema, any_of

__all__ = ["Schemas", "argument", "constant", "details", "docstring", "is_vague"]

_SCALARS: Final[Mapping[str, Schema]] = {
    "builtins.bool": {"type": "boolean"},
    "builtins.int": {"type": "integer"},
    "builtins.float": {"type": "number"},
    "builtins.str": {"type": "string"},
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "format": "time"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
    "decimal.Decimal": {"type": "string", "format": "decimal"},
}
_BYTES: Final = frozenset(["builtins.bytes", "builtins.bytearray", "builtins.memoryview"])
_ARRAYS: Final = frozenset(["builtins.list", "builtins.tuple", "typing.Sequence"])
_SETS: Final = frozenset(["typing.AbstractSet"])
_MAPPINGS: Final = frozenset(["typing.Mapping"])
_DEEPEST: Final = 40


class Schemas:
    """Schemas of types. The classes among them are kept in `classes`, by their full names with their arguments."""

    def __init__(self, classes: dict[str, ClassFacts]) -> None:
        self.classes = classes

    def of(self, type_: Type | None, depth: int = 0) -> Schema:
        """The schema of a type; None is one that mypy has none for."""
        if type_ is None:
            return {"$unknown": "code that mypy does not reach"}
        if depth > _DEEPEST:
            return {"$unknown": "a type that does not end"}
        proper = get_proper_type(type_)
        match proper:
            case AnyType():
                return {"$unknown": "Any"}
            case NoneType():
                return {"type": "null"}
            case LiteralType():
                return _literal(proper)
            case UnionType():
                return any_of([self.of(item, depth + 1) for item in proper.items])
            case TypedDictType():
                return self._typed_dict(proper, depth)
            case TupleType():
                items = [self.of(item, depth + 1) for item in proper.items]
                return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
            case TypeVarType():
                return any_of([self.of(item, depth + 1) for item in proper.values or [proper.upper_bound]])
            case UninhabitedType():
                return {}  # the items of an empty list
            case Instance():
                return self._instance(proper, depth)
            case TypeType():
                return {"$unknown": str(proper)}
            case _:
                return {"$unknown": str(proper)}

    def _instance(self, type_: Instance, depth: int) -> Schema:
        info = type_.type
        if type_.last_known_value is not None:
            return self.of(type_.last_known_value, depth + 1)
        if info.is_newtype and info.bases:
            return self.of(info.bases[0], depth + 1)
        if info.is_enum:
            return any_of([_member(info, name) for name in info.enum_members])
        for base in info.mro:
            if base.fullname in _SCALARS:
                return dict(_SCALARS[base.fullname])
            if base.fullname in _BYTES:
                return {"$unknown": f"{info.name}, which JSON cannot have"}
        if attrs_fields(info):
            return self._object(type_, depth)
        for base in info.mro:
            above = map_instance_to_supertype(type_, base) if base.fullname in _ARRAYS | _SETS | _MAPPINGS else None
            if above is None:
                continue
            inner = self.of(above.args[-1], depth + 1) if above.args else {}
            if base.fullname in _MAPPINGS:
                return {"type": "object", "additionalProperties": inner}
            return {"type": "array", "items": inner, **({"uniqueItems": True} if base.fullname in _SETS else {})}
        return {"$unknown": "object" if info.fullname == "builtins.object" else info.fullname}

    def _object(self, type_: Instance, depth: int) -> Schema:
        info = type_.type
        name = str(type_) if type_.args else info.fullname
        if name not in self.classes:
            self.classes[name] = ClassFacts(_short(type_))  # so that a class may have itself in it
            fields: list[Field] = []
            for attribute, record in attrs_fields(info).items():
                symbol = info.get(attribute)
                node = symbol.node if symbol is not None else None
                if record.get("is_init_var") or not isinstance(node, Var):
                    continue
                own = map_instance_to_supertype(type_, node.info) if node.info in info.mro else type_
                is_dataclass = "is_in_init" in record
                fields.append(
                    Field(
                        # Of an attrs class the alias is written; an attribute `_x` has the alias `x`.
                        attribute if is_dataclass else record.get("alias") or attribute.lstrip("_"),
                        self.of(expand_type_by_instance(node.type, own) if node.type is not None else None, depth + 1),
                        has_default=bool(record.get("has_default")),
                        is_read=bool(record.get("is_in_init" if is_dataclass else "init", True)),
                        attribute=attribute,
                    )
                )
            self.classes[name] = ClassFacts(_short(type_), tuple(fields))
        return {"$class": name}

    def _typed_dict(self, type_: TypedDictType, depth: int) -> Schema:
        info = type_.fallback.type
        name = info.fullname
        short = info.name
        if info.defn.type_vars:
            # The types of the variables are in the items alone.
            name = f"{name}[{', '.join(map(str, type_.items.values()))}]"
            parts = [part for item in type_.items.values() if (part := _argument_name(item))]
            short = "_".join([short, *dict.fromkeys(parts)])
        if name not in self.classes:
            self.classes[name] = ClassFacts(short)
            fields = tuple(
                Field(key, self.of(item, depth + 1), has_default=key not in type_.required_keys, attribute=key)
                for key, item in type_.items.items()
            )
            self.classes[name] = ClassFacts(short, fields, total=False)
        return {"$class": name}


def _short(type_: Instance) -> str:
    """Return a class's name in a document: with its arguments, since `Page[User]` and `Page[Note]` are two."""
    return "_".join([type_.type.name, *(_argument_name(argument) for argument in type_.args)])


def _argument_name(type_: Type) -> str:
    proper = get_proper_type(type_)
    match proper:
        case Instance():
            return _short(proper)
        case UnionType():
            return "_or_".join(_argument_name(item) for item in proper.items)
        case TypedDictType():
            return proper.fallback.type.name
        case LiteralType():
            return str(proper.value)
        case _:
            return type(proper).__name__.removesuffix("Type")


def _literal(type_: LiteralType) -> Schema:
    info = type_.fallback.type
    if info.is_enum:
        return _member(info, str(type_.value))
    return {"$unknown": "bytes, which JSON cannot have"} if info.fullname in _BYTES else {"const": type_.value}


def _member(info: TypeInfo, name: str) -> Schema:
    """Return the JSON value of an enum's member."""
    if info.fullname == "http.HTTPStatus":
        return {"const": int(http.HTTPStatus[name])}
    symbol = info.get(name)
    node = symbol.node if symbol is not None else None
    type_ = get_proper_type(node.type) if isinstance(node, Var) and node.type is not None else None
    bases = {base.fullname for base in info.mro}
    if isinstance(type_, Instance):
        if type_.last_known_value is not None:
            return {"const": type_.last_known_value.value}
        if type_.type.fullname in ("enum.auto", info.fullname):
            if "enum.StrEnum" in bases:
                return {"const": name.lower()}
            return {"type": "integer"}  # counted by Python, in an order that is not a promise
        if type_.type.fullname in _SCALARS:
            return dict(_SCALARS[type_.type.fullname])
    for base in info.mro:
        if base.fullname in _SCALARS:
            return dict(_SCALARS[base.fullname])
    return {"$unknown": f"{info.fullname}.{name}, whose value mypy does not know"}


def is_vague(schema: Schema) -> bool:
    """Return True if the code may say more than a type does."""
    return (
        "$unknown" in schema
        or ("additionalProperties" in schema and "properties" not in schema)
        or any(is_vague(part) for part in schema.get("anyOf", ()))
        or ("items" in schema and is_vague(schema["items"]))
    )


# Facts that only the module of a class has--------------------------------------------------------------------------


def details(definition: ClassDef) -> dict[str, Schema]:
    """Return a class's fields in the words of JSON Schema, read from its text: requirements of validators, defaults,
    and docstrings. Under "" is the docstring of the class itself.
    """
    found: dict[str, Schema] = {}
    described = docstring(definition.defs.body)
    if described:
        found[""] = {"description": described}
    last = ""
    for statement in definition.defs.body:
        match statement:
            case AssignmentStmt(lvalues=[NameExpr(name=name)], rvalue=value):
                last = name
                schema = _field_details(value)
                if schema:
                    found[name] = schema
            case ExpressionStmt(expr=StrExpr(value=text)) if last:
                found.setdefault(last, {})["description"] = " ".join(text.split())
            case _:
                last = ""
    return found


def _field_details(value: Expression) -> Schema:
    if not isinstance(value, CallExpr):
        default = constant(value)
        return {} if default is None else {"default": default[0]}
    schema: Schema = {}
    validator = argument(value, 99, "validator")
    if validator is not None:
        schema.update(_demanded(validator))
    given = argument(value, 99, "default")
    default = constant(given) if given is not None else None
    if default is not None:
        schema["default"] = default[0]
    return schema


def constant(expression: Expression) -> tuple[object] | None:
    """The JSON value that an expression writes out, alone in a tuple; None for any other expression."""
    if isinstance(expression, NameExpr) and expression.fullname == "builtins.None":
        return (None,)
    if isinstance(expression, NameExpr) and expression.fullname in ("builtins.True", "builtins.False"):
        return (expression.fullname == "builtins.True",)
    if isinstance(expression, UnaryExpr) and expression.op == "-":
        inner = constant(expression.expr)
        return (-inner[0],) if inner is not None and isinstance(inner[0], int | float) else None
    value = constant_fold_expr(expression, "")
    return (value,) if isinstance(value, str | int | float) else None


_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}


def _demanded(validator: Expression) -> Schema:
    """Return the schema that a validator of attrs requires; empty for one of the program's own."""
    if isinstance(validator, ListExpr | TupleExpr):
        return {key: value for part in validator.items for key, value in _demanded(part).items()}
    if not isinstance(validator, CallExpr) or not isinstance(validator.callee, RefExpr):
        return {}
    module, _, name = validator.callee.fullname.rpartition(".")
    if module not in ("attr.validators", "attrs.validators"):
        return {}
    first = validator.args[0] if validator.args else None
    match name:
        case "and_" | "optional":
            return {key: value for part in validator.args for key, value in _demanded(part).items()}
        case "in_" if isinstance(first, ListExpr | TupleExpr | SetExpr):
            values = [constant(item) for item in first.items]
            return {"enum": [value[0] for value in values if value is not None]} if None not in values else {}
        case "deep_iterable":
            member, whole = argument(validator, 0, "member_validator"), argument(validator, 1, "iterable_validator")
            inner = _demanded(member) if member is not None else {}
            outer = _demanded(whole) if whole is not None else {}
            return {**outer, **({"items": inner} if inner else {})}
        case _:
            pass
    given = constant(first) if first is not None else None
    value = given[0] if given is not None else None
    match name, value:
        case (("ge" | "gt" | "le" | "lt"), int() | float()):
            return {_BOUNDS[name]: value}
        case (("min_len" | "max_len"), int()):
            return {f"${name}": value}  # of a string or a list: the field's type decides the word
        case "matches_re", str():
            return {"pattern": f"^(?:{value})$"}  # it matches the whole text, where JSON Schema searches in it
        case _:
            return {}


def argument(call: CallExpr, position: int, name: str) -> Expression | None:
    """One argument of a call, given by its position or by its name."""
    for value, given in zip(call.args, call.arg_names, strict=True):
        if given == name:
            return value
    if position < len(call.args) and all(kind == ARG_POS for kind in call.arg_kinds[: position + 1]):
        return call.args[position]
    return None


def docstring(body: Iterable[object]) -> str | None:
    """The text that a body begins with."""
    first = next(iter(body), None)
    return first.expr.value if isinstance(first, ExpressionStmt) and isinstance(first.expr, StrExpr) else None
