"""Columns called `author.username` as one value `author`: which belong together, and when there is none."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Generic, NewType, TypedDict, TypeVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.validation.test_structure import calls_of

from core.errors import Issue
from core.validation.mistakes import StructureError
from core.validation.rows import structure_row, structure_rows

T = TypeVar("T")


@attrs.frozen
class Profile:
    username: str
    bio: str | None = None
    following: bool = False


@attrs.define
class Article:
    slug: str
    author: Profile


@attrs.define
class Draft:
    slug: str
    author: Profile | None = None


def refused(row: dict[str, Any], type_: Any) -> list[Issue]:
    with pytest.raises(StructureError) as caught:
        structure_row(row, type_)
    return caught.value.issues


def test_columns_with_a_dot_fill_an_inner_class() -> None:
    row = {"slug": "a", "author.username": "ada", "author.bio": None, "author.following": 1}
    assert structure_row(row, Article) == Article("a", Profile("ada", None, True))
    assert structure_rows([row, {**row, "author.username": "bob"}], Article)[1].author.username == "bob"


def test_columns_that_are_left_out_have_their_defaults() -> None:
    assert structure_row({"slug": "a", "author.username": "ada"}, Article) == Article("a", Profile("ada"))
    assert structure_row({"slug": "a"}, Draft) == Draft("a")
    assert refused({"slug": "a"}, Article) == [{"path": "author", "message": "is required"}]
    assert refused({"slug": "a", "author.bio": "x"}, Draft) == [{"path": "author.username", "message": "is required"}]


def test_an_inner_class_is_none_if_and_only_if_all_of_its_columns_are_null() -> None:
    row: dict[str, Any] = {"slug": "a", "author.username": None, "author.bio": None, "author.following": None}
    assert structure_row(row, Draft) == Draft("a", None)
    # Some are NULL: that is no absent author, but one with mistakes.
    assert refused({**row, "author.following": 0}, Draft) == [
        {"path": "author.username", "message": "must be a string"}
    ]
    assert [issue["path"] for issue in refused({**row, "author.bio": "x"}, Draft)] == [
        "author.username",
        "author.following",
    ]
    # And where there must be one, it has all of them.
    assert [issue["path"] for issue in refused(row, Article)] == ["author.username", "author.following"]


def test_mistakes_of_many_rows_have_their_paths() -> None:
    row = {"slug": "a", "author.username": "ada"}
    with pytest.raises(StructureError) as caught:
        structure_rows([row, {**row, "author.username": 1}], Article)
    assert caught.value.issues == [{"path": "results[1].author.username", "message": "must be a string"}]


def test_a_field_that_is_given_whole_and_in_parts_is_a_mistake() -> None:
    row = {"slug": "a", "author": '{"username": "ada"}'}
    assert structure_row(row, Article) == Article("a", Profile("ada"))
    said = {"path": "author", "message": "is a column, and so is author.bio: select author whole, or by its columns"}
    assert refused({**row, "author.bio": "x"}, Article) == [said]
    with pytest.raises(StructureError) as caught:
        structure_rows([{"author.bio": "x", **row}], Article)
    assert caught.value.issues == [said]


@attrs.frozen
class Address:
    city: str
    zip: str | None = None


@attrs.frozen
class Person:
    name: str
    address: Address | None
    tags: list[str] = attrs.field(factory=list[str])


@attrs.frozen
class Book:
    id: int
    author: Person | None


def test_classes_nest_deeper() -> None:
    row: dict[str, Any] = {
        "id": 1, "author.name": "ada", "author.address.city": "Bonn", "author.tags": '["x"]', "author.address.zip": None,
    }  # fmt: skip
    assert structure_row(row, Book) == Book(1, Person("ada", Address("Bonn"), ["x"]))
    assert structure_row({**row, "author.address.city": None}, Book) == Book(1, Person("ada", None, ["x"]))
    assert structure_row({name: value if name == "id" else None for name, value in row.items()}, Book) == Book(1, None)
    assert refused({**row, "author.address.city": 5}, Book) == [
        {"path": "author.address.city", "message": "must be a string"}
    ]
    mistaken = refused({**row, "author.address": "{}"}, Book)
    assert mistaken[0]["path"] == "author.address"


def test_columns_of_no_class_are_left_alone() -> None:
    row = {
        "slug": "a",
        "author.username": "ada",
        "author.age": 3,
        "slug.x": 1,
        "nobody.name": "x",
        ".": 1,
        "author.": 2,
    }
    assert structure_row(row, Article) == Article("a", Profile("ada"))
    rows: list[Any] = [dict[str, Any], dict, Any]
    for type_ in rows:
        assert structure_row({"a.b": 1}, type_) == {"a.b": 1}


Dotted = TypedDict("Dotted", {"a.b": int, "author": Profile})


class Keyed(TypedDict):
    author: Profile | None


def test_a_typed_dict_may_have_the_name_itself_and_may_nest() -> None:
    assert structure_row({"a.b": 1, "author.username": "x"}, Dotted) == {"a.b": 1, "author": Profile("x")}
    assert structure_row({"author.username": None}, Keyed) == {"author": None}

    @dataclasses.dataclass(frozen=True, slots=True)
    class Holder:
        keyed: Keyed

    assert structure_row({"keyed.author.username": "x"}, Holder) == Holder({"author": Profile("x")})


@attrs.frozen
class Of(Generic[T]):
    value: T
    more: list[T] = attrs.field(factory=list[T])


@attrs.frozen
class OfProfile(Of[Profile]):
    name: str = ""


@attrs.frozen
class Outer(Generic[T]):
    inner: Of[T | None]


Author = NewType("Author", Profile)


@attrs.frozen
class Renamed:
    author: Annotated[Author | None, "who wrote it"]
    _of: Profile | Address | None = attrs.field(alias="by", default=None)


def test_generic_classes_and_other_names_of_classes() -> None:
    profile: dict[str, Any] = {"value.username": "ada", "value.following": 1}
    assert structure_row(profile, Of[Profile]) == Of(Profile("ada", None, True))
    assert structure_row({"value.username": None}, Of[Profile | None]) == Of(None)
    assert structure_row(profile, OfProfile) == OfProfile(Profile("ada", None, True))
    assert structure_row({"inner.value.username": "ada"}, Outer[Profile]) == Outer(Of(Profile("ada")))
    assert structure_row({"inner.value.username": None, "inner.more": "[]"}, Outer[Profile]) == Outer[Profile](Of(None))
    assert structure_row({"author.username": "ada"}, Renamed) == Renamed(Author(Profile("ada")))
    assert structure_row({"author.username": None}, Renamed) == Renamed(None)
    # A column has the name of the field, not of its alias; of a union it is the class that has the fields.
    row = {"author.username": None, "_of.city": "Bonn", "_of.zip": "1"}
    assert structure_row(row, Renamed) == Renamed(None, by=Address("Bonn", "1"))
    either: Any = Article | Book
    assert structure_row({"slug": "a", "author.username": "x"}, either) == Article("a", Profile("x"))
    assert structure_row({"id": 1, "author.name": None}, either) == Book(1, None)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements are new in 3.12")
def test_an_alias_of_a_type_statement() -> None:
    names: dict[str, Any] = {"Profile": Profile, "attrs": attrs}
    text = "type Who = Profile | None\n@attrs.frozen\nclass By:\n    author: Who"
    exec(compile(text, "<text>", "exec", dont_inherit=True), names)  # without this module's postponed annotations
    assert structure_row({"author.username": "ada"}, names["By"]).author == Profile("ada")
    assert structure_row({"author.username": None}, names["By"]).author is None


def test_a_nested_row_costs_one_call_more_than_its_two_classes() -> None:
    flat = [{"username": "ada", "bio": None, "following": 1}] * 1000
    nested = [{"slug": "a", "author.username": "ada", "author.bio": None, "author.following": 1}] * 1000

    def each(rows: list[dict[str, Any]], type_: Any) -> float:
        structure_rows(rows, type_)
        many, _ = calls_of(lambda: structure_rows(rows, type_))
        few, _ = calls_of(lambda: structure_rows(rows[:500], type_))
        return (many - few) / 500

    # The nesting itself, and the two calls that make an Article of its Profile.
    assert each(nested, Article) == each(flat, Profile) + 3


# -- any class and any row

SCALARS: list[Any] = [int, str, bool, int | None, str | None, float | None, list[int], dict[str, int] | None]
VALUES = st.sampled_from([None, None, None, 0, 1, 7, 1.5, "", "a", "[1]", "[true]", '{"a": 1}', b"\x00"])
NAMES = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def classes(draw: st.DrawFn, depth: int = 2) -> Any:
    """A class whose fields are values and, `depth` times, such classes again."""
    fields: dict[str, Any] = {}
    for name in sorted(draw(st.sets(NAMES, min_size=1))):
        type_ = draw(st.sampled_from(SCALARS))
        if depth and draw(st.booleans()):
            type_ = draw(classes(depth - 1))
            if draw(st.booleans()):
                type_ = type_ | None
        if draw(st.integers(0, 3)) == 0:
            fields[name] = attrs.field(type=type_, default=None, kw_only=True)
        else:
            fields[name] = attrs.field(type=type_, kw_only=True)
    return attrs.make_class("Made", fields, frozen=draw(st.booleans()), slots=draw(st.booleans()))


def inner(type_: Any) -> tuple[Any, bool]:
    """The class that a field has, and whether it may be None."""
    members = getattr(type_, "__args__", None) or (type_,)
    class_ = next((each for each in members if attrs.has(each)), None)
    return class_, type(None) in members


def columns_of(type_: Any, path: str = "") -> Iterator[str]:
    for field in attrs.fields(type_):
        class_, _ = inner(field.type)
        if class_ is None:
            yield f"{path}{field.name}"
        else:
            yield from columns_of(class_, f"{path}{field.name}.")


def by_hand(row: dict[str, Any], type_: Any, path: str = "") -> dict[str, Any]:
    """A row as somebody would nest it who knows the class."""
    value: dict[str, Any] = {}
    for field in attrs.fields(type_):
        class_, optional = inner(field.type)
        own = {name: cell for name, cell in row.items() if name.startswith(f"{path}{field.name}.")}
        if class_ is None:
            if path + field.name in row:
                value[field.name] = row[path + field.name]
        elif own:
            nothing = optional and not any(cell is not None for cell in own.values())
            value[field.name] = None if nothing else by_hand(row, class_, f"{path}{field.name}.")
    return value


def outcome(row: dict[str, Any], type_: Any) -> Any:
    try:
        return structure_row(row, type_)
    except StructureError as error:
        return error.issues


@given(st.data(), classes())
def test_a_nested_row_is_read_as_the_same_row_nested_by_hand(data: st.DataObject, type_: Any) -> None:
    columns = [*columns_of(type_)]
    given_ = data.draw(st.lists(st.sampled_from(columns), unique=True)) if data.draw(st.booleans()) else columns
    row = {name: data.draw(VALUES) for name in data.draw(st.permutations(given_))}
    assert outcome(row, type_) == outcome(by_hand(row, type_), type_)
