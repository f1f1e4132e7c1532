"""A document as text: JSON, YAML and a page say the same."""

from __future__ import annotations

from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # has none of its own
from hypothesis import given
from hypothesis import strategies as st

from core.openapi.written import as_json, as_yaml, meaning, page

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), values))
def test_every_document_is_the_same_in_yaml(document: dict[str, Any]) -> None:
    assert yaml.safe_load(as_yaml(document)) == (document or None)


@pytest.mark.parametrize("name", ["no", "on", "200", "/users/{id}", "x-websocket", "$ref", "a b", "null", "~"])
def test_names_that_yaml_could_take_for_something_else_stay_texts(name: str) -> None:
    assert yaml.safe_load(as_yaml({name: [{}, {"a": []}, [1]]})) == {name: [{}, {"a": []}, [1]]}


def test_json_ends_with_a_line_and_keeps_umlauts() -> None:
    assert as_json({"title": "Bücher"}) == '{\n  "title": "Bücher"\n}\n'


def test_a_page_escapes_what_the_document_says() -> None:
    text = page(
        {
            "info": {"title": "<script>alert(1)</script>", "description": "a & b"},
            "paths": {
                "/<b>": {
                    "get": {
                        "operationId": 'x"><img>',
                        "summary": "<i>",
                        "responses": {"200": {"description": "<u>", "content": {"application/json": {"schema": {}}}}},
                    }
                }
            },
            "components": {"schemas": {"A": {"type": "object", "properties": {"<s>": {"const": "<p>"}}}}},
        }
    )
    for raw in ("<script>", "<img>", "<i>", "<u>", "<s>", 'x">', '"<p>"'):
        assert raw not in text
    assert "src=" not in text
    assert "a &amp; b" in text


def test_a_page_tells_the_bounds_of_a_day() -> None:
    day = {"type": "string", "format": "date", "formatMinimum": "2020-01-01"}
    text = page({"info": {"title": "a"}, "paths": {}, "components": {"schemas": {"Day": day}}})
    assert "(formatMinimum 2020-01-01)" in text


def test_order_means_nothing_where_it_says_nothing() -> None:
    one = {"a": {"enum": [1, "x"], "required": ["p", "q"]}, "b": {"prefixItems": [1, 2]}}
    other = {"b": {"prefixItems": [1, 2]}, "a": {"required": ["q", "p"], "enum": ["x", 1]}}
    assert meaning(one) == meaning(other)
    assert meaning(one) != meaning({**other, "b": {"prefixItems": [2, 1]}})
