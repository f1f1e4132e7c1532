"""Every panel of the explorer, used by a real Chromium against applications that `core dev` serves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.explorer.browser import AXE, CHROMIUM, needs_axe, needs_chromium
from tests.support.running import RunningDev

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [needs_chromium, pytest.mark.slow]

HERE = Path(__file__).parent
USERS = HERE.parents[1] / "examples" / "users"
_ERRORS: dict[object, list[str]] = {}
PANELS = [
    *("requests", "routes", "api", "kv", "sql", "objects", "queues", "triggers", "durable-objects", "configuration"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The sandbox needs a kernel feature that containers mostly lack; the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDev]:
    with RunningDev(HERE / "workshop", tmp_path_factory.mktemp("state"), "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        yield dev


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDev]:
    with RunningDev(USERS, tmp_path_factory.mktemp("state"), "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        yield dev


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose every console error fails the test, unless the test expects it."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    page.set_default_timeout(10_000)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    _ERRORS[page] = errors
    yield page
    context.close()
    del _ERRORS[page]
    assert not errors


def forgive(page: Page) -> None:
    """Forget the console errors so far: the test asked for them."""
    _ERRORS[page].clear()


def open_panel(page: Page, dev: RunningDev, name: str) -> None:
    page.goto("about:blank")
    page.goto(f"{dev.address}/_core/#{name}")
    page.wait_for_selector("#panel-title")


def saying(page: Page, text: str) -> None:
    page.wait_for_function("text => document.getElementById('notice').textContent.includes(text)", arg=text)


# -- panels


def test_requests_show_up_live_with_their_binding_calls(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "requests")
    page.wait_for_function("() => document.getElementById('live').textContent === 'live'")

    dev.fetch("/notes/live-one")

    row = page.locator("details.exchange", has_text="/notes/live-one").first
    row.wait_for()
    row.locator("summary").click()
    row.locator(".call", has_text="NOTES.get 'live-one'").wait_for()
    assert "404" in row.inner_text()
    page.get_by_label("Filter").fill("nothing has this")
    page.get_by_text("Nothing yet").wait_for()


def test_requests_of_the_users_example_show_background_work_and_sql(page: Page, users: RunningDev) -> None:
    users.fetch("/users", method="POST", body=b'{"name": "Ada", "email": "explorer@example.com"}')
    open_panel(page, users, "requests")

    row = page.locator("details.exchange", has_text="/users").first
    row.locator("summary").click()

    row.locator(".call", has_text="DB.first INSERT INTO users").wait_for()
    row.locator(".call", has_text="COUNTERS.get").first.wait_for()
    background = row.locator(".call", has_text="INSERT INTO events")
    background.wait_for()


def test_routes_are_listed_with_what_runs_before_them(page: Page, users: RunningDev) -> None:
    open_panel(page, users, "routes")

    row = page.locator("tr", has_text="delete_user")
    assert "behind an authenticator" in row.inner_text()
    assert "request_id → logger" in row.inner_text()


def test_kv_is_browsed_written_and_deleted(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "kv")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Key", exact=True).fill("greeting/<b>")
    page.get_by_label("Value", exact=True).fill("hello & <i>goodbye</i>")
    page.get_by_role("button", name="Save").click()
    saying(page, "Saved greeting/<b>")
    assert json.loads(dev.fetch("/notes/greeting%2F%3Cb%3E").body) == {"note": "hello & <i>goodbye</i>"}

    page.get_by_role("button", name="greeting/<b>").click()
    page.get_by_role("heading", name="Value", exact=True).wait_for()  # the stored one, no longer the new one
    page.get_by_label("Value", exact=True).fill("changed")
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("button", name="Save").click()
    assert json.loads(dev.fetch("/notes/greeting%2F%3Cb%3E").body) == {"note": "changed"}

    page.get_by_label("Prefix").fill("no such prefix")
    page.get_by_role("button", name="List").click()
    page.get_by_text("No keys here").wait_for()
    page.get_by_label("Prefix").fill("greet")
    page.get_by_role("button", name="List").click()
    page.get_by_role("button", name="greeting/<b>").click()
    page.get_by_role("button", name="Delete").click()
    saying(page, "Deleted greeting/<b>")
    assert dev.fetch("/notes/greeting%2F%3Cb%3E").status == 404


def test_kv_errors_are_said_in_the_bindings_own_words(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "kv")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Key", exact=True).fill("..")
    page.get_by_role("button", name="Save").click()
    saying(page, '".." is not allowed as a key name.')
    forgive(page)


def test_sql_runs_by_keyboard_and_tables_are_browsed(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "sql")
    page.get_by_text("0001_jobs.sql applied").wait_for()
    page.get_by_label("SQL (Ctrl-Enter runs it)").fill("SELECT 6 * 7 AS answer, NULL AS none, x'00ff' AS raw")
    page.keyboard.press("Control+Enter")
    result = page.locator("#sql-result")
    result.get_by_text("1 row in").wait_for()
    assert [cell.inner_text() for cell in result.locator("tbody td").all()] == ["42", "NULL", "2 bytes"]

    page.get_by_label("SQL (Ctrl-Enter runs it)").fill("INSERT INTO jobs (text) VALUES ('by hand')")
    page.get_by_role("button", name="Run").click()
    page.locator("#sql-result", has_text="Done").wait_for()
    page.get_by_role("button", name="jobs", exact=True).click()
    page.locator("#sql-result td", has_text="by hand").first.wait_for()

    page.get_by_label("SQL (Ctrl-Enter runs it)").fill("SELEC")
    page.get_by_role("button", name="Run").click()
    saying(page, "D1_ERROR")
    forgive(page)


def test_objects_are_uploaded_read_downloaded_and_deleted(page: Page, dev: RunningDev, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<script>document.title = 'run'</script>")
    open_panel(page, dev, "objects")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    saying(page, "Stored page.html")
    page.get_by_role("button", name="page.html", exact=True).click()
    page.locator("#r2-detail pre", has_text="document.title").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download page.html").click()
    assert download.value.path().read_text() == file.read_text()
    page.get_by_role("button", name="Delete page.html").click()
    saying(page, "Deleted page.html")
    page.get_by_text("No objects here").wait_for()
    assert "run" not in page.title()


def test_messages_are_sent_and_dead_letters_delivered_again(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "queues")
    page.get_by_role("button", name="jobs", exact=True).click()
    page.get_by_label("Message (JSON)").fill('{"text": "from the explorer"}')
    page.get_by_role("button", name="Send").click()
    saying(page, "Sent to jobs")
    dev.until(lambda line: "QUEUE" in line and " ok " in line)

    page.get_by_label("Message (JSON)").fill('{"text": "fail"}')
    page.get_by_role("button", name="Send").click()
    dev.until(lambda line: "QUEUE" in line and " err " in line)
    page.get_by_role("button", name="dead-jobs").click()
    page.get_by_text('{"text":"fail"}').wait_for()
    before = sum("QUEUE" in line for line in dev.lines)
    page.get_by_role("button", name="Redeliver").first.click()
    saying(page, "Redelivered to jobs")
    page.wait_for_timeout(500)
    assert sum("QUEUE" in line for line in dev.lines) == before + 1
    page.get_by_role("button", name="Delete").first.click()
    saying(page, "Deleted")


def test_a_trigger_runs_now(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "triggers")
    page.get_by_role("button", name="Run now: 0 3 * * *").click()
    saying(page, "Ran in")
    assert json.loads(dev.fetch("/notes/tidied").body) == {"note": "yes"}


def test_durable_objects_show_what_they_have_stored(page: Page, dev: RunningDev) -> None:
    dev.fetch("/count", method="POST", body=b"")
    open_panel(page, dev, "durable-objects")
    page.locator("main button.mono").first.click()
    page.locator("#object-detail td", has_text="value").first.wait_for()


def test_the_configuration_is_shown_with_what_core_check_finds(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "configuration")
    page.get_by_text("Env and configuration agree").wait_for()
    page.locator("pre", has_text='binding = "NOTES"').wait_for()


# -- what real data and a day of work ask of it


def stored(page: Page, dev: RunningDev, name: str) -> dict[str, Any]:
    """The explorer's own row for a key of NOTES."""
    token = page.locator('meta[name="core-token"]').get_attribute("content") or ""
    listed = dev.fetch(f"/_core/api/kv/NOTES?prefix={name}", headers={"X-Core-Token": token})
    (key,) = [key for key in json.loads(listed.body)["keys"] if key["name"] == name]
    found: dict[str, Any] = key
    return found


def put_keys(page: Page, dev: RunningDev, *entries: dict[str, Any]) -> None:
    """Store keys as the explorer does, without its page."""
    token = page.locator('meta[name="core-token"]').get_attribute("content") or ""
    for entry in entries:
        answer = dev.fetch(
            "/_core/api/kv/NOTES/value",
            method="PUT",
            body=json.dumps(entry).encode(),
            headers={"X-Core-Token": token, "Content-Type": "application/json"},
        )
        assert answer.status == 200, answer.text


def in_view(page: Page, locator: Any) -> bool:
    """True if it is visible without scrolling."""
    box = locator.bounding_box()
    height = page.evaluate("innerHeight")
    return bool(box and box["y"] >= 0 and box["y"] + min(box["height"], 40) <= height)


def test_saving_a_key_that_was_only_looked_at_changes_nothing_of_it(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "kv")
    put_keys(page, dev, {"key": "lease", "value": "a", "metadata": {"owner": "ada"}, "expiration_ttl": 3600})
    before = stored(page, dev, "lease")
    assert before["expiration"]
    page.get_by_role("button", name="List").click()
    page.get_by_role("button", name="lease").click()
    page.get_by_label("Value", exact=True).wait_for()
    assert "null" not in page.locator("#kv-detail").inner_text()

    page.get_by_role("button", name="Save").click()
    saying(page, "Saved lease")
    assert stored(page, dev, "lease") == before

    page.get_by_label("Value", exact=True).fill("b")
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("button", name="Save").click()
    assert stored(page, dev, "lease") == before
    assert json.loads(dev.fetch("/notes/lease").body) == {"note": "b"}

    page.get_by_label("Never expire").check()
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("button", name="Save").click()
    assert stored(page, dev, "lease") == {**before, "expiration": None}


@pytest.mark.parametrize("width", [1200, 400])
def test_what_is_opened_from_the_end_of_a_long_list_is_in_view(browser: Browser, dev: RunningDev, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 700})
    page = context.new_page()
    open_panel(page, dev, "kv")
    put_keys(page, dev, *({"key": f"long-{number:02}", "value": str(number)} for number in range(60)))
    page.get_by_label("Prefix").fill("long-")
    page.get_by_role("button", name="List").click()
    page.get_by_role("button", name="long-59").click()
    value = page.get_by_label("Value", exact=True)
    value.wait_for()
    assert value.input_value() == "59"
    assert in_view(page, value)
    context.close()


def test_a_panel_that_looks_again_leaves_focus_and_text_alone(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "queues")
    page.get_by_role("button", name="jobs", exact=True).click()
    message = page.get_by_label("Message (JSON)")
    message.fill('{"text": "half a sen')
    page.keyboard.press("ArrowLeft")
    caret = message.evaluate("one => one.selectionStart")
    for _ in range(2):
        with page.expect_response(lambda response: response.url.endswith("/api/queues/jobs")):
            pass
    page.wait_for_timeout(100)
    assert message.input_value() == '{"text": "half a sen'
    assert message.evaluate("one => one === document.activeElement")
    assert message.evaluate("one => one.selectionStart") == caret
    page.keyboard.type("t")
    assert message.input_value() == '{"text": "half a setn'


def test_saving_a_file_takes_nothing_that_was_written_or_logged(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "workshop"
    shutil.copytree(HERE / "workshop", folder, ignore=shutil.ignore_patterns(".core", "__pycache__"))
    main = folder / "src" / "main.py"
    text = main.read_text()
    with RunningDev(folder, tmp_path / "state") as dev:
        open_panel(page, dev, "sql")
        page.wait_for_function("() => document.getElementById('live').textContent === 'live'")
        dev.fetch("/notes/before-the-save")
        sql = page.get_by_label("SQL (Ctrl-Enter runs it)")
        sql.fill("SELECT 'a long statement, not yet")
        for change, said in ((f"{text}\n1 / 0\n", "could not reload"), (f"{text}\n", "reloaded")):
            page.evaluate("document.getElementById('live').textContent = 'waiting'")
            main.write_text(change)
            dev.until(said)
            page.wait_for_function("() => document.getElementById('live').textContent === 'live'", timeout=20_000)
        assert sql.input_value() == "SELECT 'a long statement, not yet"
        assert sql.evaluate("one => one === document.activeElement")
        dev.fetch("/notes/after-the-save")
        page.keyboard.press("Escape")
        page.locator('nav a[href="#requests"]').click()
        for path in ("/notes/before-the-save", "/notes/after-the-save"):
            page.locator("details.exchange", has_text=path).wait_for()
        page.locator('nav a[href="#sql"]').click()
        assert sql.input_value() == "SELECT 'a long statement, not yet"
        page.goto("about:blank")
        forgive(page)  # requests while one server gave way to the next


def test_a_table_of_many_columns_can_be_read(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "sql")
    columns = ", ".join(f"'ada@example.com' AS a_column_{number}" for number in range(13))
    page.get_by_label("SQL (Ctrl-Enter runs it)").fill(f"SELECT {columns}")
    page.keyboard.press("Control+Enter")
    cells = page.locator("#sql-result td")
    cells.nth(12).wait_for()
    assert all(cell.evaluate("one => one.offsetHeight") < 50 for cell in cells.all())  # one line each
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# -- for everyone


def test_the_keyboard_reaches_every_panel(page: Page, dev: RunningDev) -> None:
    open_panel(page, dev, "requests")
    for number, name in enumerate(PANELS, 1):
        page.keyboard.press(str(number % 10))
        page.wait_for_function("name => location.hash === '#' + name", arg=name)
        page.wait_for_function("() => document.activeElement.id === 'panel'")
        page.locator(f'nav a[aria-current="page"][href="#{name}"]').wait_for()
    page.goto(f"{dev.address}/_core/#requests")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_any_panel(browser: Browser, dev: RunningDev, scheme: str) -> None:
    # axe has to be put into the page, which the page's own policy forbids to everyone else.
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    dev.fetch("/notes/for-axe")
    faults: list[Any] = []
    for name in [*PANELS, "api/send_job"]:
        open_panel(page, dev, name)
        page.wait_for_timeout(200)
        if name == "api/send_job":
            page.get_by_role("button", name="Send").click()
            page.get_by_role("heading", name="Answer 202").wait_for()
        if name == "requests":
            page.locator("details.exchange summary").first.click()
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run(document)")
        faults += [(name, one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
    page.goto(f"{dev.address}/broken")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document)")
    faults += [("error page", one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
    context.close()
    assert faults == []


def test_a_narrow_window_needs_no_sideways_scrolling(browser: Browser, dev: RunningDev) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 700})
    page = context.new_page()
    for name in [*PANELS, "api/send_job"]:
        open_panel(page, dev, name)
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    context.close()


def test_the_error_page_of_an_application_shows_the_developers_frame(page: Page, dev: RunningDev) -> None:
    page.goto(f"{dev.address}/broken")
    page.get_by_text("How to fix").wait_for()
    assert "src/main.py" in page.locator("details[open] summary").first.inner_text()
    forgive(page)


# -- against other sites


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
