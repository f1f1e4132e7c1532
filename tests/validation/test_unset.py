"""What was left out, told from null: read, written, validated and described."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import attrs
import pytest
from attrs import validators as v
from hypothesis import given as for_every
from hypothesis import strategies as st

from core import UNSET, Unset, given
from core.backends.embedded.clone import CloneError, dump, load
from core.http import json
from core.validation.mistakes import StructureError
from core.validation.rows import structure_row
from core.validation.schema import schema_of
from core.validation.structure import structure, structure_texts


def filled(instance: object, attribute: object, value: str) -> None:
    if not value.strip():
        raise ValueError("can't be blank")


@attrs.frozen
class Change:
    title: str | Unset = attrs.field(default=UNSET, validator=given(filled, v.max_len(5)))
    bio: str | Unset | None = UNSET
    count: int | Unset = UNSET
    tags: list[str] | Unset = UNSET


@dataclasses.dataclass
class Data:
    name: str | Unset = UNSET
    note: str | None = None


@attrs.frozen
class Whole:
    change: Change | Unset
    name: str | Unset | None = None


def issues(value: Any, type_: Any, *source: Any) -> list[tuple[str, str]]:
    with pytest.raises(StructureError) as caught:
        structure(value, type_, *source)
    return [(issue["path"], issue["message"]) for issue in caught.value.issues]


def test_what_is_left_out_is_unset_and_null_is_not() -> None:
    assert structure({}, Change) == Change()
    assert structure({"bio": None, "title": "a", "tags": []}, Change) == Change(title="a", bio=None, tags=[])
    assert structure({}, Data) == Data()
    assert structure_row({"bio": None}, Change) == Change(bio=None)
    assert structure_texts([("count", "3"), ("tags", "a"), ("tags", "b")], Change) == Change(count=3, tags=["a", "b"])


def test_no_value_stands_for_it_and_its_name_is_in_no_message() -> None:
    found = issues({"title": None, "count": "UNSET", "tags": "UNSET"}, Change)
    assert found == [("title", "must be a string"), ("count", "must be an integer"), ("tags", "must be an array")]
    assert issues({"count": "UNSET"}, Change, "strings") == [("count", "must be an integer")]
    assert issues({}, Whole) == [("change", "is required")]
    with pytest.raises(TypeError, match="Unset"):
        structure("UNSET", Unset)


def test_validators_are_asked_of_what_was_given_alone() -> None:
    said = "must be at most 5 long"
    assert issues({"title": " " * 6, "bio": 1}, Change) == [
        ("title", "can't be blank"),
        ("title", said),
        ("bio", "must be a string"),
    ]
    with pytest.raises(ValueError, match="blank"):
        Change(title=" ")


@for_every(st.builds(Change, *[st.just(UNSET) | st.text("ab", min_size=1, max_size=5)], bio=st.none() | st.just(UNSET)))
def test_what_is_written_is_read_as_it_was(change: Change) -> None:
    assert structure(json.loads(json.dumps(change)), Change) == change
    assert structure(load(dump(change)), Change) == change
    assert pickle.loads(pickle.dumps(change)) == copy.deepcopy(change) == change


def test_it_is_written_by_leaving_it_out() -> None:
    assert (
        json.dumps([Change(), Change(bio=None), Change(title="x", tags=[])])
        == '[{},{"bio":null},{"title":"x","tags":[]}]'
    )
    assert json.dumps([Data(), Data(name="a")]) == '[{"note":null},{"name":"a","note":null}]'
    assert json.dumps(Whole(UNSET, UNSET)) == "{}"
    assert bool(UNSET)


@pytest.mark.parametrize(
    ("value", "place"),
    [(UNSET, "the value"), ({"a": [UNSET]}, "a[0]"), ({"a": UNSET}, "a"), ({"c": Change(tags=[UNSET])}, "c.tags[0]")],  # type: ignore[list-item]
)
def test_anywhere_else_it_is_an_error_with_its_path(value: object, place: str) -> None:
    with pytest.raises(TypeError) as caught:
        json.dumps(value)
    assert str(caught.value).startswith(f"{place} is UNSET")
    with pytest.raises(CloneError, match="is UNSET"):
        load(dump(value))


def test_it_is_described_as_optional_and_not_nullable() -> None:
    read = schema_of(Change)
    assert read["properties"] == {
        "title": {"type": "string", "maxLength": 5},
        "bio": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    assert "required" not in read
    assert "required" not in schema_of(Change, written=True)
    assert schema_of(Whole)["required"] == ["change"]
    assert "required" not in schema_of(Whole, written=True)
    assert schema_of(Data, written=True)["required"] == ["note"]
