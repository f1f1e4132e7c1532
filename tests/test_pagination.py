"""Pages and cursors: bounds, links, and what a client may make up."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import CoreError, DeveloperError, Request, http
from core.http.escapes import encode_query
from core.pagination import Cursor, Page, cursor_of, cursor_text, page_of, read_page
from core.testing import FakeD1Database


def request(query: str = "") -> Request[Any]:
    message = http.Request(f"https://example.test/articles{query}")
    return Request(message, None, None)  # type: ignore[arg-type]  # no context is touched


def links(value: str | None) -> dict[str, str]:
    found = re.findall(r'<([^>]*)>; rel="(\w+)"', value or "")
    return {rel: url.removeprefix("https://example.test/articles") for url, rel in found}


def test_a_page_is_a_number_and_a_limit() -> None:
    assert page_of(request()) == Page(1, 20)
    assert page_of(request("?page=3&limit=50")) == Page(3, 50)
    assert page_of(request("?page=3"), limit=5, most=5).offset == 10


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("?page=0", "page"), ("?page=-1", "page"), ("?page=x", "page"), ("?page=", "page"), ("?page=1.5", "page"),
        ("?page=٣", "page"), ("?page=" + "9" * 5000, "page"), ("?page=5002", "page"), ("?limit=0", "limit"),
        ("?limit=101", "limit"), ("?limit=1e2", "limit"),
    ],
)  # fmt: skip
def test_beyond_the_bounds_is_422_that_names_the_parameter(query: str, path: str) -> None:
    with pytest.raises(CoreError, match="Validation failed") as caught:
        page_of(request(query))
    assert (caught.value.status, caught.value.metadata["issues"][0]["path"]) == (422, path)


def test_links_lead_to_the_other_pages_and_keep_the_rest_of_the_query() -> None:
    req = request("?tag=a%26b&page=2&limit=10")
    assert links(page_of(req).link(req, total=35)) == {
        "first": "?tag=a%26b&page=1&limit=10",
        "prev": "?tag=a%26b&page=1&limit=10",
        "next": "?tag=a%26b&page=3&limit=10",
        "last": "?tag=a%26b&page=4&limit=10",
    }
    assert links(page_of(req).link(req, more=True)).keys() == {"first", "prev", "next"}
    assert links(page_of(req).link(req)).keys() == {"first", "prev"}
    # From a page behind the last one back to a page with rows.
    beyond = request("?page=9&limit=10")
    assert links(page_of(beyond).link(beyond, total=35))["prev"] == "?page=4&limit=10"


@pytest.mark.parametrize("total", [0, 1, 20])
def test_an_only_page_has_no_links(total: int) -> None:
    assert page_of(request()).link(request(), total=total) is None


@pytest.mark.slow
@given(st.integers(0, 500), st.integers(1, 100))
def test_following_next_meets_every_row_once(total: int, limit: int) -> None:
    rows, seen, query = list(range(total)), list[int](), f"?limit={limit}"
    while True:
        page = page_of(request(query))
        seen += rows[page.offset : page.offset + page.limit]
        following = links(page.link(request(query), total=total)).get("next")
        if following is None:
            break
        query = following
    assert seen == rows


@attrs.frozen
class Seen:
    at: str
    id: int


def test_a_cursor_goes_on_behind_the_last_row() -> None:
    rows = [Seen(f"2026-01-{day:02}", day) for day in range(1, 8)]
    seen, query = list[Seen](), "?limit=3"
    while True:
        req = request(query)
        cursor = cursor_of(req, Seen)
        begin = 0 if cursor.after is None else rows.index(cursor.after) + 1
        shown, after = cursor.cut(rows[begin : begin + cursor.limit + 1], lambda row: row)
        seen += shown
        following = links(cursor.link(req, after)).get("next")
        if following is None:
            break
        query = following
    assert seen == rows


@pytest.mark.parametrize("value", [1, ["a", 1], {"at": 1, "id": 1}, {"at": "a", "id": "1"}, None, "x"])
def test_a_cursor_that_is_none_of_this_list_is_422(value: Any) -> None:
    with pytest.raises(CoreError, match="Validation failed") as caught:
        cursor_of(request(f"?cursor={cursor_text(value)}"), Seen)
    assert caught.value.metadata["issues"] == [{"path": "cursor", "message": "is none of this list"}]


@given(st.text(max_size=100))
def test_no_made_up_cursor_is_anything_but_422(text: str) -> None:
    req = request(f"?{encode_query([('cursor', text)])}")
    with pytest.raises(CoreError) as caught:
        cursor_of(req, Seen)
    assert caught.value.status == 422


def test_a_plain_value_may_be_a_cursor() -> None:
    assert cursor_of(request(f"?cursor={cursor_text(7)}&limit=1"), int) == Cursor(7, 1)


@attrs.frozen
class Article:
    id: int
    title: str


async def test_a_page_and_its_count_are_read_in_one_call() -> None:
    db = FakeD1Database()
    await db.exec("CREATE TABLE articles (id INTEGER PRIMARY KEY, title TEXT NOT NULL)")
    await db.batch([db.prepare("INSERT INTO articles (title) VALUES (?)").bind(f"{n}") for n in range(5)])
    rows = db.prepare("SELECT id, title FROM articles ORDER BY id LIMIT ? OFFSET ?")
    count = db.prepare("SELECT count(*) FROM articles")
    before = len(db.calls)

    assert await read_page(db, rows.bind(2, 4).as_(Article), count) == ([Article(5, "4")], 5)
    assert [call.method for call in db.calls[before:]] == ["batch"]
    assert await read_page(db.with_session(), rows.bind(2, 9), count) == ([], 5)


@pytest.mark.parametrize(
    "sql", ["SELECT 'x'", "SELECT 1, 2", "SELECT 1 WHERE 0", "SELECT 1 UNION SELECT 2", "SELECT NULL", "SELECT 1.5"]
)
async def test_a_count_that_is_none_is_the_developers_mistake(sql: str) -> None:
    db = FakeD1Database()
    with pytest.raises(DeveloperError, match=r"SELECT count\(\*\) FROM"):
        await read_page(db, db.prepare("SELECT 1"), db.prepare(sql))
