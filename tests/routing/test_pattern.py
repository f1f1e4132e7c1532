"""Paths as they are registered: their meaning, and the message of those that are refused."""

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
        ("/a*", '"/a*": * matches whole segments: write it alone between slashes'),
        ("/:id?/x", '"/:id?/x": only the last segment may be optional. Register "/" as a path of its own'),
        ("/a/:id?/x", '"/a/:id?/x": only the last segment may be optional. Register "/a" as a path of its own'),
        (
            "/:id{[0-9}",
            '"/:id{[0-9}": {[0-9} is not a regular expression: unterminated character set at position 0. Fix it',
        ),
        ("/:id{}", '"/:id{}": the pattern in braces is empty. Leave the braces out: :id'),
        ("/:id{[0-9]+}x", '"/:id{[0-9]+}x": a pattern ends the segment: write :id{[0-9]+} or :id{[0-9]+}?'),
        (
            "/:id{a/b}",
            (
                '"/:id{a/b}": a pattern in braces is held against one segment, so one with a "/" never matches. Write a '
                "parameter for each segment, or /* for the rest of the path"
            ),
        ),
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


@pytest.mark.parametrize("text", ["/:id??", "/:id(\\d+)", "/:id*", "/:rest+", "/:1d", "/:a b", "/a\nb", "/a#b"])
def test_what_other_frameworks_allow_in_a_parameter_is_refused(text: str) -> None:
    with pytest.raises(PathError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "names", "checks", "optional"),
    [
        ("/users/:id?", (("id", 1),), (), True),
        ("/:id?", (("id", 0),), (), True),
        ("/users/:id{[0-9]+}", (("id", 1),), ((1, "[0-9]+"),), False),
        ("/:code{[a-z]{2,3}}?", (("code", 0),), ((0, "[a-z]{2,3}"),), True),
        ("/a/*/b/:id", (("id", 3),), (), False),
    ],
)
def test_a_segment_may_be_optional_held_to_an_expression_or_any(
    text: str, names: tuple[tuple[str, int], ...], checks: tuple[tuple[int, str], ...], optional: bool
) -> None:
    pattern = parse(text)
    assert (pattern.names, pattern.checks, pattern.optional) == (names, checks, optional)
    assert not pattern.static
    assert not pattern.rest


def test_an_optional_segment_gives_two_patterns_with_one_text() -> None:
    whole, without = parse("/a/:x{b+}/:id{[0-9]+}?").variants
    assert (whole.parts, whole.names, whole.checks) == (
        ("a", None, None),
        (("x", 1), ("id", 2)),
        ((1, "b+"), (2, "[0-9]+")),
    )
    assert (without.parts, without.names, without.checks) == (("a", None), (("x", 1),), ((1, "b+"),))
    assert whole.text == without.text == "/a/:x{b+}/:id{[0-9]+}?"
    assert parse("/:id?").variants[1].static


def test_a_prefix_covers_only_what_certainly_lies_below_it() -> None:
    def covers(prefix: str, path: str) -> bool:
        return parse(prefix).covers(parse(path))

    assert not covers("/users/:id", "/users/:id?")  # which /users is too
    assert covers("/users", "/users/:id?")
    assert not covers("/:id{[0-9]+}", "/:id")
    assert covers("/:id{[0-9]+}", "/:other{[0-9]+}/x")
    assert covers("/:id{[0-9]+}", "/7")
    assert not covers("/:id{[0-9]+}", "/me")
    assert covers("/*/a", "/b/a/c")


@pytest.mark.parametrize("prefix", ["/a/*", "/a/:id?"])
def test_a_prefix_has_no_open_end(prefix: str) -> None:
    with pytest.raises(PathError, match="a prefix covers all below it"):
        parse("/x").below(parse(prefix))


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
