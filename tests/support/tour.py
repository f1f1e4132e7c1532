"""The moving picture of the README and the picture of the explorer, made anew: `python -m tests.support.tour`.

Its frames are a wrong letter and what `core check` prints about it, then panels of the explorer over `examples/users`.
`python -m tests.support.tour FOLDER` keeps pictures of every panel instead, over the workshop of the explorer's tests.
"""

from __future__ import annotations

import html
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.explorer.browser import PANELS, call, open_panel
from tests.support.copies import copy_project
from tests.support.running import RunningDev
from tests.support.site import browser, looks

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "assets"
LARGEST = 1_000_000
SIZE = (1120, 640)
SHOWN = (("requests", 2800), ("sql", 2200), ("api", 2200), ("metrics", 2000))
"""The explorer's panels, each with the milliseconds that it stays."""

_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #101717; color: #dbe6e4; font: 15px/1.5 ui-monospace, Menlo, Consolas, monospace; padding: 26px 32px }}
h1 {{ font: 600 15px system-ui, sans-serif; color: #6fd0c8; margin: 0 0 14px }}
pre {{ margin: 0; white-space: pre-wrap }} mark {{ background: none; color: #f2a65a; font-weight: 700 }}
.out {{ border-top: 1px solid #2b3a39; margin-top: 18px; padding-top: 16px }} .prompt {{ color: #6fd0c8 }}
</style><h1>{title}</h1><pre>{code}</pre>{out}"""


def checked() -> tuple[str, str]:
    """The handler with two wrong letters, and what the command prints about it."""
    source = (ROOT / "docs" / "examples" / "hello.py").read_text("utf-8")
    wrong = source.replace("GREETINGS", "GREETING").replace('"name"', '"nam"')
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hello.py").write_text(wrong)
        (Path(folder) / "wrangler.toml").write_text((ROOT / "docs/examples/hello.wrangler.toml").read_text("utf-8"))
        done = subprocess.run([sys.executable, "-m", "core", "check"], cwd=folder, capture_output=True, text=True)
    return wrong.partition("import attrs\n")[2].partition("create_app\n")[2].strip(), done.stdout.strip()


def checker_frames(page: Page) -> list[tuple[bytes, int]]:
    """The code, and the code with what is said about it."""
    code, printed = checked()
    marked = re.sub(r"GREETING\b|&quot;nam&quot;", r"<mark>\g<0></mark>", html.escape(code))
    out = f'<pre class="out"><span class="prompt">$ core check</span>\n{html.escape(printed)}</pre>'
    frames: list[tuple[bytes, int]] = []
    for below, stays in (("", 1400), (out, 4200)):
        page.set_content(_PAGE.format(title="hello.py: two wrong letters", code=marked, out=below))
        frames.append((page.screenshot(), stays))
    return frames


def explorer_frames(page: Page) -> list[tuple[bytes, int]]:
    """Panels of the explorer, after some requests."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "users"
        copy_project(ROOT / "examples" / "users", project)
        with RunningDev(project, Path(folder) / "state", "--no-reload") as dev:
            for name in ("Ada", "Grace", "Edsger"):
                dev.fetch("/users", method="POST", body=f'{{"name": "{name}", "email": "{name}@example.com"}}'.encode())
            for path in ("/users", "/users/2", "/users/9", "/health"):
                dev.fetch(path)
            frames: list[tuple[bytes, int]] = []
            for panel, stays in SHOWN:
                page.goto("about:blank")
                page.goto(f"{dev.address}/_core/#{panel}")
                page.wait_for_timeout(1500)  # the page listens for events, so its network never rests
                if panel == "requests":
                    page.locator(".rows > .row", has_text="201").first.click()
                if panel == "sql":
                    page.locator("main").get_by_text("users", exact=True).click()
                if panel == "api":
                    page.locator("main").get_by_text("/users/{id}").first.click()
                page.wait_for_timeout(1200)
                frames.append((page.screenshot(), stays))
            return frames


def keep_panels(folder: Path) -> None:
    """Keep a picture of every panel of the explorer in both schemes, on a desktop and on a phone."""
    workshop = ROOT / "tests" / "explorer" / "workshop"
    with tempfile.TemporaryDirectory() as state, RunningDev(workshop, Path(state), "--no-reload") as dev:
        for path in ("/slow-list", "/notes/first", "/fail", "/nowhere"):
            dev.fetch(path)
        call(dev, "PUT", "/kv/NOTES/value", {"key": "first", "value": '{"text": "Remember the milk"}'})
        with browser() as chromium:
            for look, _, page in looks(chromium, folder):
                for panel in (*PANELS, "api/read_note", "kv/NOTES/first", "sql/DB/table/jobs", "queues/jobs/send"):
                    open_panel(page, dev, panel)
                    if panel == "requests":
                        page.wait_for_timeout(1000)  # the page listens for events, so its network never rests
                        page.screenshot(path=folder / f"requests-list-{look}.png")
                        page.locator(".rows > .row", has_text="/slow-list").first.click()
                    page.wait_for_timeout(1000)
                    page.get_by_text(re.compile("Loading …|Reading the code")).wait_for(
                        state="detached", timeout=120_000
                    )
                    page.screenshot(path=folder / f"{panel.replace('/', '-')}-{look}.png")


def main() -> None:
    """Write both pictures."""
    from PIL import Image

    with browser() as chromium:
        page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        frames = checker_frames(page) + explorer_frames(page)
    pictures = [Image.open(io.BytesIO(taken)).convert("RGB") for taken, _ in frames]
    target = ASSETS / "tour.webp"
    pictures[0].save(
        target,
        save_all=True,
        append_images=pictures[1:],
        duration=[stays for _, stays in frames],
        loop=0,
        quality=80,
        method=6,
    )
    (ASSETS / "explorer.png").write_bytes(frames[2][0])
    size = target.stat().st_size
    print(f"{target.name}: {len(frames)} frames, {size:,} bytes")
    if size > LARGEST:
        raise SystemExit("that is more than a README should load")


if __name__ == "__main__":
    keep_panels(Path(sys.argv[1])) if sys.argv[1:] else main()
