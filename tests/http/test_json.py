"""JSON: what is written and how, what is refused and where, and what reading lets through."""

from __future__ import annotations

import dataclasses
import enum
import json as stdlib
import math
import shutil
import subprocess
import sys
import types
import uuid
from collections import OrderedDict, UserString, deque
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.http import json


@attrs.frozen
class Point:
    x: int
    y: float


@attrs.frozen
class One:
    points: list[Point]


@attrs.define
class Node:
    child: object = None


@dataclasses.dataclass
class Data:
    a: int
    b: str
    kind: ClassVar[str] = "no field"


class Pair(NamedTuple):
    a: int
    b: int


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    HI = "hi"


class Folded(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return {"a": 1}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2, {"b": "日 <>&"}]}, '{"a":[1,2,{"b":"日 <>&"}]}'),
        ({"n": None, "t": True, "f": False, "x": 1.5, "y": 1e100}, '{"n":null,"t":true,"f":false,"x":1.5,"y":1e+100}'),
        ('"\\\n\x00\u2028', '"\\"\\\\\\n\\u0000\u2028"'),
        ([], "[]"),
        ((), "[]"),
        ("x", '"x"'),
        (None, "null"),
        (-0.0, "-0.0"),
        (2**70, "1180591620717411303424"),
        (One([Point(1, 2.5)]), '{"points":[{"x":1,"y":2.5}]}'),
        (Data(1, "z"), '{"a":1,"b":"z"}'),
        (Pair(1, 2), "[1,2]"),
        ([Colour.RED, Level.HIGH, Word.HI], '["red",3,"hi"]'),
        (Folded(), '{"a":1}'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        (OrderedDict([("b", 1), ("a", 2)]), '{"b":1,"a":2}'),
        ({5}, "[5]"),
        (frozenset({"q"}), '["q"]'),
        (deque([1, deque([2])]), "[1,[2]]"),
        (range(3), "[0,1,2]"),
        ({"k": 1}.keys(), '["k"]'),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), '"2026-01-02T03:04:05Z"'),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=1))), '"2026-01-02T03:04:05.000006+01:00"'),
        (datetime(2026, 1, 2), '"2026-01-02T00:00:00"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (time(1, 2, tzinfo=UTC), '"01:02:00Z"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), '"1.10"'),
    ],
)
def test_a_value_is_written_compactly_in_its_documented_form(value: object, text: str) -> None:
    assert json.dumps(value) == text


def test_keys_are_written_as_json_spells_them() -> None:
    assert json.dumps({1: 1, 1.5: 2, False: 3, None: 4}) == '{"1":1,"1.5":2,"false":3,"null":4}'
    assert json.dumps({Level.HIGH: 1, Word.HI: 2, Colour.RED: 3}) == '{"3":1,"hi":2,"red":3}'
    assert json.dumps([{uuid.UUID(int=1): Point(1, 2.0)}, {date(2026, 1, 2): {3}}]) == (
        '[{"00000000-0000-0000-0000-000000000001":{"x":1,"y":2.0}},{"2026-01-02":[3]}]'
    )


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (math.nan, ValueError, "the value is nan"),
        ({"items": [{"price": math.inf}]}, ValueError, "items[0].price is inf"),
        (One([Point(1, 2.0), Point(1, -math.inf)]), ValueError, "points[1].y is -inf"),
        ([Decimal("NaN")], ValueError, "[0] is NaN"),
        ({"a": {"b": b"x"}}, TypeError, "a.b is bytes"),
        ([memoryview(b"x")], TypeError, "[0] is bytes"),
        ({"a": object()}, TypeError, "a is of type object"),
        ({"a": UserString("b")}, TypeError, "a is of type UserString"),
        ({"a": (n for n in [1])}, TypeError, "a is of type generator"),
        ({"a": timedelta(1)}, TypeError, "a is of type timedelta"),
        (Point, TypeError, "the value is of type type"),
        ({"a": {(1, 2): 3}}, TypeError, "a has a key of type tuple"),
        ({"a": {b"k": 3}}, TypeError, "a has a key of type bytes"),
        ({math.nan: 3}, (TypeError, ValueError), "has a key of type float"),
        ({"n": 10**5000}, ValueError, "n is an int with too many digits"),
    ],
)
def test_what_json_cannot_have_is_refused_with_its_place(value: object, kind: Any, says: str) -> None:
    with pytest.raises(kind) as refused:
        json.dumps(value)
    assert says in str(refused.value)


def test_a_cycle_is_told_as_one_wherever_it_is() -> None:
    ring: dict[str, Any] = {"a": []}
    ring["a"].append(ring)
    with pytest.raises(ValueError, match=r"^a\[0\] is inside itself"):
        json.dumps(ring)
    node = Node()
    node.child = [node]
    with pytest.raises(ValueError, match=r"^child\[0\] is inside itself"):
        json.dumps(node)
    shared = [1]
    assert json.dumps([shared, shared]) == "[[1],[1]]"


def nested(levels: int, inner: Any) -> Any:
    for number in range(levels):
        inner = [1, inner] if number % 2 else {"a": inner}
    return inner


def test_what_is_written_is_nested_200_levels_at_most() -> None:
    deepest = nested(json.MAX_DEPTH, 1)
    assert json.loads(json.dumps(deepest)) == deepest
    assert json.dumps(json.loads("[" + "[]," * 4999 + "[]]")) == f"[{','.join(['[]'] * 5000)}]"
    with pytest.raises(ValueError, match=r"^x\[1\]\.a\[1\]\.a.*….* is nested too deeply for JSON, 200 levels at most"):
        json.dumps({"x": deepest})


@given(st.integers(195, 205), st.sampled_from([1, [], {}, Point(1, 2.0), Colour.RED, (), {1}, uuid.UUID(int=7)]))
def test_a_worker_refuses_before_its_encoder_what_the_text_would_show_afterwards(levels: int, inner: Any) -> None:
    value = nested(levels, inner)
    try:
        json.dumps(value)
    except ValueError:
        return  # exactly the limit; before the encoder it may be one level more
    json.check_nesting(value)


def test_a_worker_refuses_cycles_and_what_is_far_too_deep_before_its_encoder() -> None:
    ring: list[Any] = []
    ring += [ring, {"a": ring}, Node(ring)]
    for value in (ring, nested(202, 1), Node(nested(200, [Node([])])), [nested(10_000, 1)]):
        with pytest.raises(ValueError, match="nested too deeply"):
            json.check_nesting(value)


def test_a_nesting_that_is_too_deep_is_told_and_never_a_recursion_error() -> None:
    deep: Any = []
    for _ in range(200_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        json.dumps(deep)
    while deep:  # taken apart by hand: the interpreter frees it by recursion
        deep = deep[0]


def test_what_the_value_s_own_code_raises_comes_through() -> None:
    class Broken(Folded):
        def __getitem__(self, key: str) -> int:
            raise ValueError("my own")

    with pytest.raises(ValueError, match="my own"):
        json.dumps([Broken()])


def test_lone_surrogates_are_escaped_so_that_the_text_can_leave() -> None:
    assert json.dumps({"\udc00": "é\ud800"}) == '{"\\udc00":"é\\ud800"}'
    assert json.loads(json.dumps("\ud83d\ude00").encode()) == "\U0001f600"


@pytest.mark.slow
def test_classes_without_end_do_not_fill_the_memory() -> None:
    for number in range(1500):
        json.dumps(attrs.make_class(f"C{number}", ["a"])(1))
    assert json._converter.cache_info().currsize <= 1024


def test_a_runtime_without_the_c_encoder_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    value = [{"a": [1, "é", None]}, Point(1, 2.0), {Colour.RED}]
    expected = json.dumps(value)
    monkeypatch.setattr("json.encoder.c_make_encoder", None)
    monkeypatch.setitem(sys.modules, "_json", None)
    plain = json._encoder()
    assert type(plain).__name__ == "function"
    monkeypatch.setattr(json, "_encode", plain)
    assert json.dumps(value) == expected
    with pytest.raises(ValueError, match=r"\[0\] is nan"):
        json.dumps([math.nan])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_plain_values_come_back_and_are_written_as_the_standard_library_writes_them(value: Any) -> None:
    text = json.dumps(value)
    assert json.loads(text) == value
    assert json.loads(text.encode()) == stdlib.loads(text) == value
    reference = stdlib.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if "\\ud" not in text:
        assert text == reference


# ---- reading


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"null", None),
        (b' {"a": 1} \r\n\t', {"a": 1}),
        ("[1,2]", [1, 2]),
        (b"[1,2]\n", [1, 2]),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b"\xef\xbb\xbf [1] ", [1]),
        (bytearray(b"1"), 1),
        (memoryview(b'"x"'), "x"),
        (b'"\\ud800"', "\ud800"),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"NaN"', "NaN"),
        (b"-0", 0),
        (b"1e5", 100000.0),
    ],
)
def test_a_document_is_read(data: Any, value: object) -> None:
    assert json.loads(data) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{bad",
        b"[1,]",
        b"[1] 2",
        b"[1]\xc2\xa0",
        b"[1]\x0b",
        b"01",
        b"+1",
        b".5",
        b"'a'",
        b'"\n"',
        b"nul",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'[1, "NaN", NaN]',
        b" [Infinity] ",
        b"\xff",
        b'"\xc3"',
        b'"\xed\xa0\x80"',
        "\ufeff1",
        b"\xef\xbb\xbf\xef\xbb\xbf1",
        b"\xff\xfe1\x00",
        b"1" * 5000,
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b" " + b"[" * 200_000,
    ],
)
def test_what_is_not_json_is_a_decode_error_and_nothing_else(data: Any) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        json.loads(data)
    assert type(refused.value) is json.JSONDecodeError


def test_an_error_says_where() -> None:
    with pytest.raises(json.JSONDecodeError) as refused:
        json.loads(b'["NaN",\n NaN]')
    assert (refused.value.lineno, refused.value.colno) == (2, 2)
    with pytest.raises(json.JSONDecodeError) as refused:
        json.loads(b'"\xc3\xa9\n\xff"')
    assert refused.value.pos == 3


@given(st.binary(max_size=12) | st.text(st.sampled_from('[]{},:"\\0123.eE-+ \nNaInfity\ud800'), max_size=12))
def test_reading_agrees_with_the_standard_library_but_for_what_json_has_not(data: bytes | str) -> None:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        expected = stdlib.loads(text.removeprefix("\ufeff") if isinstance(data, bytes) else text)
        if any(name in stdlib.dumps(expected) for name in ("NaN", "Infinity")):
            return
    except (ValueError, UnicodeDecodeError):
        with pytest.raises(json.JSONDecodeError):
            json.loads(data)
    else:
        assert json.loads(data) == expected


# ---- how deep


def depth_of(text: str) -> int:
    """The depth that a reader reaches, one character after the other:
    up to the first mistake that the library reports.
    """
    try:
        stdlib.loads(text)
        end = len(text)
    except stdlib.JSONDecodeError as error:
        end = error.pos
    deepest = depth = 0
    in_string = escaped = False
    for character in text[:end]:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def is_json(text: str) -> bool:
    try:
        stdlib.loads(text)
    except ValueError:
        return False
    return True


pieces = st.lists(
    st.sampled_from(
        ["[", "]", "{", "}", '"', "\\", '\\"', '"a":', ",", ":", " ", "1", "a", "é", "\ud800", "[[", '"]"']
    ),
    max_size=40,
).map("".join)
documents = st.builds(
    stdlib.dumps,
    st.recursive(
        st.text(alphabet='[]{}"\\a', max_size=6) | st.integers(0, 9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[]{}"\\', max_size=3), inner),
        max_leaves=30,
    ),
    ensure_ascii=st.booleans(),
)


@given(pieces | documents, st.integers(1, 9))
def test_the_quick_look_at_a_depth_agrees_with_one_character_after_the_other(text: str, most: int) -> None:
    exact = depth_of(text) > most
    quick = json._is_deep(text, most)
    # Of what is no JSON, no reader may come further than was seen; more may be seen, since it is refused anyway.
    assert quick == exact if is_json(text) else quick or not exact


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"\\\\":', '[1,{"]}\\"":'])
def test_200_levels_are_read_and_201_are_not(opening: str) -> None:
    per = opening.count("[") + opening.count('{"')
    closing = "".join({"[": "]", "{": "}"}[c] for c in reversed(opening.replace("]}", "")) if c in "[{")
    for levels in (200, 202):
        text = opening * (levels // per) + "1" + closing * (levels // per)
        assert depth_of(text) == levels
        if levels == 200:
            assert json.loads(text) == json.loads(text.encode()) == stdlib.loads(text)
            assert json.loads(f'["{"[" * 5000}",{text[1:-1]}]' if opening == "[" else text) is not None
        else:
            with pytest.raises(json.JSONDecodeError, match="Nested deeper than 200 levels"):
                json.loads(text)


# ---- numbers


@pytest.mark.parametrize("number", ["1e999", "-1e400", "1.8e308", "9" * 400 + ".0", "1E+0309"])
def test_a_number_beyond_a_float_is_no_infinity(number: str) -> None:
    many = f"[{'-1.5e-7,' * 5000}"
    for text, at in ((number, 0), (f'{{"1e999": [1.5, {number}]}}', 16), (f"{many}{number}]", len(many))):
        with pytest.raises(json.JSONDecodeError, match="Number beyond the range of a float") as caught:
            json.loads(text)
        assert caught.value.pos == at


def test_the_largest_and_the_smallest_numbers_are_read() -> None:
    for many in (0, 5000):
        text = f"[{'0.1,' * many}1.7976931348623157e308, 5e-324, 1e-999]"
        assert json.loads(text) == [0.1] * many + [sys.float_info.max, 5e-324, 0.0]


# ---- with msgspec


@pytest.fixture
def installed() -> Iterator[None]:
    pytest.importorskip("msgspec", reason="core-edge[fast] is not installed")
    json._plain_reader.cache_clear()
    yield
    json._plain_reader.cache_clear()


numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces
    | documents
    | st.lists(numbers | st.text().map(stdlib.dumps) | pieces, max_size=5).map(lambda some: f"[{','.join(some)}]")
)
def test_with_msgspec_a_document_is_read_or_refused_as_without_it(installed: None, text: str) -> None:
    # Blanks make a document one that is worth it.
    for whole in (text + " " * 1000, '["' + "é" * 1000 + '",' + text + "]"):
        found: list[object] = []
        for reader in (json._plain_reader, lambda: None):
            with patch.object(json, "_plain_reader", reader):
                try:
                    found.append(repr(json.loads(whole)))
                except json.JSONDecodeError as error:
                    found.append((str(error), error.pos))
        assert found[0] == found[1]


def test_msgspec_reads_long_documents_and_never_in_a_worker(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    read = json._plain_reader()
    assert read is not None
    assert type(read).__name__ == "builtin_function_or_method"
    json._plain_reader.cache_clear()
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert json._plain_reader() is None


# ---- a bare interpreter

BARE = """
import sys
sys.path[:0] = sys.argv[1:]
from core.http.json import loads
loaded = "json.decoder" in sys.modules
for text in ('{"name": "x"', "", "[1,]", '{"a" 1}', '"\\n"', "[nul]", "NaN", "1e999", "[" * 9000, "9" * 5000, b"\\xff"):
    try:
        loads(text)
    except Exception as error:
        assert type(error).__name__ == "JSONDecodeError", (text[:20], error)
    else:
        raise AssertionError(text[:20])
print("before" if loaded else "only then")
"""
PYTHONS = {sys.executable, *filter(None, (shutil.which(f"python3.{minor}") for minor in range(11, 16)))}


@pytest.mark.slow
@pytest.mark.parametrize("python", sorted(PYTHONS))
def test_a_mistake_is_told_where_nothing_has_loaded_the_json_package(python: str) -> None:
    if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode != 0:
        return  # a name for a version that is not installed
    places = [str(Path(json.__file__ or "").parents[2]), str(Path(attrs.__file__).parents[1])]
    done = subprocess.run([python, "-I", "-S", "-c", BARE, *places], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "only then\n"), done.stderr
