"""The explorer on 100,000 rows and 5,000 requests: a morning of a person who clicks, and each part of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.explorer.amounts import fill
from tests.explorer.browser import batches, call, needs_chromium, open_panel, rows, saying, until_batches
from tests.support.running import RunningDev

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

pytestmark = [needs_chromium, pytest.mark.slow]

MOST_ELEMENTS = 1500
"""A page that draws every row of a list has many thousands."""


@pytest.fixture(scope="module")
def much(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDev]:
    """The workshop with 100,000 keys and rows, 5,000 requests, an object and two dead letters."""
    state = tmp_path_factory.mktemp("state")
    with RunningDev(Path(__file__).parent / "workshop", state, "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        dev.fetch("/count", method="POST", body=b"")
        for number in (1, 2):
            call(dev, "POST", "/queues/jobs/send", {"body": {"text": "fail"}, "content_type": "json"})
            until_batches(dev, number)
        call(dev, "DELETE", "/exchanges")
        fill(state)
        yield dev


class Person:
    """Whoever clicks, and counts it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, place: Locator) -> None:
        """Click, once it is there."""
        place.click()
        self.clicks += 1

    def panel(self, name: str) -> None:
        """Go to a panel."""
        self.click(self.page.get_by_role("navigation", name="Panels").get_by_role("link", name=name))

    def taken(self) -> int:
        """The clicks since the last time."""
        taken, self.clicks = self.clicks, 0
        return taken


def test_a_morning_takes_few_clicks(page: Page, much: RunningDev) -> None:
    much.fetch("/feed")  # 301 statements, where those that were kept took 6 ms at most
    person = Person(page)
    open_panel(page, much, "")

    # The slow request is the first, once the list is sorted by how long each took.
    page.get_by_text("5,000 requests").wait_for()
    person.click(page.get_by_role("columnheader").get_by_role("button", name="Took"))
    slowest = rows(page, "/feed").first
    slowest.wait_for()
    assert slowest.get_attribute("aria-rowindex") == "2"  # the first below the head
    person.click(slowest)
    page.locator(".hint", has_text="was called 300 times").wait_for()
    assert person.taken() == 2

    # Its 300 equal calls are one line, which says how often, how long, and why.
    calls = page.get_by_role("grid", name="Middleware and calls")
    calls.get_by_text("300 ×").wait_for()
    assert calls.get_attribute("aria-rowcount") == "3"  # with its head, and the statement before
    person.click(rows(page, "300 ×", grid="Middleware and calls"))
    page.get_by_text("300 different values").wait_for()
    page.locator(".plan", has_text="SEARCH authors USING INTEGER PRIMARY KEY").wait_for()
    assert person.taken() == 1

    # A row of 100,000 is found and put right, and the author of it is one click away.
    person.panel("SQL")
    person.click(page.get_by_role("complementary", name="Schema").get_by_role("link", name="posts 100,000"))
    page.get_by_label("Rows of posts with").fill("post 099999")
    page.get_by_text("1 row", exact=True).wait_for()
    person.click(rows(page, "post 099999"))
    page.get_by_label("title text").fill("put right")
    person.click(page.get_by_role("button", name="Save"))
    saying(page, "1 row changed")
    assert person.taken() == 4
    assert values(much, "SELECT title FROM posts WHERE id = 99999") == [["put right"]]
    page.get_by_label("Rows of posts with").fill("put right")
    person.click(rows(page, "put right").get_by_label("Open authors 994"))
    page.locator(".detail").get_by_role("link", name="100 rows of posts").wait_for()
    assert person.taken() == 1

    # Dead letters go again, all of them.
    before = batches(much)
    person.panel("Queues")
    rows(page, "ValueError: this job fails").nth(1).wait_for()
    person.click(page.get_by_role("button", name="Redeliver all"))
    person.click(page.get_by_role("dialog").get_by_role("button", name="Redeliver"))
    saying(page, "Redelivered 2 messages")
    until_batches(much, before + 1)
    assert person.taken() == 3

    # An object, and what it has stored.
    person.panel("Durable Objects")
    person.click(rows(page, "one", grid="Objects of the class"))
    rows(page, "value", grid="Stored values").wait_for()
    assert person.taken() == 2


def values(dev: RunningDev, sql: str) -> list[list[object]]:
    """The rows of a statement."""
    found: list[list[object]] = call(dev, "POST", "/d1/DB/query", {"sql": sql})["results"][0]["rows"]
    return found


def requests_of(dev: RunningDev) -> list[dict[str, Any]]:
    """All that are kept."""
    found: list[dict[str, Any]] = []
    before = ""
    while True:
        page = call(dev, "GET", f"/exchanges{before}")
        found += page["exchanges"]
        if page["before"] is None:
            return found
        before = f"?before={page['before']}"


def shown_time(milliseconds: float) -> str:
    return f"{milliseconds:.2f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"


def test_requests_are_sorted_filtered_and_measured(page: Page, much: RunningDev) -> None:
    every = [one for one in requests_of(much) if one["route"] == "/users/:id" and one["status"] == 500]
    taken = sorted(one["duration"] for one in every)
    open_panel(page, much, "requests")
    page.get_by_label("Status").select_option("5xx")
    page.get_by_label("Route").select_option("/users/:id")
    assert page.get_by_label("Filter").input_value() == "status:5 route:/users/:id"
    page.locator(".total").filter(has_text=f"{len(every)} requests").wait_for()
    durations = page.get_by_label("Durations").inner_text()
    for percent in (50, 95, 99):
        assert f"p{percent} {shown_time(taken[math.ceil(percent / 100 * len(taken)) - 1])}" in durations
    assert f"slowest {shown_time(taken[-1])}" in durations
    header = page.get_by_role("columnheader", name="Took")
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    rows(page, shown_time(taken[-1])).first.wait_for()
    header.get_by_role("button").press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    rows(page, shown_time(taken[0])).first.wait_for()
    page.get_by_label("At least (ms)").fill("5")
    slow = sum(one >= 5 for one in taken)
    page.locator(".total").filter(has_text=f"{slow} requests").wait_for()
    page.get_by_label("Status").select_option("any")
    page.get_by_label("At least (ms)").fill("")
    page.get_by_label("Filter").fill("users/4988")  # text, in place of all of it
    page.locator(".total").filter(has_text="1 request").wait_for()


def test_routes_are_compared_and_lead_to_their_requests(page: Page, much: RunningDev) -> None:
    every = [one for one in requests_of(much) if one["route"] == "/users/:id"]
    taken = sorted(one["duration"] for one in every)
    open_panel(page, much, "requests")
    page.get_by_role("button", name="By route").click()
    row = rows(page, "/users/:id", grid="Requests by route")
    row.wait_for()
    cells = [cell.inner_text() for cell in row.get_by_role("gridcell").all()]
    assert cells[:3] == ["POST", "/users/:id", f"{len(every):,}"]
    assert cells[4:] == [shown_time(taken[math.ceil(part * len(taken)) - 1]) for part in (0.5, 0.95, 0.99, 1)]
    row.click()
    assert page.get_by_label("Filter").input_value() == "method:post route:/users/:id"
    rows(page, shown_time(taken[-1]), grid="Requests").first.wait_for()


def test_the_schema_has_keys_indexes_and_a_drawing_of_its_relations(page: Page, much: RunningDev) -> None:
    open_panel(page, much, "sql")
    page.get_by_role("link", name="Schema").click()
    posts = page.get_by_label("Table posts")
    text = posts.inner_text()
    for words in ("id integer key", "author_id integer not null → authors", "index author_id, written DESC"):
        assert words in text
    assert "unique name" in page.get_by_label("Table authors").inner_text()
    assert "→ posts, on delete cascade" in page.get_by_label("Table post_tags").inner_text()
    drawing = page.get_by_label("Drawing of the relations")
    assert {title.text_content() for title in drawing.locator("title").all()} == {
        "posts.author_id names authors.id",
        "posts.answers names posts.id",
        "post_tags.post_id names posts.id",
        "post_tags.tag names tags.name",
    }
    drawing.get_by_role("link", name="post_tags").click()
    page.get_by_role("grid", name="Rows of post_tags").wait_for()


def test_rows_lead_to_what_they_name_and_to_what_names_them(page: Page, much: RunningDev) -> None:
    open_panel(page, much, "sql/DB/table/post_tags/%5B90%2C%22news%22%5D")
    detail = page.locator(".detail")
    detail.get_by_role("link", name="posts 90").click()
    page.wait_for_function("() => document.querySelector('.detail h3').textContent === 'posts 90'")
    assert detail.get_by_label("title text").input_value() == "post 000090"
    page.reload()  # it has an address of its own, whatever the list shows
    detail.get_by_role("link", name="posts 30").wait_for()  # which it answers
    detail.get_by_role("link", name="1 row of posts").click()  # which answers it
    rows(page, "post 000270").wait_for()
    page.locator(".total").filter(has_text="1 row").wait_for()
    page.get_by_role("link", name="answers = 90").click()
    page.locator(".total").filter(has_text="100,000 rows").wait_for()
    open_panel(page, much, "sql/DB/table/posts/%5B123456789%5D")
    page.get_by_text("No such row").wait_for()


def test_a_search_shows_that_it_runs_and_is_stopped(page: Page, much: RunningDev) -> None:
    held: list[Route] = []
    open_panel(page, much, "sql/DB/table/posts")
    total = page.locator(".total")
    total.filter(has_text="100,000 rows").wait_for()
    page.route("**/rows/posts?*search=*", lambda route: held.append(route))
    search = page.get_by_label("Rows of posts with")
    with page.expect_request("**/rows/posts?*search=post*"):
        search.fill("post 0000")
    total.get_by_text("Searching 100,000 rows …").wait_for()
    assert page.get_by_role("grid", name="Rows of posts").get_attribute("aria-busy") == "true"
    with page.expect_event("requestfailed"):  # nobody waits for it: the server, whose caller is gone, stops
        total.get_by_role("button", name="Stop").click()
    total.get_by_text("Stopped").wait_for()
    assert search.input_value() == "post 0000"
    rows(page, "post 000001").wait_for()
    with page.expect_event("requestfailed"), page.expect_request("**/rows/posts?*search=post*"):
        search.press("Enter")
        search.fill("post 00009")  # who types on waits for no search before
    for route in held[-1:]:
        route.continue_()
    page.unroute("**/rows/posts?*search=*")
    total.filter(has_text="10 rows").wait_for()


def test_messages_that_a_search_finds_are_deleted_and_no_others(page: Page, much: RunningDev) -> None:
    for text in ("keep me", "drop me", "drop me too"):
        body = {"body": {"text": text}, "content_type": "json", "delay_seconds": 3600}
        call(much, "POST", "/queues/jobs/send", body)
    open_panel(page, much, "queues/jobs")
    page.get_by_label("Messages with").fill("drop")
    page.locator(".total").filter(has_text="2 messages").wait_for()
    page.get_by_role("button", name="Delete all").click()
    page.get_by_role("dialog", name="Delete 2 messages?").get_by_role("button", name="Delete").click()
    page.get_by_text("No message waits here").wait_for()
    assert [one["body"]["text"] for one in call(much, "GET", "/queues/jobs")["rows"]] == ['{"text": "keep me"}']


_WATCH = """
window.longTasks = [];
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.longTasks.push(Math.round(one.duration)); })
  .observe({ type: "longtask", buffered: true });
"""


def test_large_lists_are_scrolled_sorted_and_searched_without_standing_still(
    page: Page, much: RunningDev, capsys: pytest.CaptureFixture[str]
) -> None:
    page.add_init_script(_WATCH)
    told: list[str] = []
    for name, grid, sort, total in (
        ("requests", "Requests", "Took", "5,000 requests"),
        ("kv", "Keys", "Key", "100,000 keys"),
        ("sql/DB/table/jobs", "Rows of jobs", "text", "100,000 rows"),
    ):
        open_panel(page, much, name)
        shown = page.locator(".total")
        shown.filter(has_text=total).wait_for(timeout=60_000)
        grids = page.get_by_role("grid", name=grid)
        rows(page, grid=grid).first.wait_for()
        grids.focus()
        for key in ("End", "PageUp", "PageUp", "Home", "PageDown", "End"):
            page.keyboard.press(key)
            page.wait_for_timeout(150)
        for _ in range(2):
            grids.get_by_role("button", name=sort).click()
        page.get_by_label("press /").fill("099")
        shown.filter(has_not_text=total).filter(has_not_text="Searching").wait_for()
        elements = page.evaluate("document.querySelectorAll('*').length")
        tasks = page.evaluate("window.longTasks")
        told.append(f"{name}: {elements} elements, long tasks {tasks}")
        assert elements < MOST_ELEMENTS, told
    page.goto(f"{much.address}/_core/#requests")
    page.get_by_label("press /").fill("/reports/4999")
    rows(page, "/reports/4999").first.click()
    page.get_by_role("tab", name="Timeline 300").wait_for()
    rows(page, "300 ×").click()
    page.get_by_role("button", name="Each call").click()
    page.locator(".inside").first.wait_for()
    elements, tasks = page.evaluate("[document.querySelectorAll('*').length, window.longTasks]")
    told.append(f"300 calls: {elements} elements, long tasks {tasks}")
    assert elements < MOST_ELEMENTS, told
    with capsys.disabled():
        print("\n" + "\n".join(told))
