"""The search of the built site, in a real browser: names by their parts, and the texts of errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.explorer.browser import needs_chromium
from tests.support.site import browser, served

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def found(site: Path) -> dict[str, list[str]]:
    """The addresses that each query finds, best first."""
    results: dict[str, list[str]] = {}
    with served(site) as address, browser() as chromium:
        page = chromium.new_page()
        for query in QUERIES:
            page.goto(address)
            page.locator(".md-search__input").first.press_sequentially(query)
            page.wait_for_selector(".md-search-result__item")
            page.wait_for_function("document.querySelector('.md-search-result__meta').textContent.includes('match')")
            links = page.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")
            results[query] = [link.removeprefix(address) for link in links]
    return results


QUERIES = {
    "validation": "how-to/validation/",
    "pagination": "reference/api/pagination/",
    "kv_binding": "reference/",
    "openapi": "how-to/describe-your-api/",
    "durable object": "how-to/durable-objects/",
    "the path has no parameter": "reference/checks/core-params/",
    "Validation failed": "reference/",
    "req.params": "reference/",
    "compatibility_date": "reference/configuration/",
    "presigned": "how-to/objects/",
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_finds_its_page_among_the_first(query: str, found: dict[str, list[str]]) -> None:
    first = found[query][:8]
    assert any(link.startswith(QUERIES[query]) for link in first), first
