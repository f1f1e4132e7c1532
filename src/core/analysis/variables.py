"""The values inside a JSON variable, against the type that its annotation asks for (`core-env`).

A front end reads an annotation into a `JsonType`; what it does not understand has the kind `""`, which fits everything,
as does whatever `core.structure` reads from a text: dates, enums, a field with a converter.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from core.analysis.wording import json_type, with_article

if TYPE_CHECKING:
    from core.analysis.annotations import Reader
    from core.analysis.classes import ClassRef
    from core.analysis.modules import Scope

__all__ = ["JSON_KINDS", "JsonField", "JsonType", "UNKNOWN", "inside_problem", "read_json_type"]


class JsonType(NamedTuple):
    """A type as JSON sees it.

    `kind` is `str`, `int`, `float`, `bool`, `None`, `list`, `dict`, `table`, `Literal`, `union`, or `""` for what is not
    understood. `inside` is the type of the items of a list or of the values of a dict, or the members of a union.
    """

    kind: str
    shown: str = ""
    inside: tuple[JsonType, ...] = ()
    fields: tuple[JsonField, ...] = ()
    literals: tuple[Any, ...] = ()


class JsonField(NamedTuple):
    """A field of a class, by its name in JSON."""

    name: str
    type: JsonType
    required: bool


UNKNOWN: Final = JsonType("")
JSON_KINDS: Final[Mapping[str, str]] = {
    "builtins.str": "str",
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.bool": "bool",
    "builtins.list": "list",
    "builtins.tuple": "tuple",
    "builtins.set": "list",
    "builtins.frozenset": "list",
    "builtins.dict": "dict",
    "typing.List": "list",
    "typing.Sequence": "list",
    "typing.Dict": "dict",
    "typing.Mapping": "dict",
    "collections.abc.Sequence": "list",
    "collections.abc.Mapping": "dict",
}
"""The kinds of the classes that JSON has values for, by full name. Of a tuple the items are known only in `tuple[T, ...]`."""


def inside_problem(type_: JsonType, value: object, path: str) -> str | None:
    """The first place in a value that the type does not fit, and what is there: `LIMITS.window is a text, not an int`."""
    match type_.kind, value:
        case "list", list():
            items = cast("list[object]", value)
            problems = (
                inside_problem(item, one, f"{path}[{at}]") for item in type_.inside for at, one in enumerate(items)
            )
            return next((problem for problem in problems if problem is not None), None)
        case "dict", dict():
            table = cast("dict[str, object]", value)
            problems = (inside_problem(of, one, f"{path}.{key}") for of in type_.inside for key, one in table.items())
            return next((problem for problem in problems if problem is not None), None)
        case "table", dict():
            return _table_problem(type_, cast("dict[str, object]", value), path)
        case "union", _:
            if any(inside_problem(member, value, path) is None for member in type_.inside):
                return None
        case _ if _fits(type_, value):
            return None
        case _:
            pass
    found = f'"{value}"' if isinstance(value, str) and type_.kind == "Literal" else json_type(value)
    return f"{path} is {found}, not {with_article(type_.shown)}"


def _table_problem(type_: JsonType, table: Mapping[str, object], path: str) -> str | None:
    for field in type_.fields:
        if field.name in table:
            problem = inside_problem(field.type, table[field.name], f"{path}.{field.name}")
            if problem is not None:
                return problem
        elif field.required:
            return f"{path} has no {field.name}, which {type_.shown} demands"
    return None


def _fits(type_: JsonType, value: object) -> bool:
    match type_.kind:
        case "":
            return True
        case "str":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":  # 3.0 is a whole number to JSON
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "None":
            return value is None
        case "Literal":
            return any(type(value) is type(literal) and value == literal for literal in type_.literals)
        case _:
            return False


# Read from plain syntax trees -------------------------------------------------------------------------------------------

_Seen: TypeAlias = "tuple[ClassRef, ...]"


def read_json_type(reader: Reader, expression: ast.expr, scope: Scope, seen: _Seen = ()) -> JsonType:
    """An annotation as JSON sees it."""
    expression, scope = reader.written_out(expression, scope)
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
        return _union(reader, _arms(expression), scope, seen)
    if isinstance(expression, ast.Constant) and expression.value is None:
        return JsonType("None", "None")
    annotation = reader.annotation(expression, scope)
    if isinstance(expression, ast.Subscript):
        return _subscript(reader, expression, annotation.shown, scope, seen)
    if annotation.class_ is not None:
        return _class(reader, annotation.class_, seen) if annotation.kind == "table" else UNKNOWN
    kind = JSON_KINDS.get(reader.full_name(expression, scope), "")
    return JsonType("list" if kind == "tuple" else kind, annotation.shown) if kind else UNKNOWN


def _subscript(reader: Reader, expression: ast.Subscript, shown: str, scope: Scope, seen: _Seen) -> JsonType:
    arguments: Sequence[ast.expr] = (
        expression.slice.elts if isinstance(expression.slice, ast.Tuple) else [expression.slice]
    )
    name = reader.full_name(expression.value, scope)
    match name.rpartition(".")[2] if name.startswith("typing.") else "":
        case "Optional":
            return _union(reader, [*arguments, ast.Constant(None)], scope, seen)
        case "Union":
            return _union(reader, arguments, scope, seen)
        case "Literal":
            read = reader.annotation(expression, scope)
            literals = [*read.literals, *([None] if read.optional else [])]
            return JsonType("Literal", shown, literals=tuple(literals)) if read.kind == "Literal" else UNKNOWN
        case "Annotated" | "Required" | "NotRequired" | "ReadOnly" | "Final":
            return read_json_type(reader, arguments[0], scope, seen)
        case _:
            pass
    kind, last = JSON_KINDS.get(name, ""), arguments[-1]
    if kind == "tuple":
        endless = len(arguments) == 2 and isinstance(last, ast.Constant) and last.value is ...
        return JsonType("list", shown, (read_json_type(reader, arguments[0], scope, seen),) if endless else ())
    if kind not in ("list", "dict") or len(arguments) != (1 if kind == "list" else 2):
        return UNKNOWN
    return JsonType(kind, shown, (read_json_type(reader, last, scope, seen),))


def _union(reader: Reader, arms: Sequence[ast.expr], scope: Scope, seen: _Seen) -> JsonType:
    members = [read_json_type(reader, arm, scope, seen) for arm in arms]
    if not all(member.kind for member in members):
        return UNKNOWN
    return JsonType("union", " | ".join(member.shown for member in members), tuple(members))


def _arms(expression: ast.expr) -> list[ast.expr]:
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
        return [*_arms(expression.left), *_arms(expression.right)]
    return [expression]


def _class(reader: Reader, class_: ClassRef, seen: _Seen) -> JsonType:
    """An attrs class, a dataclass or a TypedDict, whose bases are all known."""
    typed_dict = reader.is_typed_dict(class_)
    ancestors = list(reader.ancestors(class_))
    generic = any(isinstance(base, ast.Subscript) for ancestor in ancestors for base in ancestor.node.bases)
    if class_ in seen or generic or not (typed_dict or reader.is_whole(class_)):
        return UNKNOWN
    total = not any(keyword.arg == "total" for ancestor in ancestors for keyword in ancestor.node.keywords)
    fields: list[JsonField] = []
    for field in reader.fields(class_):
        annotation = reader.annotation(field.annotation, field.owner.body)
        if annotation.class_var:
            continue
        type_ = (
            UNKNOWN if field.converted else read_json_type(reader, field.annotation, field.owner.body, (*seen, class_))
        )
        required = not field.has_default and not annotation.not_required and (total or not typed_dict)
        fields.append(JsonField(field.name if typed_dict else field.alias, type_, required))
    return JsonType("table", class_.node.name, fields=tuple(fields))
