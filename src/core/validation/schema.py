"""Types as JSON Schema 2020-12, as `core.http.json` writes their values and `core.validation.structure` reads them,
with what the validators of a class require of its fields.

For a program that runs. `core.openapi.schemas` writes the same schemas of the types that mypy knows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from core.description import description_of
from core.validation.kinds import Field, fields_of, named
from core.validation.scalars import mask_of
from core.validation.unset import UNSET, Given, Unset, may_be_left_out
from core.values import is_array

Schema: TypeAlias = dict[str, Any]
_Classes: TypeAlias = dict[Any, tuple[str, Schema]]
"""The schema of each class by which others refer to it, under its name."""


class SchemaError(TypeError):
    """JSON cannot hold a type. The message is the name of that type."""


FORMATS: Final = {
    ("datetime", "datetime"): "date-time",
    ("datetime", "date"): "date",
    ("datetime", "time"): "time-local",
    ("uuid", "UUID"): "uuid",
    ("decimal", "Decimal"): "decimal",
}


SCALARS: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def schema_of(type_: object, *, written: bool = False) -> Schema:
    """The schema of a type, whose classes are in its `$defs`.

    `written`: of the values as they are written, which have every field that cannot be UNSET; otherwise of those that
    are read, where a field with a default may be missing. Raises SchemaError for a type that JSON cannot hold, and
    NameError for one whose annotations name what is not there.
    """
    classes: _Classes = {}
    schema = _schema_of(type_, written, classes)
    found = dict(classes.values())
    if set(schema) == {"$ref"}:
        name = schema["$ref"].rpartition("/")[2]
        whole = found[name]
        if f'"#/$defs/{name}"' not in repr(found).replace("'", '"'):
            del found[name]
        schema = whole
    return {**schema, "$defs": found} if found else schema


def _schema_of(type_: Any, written: bool, found: _Classes) -> Schema:
    def of(inner: Any) -> Schema:
        return _schema_of(inner, written, found)

    origin, arguments = get_origin(type_) or type_, get_args(type_)
    if type_ is Any or type_ is object:
        return {}
    if type_ is None or type_ is type(None):
        return {"type": "null"}
    if origin is Literal:
        return _one_of([getattr(value, "value", value) for value in arguments])
    if origin in (Union, UnionType):
        return any_of(of(each) for each in arguments if each is not Unset)
    if hasattr(type_, "__metadata__"):  # Annotated
        words = [each for each in type_.__metadata__ if isinstance(each, str)]
        return {**of(type_.__origin__), **({"description": " ".join(words)} if words else {})}
    if hasattr(type_, "__supertype__"):  # NewType
        return of(type_.__supertype__)
    if (meant := named(type_)) is not None:
        return _alias(getattr(type_, "__forward_arg__", type_), lambda: of(meant), found)
    if not isinstance(origin, type):
        raise SchemaError(getattr(type_, "__name__", str(type_)))
    if (mask := mask_of(origin)) is not None:
        return {"type": "integer", "minimum": 0, "maximum": mask}
    if issubclass(origin, Enum):
        return _one_of([member.value for member in origin])
    if (scalar := _scalar(origin)) is not None:
        return {"type": scalar}
    if (format := _format_of(origin)) is not None:
        return {"type": "string", "format": format}
    fields = fields_of(type_)
    if fields is not None:
        return _object(type_, origin, fields, written, found)
    if issubclass(origin, tuple):
        if len(arguments) != 2 or arguments[1] is not ...:
            hints = get_type_hints(cast("Any", origin), include_extras=True)
            items = [of(each) for each in arguments or hints.values()]
            size = {"prefixItems": items, "minItems": len(items), "maxItems": len(items)} if items else {}
            return {"type": "array", **size}
    elif issubclass(origin, Mapping):
        inner = arguments[1] if len(arguments) > 1 else int if arguments else Any  # a Counter names its keys alone
        return {"type": "object", "additionalProperties": of(inner)}
    elif not issubclass(origin, (Sequence, AbstractSet)) or issubclass(origin, (bytes, bytearray, memoryview)):
        raise SchemaError(origin.__qualname__)
    unique = {"uniqueItems": True} if issubclass(origin, AbstractSet) else {}
    return {"type": "array", "items": of(arguments[0]) if arguments else {}, **unique}


def _format_of(kind: Any) -> str | None:
    """The format of the text that values of a class are written as; None for a class without one."""
    for (module, name), format in FORMATS.items():
        known = getattr(sys.modules.get(module), name, None)
        if known is not None and issubclass(kind, known):
            return format
    return None


def _alias(type_: object, of: Callable[[], Schema], found: _Classes) -> Schema:
    """A type with a name of its own, which is in the schema by that name where it has itself in it."""
    if type_ not in found:
        found[type_] = (_name_of(type_, found), {})
        name, schema = found[type_][0], of()
        if f"#/$defs/{name}'" not in repr((schema, found)):
            del found[type_]
            return schema
        found[type_] = (name, schema)
    return {"$ref": f"#/$defs/{found[type_][0]}"}


def _name_of(type_: object, found: _Classes) -> str:
    """The name of a class or of a type with its arguments, which no other has."""
    whole = [getattr(each, "__name__", str(each)) for each in (get_origin(type_) or type_, *get_args(type_))]
    name = re.sub(r"\W+", "_", "_".join(whole))
    while any(name == taken for taken, _ in found.values()):
        name += "_"
    return name


def _one_of(values: Sequence[object]) -> Schema:
    kind = json_type(list(values))
    return {**({"type": kind} if kind else {}), "enum": list(values)}


def _object(type_: object, origin: Any, fields: Sequence[Field], written: bool, found: _Classes) -> Schema:
    if type_ not in found:
        name = _name_of(type_, found)
        found[type_] = (name, {})  # so that a class may have itself in it
        known = [field for field in fields if field.is_read]
        properties = {
            field.key: _field(field, _schema_of(field.type, written, found), written=written) for field in known
        }
        # A TypedDict writes only the keys that it has; a class writes all of its fields.
        every = written and not hasattr(origin, "__required_keys__")
        needed = [
            field.key
            for field in known
            if (field.is_required or every) and not (written and may_be_left_out(field.type))
        ]
        whole = {"type": "object", "properties": properties, **({"required": needed} if needed else {})}
        found[type_] = (name, whole)
    return {"$ref": f"#/$defs/{found[type_][0]}"}


def _field(field: Field, schema: Schema, *, written: bool) -> Schema:
    """The schema of a field, with what its validators demand, and for those who send it with its default."""
    demands = {word: value for word, value in demands_of(field.made_as).items() if word != "$unread"}
    default = None if field.is_required or written else plain(getattr(field.made_as, "default", None))
    return {**constrained(schema, demands), **({"default": default} if default is not None else {})}


def without_null(schema: Schema, otherwise: Schema) -> Schema:
    """A schema without null, with all else that it says; another one for what is nothing but null."""
    if "anyOf" not in schema:
        return schema if schema != {"type": "null"} else otherwise
    parts = [part for part in schema["anyOf"] if part != {"type": "null"}]
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **any_of(parts)}


def any_of(schemas: Iterable[Schema]) -> Schema:
    """One schema for several, each once; constants become an enum."""
    flat: list[Schema] = []
    for schema in schemas:
        for part in schema["anyOf"] if set(schema) == {"anyOf"} else [schema]:
            for single in [{"const": value} for value in part["enum"]] if set(part) == {"enum"} else [part]:
                # In Python 1 == True.
                if not any(single == other and type(single.get("const")) is type(other.get("const")) for other in flat):
                    flat.append(single)
    whole = {schema["type"] for schema in flat if set(schema) == {"type"}}
    flat = [part for part in flat if set(part) != {"const"} or json_type(part["const"]) not in whole]
    constants = [part["const"] for part in flat if set(part) == {"const"}]
    if len(constants) > 1:
        rest = [part for part in flat if set(part) != {"const"}]
        booleans = len(constants) == 2 and all(isinstance(value, bool) for value in constants)
        flat = [{"type": "boolean"} if booleans else {"enum": constants}, *rest]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def json_type(value: object) -> str | None:
    """Return JSON Schema's name for the type of a constant; of all constants of a list, where they share one."""
    if is_array(value):
        kinds = {json_type(item) for item in value}
        return kinds.pop() if len(kinds) == 1 else None
    return "null" if value is None else _scalar(type(value))


def _scalar(kind: Any) -> str | None:
    return next((name for scalar, name in SCALARS.items() if issubclass(kind, scalar)), None)


def constrained(schema: Schema, demands: Schema) -> Schema:
    """A schema with what the validators of a field demand of it."""
    if not demands:
        return schema
    if "anyOf" in schema:
        parts: Sequence[Schema] = schema["anyOf"]
        whole = [part if part.get("type") == "null" else constrained(part, demands) for part in parts]
        return {**schema, "anyOf": whole}
    result = dict(schema)
    for key, value in demands.items():
        if key in ("$min_len", "$max_len"):
            word = {"array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
            result[f"{key[1:4]}{word}"] = value
        elif key in ("items", "additionalProperties"):
            result[key] = constrained(schema.get(key, {}), value)
        elif key == "enum":
            result = {**any_of({"const": item} for item in value)}
        else:
            result[key] = value
    return result


def plain(value: Any) -> object:
    """A value as JSON; None for one that it does not have."""
    given = value  # not narrowed by what follows
    if isinstance(value, Enum):
        return plain(value.value) if value is not UNSET else None
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(each) for each in given]
    if _format_of(type(value)) is None:
        return None
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)


_BOUNDS: Final = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}


def _bound(sign: str, bound: object) -> Schema:
    """A bound in the words of JSON Schema, and for a date, a time or a decimal number in that of `format`."""
    if isinstance(bound, int | float):
        return {_BOUNDS[sign]: bound} if bound not in (float("inf"), float("-inf")) else {}
    if _format_of(type(bound)) is not None:
        word = _BOUNDS[sign]
        return {f"format{word[0].upper()}{word[1:]}": plain(bound)}
    return {"$unread": [f"{sign} {bound!r}"]}


def demands_of(field: object) -> Schema:
    """What a field's validator demands of what is sent: nothing where a converter makes another value of it first."""
    validator = getattr(field, "validator", None)
    return {} if validator is None or getattr(field, "converter", None) is not None else demanded(validator)


def demanded(validator: Any) -> Schema:
    """The schema that a validator requires; `$unread` names one of the program's own that does not say."""
    if isinstance(validator, Given):
        return demanded(validator.validator)
    described = description_of(validator)
    if described is not None and described.holds is not None:
        return dict(described.holds)
    name = type(validator).__name__ if type(validator).__module__ in ("attr.validators", "attr._make") else ""
    match name.removeprefix("_"):
        case "AndValidator":
            whole, unread = dict[str, Any](), list[str]()
            for part in map(demanded, validator._validators):
                unread += part.get("$unread", ())
                for word, value in part.items():
                    if whole.setdefault(word, value) != value and word != "$unread":  # two patterns, say
                        unread.append(f"{word.strip('$')} {value!r} beside another")
            return {**whole, "$unread": unread} if unread else whole
        case "OptionalValidator":
            return demanded(validator.validator)
        case "InValidator":
            options = map(plain, validator.options)
            has_order = not isinstance(validator._original_options, AbstractSet)
            return {"enum": [*options] if has_order else sorted(options, key=repr)}
        case "NotValidator":
            inner = demanded(validator.validator)
            return {"$unread": [repr(validator)]} if any(word[0] == "$" for word in inner) else {"not": inner}
        case "DeepIterable":
            outer = demanded(validator.iterable_validator) if validator.iterable_validator is not None else {}
            inner = demanded(validator.member_validator)
            return {**outer, **({"items": inner} if inner else {})}
        case "DeepMapping":
            inner = demanded(validator.value_validator) if validator.value_validator is not None else {}
            return {"additionalProperties": inner} if inner else {}
        case "NumberValidator":
            return _bound(validator.compare_op, validator.bound)
        case "MinLengthValidator":
            return {"$min_len": validator.min_length}  # of a string or a list: the field's type decides the word
        case "MaxLengthValidator":
            return {"$max_len": validator.max_length}
        case "MatchesReValidator":
            return _pattern(validator.pattern, validator.match_func)
        case "InstanceOfValidator" | "SubclassOfValidator" | "IsCallableValidator":
            return {}  # which the type says
        case _:
            own = getattr(validator, "__qualname__", None) or type(validator).__name__
            return {"$unread": [str(own).replace(".<locals>", "")]}


def _pattern(pattern: re.Pattern[str], match: Callable[..., object]) -> Schema:
    text = re.sub(r"\(\?P<\w+>", "(", pattern.pattern).replace("(?i)", "")  # names of groups demand nothing
    if pattern.flags & (re.VERBOSE | re.DOTALL | re.MULTILINE):
        return {"$unread": [f"matches_re({pattern.pattern!r}) with flags that JSON Schema does not have"]}
    if found := re.search(r"\(\?(?:P=|[#>(]|[aiLmsux-]+[:)])", text):
        return {"$unread": [f"matches_re({pattern.pattern!r}): JSON Schema has no {found[0]!r}"]}
    if pattern.flags & re.IGNORECASE:
        text = _either_case(text)
    text = text.replace(r"\A", "^").replace(r"\Z", "$")
    # JSON Schema searches in a text, where attrs has the whole of it match unless it is told otherwise.
    how = getattr(match, "__name__", "fullmatch")
    return {"pattern": f"^(?:{text})$" if how == "fullmatch" else f"^(?:{text})" if how == "match" else text}


def _either_case(text: str) -> str:
    """A pattern that does without the flag IGNORECASE: each letter in both of its cases."""
    result, inside, at = "", False, 0
    while at < len(text):
        here = text[at]
        step = (
            2 if here == "\\" else 3 if inside and text[at + 1 : at + 2] == "-" and text[at + 2 : at + 3] != "]" else 1
        )
        part = text[at : at + step]
        if here != "\\" and part.swapcase() != part:
            part = part + part.swapcase() if inside else f"[{part}{part.swapcase()}]"
        elif step == 1 and here in "[]":
            inside = here == "["
        result, at = result + part, at + step
    return result
