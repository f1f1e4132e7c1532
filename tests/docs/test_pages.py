"""Every kind of page in a real Chromium: no fault for those who do not see or use a mouse,
nothing wider than a phone.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.explorer.browser import AXE, AXE_RUN, needs_axe, needs_chromium
from tests.support.site import KINDS, browser, served
from tests.support.tutorial import CHAPTERS

pytestmark = [pytest.mark.slow, needs_chromium]


@needs_axe
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_no_fault_and_nothing_is_wider_than_the_page(scheme: str, width: int, site: Path) -> None:
    found: list[str] = []
    with served(site) as address, browser() as chromium:
        page = chromium.new_page(
            viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
        )
        for path in KINDS.values():
            page.goto(address + path)
            page.wait_for_load_state("networkidle")
            page.add_script_tag(path=str(AXE))
            for fault in page.evaluate(AXE_RUN)["violations"]:
                found += [f"{path}: {fault['id']}: {node['target']}" for node in fault["nodes"]]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{path}: wider than the page")
    assert found == []


def test_a_copy_of_a_console_is_its_commands_and_a_copy_of_code_is_the_code(site: Path) -> None:
    with served(site) as address, browser() as chromium:
        context = chromium.new_context()
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()

        def copied(block: str) -> str:
            page.evaluate("navigator.clipboard.writeText('')")
            button = page.locator(f"{block} :is(.md-clipboard, .md-code__button[data-md-type='copy'])").first
            button.evaluate("button => button.click()")
            page.wait_for_function("navigator.clipboard.readText().then(Boolean)")
            return str(page.evaluate("navigator.clipboard.readText()"))

        page.goto(address)
        shown = page.locator(".language-console").first.locator("code").text_content() or ""
        assert "$ " in shown
        commands = [line.removeprefix("$ ") for line in shown.splitlines() if line.startswith("$ ")]
        assert copied(".language-console").splitlines() == commands

        page.goto(f"{address}reference/api/app/")
        assert copied(".language-python").strip() == "from core import create_app, App, RouteInfo"


def test_the_menu_of_a_desktop_has_every_chapter_of_the_tutorial_by_name(site: Path) -> None:
    with served(site) as address, browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}tutorial/queue/")
        shown = [text.strip() for text in page.locator(".md-sidebar--primary a:visible").all_inner_texts()]
    chapters = [text for text in shown if re.match(r"\d+\. ", text)]
    assert [int(text.partition(".")[0]) for text in chapters] == list(range(1, len(CHAPTERS) + 1))
