"""Paths as they are registered: what they mean, and what is refused with the way out."""

from __future__ import annotations

import pytest

from core.errors import PathError
from core.routing.pattern import parse


@pytest.mark.parametrize(
    ("text", "parts", "names", "rest"),
    [
        ("/", (), (), False),
        ("/users", ("users",), (), False),
        ("/users/", ("users",), (), False),
        ("/users/:id", ("users", None), (("id", 1),), False),
        ("/:a/x/:b", (None, "x", None), (("a", 0), ("b", 2)), False),
        ("/files/*", ("files",), (), True),
        ("/*", (), (), True),
        ("/a//b", ("a", "", "b"), (), False),
        ("/café/a b", ("café", "a b"), (), False),
        ("/v1/items:batch", ("v1", "items:batch"), (), False),
        ("/:user-id", (None,), (("user-id", 0),), False),
    ],
)
def test_a_path_is_read_into_segments(
    text: str, parts: tuple[str | None, ...], names: tuple[tuple[str, int], ...], rest: bool
) -> None:
    pattern = parse(text)
    assert (pattern.parts, pattern.names, pattern.rest) == (parts, names, rest)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("users", 'the path "users" must begin with "/". Write "/users"'),
        ("", 'the path "" must begin with "/". Write "/"'),
        ("/a/:", '"/a/:": a parameter needs a name after the colon, for example :id'),
        ("/:id/x/:id", '"/:id/x/:id" has two parameters named :id. Rename one of them'),
        ("/*/x", '"/*/x": * takes all that is left, so it must be the last segment'),
        ("/a*", '"/a*": * stands for whole segments: write it alone, as the last segment'),
        ("/{id}", '"/{id}": a parameter begins with a colon. Write :id'),
        ("/<int:id>", '"/<int:id>": a parameter begins with a colon. Write :id'),
        ("/a?b", '"/a?b": a path ends before "?". Read the query with req.query.get(name)'),
        ("/a\\b", '"/a\\b": a backslash is a slash in URLs. Write "/"'),
        ("/a/../b", '"/a/../b": a ".." segment is resolved before routing and never matches. Leave it out'),
        ("/a%20b", '"/a%20b": write the path decoded, without "%20"'),
    ],
)
def test_a_path_that_never_matches_is_refused_with_the_way_out(text: str, message: str) -> None:
    with pytest.raises(PathError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["/:id?", "/:id(\\d+)", "/:id{[0-9]+}", "/:rest+", "/:1d", "/:a b", "/a\nb", "/a#b"])
def test_what_other_frameworks_allow_in_a_parameter_is_refused(text: str) -> None:
    with pytest.raises(PathError):
        parse(text)


def test_a_percent_sign_that_is_no_escape_is_a_text() -> None:
    assert parse("/100%").parts == ("100%",)


def test_a_pattern_below_a_prefix_has_the_parameters_of_both() -> None:
    pattern = parse("/posts/:post").below(parse("/users/:user"))
    assert pattern.text == "/users/:user/posts/:post"
    assert pattern.names == (("user", 1), ("post", 3))


def test_the_root_of_a_router_is_its_prefix() -> None:
    assert parse("/").below(parse("/users")).text == "/users"


def test_one_name_in_prefix_and_path_is_refused() -> None:
    with pytest.raises(PathError, match='"/:id" mounted at "/users/:id" has two parameters named :id'):
        parse("/:id").below(parse("/users/:id"))
