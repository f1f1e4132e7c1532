"""The pages that failures name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.explain import names, pages

DOCS = Path(__file__).parents[2] / "docs"
NAMED = sorted({*pages.BY_CLASS.values(), *(page for _, page in (*pages.BY_OBJECT, *pages.BY_FIX)), pages.MISTAKES})


@pytest.mark.parametrize("page", [page for page in NAMED if "\\" not in page])
def test_a_page_that_a_failure_names_is_there(page: str) -> None:
    assert DOCS.joinpath(f"{page.rstrip('/')}.md").is_file() or DOCS.joinpath(page, "index.md").is_file()


@pytest.mark.parametrize(
    "fix", sorted({fix for table in (*names.NAMES.values(), names.MODULE) for fix in table.values()})
)
def test_the_page_of_a_name_of_another_library_is_there(fix: str) -> None:
    page = pages.page_of(TypeError(), fix)
    assert page is not None
    assert DOCS.joinpath(f"{page.rstrip('/')}.md").is_file() or DOCS.joinpath(page, "index.md").is_file()
    assert re.fullmatch(r"[a-z0-9/-]+/", page)


def test_work_after_the_response_has_the_page_of_the_context_and_not_that_of_requests() -> None:
    fix = names.NAMES["ExecutionContext"]["add_task"]
    assert pages.page_of(TypeError(), fix) == "reference/api/context/"
