"""Every code has a page, and the page's wrong and right example are what it says they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.command_line import run
from tests.support.libraries import with_libraries

from core.config.checks import CHECKS
from core.config.load import load_all
from core.program.proof import prove

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "checks"
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TOLD = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def found(directory: Path, section: str, code: str) -> list[str]:
    """The findings of `core check` about the files of a section, or of `core openapi` for what only it knows."""
    for name, text in FILE.findall(section):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if code == "core-openapi":
        return run("openapi", folder=with_libraries(directory)).stderr.splitlines()
    configurations = load_all(directory / "wrangler.toml")
    proof = prove(configurations)
    findings = [*proof.findings, *proof.not_read(configurations)]
    return [finding.text.replace(f"{directory}/", "") for finding in findings]


@pytest.mark.parametrize(
    "code", [pytest.param(code, marks=pytest.mark.slow if code == "core-openapi" else ()) for code in CHECKS]
)
def test_the_page_of_a_code_tells_the_truth(code: str, tmp_path: Path) -> None:
    path = PAGES / f"{code}.md"
    assert path.is_file(), f"write docs/reference/checks/{path.name}: what {code} finds, a wrong and a right example"
    page = path.read_text()
    assert page.startswith(f"# `{code}`: ")
    assert "## Switch it off" in page
    wrong, right = page.partition("## Wrong")[2].split("## Right")
    (told,) = TOLD.findall(wrong)
    (tmp_path / "wrong").mkdir()
    (tmp_path / "right").mkdir()
    assert found((tmp_path / "wrong").resolve(), wrong, code) == told.splitlines()
    assert all(line.endswith(f"[{code}]") for line in told.splitlines())
    assert found((tmp_path / "right").resolve(), right, code) == []


def test_every_code_is_in_the_overview() -> None:
    overview = (PAGES / "index.md").read_text()
    listed = re.findall(r"\((core-\w+)\.md\)", overview)
    missing = [code for code in CHECKS if code not in listed]
    assert not missing, f"docs/reference/checks/index.md: write a row for {', '.join(missing)}"
    assert listed == list(CHECKS), (
        "docs/reference/checks/index.md: the rows stand in the order of core/config/checks.py"
    )
