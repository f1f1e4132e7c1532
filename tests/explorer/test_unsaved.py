"""What is written in a form of the explorer: it is kept, or asked for before it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.explorer.browser import call, needs_chromium, open_panel, rows
from tests.support.running import RunningDev

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Locator, Page

pytestmark = [needs_chromium, pytest.mark.slow]

SQL = "SQL (Ctrl-Enter runs it)"


def question(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Leave without saving?")


def stays_then_leaves(page: Page, leave: str, text: Locator, written: str) -> None:
    """Try to leave by a link, stay, and leave."""
    page.get_by_role("link", name=leave).click()
    question(page).get_by_role("button", name="Cancel").click()
    assert (text.input_value() if text.evaluate("one => 'value' in one") else text.inner_text()) == written
    page.get_by_role("link", name=leave).click()
    question(page).get_by_role("button", name="Leave").click()
    page.wait_for_function("name => document.getElementById('panel-title').textContent === name", arg=leave)


def test_an_edited_row_asks_before_it_goes(page: Page, dev: RunningDev) -> None:
    for text in ("one", "two"):
        call(dev, "PUT", "/d1/DB/row", {"table": "jobs", "values": {"text": text}})
    open_panel(page, dev, "sql/DB/table/jobs")
    rows(page, "one").click()
    field = page.get_by_label("text text")
    field.fill("edited")
    field.press("Escape")
    question(page).get_by_role("button", name="Cancel").click()
    rows(page, "two").click()
    question(page).get_by_role("button", name="Cancel").click()
    page.go_back()
    assert "edited" not in question(page).inner_text()
    question(page).get_by_role("button", name="Cancel").click()
    stays_then_leaves(page, "Key-value", field, "edited")
    page.go_back()
    rows(page, "one").click()
    assert field.input_value() == "one"
    field.fill("edited")
    field.fill("one")  # as it was: there is nothing to lose
    field.press("Escape")
    page.locator(".detail").wait_for(state="detached")


def test_a_new_row_and_a_saved_one_ask_as_they_should(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "sql/DB/table/counted/")
    field = page.get_by_label("text text")
    field.fill("saved")
    page.get_by_role("button", name="Add").click()
    page.locator(".detail").wait_for(state="detached")  # no question
    page.get_by_role("button", name="New row").click()
    field.fill("not saved")
    stays_then_leaves(page, "Requests", field, "not saved")


def test_an_edited_key_asks_before_it_goes_and_before_the_page_is_closed(page: Page, dev: RunningDev) -> None:
    call(dev, "PUT", "/kv/NOTES/value", {"key": "unsaved", "value": "before"})
    open_panel(page, dev, "kv/NOTES/unsaved")
    value = page.get_by_label("Value", exact=True)
    value.fill("edited")
    asked: list[str] = []

    def accept(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.once("dialog", accept)
    page.reload()
    assert asked == ["beforeunload"]
    value.get_by_text("before").wait_for()
    value.fill("edited")
    stays_then_leaves(page, "Queues", value, "edited")


def test_an_object_s_stored_value_asks_before_another_is_opened(page: Page, dev: RunningDev) -> None:
    dev.fetch("/count", method="POST", body=b"")
    id = call(dev, "GET", "/objects/COUNTER")["rows"][0]["id"]
    call(dev, "PUT", f"/objects/COUNTER/{id}/entry", {"key": "another", "json": "1"})
    open_panel(page, dev, f"durable-objects/COUNTER/{id}")
    rows(page, "value", grid="Stored values").click()
    value = page.get_by_label("Value", exact=True)
    value.fill("77")
    rows(page, "another", grid="Stored values").click()
    question(page).get_by_role("button", name="Cancel").click()
    assert value.inner_text() == "77"
    page.get_by_role("tab", name="Alarm").click()
    question(page).get_by_role("button", name="Leave").click()
    page.get_by_label("At").wait_for()


def test_statements_stay_written_and_are_replaced_after_a_question(page: Page, dev: RunningDev) -> None:
    dev.fetch("/slow-list")
    open_panel(page, dev, "sql")
    page.get_by_label(SQL).fill("SELECT 'typed'")
    page.get_by_role("link", name="Requests").click()
    rows(page, "/slow-list").first.click()
    rows(page, "12 × DB.first").click()
    page.get_by_role("link", name="Open in SQL").click()
    dialog = page.get_by_role("dialog")
    assert "SELECT 'typed'" in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("link", name="SQL", exact=True).click()
    assert page.get_by_label(SQL).inner_text() == "SELECT 'typed'"
