"""The front page says what is true: what the checker prints, and the figures that were measured."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.libraries import STRICT

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("module", ["core", "mypy"])
def test_the_checkers_print_what_the_front_page_shows(module: str, tmp_path: Path, mypy_cache: Path) -> None:
    source = (EXAMPLES / "hello.py").read_text("utf-8")
    for right, wrong in (("GREETINGS", "GREETING"), ('"name"', '"nam"')):
        assert right in source
        source = source.replace(right, wrong)
    (tmp_path / "hello.py").write_text(source)
    (tmp_path / "wrangler.toml").write_text((EXAMPLES / "hello.wrangler.toml").read_text("utf-8"))
    (tmp_path / "mypy.ini").write_text(f"{STRICT}files = hello.py\n")

    arguments = ["check"] if module == "core" else ["--cache-dir", str(mypy_cache)]
    done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stdout.startswith((EXAMPLES / "hello.checked.txt").read_text("utf-8")), done.stdout + done.stderr


def test_each_wrong_letter_is_marked_once_with_its_finding_below(site: Path) -> None:
    page = (site / "index.html").read_text("utf-8")
    assert re.findall(r"<mark>(\w+)</mark>", page) == ["GREETING", "nam"]
    said = (EXAMPLES / "hello.checked.txt").read_text("utf-8")
    messages = re.findall(r"error: (.+?)  \[([\w-]+)\]$", said, re.MULTILINE)
    shown = re.findall(r'<span class="says">(.+?) <a href="reference/checks/([\w-]+)/">', page)
    assert [(html.unescape(message), code) for message, code in shown] == messages
    figures = re.findall(r"<p><strong>([\d.]+×?)</strong>", page)
    assert len(figures) == 3
    assert float(figures[2].removesuffix("×")) > 0.5


def test_the_first_commands_are_the_same_wherever_they_stand() -> None:
    pages = [ROOT / "docs" / "index.md", ROOT / "docs" / "tutorial" / "begin.md", ROOT / "README.md"]
    lines = {re.findall(r"^\$ (pip install .+)$", page.read_text("utf-8"), re.MULTILINE)[0] for page in pages}
    assert lines == {"pip install './core[dev,mypy,test]'"}
