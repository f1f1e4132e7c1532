"""A class that is called with the values of a row is the one that cattrs makes of the row, or has the same mistakes."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import Any, Generic, Literal, NewType, TypeVar, cast

import attrs
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Issue
from core.validation.mistakes import StructureError, within
from core.validation.rows import read_rows, row_reader
from core.validation.structure import hook_of

T = TypeVar("T")
Key = NewType("Key", int)


def in_brackets(text: object) -> str:
    return f"<{text}>"


class Colour(enum.Enum):
    RED = "red"


@attrs.frozen
class Plain:
    a: int
    b: str
    c: float | None = None
    d: bool = False


@attrs.frozen
class Placed:
    a: int = 1
    b: str = attrs.field(kw_only=True)
    _c: str | None = "left out"
    d: Any = None
    e: str = attrs.field(default="made", init=False)


@attrs.frozen
class Checked:
    a: int = attrs.field(validator=attrs.validators.ge(1))
    b: str = attrs.field(converter=in_brackets)
    c: list[int] = attrs.field(factory=list[int])


@attrs.frozen
class Read:
    a: Key
    b: Colour | None
    c: dt.date | Literal["none", 7]
    d: Plain | None = None


@attrs.frozen
class Of(Generic[T]):
    a: T
    b: str = "b"


@attrs.frozen
class OfInt(Of[int]):
    c: int = 3


Untyped = attrs.make_class("Untyped", {"a": attrs.field(), "b": attrs.field(type=None, default=None)})


@dataclasses.dataclass
class Data:
    a: int
    c: str = dataclasses.field(default="c", kw_only=True)
    b: str | None = None


CLASSES: list[Any] = [Plain, Placed, Checked, Read, Of[str], OfInt, Data, Untyped]
TEXTS = ["", "red", "none", "2026-01-02", "[1, 2]", '{"a": 1, "b": "x"}', "\ud800"]
VALUES = st.sampled_from([None, 0, 1, 7, -3, 1.5, 2.0, 2**60, *TEXTS, b"\x00"])
NAMES = st.sampled_from(["a", "b", "c", "_c", "d", "e", "other"])


def outcome(read: Any, value: Any) -> Any:
    try:
        return read(value)
    except StructureError as error:
        return error.issues


@given(st.sampled_from(CLASSES), st.lists(st.tuples(NAMES, VALUES), max_size=8))
def test_a_row_is_read_as_the_mapping_of_its_columns(type_: Any, cells: list[tuple[str, Any]]) -> None:
    columns, values = tuple(name for name, _ in cells), tuple(value for _, value in cells)
    wanted = outcome(hook_of(type_, "rows"), dict(cells))
    read = outcome(row_reader(type_, columns), values)
    assert read == wanted
    assert type(read) is type(wanted)


@given(st.sampled_from(CLASSES), st.lists(NAMES, unique=True, max_size=6), st.data())
def test_of_many_rows_each_mistake_has_the_place_of_its_row(type_: Any, names: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*[VALUES] * len(names)), max_size=5))
    read = row_reader(type_, tuple(names))
    each = [outcome(read, row) for row in rows]
    wrong: list[Issue] = []
    for number, found in enumerate(each):
        if isinstance(found, list):
            wrong += within(f"results[{number}]", cast("list[Issue]", found))

    def read_all(values: Any) -> Any:
        return read_rows(tuple(names), values, type_)

    assert outcome(read_all, rows) == (wrong or each)
