"""The page for people who move in: every cell of ours names a test, and each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "moving-in.md"


def table(heading: str) -> list[list[str]]:
    """The cells of the first table behind a heading, without its head."""
    behind = PAGE.read_text("utf-8").partition(heading)[2]
    lines = behind[behind.index("\n| ") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def unknown(rows: list[list[str]]) -> list[str]:
    """The tests named in the last cells that do not exist; a cell without one is told as it is."""
    texts = [
        path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts
    ]
    known = {name for text in texts for name in re.findall(r"\bdef (test_\w+)", text)}
    named = [re.findall(r"`(test_\w+)`", row[-1]) or row for row in rows]
    return [name for names in named for name in names if name not in known]


def test_every_cell_of_ours_is_backed_by_a_test_that_exists() -> None:
    rows = table("# Moving in")
    assert len(rows) > 50
    assert unknown(rows) == []


def test_every_decision_has_a_reason_and_a_test_that_exists() -> None:
    rows = table("## What was decided otherwise")
    assert len(rows) > 50
    assert [row for row in rows if len(row) != 4 or not all(row)] == []
    assert unknown(rows) == []


def test_every_row_has_a_cell_for_each_framework() -> None:
    assert [row for row in table("# Moving in") if len(row) != 6 or not all(row)] == []
