"""Every code has a page, and the page's wrong and right example are what it says they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.config.check import CODES
from core.config.load import load_all
from core.config.program import check_program

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "checks"
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TOLD = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def found(directory: Path, section: str) -> list[str]:
    """What `core check` says about the files of a section."""
    for name, text in FILE.findall(section):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    findings = check_program(load_all(directory / "wrangler.toml"))
    return [finding.text.replace(f"{directory}/", "") for finding in findings]


@pytest.mark.parametrize("code", CODES)
def test_the_page_of_a_code_tells_the_truth(code: str, tmp_path: Path) -> None:
    page = (PAGES / f"{code}.md").read_text()
    assert page.startswith(f"# `{code}`: ")
    assert "## Switch it off" in page
    wrong, right = page.partition("## Wrong")[2].split("## Right")
    (told,) = TOLD.findall(wrong)
    (tmp_path / "wrong").mkdir()
    (tmp_path / "right").mkdir()
    assert found((tmp_path / "wrong").resolve(), wrong) == told.splitlines()
    assert all(line.endswith(f"[{code}]") for line in told.splitlines())
    assert found((tmp_path / "right").resolve(), right) == []


def test_every_code_is_in_the_overview() -> None:
    overview = (PAGES / "index.md").read_text()
    assert re.findall(r"\((core-\w+)\.md\)", overview) == [
        "core-env",
        "core-binding",
        "core-params",
        "core-order",
        "core-queue",
        "core-sql",
    ]
