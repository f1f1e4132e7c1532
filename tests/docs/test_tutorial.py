"""The pages of the tutorial: no file is made for nothing, and each chapter says where it ends and runs its tests there.

`tests/newcomer` follows them, and finds each end green.
"""

from __future__ import annotations

import re

import pytest
from tests.support.tutorial import CHAPTERS, EXAMPLES, TUTORIAL, Command, steps


def test_the_pages_show_every_file_of_the_tutorial_once() -> None:
    shown = [
        name
        for chapter in CHAPTERS
        for name in re.findall(
            r'^--8<-- "(tutorial/[^"]+)"$', (TUTORIAL / f"{chapter}.md").read_text("utf-8"), re.MULTILINE
        )
    ]
    files = [file.relative_to(EXAMPLES).as_posix() for file in (EXAMPLES / "tutorial").rglob("*") if file.is_file()]
    assert sorted(shown) == sorted(set(shown))
    assert {name for name in files if "cache" not in name} - set(shown) == {"tutorial/ruff.toml"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_says_how_long_it_takes_and_where_it_ends(chapter: str) -> None:
    page = (TUTORIAL / f"{chapter}.md").read_text("utf-8")
    assert re.search(r"\*\*At the end\*\* ", page)
    assert re.search(r"About \d+ minutes\.", page)
    place = CHAPTERS.index(chapter)
    if place + 1 < len(CHAPTERS):
        assert f"]({CHAPTERS[place + 1]}.md)" in page.rstrip().splitlines()[-1]
    assert any(isinstance(step, Command) and step.line == "pytest" for step in steps(chapter))


def test_every_page_of_the_tutorial_is_a_chapter() -> None:
    assert {page.stem for page in TUTORIAL.glob("*.md")} == {"index", *CHAPTERS}
    links = re.findall(r"^\d+\. \[.+\]\((.+)\.md\)", (TUTORIAL / "index.md").read_text("utf-8"), re.MULTILINE)
    assert links == list(CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_second_server_is_told_what_to_do_about_the_first(chapter: str) -> None:
    if any(isinstance(step, Command) and step.line.startswith("core serve") for step in steps(chapter)):
        assert "Stop `core dev` first" in (TUTORIAL / f"{chapter}.md").read_text("utf-8")
