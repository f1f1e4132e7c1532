"""TypedDicts as a reader makes them, in a module whose annotations are texts."""

from __future__ import annotations

from typing import Any, Generic, NotRequired, Required, TypedDict, TypeVar

import pytest

from core.validation.mistakes import StructureError
from core.validation.rows import structure_rows
from core.validation.schema import schema_of
from core.validation.structure import structure

T = TypeVar("T")


class Place(TypedDict):
    name: str
    accuracy: NotRequired[int]


class Change(TypedDict, total=False):
    id: Required[int]
    name: str | None


class Moved(Place):
    to: Place


class Tree(TypedDict, Generic[T]):
    leaf: T
    below: NotRequired[list[Tree[T]]]


class Apples(Tree[int]):
    colour: str


class Linked(TypedDict):
    value: int
    next: NotRequired[Linked]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Place, {"name": "a"}),
        (Place, {"name": "a", "accuracy": 1}),
        (Change, {"id": 1}),
        (Change, {"id": 1, "name": None}),
        (Moved, {"name": "a", "to": {"name": "b"}}),
        (Tree[int], {"leaf": 1, "below": [{"leaf": 2}]}),
        (Apples, {"leaf": 1, "below": [{"leaf": 2}], "colour": "red"}),
        (Linked, {"value": 1, "next": {"value": 2}}),
    ],
)
def test_a_key_that_is_not_required_may_be_missing(type_: Any, value: Any) -> None:
    assert structure(value, type_) == value


@pytest.mark.parametrize(
    ("type_", "value", "path"),
    [
        (Place, {}, "name"),
        (Change, {"name": "a"}, "id"),
        (Moved, {"name": "a", "to": {}}, "to.name"),
        (Tree[int], {"leaf": 1, "below": [{}]}, "below[0].leaf"),
        (Apples, {"leaf": 1, "below": [{}], "colour": "red"}, "below[0].leaf"),
        (Linked, {"value": 1, "next": {}}, "next.value"),
    ],
)
def test_a_key_that_is_required_may_not(type_: Any, value: Any, path: str) -> None:
    with pytest.raises(StructureError) as raised:
        structure(value, type_)
    assert raised.value.issues == [{"path": path, "message": "is required"}]


@pytest.mark.parametrize(
    ("type_", "required"), [(Place, ["name"]), (Change, ["id"]), (Moved, ["name", "to"]), (Apples, ["colour", "leaf"])]
)
def test_its_schema_says_the_same(type_: Any, required: list[str]) -> None:
    assert sorted(schema_of(type_)["required"]) == required


def test_unknown_names_are_ignored() -> None:
    value = {"name": "a", "admin": True, "to": {"name": "b", "admin": True}}

    assert structure(value, Moved) == {"name": "a", "to": {"name": "b"}}
    assert "admin" in value
    assert structure_rows([{"name": "a", "admin": 1}], Place) == [{"name": "a"}]
