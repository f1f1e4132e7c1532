"""The explorer's panel "API" in a real Chromium: what the document says, and requests that are sent from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.explorer.browser import forgive, leaving, needs_chromium
from tests.support.copies import copy_project
from tests.support.libraries import with_libraries
from tests.support.running import RunningDev

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [needs_chromium, pytest.mark.slow]

USERS = Path(__file__).parents[2] / "examples" / "users"
PATIENCE = 240_000
"""Milliseconds for mypy to read a program for the first time on a busy machine."""
_MANY = """
from core import Bindings, CoreError, Request, Response, create_app
import attrs


@attrs.frozen
class Env(Bindings):
    pass


app = create_app(Env)

"""
_ROUTE = '''
@app.get("/things/{number}/:id")
async def thing_{number}(req: Request[Env], res: Response) -> None:
    """Give thing {number}."""
    res.json({{"id": req.params["id"], "thing": {number}}})

'''


@pytest.fixture
def page(page: Page) -> Iterator[Page]:
    """A page that may log errors: here they are answers that were asked for."""
    yield page
    forgive(page)


def open_api(page: Page, dev: RunningDev, operation: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{dev.address}/_core/#api{operation and '/'}{operation}")
    page.get_by_text("As the code says now").first.wait_for(timeout=PATIENCE)


def test_a_request_is_sent_and_its_answer_stands_beside_what_is_declared(page: Page, users: RunningDev) -> None:
    open_api(page, users)
    page.get_by_text("As the code says now, and as openapi.json has it").wait_for()
    page.get_by_role("link", name="POST /users", exact=True).click()
    body = page.get_by_label("Body, application/json")
    assert json.loads(body.input_value()) == {"name": "", "email": ""}
    body.fill('{"name": "Ada", "email": "panel@example.com"}')
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Answer 201").wait_for()
    answer = page.locator("#api-answer")
    assert '"id": ' in answer.locator("pre").first.inner_text()
    assert "Declared for 201" in answer.inner_text()
    assert "id: integer" in answer.inner_text()
    page.get_by_role("button", name="Send").click()
    page.get_by_role("heading", name="Answer 409").wait_for()
    assert 'error: "Conflict"' in answer.inner_text()


def test_the_token_stays_for_the_session_and_curl_and_python_have_it(page: Page, users: RunningDev) -> None:
    open_api(page, users, "update_user")
    page.get_by_label("Token (bearer)").fill("it's one")
    page.get_by_label("id (path)").fill("a/b")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("heading", name="Answer 401").wait_for()
    page.get_by_text("The same request elsewhere").click()
    elsewhere = page.locator("details", has_text="The same request elsewhere").inner_text()
    assert f"curl -X PUT '{users.address}/users/a%2Fb'" in elsewhere
    assert "-H 'Authorization: Bearer it'\\''s one'" in elsewhere
    assert 'headers={"Authorization": "Bearer it\'s one"}' in elsewhere
    assert 'json={"name": None, "email": None}' in elsewhere
    page.reload()
    page.locator("#api-detail form").wait_for()
    assert page.get_by_label("id (path)").input_value() == "a/b"
    assert page.get_by_label("Token (bearer)").input_value() == "it's one"
    page.get_by_role("link", name="DELETE /users/{id}").click()
    assert page.get_by_label("Token (bearer)").input_value() == "it's one"
    page.get_by_role("link", name="GET /users/{id}").click()
    page.get_by_role("heading", name="GET /users/{id}").wait_for()
    assert not page.get_by_label("Token (bearer)").count()


def test_a_link_goes_to_one_route_and_says_where_there_is_none(page: Page, users: RunningDev) -> None:
    open_api(page, users, "get_user")
    page.get_by_role("heading", name="GET /users/{id}").wait_for()
    assert page.locator('a[aria-current="true"]').inner_text().split() == ["GET", "/users/{id}"]
    page.get_by_role("button", name="Send").click()
    assert page.get_by_label("id (path)").evaluate("one => one.validity.valueMissing")
    open_api(page, users, "no_such_route")
    page.get_by_text("There is no operation no_such_route").wait_for()
    page.go_back()
    page.go_back()
    page.get_by_role("heading", name="GET /users/{id}").wait_for()


def test_a_hundred_routes_are_filtered_and_walked_by_keyboard(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    with_libraries(folder)
    (folder / "wrangler.toml").write_text('name = "many"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (folder / "main.py").write_text(_MANY + "".join(_ROUTE.format(number=number) for number in range(120)))
    with RunningDev(folder, tmp_path / "state", "--no-reload") as dev, leaving(page):
        dev.until("Ctrl-C stops")
        open_api(page, dev)
        links = page.locator(".operations a")
        assert links.count() == 120
        page.keyboard.press("/")
        page.keyboard.type("thing_119")
        page.wait_for_function("() => document.querySelectorAll('.operations a').length === 1")
        page.get_by_label("Filter").fill("")
        page.wait_for_function("() => document.querySelectorAll('.operations a').length === 120")
        links.nth(0).focus()
        for _ in range(110):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="GET /things/110/{id}").wait_for()
        assert page.get_by_text("Give thing 110.").is_visible()
        page.get_by_label("id (path)").fill("7")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Answer 200").wait_for()
        assert json.loads(page.locator("#api-answer pre").first.inner_text()) == {"id": "7", "thing": 110}
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_text_survives_a_save_and_a_new_route_shows_up_or_why_there_is_none(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "users"
    with_libraries(copy_project(USERS, folder))
    main = folder / "src" / "users_api" / "main.py"
    text = main.read_text("utf-8")
    route = (
        '\n\n@app.get("/new")\nasync def new(req: Request[Env], res: Response) -> None:\n    res.json({"new": True})\n'
    )
    with RunningDev(folder, tmp_path / "state") as dev, leaving(page):
        dev.until("Ctrl-C stops")
        open_api(page, dev, "create_user")
        body = page.get_by_label("Body, application/json")
        body.fill('{"name": "half a sen')
        body.evaluate("one => one.setSelectionRange(3, 3)")
        main.write_text(text + route, "utf-8")
        page.get_by_role("link", name="GET /new").wait_for(timeout=PATIENCE)
        page.get_by_text("openapi.json is not up to date").wait_for()
        assert body.input_value() == '{"name": "half a sen'
        assert body.evaluate("one => [one === document.activeElement, one.selectionStart]") == [True, 3]
        main.write_text(text + "\n1 / 0\n", "utf-8")
        dev.until("could not reload")
        page.goto("about:blank")
        page.goto(f"{dev.address}/_core/#api/create_user")
        problem = page.get_by_role("alert").filter(has_text="could not be described")
        problem.wait_for(timeout=PATIENCE)
        assert "The code could not be described; this is what was known before" in problem.inner_text()
        assert "ZeroDivisionError" in problem.inner_text()
        assert page.get_by_role("link", name="POST /users", exact=True).is_visible()
