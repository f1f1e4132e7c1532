"""The table against a linear scan: for every table of routes and every path, the same match."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from core.routing.pattern import Pattern, parse
from core.routing.scopes import Scopes
from core.routing.table import Route, Table

segments = st.sampled_from(["a", "b", "c", "", "x y", "é"])
names = st.sampled_from(["p", "q", "r", "s"])


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    parts: list[str] = []
    for index in range(draw(st.integers(0, 4))):
        name = f":{'pqrs'[index]}"
        parts.append(
            draw(st.one_of(st.just(name), segments, st.sampled_from(["*", f"{name}{{[ab]}}", f"{name}{{.+}}"])))
        )
    ending = draw(st.integers(0, 8))
    if ending == 0:
        parts.append("*")
    elif ending == 1:
        parts.append(":last?")
    elif parts and parts[-1] == "*":
        parts.append("a")
    return parse("/" + "/".join(parts))


paths = st.lists(segments | st.sampled_from(["a/b", "z"]), max_size=5).map(lambda found: ["", *found])


def matches(pattern: Pattern, path: list[str]) -> bool:
    """The meaning of a pattern, written as plainly as can be."""
    rest = path[1:]
    if any(index < len(rest) and not re.fullmatch(source, rest[index]) for index, source in pattern.checks):
        return False
    if pattern.optional and len(rest) == len(pattern.parts) - 1:
        rest = [*rest, ""]
    if len(rest) < len(pattern.parts) or (len(rest) > len(pattern.parts) and not pattern.rest):
        return False
    return all(part is None or part == segment for part, segment in zip(pattern.parts, rest, strict=False))


def table_of(routes: list[Pattern]) -> Table:
    table = Table()
    for order, pattern in enumerate(routes):
        for variant in pattern.variants:
            route = Route("GET", variant, ())
            route.index(order)
            table.add(route)
    return table


@given(st.lists(patterns(), max_size=12), st.lists(paths, max_size=12))
def test_the_first_registered_route_that_matches_wins(routes: list[Pattern], asked: list[list[str]]) -> None:
    table = table_of(routes)
    for path in asked:
        expected = [order for order, pattern in enumerate(routes) if matches(pattern, path)]
        route = table.find(path)
        assert (None if route is None else route.order) == (expected[0] if expected else None)
        assert [route.order for route in table.matches(path, -1)] == expected
        if expected:
            assert [route.order for route in table.matches(path, expected[0])] == expected[1:]


@given(st.lists(patterns(), max_size=12))
def test_what_is_kept_for_a_whole_path_is_what_a_search_finds(routes: list[Pattern]) -> None:
    table = table_of(routes)
    for path, route in table.static.items():
        found = table.find(path.split("/") if path != "/" else [""])
        assert found is not None
        assert found.order == route.order


@given(patterns(), paths)
def test_parameters_are_the_segments_in_their_places(pattern: Pattern, path: list[str]) -> None:
    route = table_of([pattern]).find(path)
    if route is None:
        return
    pattern = route.pattern  # an optional segment may be missing
    found = route.parameters(path)
    assert list(found) == list(pattern.parameters)
    for name, index in pattern.names:
        assert found[name] == path[index + 1]
    if pattern.rest:
        assert found["*"] == "/".join(path[len(pattern.parts) + 1 :])


prefixes = patterns().filter(lambda pattern: not pattern.rest)


@given(st.lists(prefixes, max_size=10), paths)
def test_a_scope_covers_its_prefix_and_everything_below(scopes: list[Pattern], path: list[str]) -> None:
    tree: Scopes = Scopes()
    for order, prefix in enumerate(scopes):
        tree.add(order, prefix, order)
    expected = [
        order
        for order, prefix in enumerate(scopes)
        if len(path) - 1 >= len(prefix.parts) and matches(prefix, path[: len(prefix.parts) + 1])
    ]
    assert [scope.value for scope in tree.covering(path, len(scopes))] == expected
    assert [scope.value for scope in tree.covering(path, 5, 1)] == [order for order in expected if 1 < order < 5]


@given(st.lists(prefixes, max_size=10), patterns(), st.lists(paths, max_size=10))
def test_what_covers_a_pattern_covers_its_paths(
    scopes: list[Pattern], pattern: Pattern, asked: list[list[str]]
) -> None:
    tree: Scopes = Scopes()
    for order, prefix in enumerate(scopes):
        tree.add(order, prefix, order)
    always, maybe = tree.over(pattern, len(scopes))
    for path in asked:
        if matches(pattern, path):
            covering = [scope.value for scope in tree.covering(path, len(scopes))]
            if maybe:
                assert {scope.value for scope in always} <= set(covering)
            else:
                assert [scope.value for scope in always] == covering
