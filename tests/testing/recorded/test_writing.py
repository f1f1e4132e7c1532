"""What `core record` writes is Python that says the same values, and stays as it is under `ruff format`."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.testing import ANY_ID, ANY_TIME, Answer, Jwt
from core.testing.recorded.values import Sent
from core.testing.recorded.writing import literal, quoted, rewritten, written

texts = st.text(max_size=90) | st.text("ab'\"\\\n é", max_size=12)
scalars: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
scalars |= texts | st.binary(max_size=12) | st.datetimes(timezones=st.just(UTC))
scalars |= st.sets(st.integers() | texts, max_size=4)
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def formatted(text: str, width: int) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", str(width), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


@given(values)
def test_a_literal_is_the_value(value: Any) -> None:
    names = {"inf": float("inf"), "datetime": datetime, "Answer": Answer}
    assert eval(f"({literal(value, 4, 20)})", names) == value
    assert eval(literal(Answer(200, value), 4, 20), names) == Answer(200, value)


@given(texts)
def test_a_quoted_text_is_the_text(text: str) -> None:
    assert eval(quoted(text)) == text
    assert eval(quoted(text.encode("utf-8", "replace"))) == text.encode("utf-8", "replace")


@pytest.mark.slow
@settings(max_examples=20)
@example(["", "", "", "", [{"0000": "", "wide ⺀" * 5: -10}]], 79)
@given(st.lists(values, min_size=5, max_size=5), st.sampled_from([79, 88, 120]))
def test_the_formatter_leaves_a_test_as_it_is(given: list[Any], width: int) -> None:
    json, key, body, value, other = given
    sent = Sent("POST", "/a?b=c", {"authorization": Jwt("KEY", {"sub": key}, "Bearer")}, {"id": "1"}, json)
    expected = Answer(201, body, None, {"DB.t": [{"id": ANY_ID, "at": ANY_TIME, "v": value}]})
    text = written("test_it", sent, {"DB.t": [{"v": value, "other": other}]}, 1_800_000_000, expected)

    assert formatted(text, width) == text


@pytest.mark.parametrize("body", [{"a": 1}, {"a": ["é" * 30, "ü" * 40]}, None, datetime(2026, 1, 2, tzinfo=UTC)])
def test_literals_are_written_again_with_the_names_that_they_need(body: Any) -> None:
    sent = Sent("GET", "/")
    before = written("test_it", sent, {}, 0, Answer(200, {"at": ANY_TIME, "é": 1}))

    after = rewritten(before, "test_it", 0, Answer(404, body, "/there", {"KV": [{"key": ANY_ID}]}))

    fresh = written("test_it", sent, {}, 0, Answer(404, body, "/there", {"KV": [{"key": ANY_ID}]}))
    # A name that is needed no longer is for the linter to say.
    assert after == fresh.replace("ANY_ID, Answer", "ANY_ID, ANY_TIME, Answer")
    assert formatted(after, 88) == after
