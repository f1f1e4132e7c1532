"""The words of the pages: no sentence of the tutorial and the how-to pages is longer than 35 words,
words are spelt right, and no table is torn apart.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LONGEST = 35
PAGES = sorted(page for folder in ("tutorial", "how-to") for page in (DOCS / folder).glob("*.md"))


def sentences(page: str) -> list[str]:
    """The sentences of a page: no code, no tables, no headings; an item of a list is a paragraph of its own."""
    text = re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.DOTALL)
    text = re.sub(r"^( *)```.*?^\1```$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(#|\s*\||!\[).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    return [found.strip() for part in paragraphs for found in re.split(r"(?<=[.!?:])\s+", part) if found.strip()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_no_sentence_is_longer_than_a_breath(page: Path) -> None:
    long = [found for found in sentences(page.read_text("utf-8")) if len(found.split()) > LONGEST]
    assert long == []


def test_a_sentence_is_found_by_its_end_and_code_is_one_word() -> None:
    page = "# A heading\n\nOne `a b c` two. Three\nfour!\n\n```python\nno sentence here\n```\n\n- five\n- six\n\n| a | table |\n"
    assert sentences(page) == ["One code two.", "Three\nfour!", "- five", "- six"]


def test_every_table_begins_with_its_head() -> None:
    """An empty line between two rows makes the second half a paragraph of bars."""
    torn: list[str] = []
    for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
            if re.match(r".+\n\|[-:| ]+\|", table) is None:
                torn.append(f"{page.relative_to(ROOT)}: {table[:60]}")
    assert torn == []


@pytest.mark.slow
def test_words_are_spelt_right() -> None:
    files = ["docs", "README.md", "CONTRIBUTING.md", "changelog.d"]
    command = [
        sys.executable,
        "-m",
        "codespell_lib",
        "--skip",
        "*.svg,*.png,*.json",
        "--ignore-words-list",
        "nam",
        *files,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
