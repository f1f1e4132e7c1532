"""A table's memory of paths it has seen changes no answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.routing.pattern import parse
from core.routing.table import Route, Table

ROUTE = (
    st.lists(st.sampled_from(["a", "b", ":x", ":y", ":z{[a-m]+}", ":x?"]), min_size=1, max_size=3, unique=True)
    .map(lambda parts: "/" + "/".join([*(part.removesuffix("?") for part in parts[:-1]), parts[-1]]))
    .filter(lambda path: path.count(":x") < 2)
)
PATH = st.lists(st.sampled_from(["a", "b", "me", "7"]), min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))


def table_of(paths: list[str]) -> Table:
    table = Table()
    for order, path in enumerate(paths):
        add(table, order, path)
    return table


def add(table: Table, order: int, path: str) -> None:
    for pattern in parse(path).variants:
        route = Route("GET", pattern, ())
        route.index(order)
        table.add(route)


@given(st.lists(ROUTE, max_size=6), st.lists(PATH, max_size=8))
def test_a_kept_tail_gives_what_a_search_gives(routes: list[str], paths: list[str]) -> None:
    table = table_of(routes)
    for path in paths:
        segments = path.split("/")
        searched = table.find(segments)
        head, _, _ = path.rpartition("/")
        kept = table.single_parameter_routes.get(head)
        if kept is not None and path not in table.static:
            assert kept is searched
        if searched is not None and searched.names:
            table.keep_single_parameter_route(searched, segments)


def test_a_route_registered_afterwards_is_seen() -> None:
    table = table_of(["/users/:id"])
    route = table.find(["", "users", "7"])
    assert route is not None
    table.keep_single_parameter_route(route, ["", "users", "7"])
    assert table.single_parameter_routes == {"/users": route}
    add(table, 1, "/:any/:id")
    assert table.single_parameter_routes == {}


def test_no_single_parameter_route_is_kept_where_an_earlier_route_has_a_literal_in_that_place() -> None:
    table = table_of(["/:any/me", "/users/:id"])
    route = table.find(["", "users", "7"])
    assert route is not None
    table.keep_single_parameter_route(route, ["", "users", "7"])
    assert table.single_parameter_routes == {}
