"""Each page of the documentation is Markdown too, for programs that read it; `llms.txt` lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def fences(text: str) -> list[str]:
    """The blocks of code of a text."""
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_page_is_in_the_list_once_and_has_a_text(site: Path) -> None:
    listed = re.findall(r"^- \[.+\]\((.+)\)$", (site / "llms.txt").read_text("utf-8"), re.MULTILINE)
    pages = {page.relative_to(site).with_suffix(".md").as_posix() for page in site.rglob("index.html")}
    assert sorted(listed) == sorted(pages)
    everything = (site / "llms-full.txt").read_text("utf-8")
    for page in listed:
        text = (site / page).read_text("utf-8")
        assert text.startswith("# "), page
        assert text in everything, page


def test_every_link_of_a_text_leads_to_a_text(site: Path) -> None:
    count = 0
    for page in site.rglob("*.md"):
        prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", prose):
            assert (page.parent / link).is_file(), (page, link)
            count += 1
    assert count > 500


def test_a_text_has_the_code_of_its_page_as_it_is(site: Path) -> None:
    examples = ROOT / "docs" / "examples"
    assert (examples / "hello.py").read_text("utf-8") in fences((site / "index.md").read_text("utf-8"))
    page = (site / "how-to" / "templates" / "index.md").read_text("utf-8")
    assert (examples / "test_templating.py").read_text("utf-8") in fences(page)


def test_a_text_of_the_reference_has_signatures_words_and_examples(site: Path) -> None:
    text = (site / "reference" / "api" / "kv" / "index.md").read_text("utf-8")
    assert "## core.KVNamespace" in text
    assert any("get(" in block for block in fences(text))
    assert "<" not in re.sub(r"`[^`]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
