"""Types of mypy as JSON Schema, as `core.http.json` writes their values and `core.validation.structure` reads them.

A class is under its name (`{"$class": …}`), so that one that holds itself has an end. A value that JSON cannot
have, or that mypy does not know, is `{"$unknown": …}`.
"""

from __future__ import annotations

import http
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import AssignmentStmt, ExpressionStmt, NameExpr, StrExpr, TypeInfo, Var
from mypy.types import (
    AnyType,
    Instance,
    LiteralType,
    NoneType,
    TupleType,
    Type,
    TypeAliasType,
    TypedDictType,
    TypeVarType,
    UninhabitedType,
    UnionType,
    get_proper_type,
)

from core.openapi.facts import ClassDetails, ClassFacts, Field, Held, classes_in, object_of
from core.openapi.solving import UNKNOWN, attrs_fields, member
from core.openapi.trees import docstring
from core.validation.schema import FORMATS, SCALARS, Schema, any_of, constrained

_SCALARS: Final[Mapping[str, Schema]] = {
    **{f"builtins.{kind.__name__}": {"type": name} for kind, name in SCALARS.items()},
    **{".".join(kind): {"type": "string", "format": name} for kind, name in FORMATS.items()},
}
_BYTES: Final = frozenset(["builtins.bytes", "builtins.bytearray", "builtins.memoryview"])
_ARRAYS: Final = frozenset(["builtins.list", "builtins.tuple", "typing.Sequence"])
_SETS: Final = frozenset(["typing.AbstractSet"])
_MAPPINGS: Final = frozenset(["typing.Mapping"])
_DEEPEST: Final = 40
_UNSET: Final = "core.validation.unset.Unset"


class Schemas:
    """Schemas of types. The classes among them are kept in `classes`, by their full names with their arguments.

    `details` is what the classes themselves say when they run (`core.openapi.routes`), `paths` the file of each of the
    program's modules.
    """

    def __init__(self, details: Mapping[str, ClassDetails], paths: Mapping[str, str]) -> None:
        self.classes: dict[str, ClassFacts] = {}
        self._renamed: set[str] = set()
        """The classes of which JSON has a field under another name than Python."""
        self._details = details
        self._paths = paths

    def of(self, type_: Type | None, depth: int = 0) -> Schema:
        """The schema of a type; None is one that mypy has none for."""
        if type_ is None:
            return {"$unknown": "code that mypy does not reach"}
        if depth > _DEEPEST:
            return {"$unknown": "a type that does not end"}
        if isinstance(type_, TypeAliasType) and type_.is_recursive:
            return self._alias(type_, depth)
        proper = get_proper_type(type_)
        match proper:
            case AnyType():
                return {"$unknown": "Any"}
            case NoneType():
                return {"type": "null"}
            case LiteralType():
                return self._literal(proper)
            case UnionType():
                return any_of([self.of(item, depth + 1) for item in proper.items if not _is_unset(item)])
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
            case _:
                return {"$unknown": str(proper)}

    def _alias(self, type_: TypeAliasType, depth: int) -> Schema:
        """A type that has itself in it by its name, which is kept as a class is."""
        name = str(type_)
        if name not in self.classes and type_.alias is not None:
            *outer, own = type_.alias.fullname.split(".")
            short = "_".join([own, *map(_argument_name, type_.args)])
            self.classes[name] = ClassFacts(short)
            alias = self.of(get_proper_type(type_), depth + 1)
            self.classes[name] = ClassFacts(short, tuple(outer), alias=alias)
        return {"$class": name}

    def is_renamed(self, schema: Schema) -> bool:
        """Return True if JSON has a field of these values under another name than Python, so that `asdict` differs."""
        reached: set[str] = set()
        todo = [schema]
        while todo:
            for name in {*classes_in(todo.pop())} - reached:
                reached.add(name)
                todo += self.classes[name].parts
        return not reached.isdisjoint(self._renamed)

    def _instance(self, type_: Instance, depth: int) -> Schema:
        info = type_.type
        if type_.last_known_value is not None:
            return self.of(type_.last_known_value, depth + 1)
        if info.is_newtype and info.bases:
            return self.of(info.bases[0], depth + 1)
        if info.fullname == _UNSET:
            return {"$unknown": "UNSET, which JSON cannot have"}
        if info.fullname == "http.HTTPStatus":  # whose members have other names in each Python
            return {"enum": sorted(map(int, http.HTTPStatus))}
        if info.is_enum:
            # mypy's cache sorts the members; the class that runs has them as they are written.
            members = self._details_of(info).members or info.enum_members
            known = [self._member(info, name) for name in members if name in info.enum_members]
            if info.has_base("enum.Flag"):
                return {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": reduce(lambda whole, each: whole | int(each.get("const", 0)), known, 0),
                }
            return any_of(known)
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
        name = str(type_) if type_.args else type_.type.fullname
        return self._class(name, _short(type_), type_.type, self._fields(name, type_, depth), total=True)

    def _fields(self, name: str, type_: Instance, depth: int) -> Iterator[Field]:
        info = type_.type
        for attribute, record in attrs_fields(info).items():
            node = member(info, attribute)
            if record.get("is_init_var") or not isinstance(node, Var):
                continue
            # A frozen class has a copy of each attribute of its bases: it is still the base's.
            home = next((base for base in reversed(info.mro) if attribute in base.names), info)
            own = map_instance_to_supertype(type_, node.info) if node.info in info.mro else type_
            is_dataclass = "is_in_init" in record
            # Of an attrs class the alias is written; an attribute `_x` has the alias `x`.
            written = attribute if is_dataclass else record.get("alias") or attribute.lstrip("_")
            if written != attribute:
                self._renamed.add(name)
            schema = self.of(expand_type_by_instance(node.type, own) if node.type is not None else None, depth + 1)
            stated = self._details_of(info).fields.get(attribute, {})
            demands = {key: value for key, value in stated.items() if key != "$default"}
            default = tuple(stated.get("$default", ()))
            if default == (None,) and {"type": "null"} not in schema.get("anyOf", (schema,)):
                default = ()  # a mark for a field that was left out, which no client may send
            yield Field(
                written,
                _worded(constrained(schema, demands), _described_fields(home).get(attribute)),
                default if record.get("has_default") else None,
                bool(record.get("is_in_init" if is_dataclass else "init", True)),
                _is_unset(node.type),
            )

    def _typed_dict(self, type_: TypedDictType, depth: int) -> Schema:
        info = type_.fallback.type
        name, short = info.fullname, info.name
        if info.defn.type_vars:
            # The types of the variables are in the items alone.
            name = f"{name}[{', '.join(map(str, type_.items.values()))}]"
            parts = [part for item in type_.items.values() if (part := _argument_name(item))]
            short = "_".join([short, *dict.fromkeys(parts)])
        return self._class(name, short, info, self._keys(type_, depth), total=False)

    def _keys(self, type_: TypedDictType, depth: int) -> Iterator[Field]:
        bases = type_.fallback.type.mro[::-1]
        descriptions = {key: text for base in bases for key, text in _described_fields(base).items()}
        # mypy's cache sorts the items; the class that runs has them as they are written.
        written = [key for base in bases for key in self._details_of(base).fields if key in type_.items]
        for key in dict.fromkeys([*written, *sorted(type_.items)]):
            schema = _worded(self.of(type_.items[key], depth + 1), descriptions.get(key))
            yield Field(key, schema, None if key in type_.required_keys else ())

    def _class(self, name: str, short: str, info: TypeInfo, fields: Iterable[Field], *, total: bool) -> Schema:
        if name not in self.classes:
            self.classes[name] = ClassFacts(short)  # so that a class may have itself in it
            path = self._paths.get(info.module_name, "")
            # The text of a class is there for those of the program: others come from mypy's cache, which has none.
            words = docstring(info.defn.defs.body) if path else None
            outer = tuple(info.fullname.split(".")[:-1])
            self.classes[name] = ClassFacts(short, outer, tuple(fields), total, words, (path, info.line))
        return {"$class": name}

    def merged(self, parts: Sequence[Schema]) -> Schema:
        """Several objects as one; of two properties of one name the later counts, as in Python."""
        if len(parts) == 1:
            return parts[0]
        properties: dict[str, Schema] = {}
        required: list[str] = []
        others: list[Schema] = []
        for part in parts:
            alternatives = [self.whole(each) for each in part.get("anyOf", [part])]
            certain = set[str](alternatives[0].get("required", ())).intersection(
                *(each.get("required", ()) for each in alternatives)
            )
            required += [name for name in alternatives[0].get("required", ()) if name in certain - {*required}]
            for each in alternatives:
                extra = each.get("additionalProperties")
                if extra is None and "properties" not in each and each != {"type": "null"}:
                    extra = each if "$unknown" in each else {"$unknown": "the value unpacked here"}
                for name, schema in each.get("properties", {}).items():
                    earlier = properties.get(name) if name not in certain or each is not alternatives[0] else None
                    properties[name] = schema if earlier is None else any_of([earlier, schema])
                if extra is not None:
                    others.append(extra)
                    for name in properties.keys() - each.get("properties", {}).keys():
                        properties[name] = any_of([properties[name], extra])
        result: Schema = {"type": "object", "properties": properties, "required": required}
        if others:
            result["additionalProperties"] = any_of(others)
        return result

    def whole(self, schema: Schema) -> Schema:
        """The schema of a class as an object; any other as it is."""
        facts = self.classes.get(schema.get("$class", ""))
        return object_of(facts) if facts is not None else schema

    def is_validated(self, info: TypeInfo | None) -> bool:
        """Return True if a class has validators, which refuse some values of its fields."""
        stated = self._details_of(info).fields.values() if info is not None else ()
        return any(each.keys() - {"$default"} for each in stated)

    def _details_of(self, info: TypeInfo) -> ClassDetails:
        return self._details.get(info.fullname.partition("@")[0]) or ClassDetails()

    def _literal(self, type_: LiteralType) -> Schema:
        info = type_.fallback.type
        if info.is_enum:
            return self._member(info, str(type_.value))
        return {"$unknown": "bytes, which JSON cannot have"} if info.fullname in _BYTES else {"const": type_.value}

    def _member(self, info: TypeInfo, name: str) -> Schema:
        if info.fullname == "http.HTTPStatus":
            return {"const": int(http.HTTPStatus[name])}
        value = self._details_of(info).members.get(name)
        if value is not None:
            return {"const": value}
        node = member(info, name)
        type_ = get_proper_type(node.type) if isinstance(node, Var) and node.type is not None else None
        if isinstance(type_, Instance) and type_.last_known_value is not None:
            return {"const": type_.last_known_value.value}
        return {"$unknown": f"{info.fullname}.{name}, whose value mypy does not know"}

    def type_from(self, held: Held, lookup: Callable[[str], TypeInfo | None]) -> Type | None:
        """A type of the running program as mypy's; None for one that it does not know."""
        if held.kind == "constant" and held.constant is None:
            return NoneType()
        if held.kind == "constant":
            info = lookup(f"builtins.{type(held.constant).__name__}")
            return LiteralType(held.constant, Instance(info, [])) if info is not None else None
        given = [self.type_from(each, lookup) for each in held.given if held.kind == "type"]
        if held.name == "|":
            return UnionType.make_union([each for each in given if each is not None]) if None not in given else None
        if held.name == "typing.Any":
            return UNKNOWN
        info = lookup(held.name)
        if info is None:
            return None
        if info.typeddict_type is not None:
            return info.typeddict_type.copy_modified(fallback=Instance(info, []))
        count = len(info.defn.type_vars)  # of a tuple 1, for all of its items
        known = [each if each is not None else UNKNOWN for each in given]
        return Instance(info, [*known, *[UNKNOWN] * count][:count])


def _worded(schema: Schema, words: str | None) -> Schema:
    return schema if words is None else {**schema, "description": words}


def _is_unset(type_: Type | None) -> bool:
    proper = get_proper_type(type_)
    if isinstance(proper, UnionType):
        return any(map(_is_unset, proper.items))
    instance = proper.fallback if isinstance(proper, LiteralType) else proper
    return isinstance(instance, Instance) and instance.type.fullname == _UNSET


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


def is_vague(schema: Schema) -> bool:
    """Return True if the code may say more than a type does."""
    return (
        "$unknown" in schema
        or ("additionalProperties" in schema and "properties" not in schema)
        or any(is_vague(part) for part in schema.get("anyOf", ()))
        or ("items" in schema and is_vague(schema["items"]))
    )


def nearest(found: Schema, plain: Schema) -> Schema:
    """What the code says of a value; where it says nothing, what the type does."""
    return plain if is_vague(found) and not is_vague(plain) else _filled(found, plain)


def _filled(found: Schema, plain: Schema) -> Schema:
    if "$unknown" in found:
        return plain
    if "anyOf" in found:
        return any_of(_filled(part, plain) for part in found["anyOf"])
    alternatives = [each for each in plain.get("anyOf", [plain]) if each.get("type") == found.get("type")]
    of_type: Schema = alternatives[0] if len(alternatives) == 1 else {}
    filled = {**found}
    for key in ("items", "additionalProperties"):
        if key in of_type and key in found:
            filled[key] = _filled(found[key], of_type[key])
    if "additionalProperties" in of_type and "properties" in found:
        others = of_type["additionalProperties"]
        filled["properties"] = {name: _filled(part, others) for name, part in found["properties"].items()}
    return filled


def _described_fields(info: TypeInfo) -> dict[str, str]:
    found: dict[str, str] = {}
    last = ""
    for statement in info.defn.defs.body:
        match statement:
            case AssignmentStmt(lvalues=[NameExpr(name=name)]):
                last = name
            case ExpressionStmt(expr=StrExpr(value=text)) if last:
                found[last] = " ".join(text.split())
            case _:
                last = ""
    return found
