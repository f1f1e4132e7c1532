"""One Chromium, and the applications that it looks at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.explorer.browser import ERRORS
from tests.support import site
from tests.support.copies import copy_project
from tests.support.libraries import with_libraries
from tests.support.running import RunningDev

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
USERS = HERE.parents[1] / "examples" / "users"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with site.browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDev]:
    with RunningDev(HERE / "workshop", tmp_path_factory.mktemp("state"), "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        yield dev


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDev]:
    folder = with_libraries(copy_project(USERS, tmp_path_factory.mktemp("users") / "users"))
    with RunningDev(folder, tmp_path_factory.mktemp("state"), "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        yield dev


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose every console error fails the test, unless the test expects it; so does a request to elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:"))
            else errors.append(request.url)
        ),
    )
    ERRORS[page] = errors
    yield page
    context.close()
    del ERRORS[page]
    assert not errors
