"""The built documentation behind a server of its own, and a browser that looks at it.

`python -m tests.support.site SITE FOLDER` keeps a picture of every kind of page, light and dark, wide and narrow.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["KINDS", "browser", "keep_pictures", "served"]

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
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


def keep_pictures(site: Path, folder: Path) -> None:
    """Keep a picture of every kind of page in both schemes, on a desktop and on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    with served(site) as address, browser() as chromium:
        for scheme in ("light", "dark"):
            for device, width, height in (("desktop", 1280, 900), ("phone", 390, 844)):
                page = chromium.new_page(
                    viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
                )
                for kind, path in KINDS.items():
                    page.goto(address + path)
                    page.screenshot(path=folder / f"{kind}-{scheme}-{device}.png", full_page=kind == "front")
                page.goto(address)
                if device == "phone":
                    page.locator("label[for=__search]").first.click()
                page.locator(".md-search__input").first.press_sequentially("kv_binding")
                page.wait_for_selector(".md-search-result__item")
                page.screenshot(path=folder / f"search-{scheme}-{device}.png")
                page.close()


if __name__ == "__main__":
    keep_pictures(Path(sys.argv[1]), Path(sys.argv[2]))
