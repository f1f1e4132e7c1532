"""JSONC means what JSON means, and every key has its line."""

from __future__ import annotations

import json
import time
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.key_paths import paths

from core.config.jsonc_text import JsoncError, parse_jsonc

DOCUMENT = """\
// first
{
  "name": "x", /* a comment
  over lines */ "main": "src/main.py",
  "url": "http://not-a-comment/*nor this*/",
  "kv_namespaces": [
    { "binding": "A" }, // one
    { "binding": "B", },
  ],
}
"""


def test_comments_and_trailing_commas_are_read_over() -> None:
    value, lines = parse_jsonc(DOCUMENT)
    assert value == {
        "name": "x",
        "main": "src/main.py",
        "url": "http://not-a-comment/*nor this*/",
        "kv_namespaces": [{"binding": "A"}, {"binding": "B"}],
    }
    assert lines["name",] == 3
    assert lines["main",] == 4
    assert lines["kv_namespaces", 1] == lines["kv_namespaces", 1, "binding"] == 8
    assert set(lines) == paths(value)


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        (
            '{"a": "\\ud83d\\ude00",\n "b": "x\\uD83D"}',
            "\\ud83d is half of a character. Write its other half beside it, or leave it out",
            2,
            9,
        ),
        ('{"\\udc00": 1}', "\\udc00 is half of a character. Write its other half beside it, or leave it out", 1, 3),
        ("", "the text ends where a value is wanted. Close the open brackets, or write {} for nothing", 1, 1),
        ('{"a": 1', "this { is not closed. Write } where it ends", 1, 1),
        (
            '{\n "a": [1,\n',
            "the text ends where a value is wanted. Close the open brackets, or write {} for nothing",
            3,
            1,
        ),
        ('{\n "a": [1\n', "this [ is not closed. Write ] where it ends", 2, 7),
        ("{", "this { is not closed. Write } where it ends", 1, 1),
        ('{"a" 1}', 'a colon is wanted after "a"', 1, 6),
        ('{"a": 1 "b": 2}', "a comma or } is wanted here", 1, 9),
        ("[1 2]", "a comma or ] is wanted here", 1, 4),
        ("{a: 1}", "a key in double quotes is wanted here", 1, 2),
        ("[,]", "a value is wanted here, not ','. Put a string in double quotes", 1, 2),
        ("{'a': 1}", "a key in double quotes is wanted here", 1, 2),
        ("'a'", "JSON has no single quotes. Use double quotes", 1, 1),
        ("NaN", "NaN is not a value in JSON. Put a string in double quotes", 1, 1),
        ("[True]", "True is not a value in JSON. Put a string in double quotes", 1, 2),
        ('"a\nb"', "this string does not end on its line, or has an escape that JSON does not know. Fix it", 1, 1),
        ('"\\x"', "this string does not end on its line, or has an escape that JSON does not know. Fix it", 1, 1),
        ("{} {}", "there is something after the end of the value. Remove it", 1, 4),
        ("01", "there is something after the end of the value. Remove it", 1, 2),
        ("/* x", "this comment does not end. Close it with */", 1, 1),
        ('{"a": 1,\n"a": 2}', '"a" is here for the second time, first on line 1. Remove one', 2, 1),
        ("[" * 300, "this is nested deeper than 200 levels. Make it flatter", 1, 202),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(JsoncError) as caught:
        parse_jsonc(text)
    assert (caught.value.message, caught.value.line, caught.value.column) == (message, line, column)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_what_json_writes_is_read_alike(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    parsed, lines = parse_jsonc(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert parsed == value
    assert set(lines) == paths(value)


@given(values, st.randoms(use_true_random=False))
def test_comments_anywhere_between_tokens_change_nothing(value: Any, random: Any) -> None:
    decorated: list[str] = []

    def write(item: object) -> None:
        decorated.append(random.choice(["", " ", '// c " }\n', '/* * / " ] */', "\n"]))
        match item:
            case dict():
                table = cast("dict[str, object]", item)
                decorated.append("{")
                for position, (key, inner) in enumerate(table.items()):
                    decorated.append("," * bool(position) + random.choice(["", "\n", "/**/"]) + json.dumps(key) + ": ")
                    write(inner)
                decorated.append(random.choice(["", ","]) * bool(table) + "}")
            case list():
                items = cast("list[object]", item)
                decorated.append("[")
                for position, inner in enumerate(items):
                    decorated.append("," * bool(position))
                    write(inner)
                decorated.append(random.choice(["", ",", ", // end\n"]) * bool(items) + "]")
            case _:
                decorated.append(json.dumps(item))

    write(value)
    assert parse_jsonc("".join(decorated))[0] == value


@given(st.text(alphabet='{}[]",:/*\n 01ae.-\\', max_size=30))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    refused: JsoncError | None = None
    try:
        parse_jsonc(text)
    except JsoncError as error:
        refused = error
    if refused is not None:
        assert 1 <= refused.line <= text.count("\n") + 1
        assert refused.column >= 1


@pytest.mark.slow
def test_reading_takes_time_in_proportion_to_the_text() -> None:
    text = "[" + ",".join(['{"key": "value", /* c */ "other": [1, 2.5e3, null]}'] * 20_000) + "]"
    start = time.process_time()
    parse_jsonc(text)
    assert time.process_time() - start < 10
