"""URLSearchParams, as the URL standard has it (web-platform-tests, url/urlsearchparams-*)."""

from __future__ import annotations

from collections.abc import MutableMapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.http import URL, URLSearchParams

PAIRS = st.lists(st.tuples(st.text(), st.text()))


def test_it_is_a_mapping_to_first_values_that_keeps_all_pairs() -> None:
    params = URLSearchParams("?a=1&b=2&a=3&=&c")
    assert isinstance(params, MutableMapping)
    assert list(params.items()) == [("a", "1"), ("b", "2"), ("a", "3"), ("", ""), ("c", "")]
    assert ("a", "3") in params.items()
    assert ("b", "3") not in params.items()
    assert (list(params.keys()), list(params.values())) == (["a", "b", "a", "", "c"], ["1", "2", "3", "", ""])
    assert (list(params), len(params), params.size) == (["a", "b", "", "c"], 4, 5)
    assert dict(params) == {"a": "1", "b": "2", "": "", "c": ""}
    assert (params["a"], params.get("d"), params.get_all("a")) == ("1", None, ["1", "3"])
    assert (params.has("a"), params.has("a", "3"), params.has("a", "2"), "d" in params) == (True, True, False, False)
    with pytest.raises(KeyError):
        params["d"]


def test_it_is_made_of_texts_pairs_and_mappings() -> None:
    for init in ("a=1&b=x+y", "?a=1&b=x%20y", [("a", "1"), ("b", "x y")], {"a": "1", "b": "x y"}):
        assert str(URLSearchParams(init)) == "a=1&b=x+y"
    again = URLSearchParams(URLSearchParams("a=1&a=2"))
    assert str(again) == "a=1&a=2"
    assert str(URLSearchParams()) == ""
    with pytest.raises(TypeError, match="write str"):
        URLSearchParams({"a": 1})  # type: ignore[arg-type]  # what is refused


def test_it_is_changed_as_the_standard_says() -> None:
    params = URLSearchParams("a=1&b=2&a=3&c=4")
    params["a"] = "x"
    assert str(params) == "a=x&b=2&c=4"
    params.append("a", "y")
    params.set("d", "&=é\ud800")
    assert str(params) == "a=x&b=2&c=4&a=y&d=%26%3D%C3%A9%EF%BF%BD"
    params.delete("a", "y")
    params.delete("nothing")
    del params["c"]
    assert str(params) == "a=x&b=2&d=%26%3D%C3%A9%EF%BF%BD"
    with pytest.raises(KeyError):
        del params["c"]
    params.clear()
    assert (str(params), bool(params)) == ("", False)


def test_sorting_goes_by_utf_16_units_and_is_stable() -> None:
    params = URLSearchParams("\uffff=1&😀=2&a=2&a=1")
    params.sort()
    assert list(params.items()) == [("a", "2"), ("a", "1"), ("😀", "2"), ("\uffff", "1")]


def test_what_is_changed_is_changed_in_the_url_and_back() -> None:
    url = URL("https://a.test/?a=~ b#c")
    params = url.search_params
    assert url.href == "https://a.test/?a=~%20b#c"
    params.append("d", "1")
    assert url.href == "https://a.test/?a=%7E+b&d=1#c"
    url.search = "?x=1"
    assert (list(params.items()), url.search_params is params) == ([("x", "1")], True)
    params.delete("x")
    assert url.href == "https://a.test/#c"
    url.href = "https://b.test/?y=2"
    assert params["y"] == "2"


@given(PAIRS)
def test_what_was_written_is_read_again(pairs: list[tuple[str, str]]) -> None:
    params = URLSearchParams(pairs)
    assert URLSearchParams(str(params)) == params
    assert list(params.items()) == pairs


async def test_it_is_a_body() -> None:
    for message in (
        http.Request("https://a.test/", method="POST", body=URLSearchParams("a=1&b=x y")),
        http.Response(URLSearchParams("a=1&b=x y")),
    ):
        assert message.headers["content-type"] == "application/x-www-form-urlencoded;charset=UTF-8"
        assert dict(await message.clone().form_data()) == {"a": "1", "b": "x y"}
        assert await message.text() == "a=1&b=x+y"
