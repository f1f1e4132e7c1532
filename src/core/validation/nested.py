"""Columns of a row called `author.username` as one value `author`, where the class of the row has such a field.

SQL has flat rows alone, so a JOIN names the columns of an inner class with `AS "author.username"`. Decided here is
which columns belong together; what is read of them is read as everything else is, by `core.validation.rows`.

Loaded for a row that has such a column, and not before. What a row becomes is one expression of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union, cast, get_origin

from typing_extensions import get_type_hints, is_typeddict

from core.validation.kinds import attrs_fields, filled, is_class, members

__all__ = ["ambiguous", "nesting"]


def ambiguous(whole: str, part: str) -> str:
    """The mistake in a row with a column `author` and a column `author.username`."""
    return f"is a column, and so is {part}: select {whole} whole, or by its columns"


def nesting(type_: Any, columns: Iterable[str], read: Callable[[Any], Any]) -> Callable[[Sequence[Any]], Any]:
    """The function that nests the values of a row of these columns, and hands them to `read`, which makes a `type_`.

    A value that may be None is None if all of its columns are NULL. Columns that belong to no class stay as they are.
    Raises ValueError with the name of a field that a column gives whole, and others in parts, and the message.
    """
    written = _written(type_, {column: f"r[{place}]" for place, column in enumerate(columns)}, "")
    return cast("Callable[[Sequence[Any]], Any]", eval(f"lambda r: read({written})", {"read": read}))


def _written(type_: Any, columns: Mapping[str, str], path: str) -> str:
    """The expression that makes the dict of a value. `columns` are the row's values, by their names below this one."""
    fields = [_fields(member) for member in members(type_)]
    plain: dict[str, str] = {}
    nested: dict[str, dict[str, str]] = {}
    for name, value in columns.items():
        first, dot, rest = name.partition(".")
        if dot and not any(name in each for each in fields) and any(map(_has_fields, _field(fields, first))):
            nested.setdefault(first, {})[rest] = value
        else:
            plain[name] = value
    for name, own in nested.items():
        whole = f"{path}{name}"
        if name in plain:
            raise ValueError(whole, ambiguous(whole, f"{whole}.{next(iter(own))}"))
        each = _field(fields, name)
        made = _written(Union[tuple(each)], own, f"{whole}.")  # noqa: UP007  # at run time
        if type(None) in each:
            nulls = " and ".join(f"{value} is None" for value in own.values())
            made = f"None if {nulls} else {made}"
        plain[name] = made
    return f"{{{', '.join(f'{name!r}: {value}' for name, value in plain.items())}}}"


def _field(fields: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    """The members of the types that a field has, in each of the classes that a value may be."""
    return [member for each in fields if name in each for member in members(each[name])]


def _has_fields(type_: Any) -> bool:
    return is_class(type_) or is_typeddict(get_origin(type_) or type_)


def _fields(type_: Any) -> Mapping[str, Any]:
    """The fields of a class, a dataclass or a TypedDict, with the arguments of a generic one; none of other types."""
    if is_class(type_):
        hints = {field.name: field.type for field in attrs_fields(type_)}
    elif _has_fields(type_):
        hints = get_type_hints(get_origin(type_) or type_)
    else:
        return {}
    return filled(type_, hints)
