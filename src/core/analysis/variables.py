"""The values inside a JSON variable, against the type that its annotation asks for (`core-env`).

A front end reads an annotation into a `JsonType`; an annotation that it does not understand has the kind `""`, which
fits everything, as does whatever `core.structure` reads from a string: dates, enums, a field with a converter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from core.analysis.wording import json_type, with_article

__all__ = ["JSON_KINDS", "JsonField", "JsonType", "UNKNOWN", "inside_problem"]


class JsonType(NamedTuple):
    """A type as JSON sees it.

    `kind` is `str`, `int`, `float`, `bool`, `None`, `list`, `dict`, `table`, `Literal`, `union`, or `""` for a type
    that is not understood. `inside` is the type of the items of a list or of the values of a dict, or the members of a
    union.
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
"""The kinds of the classes that JSON has values for, by full name.

Of a tuple the items are known only in `tuple[T, ...]`.
"""


def inside_problem(type_: JsonType, value: object, path: str) -> str | None:
    """The first place in a value that the type does not fit, and the value there:
    `LIMITS.window is a string, not an int`.
    """
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
