"""The page for people who move in: every cell of ours names a test, and each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "moving-in.md"


def rows() -> list[list[str]]:
    """The cells of the table, without its head."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_cell_of_ours_is_backed_by_a_test_that_exists() -> None:
    texts = [
        path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts
    ]
    known = {name for text in texts for name in re.findall(r"\bdef (test_\w+)", text)}
    named = [re.findall(r"`(test_\w+)`", row[-1]) for row in rows()]
    assert len(named) > 25
    assert all(named)
    assert [name for names in named for name in names if name not in known] == []


def test_every_row_has_a_cell_for_each_framework() -> None:
    assert [row for row in rows() if len(row) != 6 or not all(row)] == []
