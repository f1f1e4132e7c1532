"""Rows of a SQL database as values of a type. How is worked out once for the type and the names of the columns.

A class is called with the values themselves; cattrs reads those that are not of their type already, and whatever has a
mistake, which it names. SQL has flat rows alone, so a JOIN names the columns of an inner class `AS "author.username"`:
they are one value `author` where the class of the row has such a field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, TypeVar, Union, cast

from typing_extensions import TypeForm

from core.validation.converters import converter_of, expression
from core.validation.kinds import fields_of, is_class, members
from core.validation.mistakes import StructureError, bounded, read_parts, within
from core.validation.structure import hook_of

T = TypeVar("T")

RowReader = Callable[[Sequence[Any]], Any]
"""Makes a value of the values of a row, in the order of its columns."""


def structure_row(row: dict[str, Any], type_: TypeForm[T]) -> T:
    """One row, by column name, as a `type_`. Raises as `structure` does."""
    return cast("T", row_reader(type_, tuple(row))(tuple(row.values())))


def structure_rows(rows: Sequence[dict[str, Any]], type_: TypeForm[T]) -> list[T]:
    """Rows of the same columns as a list of `type_`. Raises as `read_rows` does."""
    return read_rows(tuple(rows[0]) if rows else (), [tuple(row.values()) for row in rows], type_)


def read_rows(columns: tuple[str, ...], rows: Sequence[Sequence[object]], type_: TypeForm[T]) -> list[T]:
    """Rows as a list of `type_`. Raises as `structure` does, with every row's mistakes, as `results[3].email`."""
    read = row_reader(type_, columns)
    try:
        return [read(row) for row in rows]
    except StructureError:  # of the first wrong row: now all are asked
        _, wrong = read_parts(lambda row, _: read(row), enumerate(rows), repeat(None))
        raise StructureError(bounded(within("results", [*chain(*wrong.values())]))) from None


def row_reader(type_: object, columns: tuple[str, ...]) -> RowReader:
    """The function that reads rows of these columns as a `type_`. It raises as `structure` does, and so does this."""
    try:
        return _reader(type_, columns)
    except TypeError:  # an unhashable form, such as Annotated over a list
        return _reader.__wrapped__(type_, columns)


@lru_cache(1000)  # names of columns may be put together while a program runs
def _reader(type_: object, columns: tuple[str, ...]) -> RowReader:
    hook = hook_of(type_, "rows")
    written = _written(type_, {column: f"r[{place}]" for place, column in enumerate(columns)}, "")
    by_name = cast("RowReader", eval(f"lambda r: read({written})", {"read": hook}))
    call = _call(type_, columns) if is_class(type_) and "." not in "".join(columns) else None
    if call is None:
        return by_name

    def read(values: Sequence[object]) -> object:
        try:
            return call(values)
        except Exception:
            return by_name(values)

    return read


def _call(type_: object, columns: tuple[str, ...]) -> RowReader | None:
    """The call of a class with the values of a row, written out; None where it lacks a field, or a type is open."""
    places = {name: place for place, name in enumerate(columns)}  # of two columns of a name the last one counts
    converter = converter_of("rows", detailed=False)
    names: dict[str, object] = {"make": type_}
    arguments: list[str] = []
    in_order = hasattr(type_, "__attrs_attrs__")  # cattrs does not say which fields of a dataclass have no place
    for field in fields_of(type_) or ():
        place = places.get(field.name)
        if not field.is_read or (place is None and not field.is_required):
            in_order = in_order and not field.is_read
            continue
        if place is None or isinstance(field.type, TypeVar):
            return None
        in_order = in_order and not field.made_as.kw_only
        value = expression(converter, "rows", names, f"r[{place}]", field.type)
        arguments.append(value if in_order else f"{field.key}={value}")
    return cast("RowReader", eval(f"lambda r: make({', '.join(arguments)})", names))


def _written(type_: object, columns: Mapping[str, str], path: str) -> str:
    """The expression that makes the dict of a value. `columns` are the row's values, by their names below this one.

    A value that may be None is None if all of its columns are NULL. Columns that belong to no class stay as they are.
    Raises StructureError for a field that a column gives whole, and others in parts.
    """
    fields = [{field.name: field.type for field in fields_of(each) or ()} for each in members(type_)]
    plain: dict[str, str] = {}
    nested: dict[str, dict[str, str]] = {}
    for name, value in columns.items():
        first, dot, rest = name.partition(".")
        if (
            dot
            and not any(name in each for each in fields)
            and any(fields_of(each) is not None for each in _field(fields, first))
        ):
            nested.setdefault(first, {})[rest] = value
        else:
            plain[name] = value
    for name, own in nested.items():
        whole = f"{path}{name}"
        if name in plain:
            part = f"{whole}.{next(iter(own))}"
            message = f"is a column, and so is {part}: select {whole} whole, or by its columns"
            raise StructureError([{"path": whole, "message": message}])
        each = _field(fields, name)
        made = _written(Union[tuple(each)], own, f"{whole}.")  # noqa: UP007  # at run time
        if type(None) in each:
            nulls = " and ".join(f"{value} is None" for value in own.values())
            made = f"None if {nulls} else {made}"
        plain[name] = made
    return f"{{{', '.join(f'{name!r}: {value}' for name, value in plain.items())}}}"


def _field(fields: Iterable[Mapping[str, object]], name: str) -> list[object]:
    """The members of the types that a field has, in each of the classes that a value may be."""
    return [member for each in fields if name in each for member in members(each[name])]
