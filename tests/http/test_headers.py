"""Headers: case, order, joining, what is refused, and cookies that stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.http import Headers
from core.http.headers import check_name, check_value

TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
names = st.text(TOKEN, min_size=1, max_size=4) | st.sampled_from(["Set-Cookie", "set-cookie", "Cookie", "A", "a"])
values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=6)


def test_names_are_found_in_any_case_and_iterated_in_lower_case_and_sorted() -> None:
    headers = Headers({"X-B": "2", "Accept": "1"})
    assert headers["x-b"] == headers["X-B"] == headers.get("X-b") == "2"
    assert list(headers) == ["accept", "x-b"]
    assert "ACCEPT" in headers
    assert "nope" not in headers
    assert headers.get("nope") is None
    assert headers.get("nope", "?") == "?"
    with pytest.raises(KeyError):
        headers["nope"]


def test_append_joins_and_get_all_still_tells_the_parts() -> None:
    headers = Headers([("Vary", "Origin"), ("vary", "Accept")])
    assert headers["vary"] == "Origin, Accept"
    assert headers.get_all("Vary") == ["Origin", "Accept"]
    headers["vary"] = "*"
    assert headers.get_all("vary") == ["*"]
    assert headers.get_all("nope") == []


def test_appended_cookie_headers_are_joined_as_cookies_are() -> None:
    assert Headers([("cookie", "a=1"), ("cookie", "b=2")])["cookie"] == "a=1; b=2"


def test_set_cookie_stays_apart_everywhere() -> None:
    headers = Headers([("b", "x"), ("Set-Cookie", "a=1"), ("z", "y"), ("set-cookie", "b=2, c")])
    assert headers.get_set_cookie() == headers.get_all("set-cookie") == ["a=1", "b=2, c"]
    assert list(headers.items()) == [("b", "x"), ("set-cookie", "a=1"), ("set-cookie", "b=2, c"), ("z", "y")]
    assert list(headers.keys()) == ["b", "set-cookie", "set-cookie", "z"]
    assert list(headers.values()) == ["x", "a=1", "b=2, c", "y"]
    assert list(headers) == ["b", "set-cookie", "z"]
    assert len(headers) == 3
    assert headers["set-cookie"] == "a=1, b=2, c"
    headers["SET-COOKIE"] = "c=3"
    assert headers.get_set_cookie() == ["c=3"]
    del headers["set-cookie"]
    assert "set-cookie" not in headers
    assert headers.get("set-cookie") is None


def test_deleting_what_is_not_there_is_an_error_for_del_and_none_for_delete() -> None:
    headers = Headers({"a": "1"})
    headers.delete("b")
    headers.delete("A")
    assert not headers
    with pytest.raises(KeyError):
        del headers["a"]


def test_a_copy_is_independent() -> None:
    first = Headers([("a", "1"), ("a", "2"), ("set-cookie", "x=1")])
    for second in (first.copy(), Headers(first)):
        second.append("a", "3")
        second.append("set-cookie", "y=2")
        assert first["a"] == "1, 2"
        assert first.get_all("a") == ["1", "2"]
        assert second.get_all("a") == ["1", "2", "3"]
        assert first.get_set_cookie() == ["x=1"]


def test_headers_equal_mappings_in_any_case() -> None:
    assert Headers({"A": "1"}) == {"a": "1"} == Headers([("a", "1")])
    assert Headers({"A": "1"}) == {"A": "1"}
    assert Headers({"a": "1"}) != {"a": "2"}
    assert Headers([("set-cookie", "a"), ("set-cookie", "b")]) != Headers({"set-cookie": "a, b"})


@pytest.mark.parametrize("name", ["a b", "a:b", "a\n", "a(b)", "a\r\nb", "a\0", "[a]"])
def test_a_name_that_is_no_token_is_refused_by_every_method(name: str) -> None:
    headers = Headers()
    for call in (
        lambda: headers.append(name, "1"),
        lambda: headers.set(name, "1"),
        lambda: headers.get(name),
        lambda: headers.get_all(name),
        lambda: headers.has(name),
        lambda: headers.delete(name),
        lambda: Headers({name: "1"}),
        lambda: Headers([(name, "1")]),
    ):
        with pytest.raises(TypeError, match=r"^Invalid header name\.$"):
            call()


@pytest.mark.parametrize("name", ["", "é", "日本"])
def test_the_empty_name_and_names_beyond_ascii_are_refused_in_the_words_of_the_standard(name: str) -> None:
    with pytest.raises(TypeError) as refused:
        Headers().append(name, "1")
    assert str(refused.value) == f'Headers.append: "{name}" is an invalid header name.'


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "\0", "a\r\nSet-Cookie: x=1"])
def test_a_value_that_could_end_its_field_is_refused(value: str) -> None:
    with pytest.raises(TypeError, match=r"^Invalid header value\.$"):
        Headers({"a": value})
    headers = Headers()
    with pytest.raises(TypeError):
        headers["set-cookie"] = value
    assert not headers


def test_blanks_and_newlines_at_the_ends_of_a_value_are_trimmed() -> None:
    headers = Headers({"a": " \t\r\n x \t y\r\n"})
    assert headers["a"] == "x \t y"
    assert check_value("  plain ") == "plain"


def test_a_value_beyond_latin_1_is_refused_with_the_character_and_its_place() -> None:
    assert check_value("café") == "café"
    with pytest.raises(TypeError) as refused:
        check_value("a日")
    assert str(refused.value) == (
        "Cannot convert argument to a ByteString because the character at index 1 has a value of 26085 "
        "which is greater than 255."
    )


def test_a_value_that_is_no_text_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"write str\(value\)"):
        check_value(5)  # type: ignore[arg-type]  # what the check is for
    with pytest.raises(TypeError, match="must be a str, not int"):
        check_name(5)  # type: ignore[arg-type]  # what the check is for


def test_names_that_a_client_chooses_do_not_fill_the_memory() -> None:
    from core.http import headers

    for number in range(5000):
        check_name(f"x-{number}")
    assert len(headers._NAMES) <= headers._NAMES_MOST


def test_the_trusted_door_keeps_what_it_is_given_and_raw_gives_all_of_it() -> None:
    values = {"b": "1", "a": "2"}
    headers = Headers.trusted(values, ["c=1", "d=2"])
    assert headers.raw() == [("b", "1"), ("a", "2"), ("set-cookie", "c=1"), ("set-cookie", "d=2")]
    assert list(headers.items()) == [("a", "2"), ("b", "1"), ("set-cookie", "c=1"), ("set-cookie", "d=2")]


class Model:
    """The header list of the Fetch standard, written down plainly."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def append(self, name: str, value: str) -> None:
        self.pairs.append((name.lower(), value.strip(" ")))

    def set(self, name: str, value: str) -> None:
        self.delete(name)
        self.append(name, value)

    def delete(self, name: str) -> None:
        self.pairs = [pair for pair in self.pairs if pair[0] != name.lower()]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    def entries(self) -> list[tuple[str, str]]:
        out: list[tuple[str, str]] = []
        for name in sorted({name for name, _ in self.pairs}):
            if name == "set-cookie":
                out += [(name, value) for value in self.all(name)]
            else:
                out.append((name, ("; " if name == "cookie" else ", ").join(self.all(name))))
        return out


@given(st.lists(st.tuples(st.sampled_from(["append", "set", "delete"]), names, values), max_size=12))
def test_any_sequence_of_changes_gives_what_the_standard_s_list_gives(steps: list[tuple[str, str, str]]) -> None:
    headers, model = Headers(), Model()
    for op, name, value in steps:
        args = (name,) if op == "delete" else (name, value)
        getattr(headers, op)(*args)
        getattr(model, op)(*args)
    assert list(headers.items()) == model.entries()
    assert list(Headers(headers).items()) == model.entries()
    assert sorted(headers.raw()) == sorted(model.entries())
    for name in headers:
        assert headers.get_all(name) == model.all(name)


@given(st.text(max_size=8))
def test_whatever_is_let_through_holds_no_line_end_and_fits_latin_1(text: str) -> None:
    try:
        value = check_value(text)
    except TypeError:
        return
    assert not set(value) & set("\r\n\0")
    assert value.encode("latin-1")[:1] not in (b" ", b"\t")
    assert check_value(value) == value
