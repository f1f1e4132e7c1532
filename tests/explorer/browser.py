"""A real Chromium for tests, or the reason why there is none; and how tests use the explorer in it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page
    from tests.support.running import RunningDev

__all__ = [
    "AXE",
    "AXE_RUN",
    "CHROMIUM",
    "ERRORS",
    "PANELS",
    "batches",
    "until_batches",
    "call",
    "forgive",
    "go_to_panel",
    "leaving",
    "needs_axe",
    "needs_chromium",
    "open_panel",
    "read",
    "rows",
    "saying",
]

ERRORS: dict[object, list[str]] = {}
"""The console errors of each page."""

PANELS = [
    *("requests", "routes", "api", "kv", "sql", "objects", "queues", "triggers", "durable-objects", "configuration"),
    "metrics",
]

_NAMES = "chromium-headless-shell", "chromium", "chromium-browser"
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
AXE_RUN = "axe.run(document, {resultTypes: ['violations']})"
"""What passes is not listed: its elements take most of the time."""

_REASON = (
    "playwright is missing: pip install playwright"
    if importlib.util.find_spec("playwright") is None
    else "Chromium is missing: apt install chromium-headless-shell"
    if CHROMIUM is None
    else ""
)
needs_chromium = pytest.mark.skipif(bool(_REASON), reason=_REASON)
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is missing: npm ci --prefix tests/explorer")


def forgive(page: Page) -> None:
    """Forget the console errors so far: the test asked for them."""
    ERRORS[page].clear()


@contextlib.contextmanager
def leaving(page: Page) -> Generator[None]:
    """Leave the explorer before its server ends: it would go on asking, and each refusal is an error in the console."""
    yield
    page.goto("about:blank")


def open_panel(page: Page, dev: RunningDev, name: str) -> None:
    """Load the explorer anew, at an address."""
    page.goto("about:blank")
    page.goto(f"{dev.address}/_core/#{name}")
    page.wait_for_selector(
        "#panel-title", timeout=90_000
    )  # its scripts take a second of a processor, which may be busy


def go_to_panel(page: Page, name: str) -> None:
    """Show a panel in the explorer that is open, which is all loaded: another takes half a second of a processor."""
    page.evaluate("name => { location.hash = name; }", name)
    page.wait_for_selector(f"main.panel-{name.partition('/')[0]} #panel-title")


def saying(page: Page, text: str) -> None:
    """Wait for a notice."""
    page.wait_for_function("text => document.getElementById('notice').textContent.includes(text)", arg=text)


def rows(page: Page, text: str | None = None, *, grid: str | None = None) -> Locator:
    """The rows of a table that are in the page, those with a text."""
    place = page if grid is None else page.get_by_role("grid", name=grid, exact=True)
    return place.locator(".grid .rows > .row" if grid is None else ".rows > .row", has_text=text)


def batches(dev: RunningDev) -> int:
    """How many batches the consumers of an application were given."""
    return sum("QUEUE" in line for line in dev.lines)


def until_batches(dev: RunningDev, number: int) -> None:
    """Wait until the consumers were given so many."""
    dev.until(lambda _: batches(dev) >= number)


def call(dev: RunningDev, method: str, path: str, body: Any = None) -> Any:
    """Ask the explorer's own interface for a value."""
    return json.loads(read(dev, method, path, body))


def read(dev: RunningDev, method: str, path: str, body: Any = None) -> bytes:
    """Ask the explorer's own interface."""
    token = re.search(r'name="core-token" content="([^"]+)"', dev.fetch("/_core/").text)
    assert token is not None
    answer = dev.fetch(
        f"/_core/api{path}",
        method=method,
        body=None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode(),
        headers={"X-Core-Token": token[1], "Content-Type": "application/json"},
    )
    assert answer.status == 200, answer.text
    return answer.body
