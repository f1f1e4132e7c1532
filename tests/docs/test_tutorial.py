"""Every chapter of the tutorial ends green: its tests pass, mypy and `core check` agree, and no file is made for nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.tutorial import CHAPTERS, EXAMPLES, ROOT, TUTORIAL, Command, Text, steps, write

from core.cli.new import render

pytestmark = pytest.mark.slow

OFFLINE = ("core types", "core openapi ", "core client ")
"""Commands that change files and need nothing else. Servers and packages are tried in tests/newcomer."""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    # One cache for all chapters: they differ in a few files each.
    cache = {"MYPY_CACHE_DIR": str(folder.parent / "mypy-cache")}
    environment = cache | {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "MYPY"))
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def follow(folder: Path, chapters: tuple[str, ...]) -> None:
    """Bring a project to where it is after these chapters."""
    for path, text in render("my-notes", frozenset()).items():
        write(folder, Text(path, text, adds=False))
    for chapter in chapters:
        for step in steps(chapter):
            if isinstance(step, Text):
                write(folder, step)
            elif step.line.startswith(OFFLINE):
                done = run(folder, *step.line.split())
                assert done.returncode == 0, f"{chapter}: {step.line}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_ends_green(chapter: str, tmp_path: Path) -> None:
    follow(tmp_path, CHAPTERS[: CHAPTERS.index(chapter) + 1])

    for command in (["pytest", "-q", "-p", "no:cacheprovider"], ["mypy"], ["core", "check"]):
        done = run(tmp_path, *command)
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
    assert {page.stem for page in TUTORIAL.glob("*.md")} == set(CHAPTERS)
    assert (ROOT / "docs" / "tutorial" / "index.md").exists()
