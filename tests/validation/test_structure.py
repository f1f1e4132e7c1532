"""From JSON values to types: what validators say, what aliases mean, and that mistakes have an end."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Generic, Literal, TypedDict, TypeVar

import attrs
import pytest
from attrs import validators as v
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Issue
from core.http import json
from core.request import Query
from core.validation.mistakes import MOST_ISSUES, StructureError
from core.validation.rows import structure_row, structure_rows
from core.validation.structure import structure

T = TypeVar("T")
MORE = {"path": "", "message": "may have more mistakes: these are the first 100"}


def issues(value: Any, type_: Any, **given: Any) -> list[Issue]:
    with pytest.raises(StructureError) as caught:
        structure(value, type_, **given)
    return caught.value.issues


def paths(value: Any, type_: Any) -> list[str]:
    return [issue["path"] for issue in issues(value, type_)]


def calls_of(action: Callable[[], T]) -> tuple[int, T]:
    """The number of calls that an action makes, in Python and into C, and its result: what it costs, in no seconds."""
    count = 0

    def see(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # others have themselves called when garbage is collected: hypothesis does
    sys.setprofile(see)
    try:
        result = action()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count, result


# ---- validators


def not_before_start(instance: Any, attribute: Any, value: int) -> None:
    if value < instance.start:
        raise ValueError(f"must be {instance.start} or more")


def upper_case(text: str) -> str:
    return text.upper()


@attrs.frozen
class Item:
    name: str = attrs.field(validator=v.and_(v.min_len(3), v.matches_re("[a-z]*")))
    amount: int = attrs.field(validator=v.gt(0))
    start: int = 1
    end: int = attrs.field(default=5, validator=not_before_start)
    tags: list[str] = attrs.field(factory=list[str], validator=v.deep_iterable(v.max_len(4)))
    code: str = attrs.field(default="x", converter=upper_case, validator=v.in_(["X", "Y"]))


@attrs.frozen
class Order:
    items: list[Item]
    by: dict[str, Item] = attrs.field(factory=dict[str, Item])


def test_every_validator_is_told_with_its_path() -> None:
    found = issues(
        {"items": [{"name": "A", "amount": 0, "end": 0, "tags": ["fits", "longer", "longest"], "code": "z"}]}, Order
    )
    assert [issue["path"] for issue in found] == [
        "items[0].name", "items[0].name", "items[0].amount", "items[0].end",
        "items[0].tags[1]", "items[0].tags[2]", "items[0].code",
    ]  # fmt: skip
    assert [issue["message"] for issue in found][2:4] == ["must be more than 0", "must be 1 or more"]


def test_a_mapping_stays_what_it_is_once_another_was_read() -> None:
    @attrs.frozen
    class First:
        counts: dict[str, float]

    @attrs.frozen
    class Second:
        counts: dict[str, float]

    assert issues({"counts": {"a": "b"}}, First) == [{"path": "counts.a", "message": "must be a number"}]
    assert paths({"items": [], "by": {"a": {"name": "abc", "amount": -1}}}, Order) == ["by.a.amount"]
    assert issues({"counts": []}, Second) == [{"path": "counts", "message": "must be an object"}]


@pytest.mark.parametrize("text", [" 1", "1_0", "\u0663", "1e4300", "1e-4300", "0e999999999", "NaN", ""])
def test_a_decimal_is_a_number_of_plain_digits_that_arithmetic_can_bear(text: str) -> None:
    assert issues({"price": text}, dict[str, Decimal]) == [{"path": "price", "message": "must be a decimal number"}]


def test_a_decimal_keeps_its_digits() -> None:
    digits: list[Any] = ["-1.10", "1e4299", 10**4299, 0.1]
    assert structure(digits, list[Decimal]) == [Decimal(str(each)) for each in digits]


def test_validators_are_told_beside_fields_of_another_type_and_missing_ones() -> None:
    assert paths({"name": 5, "amount": 0, "code": "z"}, Item) == ["name", "amount", "code"]
    assert paths({"name": "A"}, Item) == ["name", "name", "amount"]
    assert paths({"items": [], "by": {"a": {"name": "abc", "amount": -1}}}, Order) == ["by.a.amount"]


def test_a_validator_that_asks_for_a_field_that_is_wrong_says_nothing() -> None:
    assert paths({"name": "abc", "amount": 1, "start": "now", "end": 0}, Item) == ["start"]


def test_what_no_field_alone_is_to_blame_for_is_told_of_the_object() -> None:
    @attrs.frozen
    class Span:
        start: int
        end: int

        def __attrs_post_init__(self) -> None:
            if self.end < self.start:
                raise ValueError("ends before it starts")

    assert issues({"start": 2, "end": 1}, Span) == [{"path": "", "message": "ends before it starts"}]
    assert issues([{"start": 2, "end": 1}], list[Span]) == [{"path": "[0]", "message": "ends before it starts"}]


def test_a_later_validator_may_count_on_an_earlier_one() -> None:
    def upper(instance: Any, attribute: Any, value: Any) -> None:
        raise KeyError("a bug, which is not the client's to see")

    @attrs.frozen
    class Loose:
        value: Any = attrs.field(validator=v.and_(v.instance_of(int), v.gt(3)))
        other: str = attrs.field(default="", validator=upper)

    assert issues({"value": "x", "other": "y"}, Loose) == [
        {"path": "value", "message": "is of the wrong type"},
        {"path": "other", "message": "is not valid"},
    ]


def test_a_converter_that_refuses_is_told_with_its_field() -> None:
    def sorted_tags(tags: list[str]) -> list[str]:
        return sorted(tags)

    @attrs.frozen
    class Converted:
        tags: list[str] = attrs.field(converter=sorted_tags)

    def tens(value: int) -> int:
        if value % 10:
            raise ValueError("must be a multiple of ten")
        return value

    def tens_of(value: int, field: Any) -> int:
        return tens(value)

    @attrs.frozen
    class Tens:
        n: int = attrs.field(converter=tens)
        m: int = attrs.field(converter=attrs.Converter(tens_of, takes_field=True))  # type: ignore[misc]  # unknown to mypy

    assert structure({"tags": ["b", "a"]}, Converted).tags == ["a", "b"]
    assert issues({"n": 5, "m": 7}, Tens) == [
        {"path": "n", "message": "must be a multiple of ten"},
        {"path": "m", "message": "must be a multiple of ten"},
    ]


def test_generic_classes_and_subclasses_are_validated() -> None:
    @attrs.frozen
    class Box(Generic[T]):
        value: T
        size: int = attrs.field(default=1, validator=v.ge(1))

    @attrs.frozen
    class Named(Box[int]):
        name: str = attrs.field(kw_only=True, validator=v.min_len(1))

    assert paths({"value": "x", "size": 0}, Box[int]) == ["value", "size"]
    assert paths({"value": "x", "size": 0, "name": ""}, Named) == ["value", "size", "name"]


def test_a_long_message_of_a_validator_is_cut() -> None:
    @attrs.frozen
    class Text:
        text: str = attrs.field(validator=v.matches_re("a"))

    (found,) = issues({"text": "b" * 100_000}, Text)
    assert len(found["message"]) < 600


# ---- aliases


@attrs.frozen
class Person:
    first_name: str = attrs.field(alias="firstName", validator=v.min_len(2))
    _note: str | None = None
    born: int = attrs.field(default=2000, alias="yearOfBirth", kw_only=True)
    friends: list[Person] = attrs.field(factory=list["Person"], alias="knows")


def test_an_alias_is_the_name_in_json_both_ways() -> None:
    value = {"firstName": "Ada", "note": "n", "yearOfBirth": 1815, "knows": [{"firstName": "Bob"}]}
    person = structure(value, Person)
    assert (person.first_name, person.born, person.friends[0].first_name) == ("Ada", 1815, "Bob")
    assert json.dumps(person) == (
        '{"firstName":"Ada","note":"n","yearOfBirth":1815,"knows":'
        '[{"firstName":"Bob","note":null,"yearOfBirth":2000,"knows":[]}]}'
    )
    assert structure(json.loads(json.dumps(person)), Person) == person


@attrs.frozen
class Checked:
    """Each with a validator of attrs, whose words name the attribute of Python and repeat the value."""

    slug: str = attrs.field(default="a", validator=attrs.validators.matches_re("[a-z'-]+"))
    kind: str = attrs.field(default="a", validator=attrs.validators.in_(["a", "b"]))
    size: int | None = attrs.field(default=None, validator=attrs.validators.in_({10, 2, None}))
    day: int = attrs.field(default=1, validator=attrs.validators.in_(range(1, 8)))
    age: int = attrs.field(default=1, validator=[attrs.validators.ge(0), attrs.validators.lt(150)])
    part: float = attrs.field(default=1, validator=[attrs.validators.gt(0), attrs.validators.le(1)])
    name: str = attrs.field(default="", validator=attrs.validators.max_len(3))
    tags: list[str] = attrs.field(
        factory=list[str], validator=attrs.validators.deep_iterable(attrs.validators.min_len(2))
    )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("slug", "A b", "must match [a-z'-]+"),
        ("kind", "x: y", 'must be one of "a", "b"'),
        ("size", 3, "must be one of 10, 2, null"),
        ("day", 8, "must be one of 1, 2, 3, 4, 5, 6, 7"),
        ("age", -1, "must be at least 0"),
        ("age", 150, "must be less than 150"),
        ("part", 0, "must be more than 0"),
        ("part", 2, "must be at most 1"),
        ("name", "a: b", "must be at most 3 long"),
        ("tags[1]", ["ab", "c"], "must be at least 2 long"),
    ],
)
def test_what_attrs_own_validators_refuse_is_told_without_the_names_of_python(
    field: str, value: Any, message: str
) -> None:
    assert issues({field.partition("[")[0]: value}, Checked) == [{"path": field, "message": message}]


def test_mistakes_are_told_under_the_alias() -> None:
    assert issues({"first_name": "Ada", "knows": [{"firstName": "A", "yearOfBirth": "x"}]}, Person) == [
        {"path": "firstName", "message": "is required"},
        {"path": "knows[0].firstName", "message": "must be at least 2 long"},
        {"path": "knows[0].yearOfBirth", "message": "must be an integer"},
    ]


def test_a_query_has_aliases_and_a_row_has_columns() -> None:
    @attrs.frozen
    class Page:
        per_page: int = attrs.field(alias="perPage")
        tags: list[str] = attrs.field(factory=list[str], alias="tag")

    assert Query("perPage=5&tag=a&tag=b").parse(Page) == Page(perPage=5, tag=["a", "b"])
    assert structure_row({"per_page": 7}, Page).per_page == 7


@attrs.frozen
class Cat:
    sound: str = attrs.field(alias="miaow")


@attrs.frozen
class Dog:
    sound: str = attrs.field(alias="bark")


@attrs.frozen
class Owner:
    pet: Cat | Dog


def test_classes_of_a_union_are_told_apart_by_aliases() -> None:
    assert structure({"pet": {"bark": "loud"}}, Owner).pet == Dog("loud")
    assert paths({"pet": {"bark": 5}}, Owner) == ["pet.bark"]


# ---- how much


@attrs.frozen
class Ware:
    number: int
    text: str
    price: float | None
    tags: list[str] = attrs.field(factory=list[str])
    note: str | None = None


def test_an_object_takes_a_call_for_itself_and_one_for_each_list_in_it() -> None:
    given = [{"number": 1, "text": "a", "price": None, "tags": ["b", "c"], "note": "d"}] * 1000
    assert structure(given, list[Ware], "client") == [Ware(1, "a", None, ["b", "c"], "d")] * 1000
    called, _ = calls_of(lambda: structure(given, list[Ware], "client"))
    assert called < 1000 * 4 + 20  # what cattrs writes, the class's own __init__, and the list's comprehension


class Row(TypedDict):
    a: int
    b: int


@attrs.frozen
class Point:
    x: int
    y: int


@attrs.frozen
class Tree:
    left: list[Tree] = attrs.field(factory=list["Tree"])
    right: list[Tree] = attrs.field(factory=list["Tree"])
    value: int = 0


def tree(levels: int) -> Any:
    return {"left": [tree(levels - 1)] * 2, "right": [tree(levels - 1)] * 2, "value": "x"} if levels else {"value": "x"}


MANY: list[tuple[Any, Any, Any]] = [
    ([{}] * 130_000, [{"x": 1, "y": 2}] * 130_000, list[Point]),
    ([{}] * 130_000, [{"a": 1, "b": 2}] * 130_000, list[Row]),
    (["x"] * 100_000, [1] * 100_000, list[int]),
    ([["x"] * 60] * 2000, [[1] * 60] * 2000, list[list[int]]),
    (dict.fromkeys(map(str, range(50_000)), "x"), dict.fromkeys(map(str, range(50_000)), 1), dict[str, int]),
    ([{"x": {}}] * 50_000, [{"x": 5}] * 50_000, list[dict[str, int]]),
    (["x"] * 50_000, [1.5] * 50_000, set[int | float]),
    ([["x"] * 50] * 20_000, [[1] * 50] * 20_000, list[list[int] | list[bool]]),
    (tree(6), {}, Tree),
]


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "good", "type_"), MANY)
def test_mistakes_without_end_are_told_up_to_a_bound_and_cost_no_more_than_a_good_value(
    bad: Any, good: Any, type_: Any
) -> None:
    structure(good, type_)  # what is made once for a type is made
    well, _ = calls_of(lambda: structure(good, type_))
    badly, found = calls_of(lambda: issues(bad, type_))
    assert badly < 2 * well + 50_000  # those that tell of a hundred mistakes
    assert len(found) == MOST_ISSUES + 1
    assert found[-1] == MORE
    assert all(issue["message"] != "is not valid" for issue in found)


@given(st.integers(0, 250), st.booleans())
def test_as_many_are_told_as_there_are_up_to_the_bound(wrong: int, spread: bool) -> None:
    good: list[Any] = [{"x": 1, "y": 2}] * 300
    value = (
        good + [{"x": "1", "y": 2}] * wrong if not spread else [*good, *[{"x": "1", "y": 2}, {"x": 1, "y": 2}] * wrong]
    )
    if wrong == 0:
        assert len(structure(value, list[Point])) == 300
        return
    found = issues(value, list[Point])
    assert len(found) == (wrong if wrong < MOST_ISSUES else MOST_ISSUES + 1)
    assert found[0] == {"path": "[300].x", "message": "must be an integer"}


def test_mistakes_of_a_member_that_does_not_fit_are_none() -> None:
    @attrs.frozen
    class Either:
        values: list[int] | list[str]
        other: int

    value = {"values": ["x"] * 500, "other": "x"}
    assert issues(value, Either) == [{"path": "other", "message": "must be an integer"}]
    assert len(issues([value] * 50, list[Either])) == 50


def test_rows_are_told_up_to_the_bound() -> None:
    with pytest.raises(StructureError) as caught:
        structure_rows([{"x": "a", "y": 1}] * 5000, Point)
    assert len(caught.value.issues) == MOST_ISSUES + 1
    assert caught.value.issues[-1] == MORE


def test_a_client_s_long_names_do_not_make_the_answer_long() -> None:
    found = issues({"n" * 100_000: dict.fromkeys(map(str, range(99)), "x")}, dict[str, dict[str, int]])
    assert sum(len(issue["path"]) for issue in found) < 99 * 120


def test_a_large_enumeration_is_told_whole() -> None:
    names: Any = Literal[tuple(f"value number {n}" for n in range(100))]
    (found,) = issues("x", names)
    assert found["message"].endswith('"value number 99"')


@attrs.frozen
class Shop:
    open: bool


@attrs.frozen
class ShopRow:
    shop: Shop
    flags: list[bool]


def test_zero_and_one_in_json_text_of_a_row_are_booleans() -> None:
    """SQL has no other: json_object('open', EXISTS (…)) writes 1."""

    assert structure_row({"shop": '{"open": 1}', "flags": "[0, 1, true]"}, ShopRow) == ShopRow(
        Shop(True), [False, True, True]
    )
    with pytest.raises(StructureError) as caught:
        structure_row({"shop": '{"open": 2}', "flags": "[]"}, ShopRow)
    assert caught.value.issues == [{"path": "shop.open", "message": "must be true or false"}]
    assert issues({"open": 1}, Shop) == [{"path": "open", "message": "must be true or false"}]
