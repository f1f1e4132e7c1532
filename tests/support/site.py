"""The built documentation behind a server of its own, and a browser that looks at it.

`python -m tests.support.site SITE FOLDER` keeps a picture of every kind of page and every chapter, and
`python -m tests.support.tour FOLDER` one of every panel of the explorer: light and dark, on a desktop and on a phone.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["KINDS", "browser", "keep_pictures", "looks", "served"]

KINDS = {
    "front": "",
    "tutorial": "tutorial/accounts/",
    "how-to": "how-to/durable-objects/",
    "drawing": "how-to/queues/",
    "index": "how-to/",
    "keys": "reference/configuration/",
    "names": "reference/api/",
    "class": "reference/api/app/",
    "binding": "reference/api/kv/",
    "middleware": "reference/middleware/cors/",
    "command-line": "reference/command-line/",
    "finding": "reference/checks/core-params/",
    "explanation": "explanation/performance/",
    "questions": "explanation/questions/",
    "missing": "404.html",
}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """A test's output is its own."""


@contextmanager
def served(site: Path) -> Generator[str]:
    """Serve a folder, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def browser() -> Generator[Browser]:
    """Chromium."""
    from playwright.sync_api import sync_playwright
    from tests.explorer.browser import CHROMIUM

    with sync_playwright() as playwright:
        # The sandbox needs a kernel feature that containers mostly lack; the pages are our own.
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


def keep_pictures(site: Path, folder: Path) -> None:
    """Keep a picture of every kind of page in both schemes, on a desktop and on a phone."""
    from tests.support.tutorial import CHAPTERS

    chapters = {f"chapter-{number}-{name}": f"tutorial/{name}/" for number, name in enumerate(CHAPTERS, 1)}
    with served(site) as address, browser() as chromium:
        for look, device, page in looks(chromium, folder):
            for kind, path in {**KINDS, **chapters}.items():
                page.goto(address + path)
                page.screenshot(path=folder / f"{kind}-{look}.png", full_page=kind == "front" or kind in chapters)
            page.goto(address)
            if device == "phone":
                page.locator("label[for=__search]").first.click()
            page.locator(".md-search__input").first.press_sequentially("kv_binding")
            page.wait_for_selector(".md-search-result__item")
            page.screenshot(path=folder / f"search-{look}.png")


def looks(chromium: Browser, folder: Path) -> Iterator[tuple[str, str, Page]]:
    """A page of each look, for pictures that go into a folder: its name, its device and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        for device, width, height in (("desktop", 1280, 900), ("phone", 390, 844)):
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            yield f"{scheme}-{device}", device, page
            page.close()


if __name__ == "__main__":
    keep_pictures(Path(sys.argv[1]), Path(sys.argv[2]))
