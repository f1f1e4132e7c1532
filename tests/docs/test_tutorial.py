"""Every chapter of the tutorial ends green: its tests pass, mypy and `core check` agree,
and no file is made for nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.nested import PLAIN
from tests.support.tutorial import CHAPTERS, EXAMPLES, TUTORIAL, Command, Text, steps, write

from core.cli.new import render

pytestmark = pytest.mark.slow

OFFLINE = ("core types", "core openapi ", "core client ")
"""Commands that change files and need nothing else. Servers and packages are tried in tests/newcomer."""


class Project:
    """A project that follows the tutorial from its start, and is where the last chapter left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chapters: list[str] = []
        for path, text in render("my-notes", frozenset()).items():
            write(folder, Text(path, text, adds=False))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "MYPY"))
        }
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)

    def follow(self, chapter: str) -> None:
        """Do what a page says, after all pages before it."""
        for step in steps(chapter):
            if isinstance(step, Text):
                write(self.folder, step)
            elif step.line.startswith(OFFLINE):
                done = self.run(*step.line.split())
                assert done.returncode == 0, f"{chapter}: {step.line}\n{done.stdout}{done.stderr}"
        self.chapters.append(chapter)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """One project after each chapter: the tests of the chapters take it on in their order."""

    def after_each() -> Iterator[Project]:
        project = Project(tmp_path_factory.mktemp("my-notes"))
        for chapter in CHAPTERS:
            project.follow(chapter)
            yield project

    return after_each()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_ends_green(chapter: str, projects: Iterator[Project]) -> None:
    project = next(project for project in projects if project.chapters[-1] == chapter)

    for command in (["pytest", "-q", *PLAIN], ["mypy"], ["core", "check"]):
        done = project.run(*command)
        assert done.returncode == 0, f"after {chapter}: {' '.join(command)}\n{done.stdout}{done.stderr}"


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
