"""Every kind of type that a field can have, from every source: an instance of it, an issue, or a developer's error."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import json
import operator
import re
import sys
import uuid
from collections.abc import Mapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
)  # fmt: skip

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.validation.test_structure import calls_of
from typing_extensions import TypeAliasType, is_typeddict

from core import App, Request, Response, http
from core.errors import DeveloperError
from core.http.json import dumps, loads
from core.pagination import cursor_of, cursor_text
from core.testing import FakeExecutionContext
from core.validation.mistakes import StructureError
from core.validation.rows import structure_row
from core.validation.schema import demanded, schema_of
from core.validation.structure import hook_of, list_fields, structure


class Colour(enum.StrEnum):
    RED = "red"


class Size(str, enum.Enum):  # noqa: UP042  # programs have them
    SMALL = "s"


class Rank(enum.IntEnum):
    FIRST = 1


class Rate(float, enum.Enum):
    HALF = 0.5


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Bits(enum.IntFlag):
    LOW = 1


class Mixed(enum.Enum):
    TEXT = "a"
    NUMBER = 2


class Name(str):
    __slots__ = ()


class Count(int):
    pass


class Ratio(float):
    pass


class Moment(dt.datetime):
    pass


class Pair(NamedTuple):
    one: int
    other: str = "x"


class Note(TypedDict):
    text: str


class Somebody(TypedDict):
    name: str


class Person(Somebody, total=False):
    note: Note


class Marked(TypedDict):
    a: int
    b: NotRequired[str]
    c: NotRequired[Annotated[int, "said"]]


class MarkedMore(Marked, total=False):
    d: Required[int]
    e: str


@attrs.frozen
class Card:
    number: str


@attrs.frozen
class Bill:
    iban: str
    until: dt.date | None = None


@attrs.frozen
class Cat:
    kind: Literal["cat"]
    name: str


@attrs.frozen
class Dog:
    kind: Literal["dog"]
    name: str


@attrs.frozen
class Twin:
    number: str


@dataclasses.dataclass
class Point:
    x: int


@dataclasses.dataclass
class Place:
    x: int
    name: str = ""
    inside: Point | None = None


T = TypeVar("T")


@attrs.frozen
class Box(Generic[T]):
    inside: T


@attrs.frozen
class Crate(Box[int]):
    label: str


UserId = NewType("UserId", int)
Paint = NewType("Paint", Colour)


def made(form: Any, arguments: Any) -> Any:
    return form[arguments]


SCALARS: list[Any] = [
    str, int, float, bool, None, bytes, Any, object, Colour, Size, Rank, Rate, Access, Bits, Mixed, Name, Count, Ratio,
    Moment, UserId, Paint, dt.date, dt.datetime, dt.time, dt.timedelta, uuid.UUID, decimal.Decimal, Path, bytearray,
    complex, Literal["a", 2], Literal[Colour.RED], Pair, Note, Card, Bill, Point, Place, dict, list, tuple, set, collections.deque,
    collections.Counter, tuple[()],
]  # fmt: skip
UNREAD = (Moment, dt.timedelta, Path, bytearray, complex)
TYPES = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda t: Annotated[t, "said"]),
        inner.map(lambda t: made(Optional, t)),
        st.tuples(inner, inner).map(lambda two: made(Union, two)),
        st.tuples(
            st.sampled_from([
                list, set, frozenset, collections.deque, Sequence, MutableSequence, AbstractSet, collections.Counter, Box
            ]),
            inner,
        ).map(lambda two: made(two[0], two[1])),
        inner.map(lambda t: made(tuple, (t, ...))),
        st.tuples(inner, inner).map(lambda two: made(tuple, two)),
        st.tuples(
            st.sampled_from([dict, Mapping, collections.defaultdict, collections.OrderedDict]),
            st.sampled_from([str, Colour, uuid.UUID, int, UserId, bool]),
            inner,
        ).map(lambda three: made(three[0], three[1:])),
    ),
    max_leaves=4,
)  # fmt: skip
TEXTS = st.sampled_from([
    "", "a", "zzz", "red", "s", "1", "0.5", "true", "2024-01-02", "2024-01-02T03:04:05", "03:04", "null", "[1]", "{}",
    '{"number": "4"}', '["red"]', "7e57d004-2b97-0e7a-b45f-5387367791cd",
])  # fmt: skip
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.sampled_from([0, 1, 2, 3, 2**53, 0.5, 1.0]), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["a", "red", "number", "iban", "inside", "text", "kind", "1", "true"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


def fits(value: Any, type_: Any) -> bool:
    """Return True for an instance of a type, without a look at `core.validation.structure`."""
    origin, arguments = get_origin(type_), get_args(type_)
    if type_ is Any or type_ is object:
        return True
    if type_ is None:
        return value is None
    if origin is Annotated:
        return fits(value, arguments[0])
    if origin is Union or (origin is not None and origin.__name__ == "UnionType"):
        return any(fits(value, member) for member in arguments)
    if origin is Literal:
        return any(value is member or (type(value) is type(member) and value == member) for member in arguments)
    if isinstance(type_, NewType):
        return fits(value, type_.__supertype__)
    if is_typeddict(type_):
        return type(value) is dict and value.keys() == {"text"} and fits(value["text"], str)
    if type_ is Pair:
        return isinstance(value, Pair) and fits(value.one, int) and fits(value.other, str)
    if origin is Box:
        return type(value) is Box and fits(operator.attrgetter("inside")(value), arguments[0])
    if type_ in (int, float, str, bool, bytes):
        return type(value) is type_
    if not isinstance(value, origin or type_):
        return False
    items: Any = value
    if isinstance(value, Mapping):
        key, inner = (*arguments, Any, Any)[:2]
        if isinstance(value, collections.Counter):
            inner = int
        return all(fits(k, key) and fits(v, inner) for k, v in items.items())
    if isinstance(value, tuple) and arguments[1:] != (...,):
        return type_ is tuple or (
            len(items) == len(arguments) and all(fits(v, t) for v, t in zip(items, arguments, strict=True))
        )
    if origin is not None:
        return all(fits(item, arguments[0]) for item in items)
    return True


@given(TYPES, VALUES, st.sampled_from(["json", "client", "strings", "rows"]))
@example(Colour, "zzz", "json")
@example(Rank, 7, "rows")
@example(Size, "zzz", "strings")
@example(collections.deque[int], [1], "json")
@example(made(Annotated, (dict, "said")), {"a": 1}, "json")
@example(Annotated[Note, "said"], {"text": "a"}, "json")
@example(Note, {"text": "a", "number": 1}, "client")
@example(made(Annotated, (tuple, "said")), [1], "json")
@example(tuple[()] | None, [1], "json")
def test_what_is_read_is_an_instance_of_the_type_or_an_issue(type_: Any, value: Any, source: Any) -> None:
    try:
        read = structure(value, type_, source)
    except StructureError as error:
        said = [issue["message"] for issue in error.issues]
        if not said or any("mapping" in text or "isambiguate" in text for text in said):
            raise
    except (DeveloperError, TypeError) as error:
        refused = str(error)
        unread = any(refused.startswith(f"{name.__name__} cannot be read from JSON") for name in UNREAD)
        if not unread and "no field tells their objects apart" not in refused:
            raise
    else:
        assert fits(read, type_)


@pytest.mark.parametrize(
    "type_", [Moment, Path, bytearray, complex, dt.timedelta, list[Path], Path | None, dict[str, Path | None]]
)
def test_a_type_that_json_has_not_is_refused_before_any_value(type_: Any) -> None:
    with pytest.raises(TypeError, match="cannot be read from JSON"):
        structure(None, type_)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (object, {"a": [1]}),
        (list[object], [1, None, "a"]),
        (dict[str, object], {"a": [1]}),
        (object | None, {}),
        (dict[str, object] | None, {"a": 1}),
    ],
)
def test_an_object_is_any_value_wherever_it_stands(type_: Any, value: Any) -> None:
    assert structure(value, type_, "client") == value
    assert structure(value, type_) == value


@pytest.mark.parametrize(
    ("type_", "value", "strings"), [(Colour, "red", "red"), (Size, "s", "s"), (Rank, 1, "1"), (Rate, 0.5, "0.5")]
)
def test_an_enum_of_texts_or_numbers_is_read_as_its_member(type_: Any, value: Any, strings: str) -> None:
    member = next(iter(type_))
    for read in (structure(value, type_), structure(strings, type_, "strings"), hook_of(type_, "rows")(value)):
        assert read is member
    with pytest.raises(StructureError, match="must be one of"):
        structure("zzz", type_)


def test_flags_are_read_as_the_sum_of_their_members() -> None:
    both = Access.READ | Access.WRITE
    for read in (structure(3, Access), structure("3", Access, "strings")):
        assert read is both
    assert structure(0, Access) == Access(0)
    for wrong in (4, -1, True, 1.0, "3", None):
        with pytest.raises(StructureError, match="must be 0 or a sum of 1, 2"):
            structure(wrong, Access)
    assert schema_of(Access) == {"type": "integer", "minimum": 0, "maximum": 3}


def messages(value: Any, type_: Any, *source: Any) -> list[tuple[str, str]]:
    with pytest.raises(StructureError) as caught:
        structure(value, type_, *source)
    return [(issue["path"], issue["message"]) for issue in caught.value.issues]


def test_a_union_of_classes_says_by_which_field_they_are_told_apart() -> None:
    said = 'must be Card or Bill: with "number" it is Card or with "iban" it is Bill'
    assert messages({"paid": {"cash": 1}}, dict[str, Card | Bill]) == [("paid", said)]
    assert messages({"paid": "x"}, dict[str, Card | Bill]) == [("paid", "must be an object")]
    assert messages({"iban": 1}, Card | Bill) == [("iban", "must be a string")]
    told = '"kind" is one of "cat", "dog"'
    assert messages({"kind": "cow"}, Cat | Dog) == [("", f"must be Cat or Dog: {told}")]
    assert messages({"kind": "cow"}, Cat | Dog | None) == [("", f"must be Cat or Dog or null: {told}")]
    assert messages(1, Cat | Dog | None) == [("", "must be Cat or Dog or null")]
    assert structure({"kind": "dog", "name": "a"}, Cat | Dog) == Dog("dog", "a")


@pytest.mark.parametrize(
    "type_",
    [
        tuple[int, *tuple[str, ...]],
        tuple[*tuple[int, str], float],
        made(tuple, (Unpack[tuple[int, ...]], str)),
        list[tuple[int, *tuple[str, ...]] | None],
    ],
)
def test_a_tuple_with_an_unpacked_part_is_the_developer_s_mistake(type_: Any) -> None:
    with pytest.raises(DeveloperError, match="a tuple with an unpacked part cannot be read"):
        structure([1, "a"], type_)


def test_a_union_that_nothing_tells_apart_is_the_developer_s_mistake() -> None:
    unions: list[Any] = [Card | Twin, list[Card | Twin | None]]
    for type_ in unions:
        with pytest.raises(DeveloperError, match=r"Card \| Twin cannot be read: .* Give each a field"):
            structure({"number": "1"}, type_)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (dict, {"a": [1]}), (list, [1, "a"]), (tuple, (1, "a")), (set, {1, "a"}), (collections.deque, [1]), (Note, {"text": "a"}),
        (collections.Counter[str], {"a": 1}), (collections.defaultdict[str, int], {"a": 1}), (dict[str, int], {"a": 1}),
    ],
)  # fmt: skip
def test_what_a_type_is_annotated_with_changes_nothing(type_: Any, value: Any) -> None:
    given: Any = value if hasattr(value, "keys") else list(value)
    annotated = made(Annotated, (type_, "said"))
    for each in (annotated, made(Optional, annotated)):
        read: Any = structure(given, each)
        assert read == structure(given, type_)
        assert type(read) is type(structure(given, type_))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (dict[int, str], {1: "a", -2: "b"}), (dict[bool, int], {True: 1}), (dict[float, int], {1.5: 1}), (dict[Rank, int], {Rank.FIRST: 2}),
        (dict[UserId, list[int]], {UserId(7): [1]}), (dict[Annotated[int, "said"], int], {1: 2}), (dict[Literal[1, 2], str], {2: "a"}),
        (collections.Counter[int], collections.Counter({3: 1})), (collections.defaultdict[int, list[int]], {1: [2]}),
        (dict[dt.date, int], {dt.date(2026, 1, 2): 1}), (Mapping[int, Mapping[int, int]], {1: {2: 3}}),
    ],
)  # fmt: skip
def test_what_is_written_under_keys_of_a_type_is_read_again(type_: Any, value: Any) -> None:
    for source in ("json", "client"):
        assert structure(loads(dumps(value)), type_, source) == value
    assert structure_row({"a": dumps(value)}, made(dict, (str, type_))) == {"a": value}


def test_a_key_that_stands_for_no_value_of_its_type_is_a_mistake() -> None:
    assert messages({"1": "a", "x": "b"}, dict[int, str]) == [("x", "must be an integer")]
    assert structure({1: "a"}, dict[int, str]) == {1: "a"}
    assert messages({"maybe": 1}, dict[bool, int]) == [("maybe", "must be true or false")]


def test_a_typed_dict_has_its_own_names_alone() -> None:
    given: dict[str, Any] = {"name": "a", "is_admin": True, "note": {"text": "b", "more": 1}}
    assert structure(given, Person, "client") == {"name": "a", "note": {"text": "b"}}
    assert structure({"name": "a"}, Person) == {"name": "a"}
    assert structure_row({"name": "a", "is_admin": 1}, Person) == {"name": "a"}
    assert given["is_admin"] is True


@pytest.mark.parametrize(("type_", "required"), [(Marked, {"a"}), (MarkedMore, {"a", "d"})])
def test_marks_of_a_typed_dict_count_where_annotations_are_texts(type_: Any, required: set[str]) -> None:
    whole: dict[str, Any] = {"a": 1, "b": "x", "c": 2} | ({"d": 3, "e": "y"} if type_ is MarkedMore else {})
    needed = {name: whole[name] for name in required}
    assert structure(whole, type_) == whole
    assert structure(needed, type_, "client") == needed
    for name in required:
        assert messages({key: whole[key] for key in whole if key != name}, type_) == [(name, "is required")]
    assert set(schema_of(type_)["required"]) == required


def test_a_dataclass_is_read_as_an_attrs_class_is() -> None:
    wanted = Place(1, "a", Point(2))
    assert structure({"x": 1, "name": "a", "inside": {"x": 2}}, Place) == wanted
    assert structure_row({"x": 1, "name": "a", "inside": '{"x": 2}'}, Place) == wanted
    for value in (5, "x", None, [1]):
        assert messages({"a": [value]}, dict[str, list[Point]]) == [("a[0]", "must be an object")]
    assert messages({"name": 1}, Place) == [("x", "is required"), ("name", "must be a string")]
    # By order alone the first would take the object, and the name of the place would be lost.
    unions: list[Any] = [Point | Place, Place | Point]
    for type_ in unions:
        with pytest.raises(DeveloperError, match="cannot be read"):
            structure({"x": 1, "name": "a"}, type_)
    assert messages({"y": 1}, Point | Card) == [
        ("", 'must be Point or Card: with "x" it is Point or with "number" it is Card')
    ]


@attrs.frozen
class Order:
    paid: Card | Bill
    more: dict[str, Any] | None
    many: list[Card | Bill] | Card | None = None


def test_unions_in_a_row_are_read_from_json_text() -> None:
    row = {
        "paid": '{"iban": "DE1", "until": "2024-01-02"}', "more": '{"a": [1]}', "many": '[{"number": "4"}]',
    }  # fmt: skip
    order = structure_row(row, Order)
    assert order == Order(Bill("DE1", dt.date(2024, 1, 2)), {"a": [1]}, [Card("4")])
    assert structure_row({"paid": '{"number": "1"}', "more": None, "many": None}, Order) == Order(Card("1"), None)
    with pytest.raises(StructureError) as caught:
        structure_row({"paid": '{"cash": 1}', "more": "x"}, Order)
    assert [issue["path"] for issue in caught.value.issues] == ["paid", "more"]


@attrs.frozen
class Tree:
    branches: list[Tree | Card]


def test_a_class_may_be_in_a_union_in_itself() -> None:
    value: dict[str, object] = {"branches": [{"branches": []}, {"number": "1"}]}
    assert structure(value, Tree) == Tree([Tree([]), Card("1")])


def _quoted(name: str) -> type[Any]:
    """A class as a module without `from __future__ import annotations` has it."""
    made: Any = list
    return type(name, (), {"__module__": __name__, "__annotations__": {"nodes": made[name], "kind": Literal["a"]}})


QuotedNode: Any = attrs.frozen(_quoted("QuotedNode"))
QuotedRow: Any = dataclasses.dataclass(_quoted("QuotedRow"))


@pytest.mark.parametrize("cls", [QuotedNode, QuotedRow])
def test_a_class_may_have_its_name_in_quotes_inside_a_type(cls: Any) -> None:
    leaf = {"nodes": [], "kind": "a"}
    assert structure({"nodes": [leaf], "kind": "a"}, cls) == cls([cls([], "a")], "a")
    assert messages({"nodes": [leaf | {"nodes": [1]}], "kind": "a"}, cls) == [
        ("nodes[0].nodes[0]", "must be an object")
    ]


# -- whole numbers that a client sends

MOST = 2**53 - 1
SAID = "must be a whole number from -(2^53-1) to 2^53-1"


@given(st.one_of(st.integers(), st.integers(-MOST - 2, MOST + 2), st.sampled_from([MOST, MOST + 1, -MOST, -MOST - 1])))
def test_whole_numbers_of_a_client_are_those_that_every_place_has(number: int) -> None:
    if abs(number) <= MOST:
        assert structure(number, int, "client") == structure(str(number), int, "strings") == number
    else:
        assert messages({"a": [number]}, dict[str, list[int]], "client") == [("a[0]", SAID)]
        assert messages(str(number), int, "strings") == [("", SAID)]
    # What the application stored itself is read as it was.
    assert structure(number, int) == number
    assert structure_row({"n": number}, Numbered).n == number


@attrs.frozen
class Numbered:
    n: int


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/9007199254740992", "{}", 404),
        ("/9007199254740991", '{"n": 1}', 200),
        ("/1", '{"n": 9007199254740992}', 422),
        ("/1?n=-9007199254740992", '{"n": 1}', 422),
        (f"/1?cursor={cursor_text(MOST + 1)}", '{"n": 1}', 422),
        (f"/1?cursor={cursor_text(MOST)}", '{"n": 1}', 200),
    ],
)
async def test_a_number_that_no_binding_takes_is_the_client_s_mistake(path: str, body: str, status: int) -> None:
    app: App[Any] = App()

    @app.post("/:n")
    async def show(req: Request[Any], res: Response) -> None:
        numbers = [req.params.parse(Numbered).n, (await req.json(Numbered)).n]
        if "n" in req.query:
            numbers.append(req.query.parse(Numbered).n)
        after = cursor_of(req, int).after
        res.json([*numbers, after])

    request = http.Request(f"https://x.test{path}", method="POST", body=body)
    response = await app.fetch(request, object(), FakeExecutionContext())
    assert (response.status, json.loads(await response.text()) is not None) == (status, True)


# -- types with names of their own

Tags = TypeAliasType("Tags", list[str])
Ids = NewType("Ids", list[int])
Json: TypeAlias = Union[dict[str, "Json"], list["Json"], str, int, None]  # noqa: UP007  # as 3.11 has to write it
STATEMENT = "type Json = dict[str, Json] | list[Json] | str | int | None\n@attrs.frozen\nclass Holder:\n    json: Json"


@attrs.frozen
class Named:
    tags: Tags
    ids: Ids
    more: Optional[Tags] = None  # noqa: UP045  # as programs write it, too


@attrs.frozen
class Holder:
    json: Json


def holders() -> list[Any]:
    names: dict[str, Any] = {"attrs": attrs}
    if sys.version_info >= (3, 12):
        exec(compile(STATEMENT, "holder", "exec", dont_inherit=True), names)
    return [Holder, *filter(None, [names.get("Holder")])]


def test_the_fields_of_a_query_s_class_are_looked_at_once_and_not_with_each_request() -> None:
    few, many = (
        attrs.make_class("Search", {f"a{n}": attrs.field(type=list[str]) for n in range(size)}) for size in (1, 30)
    )
    assert (len(list_fields(few)), len(list_fields(many))) == (1, 30)
    assert calls_of(lambda: list_fields(few))[0] == calls_of(lambda: list_fields(many))[0]


def test_several_values_of_a_query_are_found_behind_the_name_of_a_type() -> None:
    assert list_fields(Named) == {"tags", "ids", "more"}
    read = structure({"tags": ["a"], "ids": ["1", "2"], "more": ["b"]}, Named, "strings")
    assert read == Named(["a"], Ids([1, 2]), ["b"])


@pytest.mark.parametrize("holder", holders())
@pytest.mark.parametrize("depth", [1, 150])
def test_a_type_that_has_itself_in_it(holder: Any, depth: int) -> None:
    right: Any = {"a": [None, 1, "b"]}
    wrong: Any = {"a": 1.5}
    for _ in range(depth):
        right, wrong = [right], [wrong]
    assert structure({"json": right}, holder) == holder(right)
    assert len(messages({"json": wrong}, holder)) == 1
    itself = {"$ref": "#/$defs/Json"}
    assert schema_of(holder)["$defs"]["Json"]["anyOf"][:2] == [
        {"type": "object", "additionalProperties": itself},
        {"type": "array", "items": itself},
    ]


def test_schemas_of_types_with_names() -> None:
    assert schema_of(Named)["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}


def test_the_schema_of_a_class_has_the_arguments_of_its_generic_base() -> None:
    assert schema_of(Crate)["properties"] == {"inside": {"type": "integer"}, "label": {"type": "string"}}
    assert structure({"inside": 1, "label": "a"}, Crate) == Crate(1, "a")


class Letter(str, enum.Enum):  # noqa: UP042  # programs have them
    A = "a"
    B = "b"


@attrs.frozen
class Chosen:
    letter: Letter = attrs.field(validator=attrs.validators.in_({Letter.A}))


def test_a_choice_of_an_enum_s_members_is_named_as_a_client_sends_it() -> None:
    assert messages({"letter": "b"}, Chosen) == [("letter", 'must be one of "a"')]
    assert schema_of(Chosen)["properties"]["letter"]["const"] == "a"


def test_the_schema_of_a_named_tuple_whose_annotations_are_texts() -> None:
    assert schema_of(Pair) == {
        "type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2,
    }  # fmt: skip


def test_the_values_of_a_counter_are_numbers() -> None:
    assert schema_of(collections.Counter[str]) == {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    "pattern", [re.compile("(?P<street>[a-z]+) [0-9]", re.IGNORECASE), re.compile("(?i)[a-z]+ [0-9]")]
)
def test_a_pattern_for_either_case_says_the_same_in_a_schema(pattern: re.Pattern[str]) -> None:
    @attrs.frozen
    class Address:
        line: str = attrs.field(validator=attrs.validators.matches_re(pattern))

    written = schema_of(Address)["properties"]["line"]["pattern"]
    assert re.search(written, "Aa 1")
    assert not re.search(written, "Aa 1 b")


@pytest.mark.parametrize("text", ["(?P<quote>['\"]).*(?P=quote)", "(?#a note)a", "(?>a+)b", "(?i:a)b", "(a)?(?(1)b|c)"])
def test_a_pattern_that_python_alone_has_is_named_as_not_read(text: str) -> None:
    found = demanded(attrs.validators.matches_re(text))
    assert list(found) == ["$unread"]
    assert f"matches_re({text!r}): JSON Schema has no " in found["$unread"][0]
