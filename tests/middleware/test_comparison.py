"""Each cell of ours in the comparison table is backed by a test of that name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "middleware" / "comparison.md"
NAMED = re.findall(r"`([\w/]+\.py)::(test_\w+)`", PAGE.read_text(encoding="utf-8"))


def test_the_table_names_tests() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_the_test_a_cell_names_exists(file: str, test: str) -> None:
    assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_every_middleware_has_a_page_with_an_example() -> None:
    pages = PAGE.parent
    without_page = {
        "__init__",
        "options",
        "authentication",
        "declared",
        "jwks",
        "jwt_token",
        "rate_limit_object",
        "rate_limit_stores",
        "key_strength",
        "memory",
        "webcrypto",
    }
    for module in (ROOT / "src" / "core" / "middleware").glob("*.py"):
        if module.stem not in without_page:
            page = pages / f"{module.stem.replace('_', '-')}.md"
            assert '--8<-- "docs/examples/' in page.read_text(encoding="utf-8"), module.stem
