"""The explorer for everyone: by keyboard, in a narrow window, in both colour schemes, on real amounts of data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.explorer.browser import (
    AXE,
    AXE_RUN,
    PANELS,
    call,
    forgive,
    go_to_panel,
    leaving,
    needs_axe,
    needs_chromium,
    open_panel,
    rows,
)
from tests.support.copies import copy_project
from tests.support.running import RunningDev

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = [needs_chromium, pytest.mark.slow]

HERE = Path(__file__).parent
SQL = "SQL (Ctrl-Enter runs it)"


def test_the_keyboard_reaches_every_panel_and_every_row(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "requests")
    for key, name in zip("1234567890m", PANELS, strict=True):
        page.keyboard.press(key)
        page.wait_for_function("name => location.hash.startsWith('#' + name)", arg=name)
        page.wait_for_function("key => key === '1' || document.activeElement.id === 'panel'", arg=key)
    dev.fetch("/notes/by-keyboard")
    page.keyboard.press("1")
    rows(page, "/notes/by-keyboard").wait_for()
    page.get_by_role("grid", name="Requests").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="Timeline").wait_for()
    page.get_by_role("tab", name="Timeline").focus()
    page.keyboard.press("Escape")
    page.locator(".detail").wait_for(state="detached")


@needs_axe
def test_axe_finds_no_fault_in_any_panel_in_either_colour_scheme(browser: Browser, dev: RunningDev) -> None:
    # axe has to be put into the page, which the page's own policy forbids to everyone else.
    context = browser.new_context(bypass_csp=True, color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    dev.fetch("/slow-list")
    call(dev, "PUT", "/kv/NOTES/value", {"key": "axe", "value": "{}"})
    faults: list[Any] = []
    open_panel(page, dev, "")
    page.add_script_tag(path=AXE)
    for name in [*PANELS, "kv/NOTES/axe", "sql/DB/table/jobs/", "sql/DB/schema", "objects/FILES/", "queues/jobs/send"]:
        go_to_panel(page, name)
        page.wait_for_timeout(300)
        if name == "requests":
            rows(page, "/slow-list").first.click()
            page.wait_for_timeout(300)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(300)
            found = page.evaluate(AXE_RUN)
            faults += [
                (name, scheme, one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]
            ]
        page.emulate_media(color_scheme="light")
    context.close()
    assert faults == []


def test_a_narrow_window_needs_no_sideways_scrolling(browser: Browser, dev: RunningDev) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 700}, reduced_motion="reduce")
    page = context.new_page()
    open_panel(page, dev, "")
    for name in [*PANELS, "kv/NOTES/", "sql/DB/table/jobs", "sql/DB/schema"]:
        go_to_panel(page, name)
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.evaluate("(one => one.scrollWidth <= one.clientWidth)(document.querySelector('main'))"), name
    # The list of a database's tables is scrolled there, and begins with one that can be seen.
    go_to_panel(page, "sql")
    table, list_ = (
        page.locator(".tables a[href*='/table/']").first.bounding_box(),
        page.locator(".sql > aside").bounding_box(),
    )
    assert table is not None
    assert list_ is not None
    assert table["y"] + table["height"] <= list_["y"] + list_["height"]
    context.close()


def test_what_comes_before_the_first_frame_is_shown(page: Page, dev: RunningDev) -> None:
    # Effects wait for a frame, or 35 ms where there is none; a page that is not shown has none, and timers of a second.
    page.add_init_script("""{
      const later = window.setTimeout;
      window.requestAnimationFrame = (callback) => later(() => callback(performance.now()), 1000);
      window.setTimeout = (callback, wait, ...given) => later(callback, wait === 35 ? 1000 : wait, ...given);
    }""")
    open_panel(page, dev, "routes")
    page.wait_for_function("() => document.getElementById('live').textContent === 'live'")


def test_a_request_while_the_list_is_on_its_way_is_in_the_list(page: Page, dev: RunningDev) -> None:
    def delayed(route: Route) -> None:
        answer = route.fetch()
        dev.fetch("/notes/in-between")
        route.fulfill(response=answer)

    page.route("**/_core/api/exchanges", delayed, times=1)
    open_panel(page, dev, "requests")
    rows(page, "/notes/in-between").wait_for()


def test_a_save_takes_nothing_that_was_typed_or_recorded(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "workshop"
    copy_project(HERE / "workshop", folder)
    main = folder / "src" / "main.py"
    text = main.read_text()
    with RunningDev(folder, tmp_path / "state") as dev, leaving(page):
        open_panel(page, dev, "sql")
        page.wait_for_function("() => document.getElementById('live').textContent === 'live'")
        dev.fetch("/notes/before-the-save")
        page.get_by_label(SQL).click()
        page.keyboard.type("SELECT 'not yet")
        page.keyboard.press("Escape")
        typed = page.get_by_label(SQL).inner_text()
        for change, said in ((f"{text}\n1 / 0\n", "could not reload"), (f"{text}\n", "reloaded")):
            main.write_text(change)
            dev.until(said)
            page.wait_for_timeout(1500)
            page.wait_for_function("() => document.getElementById('live').textContent === 'live'", timeout=60_000)
        assert page.get_by_label(SQL).inner_text() == typed
        assert page.evaluate("document.activeElement.shadowRoot !== null")
        dev.fetch("/notes/after-the-save")
        page.locator('nav a[href="#requests"]').click()
        rows(page, "/notes/after-the-save").wait_for()
        # The process that answered it is gone.
        rows(page, "/notes/before-the-save").click()
        rows(page, "NOTES.get 'before-the-save'").wait_for()
        page.reload()
        rows(page, "NOTES.get 'before-the-save'").wait_for()
        page.goto("about:blank")
        forgive(page)  # requests while one server gave way to the next


def test_a_page_of_another_site_learns_nothing(browser: Browser, dev: RunningDev, users: RunningDev) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{users.address}/health")  # another origin: another port is enough
    answer = page.evaluate(
        """async (url) => {
            try { return await (await fetch(url, {headers: {"X-Core-Token": "guess"}})).text() } catch { return "refused" }
        }""",
        f"{dev.address}/_core/api/overview",
    )
    context.close()
    assert answer == "refused"


def test_a_result_of_many_columns_can_be_read(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "sql")
    columns = ", ".join(f"'ada@example.com' AS a_column_{number}" for number in range(13))
    page.get_by_label(SQL).fill(f"SELECT {columns}")
    page.keyboard.press("Control+Enter")
    cells = page.get_by_role("gridcell")
    cells.nth(12).wait_for()
    assert all(cell.evaluate("one => one.offsetHeight") < 50 for cell in cells.all())  # one line each
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
