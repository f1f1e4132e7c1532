"""Rows of a SQL database as values of a type. How is worked out once for the type and the names of the columns.

A class is called with the values themselves; cattrs reads those that are not of their type already, and whatever has a
mistake, which it names. Columns called `author.name` fill an inner class, by `core.validation.nested`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from typing_extensions import TypeForm

from core.validation.converters import condition_of, converter_of
from core.validation.kinds import attrs_fields, is_class
from core.validation.mistakes import MOST_ISSUES, StructureError, bounded, within
from core.validation.structure import hook_from

if TYPE_CHECKING:
    from core.errors import Issue

T = TypeVar("T")

RowReader = Callable[[Sequence[Any]], Any]
"""Makes a value of the values of a row, in the order of its columns."""


def structure_row(row: dict[str, Any], type_: TypeForm[T]) -> T:
    """One row, by column name, as a `type_`. Raises as `structure` does."""
    return cast("T", row_reader(type_, tuple(row))(tuple(row.values())))


def structure_rows(rows: Sequence[dict[str, Any]], type_: TypeForm[T]) -> list[T]:
    """Rows of the same columns as a list of `type_`. Raises as `read_rows` does."""
    columns = tuple(rows[0]) if rows else ()
    return read_rows(columns, [tuple(row.values()) for row in rows], type_)


def read_rows(columns: tuple[str, ...], rows: Sequence[Sequence[Any]], type_: TypeForm[T]) -> list[T]:
    """Rows as a list of `type_`. Raises as `structure` does, with every row's mistakes, as `results[3].email`."""
    read = row_reader(type_, columns)
    try:
        return [read(row) for row in rows]
    except StructureError:  # of the first wrong row: now all are asked
        raise StructureError(bounded([*_mistakes(read, rows)])) from None


def _mistakes(read: RowReader, rows: Iterable[Sequence[Any]]) -> Iterator[Issue]:
    """The mistakes of rows, up to the row with which there are as many as a StructureError has."""
    count = 0
    for index, row in enumerate(rows):
        if count >= MOST_ISSUES:
            return
        try:
            read(row)
        except StructureError as error:
            count += len(error.issues)
            yield from within(f"results[{index}]", error.issues)


def row_reader(type_: Any, columns: tuple[str, ...]) -> RowReader:
    """The function that reads rows of these columns as a `type_`. It raises as `structure` does, and so does this."""
    try:
        return _reader(type_, columns)
    except TypeError:  # an unhashable form, such as Annotated over a list
        return _reader.__wrapped__(type_, columns)


@lru_cache(1000)  # names of columns may be put together while a program runs
def _reader(type_: Any, columns: tuple[str, ...]) -> RowReader:
    hook = hook_from("rows", type_)
    if "." in "".join(columns):
        from core.validation.nested import nesting

        try:
            return nesting(type_, columns, hook)
        except ValueError as error:
            path, message = error.args
            raise StructureError([{"path": path, "message": message}]) from None

    def by_name(values: Sequence[Any]) -> Any:
        return hook(dict(zip(columns, values, strict=True)))

    call = _call(type_, columns) if is_class(type_) else None
    if call is None:
        return by_name

    def read(values: Sequence[Any]) -> Any:
        try:
            return call(values)
        except Exception:
            return by_name(values)

    return read


def _call(type_: Any, columns: tuple[str, ...]) -> RowReader | None:
    """The call of a class with the values of a row, written out; None where the row lacks a field, or another type
    says what a field's type is.
    """
    from attrs import NOTHING

    places = {name: place for place, name in enumerate(columns)}  # of two columns of a name the last one counts
    converter = converter_of("rows", detailed=False)
    names: dict[str, Any] = {"make": type_}
    arguments: list[str] = []
    in_order = hasattr(type_, "__attrs_attrs__")  # cattrs does not say which fields of a dataclass have no place
    for field in attrs_fields(type_):
        place = places.get(field.name)
        if not field.init or (place is None and field.default is not NOTHING):
            in_order = in_order and not field.init
            continue
        if place is None or field.type is None or isinstance(field.type, TypeVar):
            return None
        in_order = in_order and not field.kw_only
        names |= {f"read{place}": converter.get_structure_hook(field.type), f"type{place}": field.type}
        value = f"read{place}(r[{place}], type{place})"
        if condition := condition_of(field.type, "rows"):
            value = f"v if {condition.replace('v', f'(v := r[{place}])', 1)} else {value}"
        arguments.append(value if in_order else f"{field.alias}={value}")
    return cast("RowReader", eval(f"lambda r: make({', '.join(arguments)})", names))
