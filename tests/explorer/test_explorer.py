"""Every panel of the explorer, used by a real Chromium against applications that `core dev` serves."""

from __future__ import annotations

import asyncio
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.explorer.browser import call, forgive, needs_chromium, open_panel, read, rows, saying
from tests.support.running import RunningDev

from core.testing import FakeD1Database

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [needs_chromium, pytest.mark.slow]

SQL = "SQL (Ctrl-Enter runs it)"


# -- requests


def test_requests_show_up_live_with_their_binding_calls(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "requests")
    page.wait_for_function("() => document.getElementById('live').textContent === 'live'")
    dev.fetch("/notes/live-one")
    row = rows(page, "/notes/live-one").first
    row.wait_for()
    assert "404" in row.inner_text()
    row.click()
    rows(page, "NOTES.get 'live-one'").wait_for()
    page.get_by_label("Filter").fill("nothing has this")
    page.get_by_text("No request is like that").wait_for()


def test_headers_bodies_and_the_route_of_a_request_are_shown(page: Page, dev: RunningDev) -> None:
    dev.fetch(
        "/echo",
        method="POST",
        body=b'{"a": [1, "\xc3\xa4"]}',
        headers={"Content-Type": "application/json", "X-Own": "one"},
    )
    open_panel(page, dev, "requests")
    rows(page, "/echo").first.click()
    detail = page.locator(".detail")
    page.get_by_role("tab", name="Request").click()
    detail.get_by_text("X-Own", exact=False).wait_for()
    assert '"ä"' in detail.get_by_label("Body of the request").inner_text()
    page.get_by_role("tab", name="Request").press("ArrowRight")
    detail.get_by_text("content-type").wait_for()
    assert '"ä"' in detail.get_by_label("Body of the response").inner_text()
    assert "route /echo" in detail.inner_text()
    page.go_back()
    detail.get_by_label("Body of the request").wait_for()


def test_a_request_is_sent_again_and_copied(page: Page, dev: RunningDev) -> None:
    dev.fetch(
        "/echo?again=1", method="POST", body=b'{"it": "is one\'s own"}', headers={"Content-Type": "application/json"}
    )
    open_panel(page, dev, "requests")
    rows(page, "/echo?again=1").first.click()
    page.get_by_role("button", name="Copy as cURL").click()
    saying(page, "Copied as cURL")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"curl -X POST '{dev.address}/echo?again=1'")
    assert """--data-raw '{"it": "is one'\\''s own"}'""" in copied
    before = page.url
    page.get_by_role("button", name="Send again").click()
    page.wait_for_function("before => location.href !== before", arg=before)
    page.get_by_role("tab", name="Response").click()
    assert "one's own" in page.get_by_label("Body of the response").inner_text()
    rows(page, "/echo?again=1").nth(1).wait_for()
    assert rows(page, "/echo?again=1").count() == 2


def test_statements_in_a_loop_are_marked_and_have_a_plan_and_logs(page: Page, dev: RunningDev) -> None:
    dev.fetch("/slow-list")
    open_panel(page, dev, "requests")
    page.get_by_label("Filter").fill("n+1")
    rows(page, "/slow-list").first.click()
    page.locator(".hint", has_text="was called 12 times").wait_for()
    rows(page, "12 × DB.first").click()
    page.get_by_text("12 different values").wait_for()
    page.locator(".plan", has_text="SEARCH jobs USING INTEGER PRIMARY KEY").wait_for()
    assert "SELECT text FROM jobs" in page.get_by_label("Statement").inner_text()
    page.get_by_role("tab", name="Logs").click()
    page.locator(".logs", has_text="one statement for each job").wait_for()
    page.get_by_role("tab", name="Timeline").click()
    rows(page, "12 × DB.first").click()
    page.get_by_role("button", name="Each call").click()
    rows(page, "← 3").click()
    page.get_by_role("link", name="Open in SQL").click()
    page.get_by_label(SQL).get_by_text("SELECT text FROM jobs").wait_for()


def test_the_rows_that_statements_read_are_shown_for_each_call_and_for_the_request(page: Page, dev: RunningDev) -> None:
    dev.fetch("/counted-list")
    with ThreadPoolExecutor(1) as pool:  # this thread's event loop is Playwright's
        read = pool.submit(asyncio.run, _counted_list()).result()
    open_panel(page, dev, "requests")
    rows(page, "/counted-list").first.click()
    page.locator(".facts", has_text=f"{read} rows read").wait_for()
    rows(page, "DB.batch").first.click()
    page.locator(".beneath .facts", has_text="3 rows read").get_by_text("3 rows returned").wait_for()
    rows(page, "DB.all").first.click()
    page.locator(".beneath .facts", has_text="6 rows read").get_by_text("1 row returned").wait_for()
    rows(page, "DB.exec").first.click()
    page.locator(".beneath .facts", has_text="3 rows read").wait_for()


async def _counted_list() -> int:
    """The rows that the workshop's statements read of a fake."""
    db = FakeD1Database(migrations=Path(__file__).parent / "workshop" / "migrations")
    await db.batch(
        [
            *(db.prepare("INSERT INTO counted (text) VALUES (?)").bind(text) for text in ("c", "a", "b")),
            db.prepare("SELECT * FROM counted"),
        ]
    )
    await db.prepare("SELECT text FROM counted ORDER BY text LIMIT 1").all()
    await db.exec("UPDATE counted SET text = 'd' WHERE text > ''")
    return db.rows_read


def test_requests_of_the_users_example_show_middleware_background_work_and_sql(page: Page, users: RunningDev) -> None:
    users.fetch("/users", method="POST", body=b'{"name": "Ada", "email": "explorer@example.com"}')
    open_panel(page, users, "requests")
    rows(page, "/users").first.click()
    for text in ("request_id", "rate_limit", "DB.first INSERT INTO users", "COUNTERS.get", "INSERT INTO events"):
        rows(page, text, grid="Middleware and calls").first.wait_for()


def test_the_list_beside_an_open_request_shows_whole_columns(page: Page, dev: RunningDev) -> None:
    page.set_viewport_size({"width": 1120, "height": 640})
    open_panel(page, dev, "requests")
    dev.fetch("/notes/beside")
    rows(page, "/notes/beside").first.click()
    page.get_by_role("tab", name="Timeline").wait_for()
    grid = page.get_by_role("grid", name="Requests")
    page.wait_for_function("grid => grid.scrollWidth <= grid.clientWidth", arg=grid.element_handle())
    assert grid.get_by_role("columnheader").all_inner_texts() == ["Method", "Path", "Status", "Took"]


def test_a_link_to_a_request_that_is_gone_says_so(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "requests/nothing-here")
    page.get_by_text("This request is kept no longer").wait_for()
    forgive(page)


def test_routes_are_listed_with_what_runs_before_them(page: Page, users: RunningDev) -> None:
    open_panel(page, users, "routes")
    row = rows(page, "delete_user")
    row.wait_for()
    assert "behind an authenticator" in row.inner_text()
    assert "request_id → logger" in row.inner_text()


# -- key-value


def test_kv_is_browsed_written_and_deleted(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "kv")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Key", exact=True).fill("greeting/<b>")
    page.get_by_label("Value", exact=True).fill("hello & <i>goodbye</i>")
    page.get_by_role("button", name="Save").click()
    saying(page, "Saved greeting/<b>")
    assert json.loads(dev.fetch("/notes/greeting%2F%3Cb%3E").body) == {"note": "hello & <i>goodbye</i>"}
    rows(page, "greeting/<b>").click()
    page.get_by_label("Value", exact=True).fill("changed")
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("button", name="Save").click()
    assert json.loads(dev.fetch("/notes/greeting%2F%3Cb%3E").body) == {"note": "changed"}
    # The list is read again after a save.
    page.wait_for_timeout(500)
    page.get_by_label("Keys with").fill("no such key")
    page.get_by_text("No keys here").wait_for()
    page.get_by_label("Keys with").fill("greet")
    page.locator(".detail").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    saying(page, "Deleted greeting/<b>")
    assert dev.fetch("/notes/greeting%2F%3Cb%3E").status == 404


def test_no_metadata_is_no_mistake(page: Page, dev: RunningDev) -> None:
    call(dev, "PUT", "/kv/NOTES/value", {"key": "plain", "value": "a"})
    open_panel(page, dev, "kv/NOTES/plain")
    metadata = page.get_by_label("Metadata", exact=True)
    metadata.fill("nothing")
    page.locator(".cm-lintRange-error, .cm-lintPoint-error").first.wait_for(state="attached")
    metadata.fill("")
    page.locator(".cm-lintRange-error, .cm-lintPoint-error").first.wait_for(state="detached")


def test_kv_errors_are_said_in_the_bindings_own_words(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "kv/NOTES//new")
    page.get_by_label("Key", exact=True).fill("..")
    page.get_by_role("button", name="Save").click()
    saying(page, '".." is not allowed as a key name.')
    page.get_by_label("Key", exact=True).fill("fine")
    page.get_by_label("Metadata").fill("{not json")
    page.get_by_role("button", name="Save").click()
    saying(page, "The metadata is not JSON")
    forgive(page)


def test_saving_a_key_that_was_only_looked_at_changes_nothing_of_it(page: Page, dev: RunningDev) -> None:
    def stored() -> Any:
        return call(dev, "GET", "/kv/NOTES/value?key=lease")

    call(
        dev,
        "PUT",
        "/kv/NOTES/value",
        {"key": "lease", "value": "a", "metadata": {"owner": "ada"}, "expiration_ttl": 3600},
    )
    before = stored()
    assert before["expiration"]
    open_panel(page, dev, "kv/NOTES/lease")
    page.get_by_label("Value", exact=True).wait_for()
    page.get_by_role("button", name="Save").click()
    saying(page, "Saved lease")
    assert stored() == before
    page.get_by_label("Value", exact=True).fill("b")
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("button", name="Save").click()
    assert stored() == {**before, "text": "b"}
    page.get_by_label("Never expire").check()
    page.get_by_label("Metadata").fill('{"owner": "grace"}')
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("button", name="Save").click()
    assert stored() == {**before, "text": "b", "expiration": None, "metadata": {"owner": "grace"}}


def test_bytes_are_shown_as_such_and_kept_and_keys_are_deleted_together(page: Page, dev: RunningDev) -> None:
    call(dev, "PUT", "/kv/NOTES/value", {"key": "many/raw", "base64": "AP//gA=="})
    for number in range(3):
        call(dev, "PUT", "/kv/NOTES/value", {"key": f"many/{number}", "value": str(number)})
    open_panel(page, dev, "kv/NOTES/many%2Fraw")
    page.locator("pre.hex", has_text="00 ff ff 80").wait_for()
    page.get_by_role("button", name="Save").click()
    saying(page, "Saved many/raw")
    assert call(dev, "GET", "/kv/NOTES/value?key=many%2Fraw")["base64"] == "AP//gA=="
    page.get_by_label("Keys with").fill("many/")
    page.get_by_label("Mark many/1").check()
    page.get_by_role("button", name="Delete 1", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    saying(page, "Deleted 1 key")
    page.get_by_role("button", name="Delete all").click()
    page.get_by_role("dialog", name="Delete 3 keys?").get_by_role("button", name="Delete").click()
    saying(page, "Deleted 3 keys")
    page.get_by_text("No keys here").wait_for()


# -- SQL


def test_sql_runs_by_keyboard_and_completes_from_the_schema(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "sql")
    page.get_by_text("0001_jobs.sql applied").wait_for()
    page.get_by_label(SQL).fill("SELECT 6 * 7 AS answer, NULL AS none, x'00ff' AS raw, 9007199254740993 AS large")
    page.keyboard.press("Control+Enter")
    result = page.locator("#sql-result")
    result.get_by_text("1 row in").wait_for()
    cells = result.locator(".rows [role=gridcell]").all()
    assert [cell.inner_text() for cell in cells[:3]] == ["42", "NULL", "2 B of bytes"]
    page.get_by_label(SQL).press("Control+a")
    page.keyboard.press("Delete")
    page.get_by_label(SQL).press_sequentially("SELECT * FROM jo")
    page.keyboard.press("Control+Space")
    page.locator(".cm-tooltip-autocomplete", has_text="jobs").wait_for()
    page.keyboard.press("Escape")
    page.get_by_label(SQL).press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.type("SELEC")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Run").click()
    result.get_by_text("D1_ERROR").wait_for()
    assert 'near "SELEC"' in result.inner_text()
    forgive(page)


def test_typing_over_coloured_text_writes_no_style_of_its_own(page: Page, dev: RunningDev) -> None:
    # In rich text Chromium keeps the colour with a `style`, which the page's policy refuses with an error.
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text) if "inline style" in message.text else None)
    open_panel(page, dev, "sql")
    page.get_by_label(SQL).press_sequentially("SELECT 'one' FROM jobs ")
    page.keyboard.press("Escape")
    for _ in range(3):
        page.keyboard.press("Home")
        page.keyboard.press("Control+Shift+ArrowRight")
        page.keyboard.type("with ")
        page.keyboard.press("Control+a")
        page.keyboard.type("SELECT 2 AS two FROM jobs ")
        page.keyboard.press("Escape")
    assert page.get_by_label(SQL).inner_text().strip() == "SELECT 2 AS two FROM jobs"
    for number in range(30):  # so fast that the editor has not always heard of the selection
        page.get_by_label(SQL).fill(f"SELECT {number} AS number;\nSELECT 'x'")
    assert refused == []


def test_several_statements_have_several_results_and_what_destroys_is_asked_for(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "sql")
    page.get_by_label(SQL).fill(
        "INSERT INTO jobs (text) VALUES ('x'), ('y'); SELECT count(*) AS n FROM jobs; DELETE FROM jobs"
    )
    page.get_by_role("button", name="Run").click()
    dialog = page.get_by_role("dialog")
    assert "DELETE FROM jobs" in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")
    assert call(dev, "POST", "/d1/DB/query", {"sql": "SELECT count(*) FROM jobs"})["results"][0]["rows"] == [[0]]
    page.get_by_role("button", name="Run").click()
    dialog.get_by_role("button", name="Run").click()
    result = page.locator("#sql-result")
    result.get_by_text("Done, 2 rows changed").first.wait_for()
    assert result.locator("section").count() == 3
    everything = "WITH one AS (SELECT 1) DELETE FROM jobs"
    assert call(dev, "POST", "/d1/DB/query", {"sql": everything})["asks"] == [everything]
    assert call(dev, "POST", "/d1/DB/query", {"sql": f"{everything} WHERE id = 0"})["asks"] == []


def test_a_statement_that_takes_too_long_is_stopped_and_the_server_answers_meanwhile(
    page: Page, dev: RunningDev
) -> None:
    open_panel(page, dev, "sql")
    page.get_by_label(SQL).fill(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    page.get_by_role("button", name="Run").click()
    page.get_by_text("Running …").wait_for()
    assert dev.fetch("/notes/meanwhile").status == 404
    page.get_by_role("button", name="Stop").click()
    page.locator("#sql-result").get_by_text("Stopped").wait_for()


def until_beside(dev: RunningDev, *, locked: bool) -> None:
    """Wait until a write beside another one finds the database locked, or no longer so."""
    deadline = time.monotonic() + 60
    beside = {"sql": "INSERT INTO jobs (text) SELECT 'beside' WHERE 0"}
    while ("locked" in call(dev, "POST", "/d1/DB/query", beside)["results"][0].get("error", "")) is not locked:
        assert time.monotonic() < deadline


def test_a_statement_ends_when_the_panel_is_left(page: Page, dev: RunningDev) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    open_panel(page, dev, "sql")
    page.get_by_label(SQL).fill(f"{endless} INSERT INTO jobs (text) SELECT i FROM n WHERE i < 0")
    page.get_by_role("button", name="Run").click()
    page.get_by_text("Running …").wait_for()
    until_beside(dev, locked=True)
    page.get_by_role("link", name="Key-value").click()
    page.wait_for_function("() => document.getElementById('panel-title').textContent === 'Key-value'")
    until_beside(dev, locked=False)
    open_panel(page, dev, "sql")
    assert page.get_by_text("Running …").count() == 0


def test_rows_are_added_edited_and_deleted(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "sql/DB/table/jobs")
    page.get_by_role("button", name="New row").click()
    page.get_by_label("text", exact=False).first.fill("written by hand")
    page.get_by_role("button", name="Add").click()
    saying(page, "Added a row")
    rows(page, "written by hand").click()
    page.get_by_label("text text").fill("changed <b>")
    page.get_by_role("button", name="Save").click()
    saying(page, "1 row changed")
    rows(page, "changed <b>").click()
    page.locator(".detail").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    saying(page, "Deleted the row")
    page.get_by_text("jobs is empty").wait_for()


# -- objects, queues, schedules


def test_objects_are_uploaded_read_downloaded_and_deleted(page: Page, dev: RunningDev, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<script>document.title = 'run'</script>")
    open_panel(page, dev, "objects")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_label("File").set_input_files(file)
    page.locator(".detail").get_by_role("button", name="Upload", exact=True).click()
    saying(page, "Stored page.html")
    page.get_by_label("Preview").get_by_text("document.title").wait_for()
    page.get_by_label("Cache-Control").fill("max-age=60")
    page.get_by_role("button", name="Add a name").click()
    page.get_by_label("Name 1").fill("owner")
    page.get_by_label("Value 1").fill("ada")
    page.get_by_role("button", name="Save metadata").click()
    saying(page, "Saved the metadata")
    found = call(dev, "GET", "/r2/FILES/object?key=page.html")
    assert found["customMetadata"] == {"owner": "ada"}
    assert found["httpMetadata"] == {"content_type": "text/html", "cache_control": "max-age=60"}
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.path().read_text() == file.read_text()
    page.locator(".detail").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    saying(page, "Deleted page.html")
    page.get_by_text("No objects here").wait_for()
    assert "run" not in page.title()


def test_messages_are_sent_and_dead_letters_say_why_and_are_delivered_again(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "queues/jobs/send")
    page.get_by_label("Message", exact=True).fill('{"text": "from the explorer"}')
    page.get_by_role("button", name="Send").click()
    saying(page, "Sent to jobs")
    dev.until(lambda line: "QUEUE" in line and " ok " in line)
    page.get_by_label("Message", exact=True).fill('{"text": "fail"}')
    page.get_by_role("button", name="Send").click()
    dev.until(lambda line: "QUEUE" in line and " err " in line)
    page.get_by_role("link", name="dead-jobs").click()
    rows(page, '{"text": "fail"}').first.click()
    page.locator(".detail .problem", has_text="ValueError: this job fails").wait_for()
    before = sum("QUEUE" in line for line in dev.lines)
    page.get_by_label("Mark").first.check()
    page.get_by_role("button", name="Redeliver 1").click()
    saying(page, "Redelivered 1 message")
    dev.until(lambda line: sum("QUEUE" in one for one in dev.lines) == before + 1)
    page.get_by_role("button", name="Delete all").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    saying(page, "Deleted 1 message")
    page.get_by_text("No message waits here").wait_for()


def test_a_trigger_runs_now_and_how_it_went_stays(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "triggers")
    page.get_by_role("button", name="Run now: 0 3 * * *").click()
    saying(page, "Ran in")
    assert json.loads(dev.fetch("/notes/tidied").body) == {"note": "yes"}
    page.locator(".card").get_by_role("link", name="ok").first.click()
    rows(page, "NOTES.put 'tidied'").wait_for()


# -- numbers, Durable Objects, configuration


def test_the_metrics_count_by_route_binding_and_queue(page: Page, dev: RunningDev) -> None:
    numbers = call(dev, "GET", "/metrics")
    before = sum(one["value"] for one in numbers["core_http_requests"] if one["route"] == "/notes/:key")
    for _ in range(3):
        dev.fetch("/notes/counted")
    open_panel(page, dev, "metrics")
    asked = rows(page, "/notes/:key", grid="Routes").first
    page.wait_for_function(
        "([row, text]) => row.textContent.includes(text)", arg=[asked.element_handle(), f"{before + 3:.0f}"]
    )
    dev.fetch("/notes/counted")  # it comes by itself
    page.wait_for_function(
        "([row, text]) => row.textContent.includes(text)", arg=[asked.element_handle(), f"{before + 4:.0f}"]
    )
    rows(page, "NOTES", grid="Bindings").wait_for()
    rows(page, "jobs", grid="Queues").first.wait_for()
    text = read(dev, "GET", "/metrics/text").decode()
    assert text.endswith("# EOF\n")
    assert 'core_http_requests_total{method="GET",route="/notes/:key"' in text


# -- Durable Objects, configuration


def test_durable_objects_are_found_by_name_and_their_storage_is_edited(page: Page, dev: RunningDev) -> None:
    dev.fetch("/count", method="POST", body=b"")
    open_panel(page, dev, "durable-objects")
    page.get_by_label("Name or id").fill("one")
    page.get_by_role("button", name="Open by name").click()
    rows(page, "value", grid="Stored values").click()
    page.get_by_label("Value", exact=True).fill("41")
    page.get_by_role("button", name="Save").click()
    saying(page, "Saved value")
    assert json.loads(dev.fetch("/count", method="POST", body=b"").body) == {"count": 42}
    page.get_by_role("tab", name="SQL").click()
    page.get_by_label("SQL of the object").fill("CREATE TABLE t (a); INSERT INTO t VALUES (7); SELECT a FROM t")
    page.keyboard.press("Control+Enter")
    rows(page, "7", grid="Result").wait_for()
    page.get_by_role("tab", name="Alarm").click()
    page.get_by_label("At").fill("2099-01-01T00:00:00")
    page.get_by_role("button", name="Set").click()
    saying(page, "The alarm is set")
    page.get_by_role("button", name="Run now").click()
    saying(page, "The alarm ran")
    page.get_by_text("No alarm is set").wait_for()
    page.get_by_role("tab", name="Storage").click()
    rows(page, "rang", grid="Stored values").wait_for()


def test_a_statement_of_an_object_without_an_end_is_stopped(page: Page, dev: RunningDev) -> None:
    dev.fetch("/count", method="POST", body=b"")
    open_panel(page, dev, "durable-objects")
    page.get_by_label("Name or id").fill("one")
    page.get_by_role("button", name="Open by name").click()
    page.get_by_role("tab", name="SQL").click()
    endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    page.get_by_label("SQL of the object").fill(f"CREATE TABLE IF NOT EXISTS half (a); {endless}")
    page.keyboard.press("Control+Enter")
    saying(page, "The statement was stopped after 3 s")
    forgive(page)
    page.get_by_label("SQL of the object").fill("SELECT 41 + 1")
    page.keyboard.press("Control+Enter")
    rows(page, "42", grid="Result").wait_for()


def test_the_configuration_is_shown_with_what_core_check_finds(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "configuration")
    page.get_by_text("Env and configuration agree").wait_for(timeout=60_000)
    page.locator("pre", has_text='binding = "NOTES"').wait_for()
    page.get_by_role("link", name="NOTES").click()
    page.get_by_role("grid", name="Keys").wait_for()


def test_the_error_page_of_an_application_shows_the_developers_frame(page: Page, dev: RunningDev) -> None:
    page.goto(f"{dev.address}/broken")
    page.get_by_text("How to fix").wait_for()
    assert "src/main.py" in page.locator("details[open] summary").first.inner_text()
    forgive(page)


def test_a_failed_request_shows_its_line_how_to_fix_it_and_the_page(page: Page, dev: RunningDev) -> None:
    page.goto(f"{dev.address}/broken")
    forgive(page)
    open_panel(page, dev, "requests")
    page.get_by_role("grid", name="Requests").get_by_text("/broken").first.click()
    failure = page.get_by_role("alert")
    failure.wait_for()
    told = failure.inner_text()
    assert "no such table: no_such_table" in told
    assert re.search(r"src/main\.py:\d+ broken", told)
    assert "SELECT * FROM no_such_table" in failure.locator("pre .at").inner_text()
    assert "How to fix: Correct the name, or make it in a migration" in told
    assert "Page: reference/api/d1/" in told
    page.get_by_role("tab", name="Logs").click()
    logged = page.locator("ol.logs").inner_text()
    assert re.search(r"src/main\.py:\d+ broken", logged)
    assert "How to fix: Correct the name" in logged
    forgive(page)
