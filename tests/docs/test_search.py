"""The search of the built site, in a real browser: questions, names by their parts, and the texts of errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
from tests.explorer.browser import needs_chromium
from tests.support.site import browser, served

pytestmark = [pytest.mark.slow, needs_chromium]

QUESTIONS: Final[dict[str, list[str]]] = json.loads(Path(__file__).with_name("questions.json").read_text("utf-8"))
"""What readers ask, with the pages that answer it."""

ASK: Final = """async (questions) => {
  const config = JSON.parse(document.getElementById("__config").textContent);
  const index = await (await fetch(new URL("search/search_index.json", new URL(config.base + "/", location)))).json();
  const worker = new Worker(new URL(config.search, location));
  const answer = (message) => new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.postMessage(message);
  });
  await answer({ type: 0, data: { ...index, options: { suggest: true } } });
  const found = [];
  for (const question of questions) {
    found.push((await answer({ type: 2, data: question })).data.items.map(([first]) => first.location));
  }
  return found;
}"""
"""The worker of the search, asked as the theme asks it: the best place of each page, best page first."""


def texts() -> dict[str, str]:
    """The texts of errors, as a terminal prints them, with the heading of the mistake."""
    found: dict[str, str] = {}
    for file in (Path(__file__).parents[1] / "messages" / "mistakes").glob("*.md"):
        text = file.read_text("utf-8")
        for said in re.findall(r"^```text [^\n]+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            lines = [re.sub(r"^(\S+:\d+: )?(error: )?", "", line.strip()) for line in said.splitlines()[:3]]
            found[max(lines, key=len)] = text.splitlines()[0].removeprefix("# ")
    return found


def found(site: Path, questions: list[str]) -> list[list[str]]:
    """The places that are found for each question."""
    with served(site) as address, browser() as chromium:
        page = chromium.new_page()
        page.goto(address)
        return page.evaluate(ASK, questions)  # type: ignore[no-any-return]


def test_nineteen_of_twenty_questions_find_their_page_among_the_first_three(site: Path) -> None:
    missed = {
        question: pages[:3]
        for (question, wanted), places in zip(QUESTIONS.items(), found(site, list(QUESTIONS)), strict=True)
        if not {*(pages := [place.partition("#")[0] for place in places])[:3]} & {*wanted}
    }
    assert len(missed) <= len(QUESTIONS) / 20, missed


def test_the_text_of_an_error_finds_its_mistake_or_its_code(site: Path) -> None:
    asked = texts()
    assert len(asked) > 90
    answers = dict(zip(asked, found(site, list(asked)), strict=True))
    lost = {
        text: places[:3]
        for text, places in answers.items()
        if not any(place.startswith(("reference/mistakes/#", "reference/checks/core-")) for place in places[:3])
    }
    assert lost == {}


def test_a_reader_who_types_sees_the_page_and_none_of_its_other_words(site: Path) -> None:
    with served(site) as address, browser() as chromium:
        page = chromium.new_page()
        page.goto(address)
        page.locator(".md-search__input").first.press_sequentially("sqlalchemy")
        page.wait_for_selector(".md-search-result__item")
        page.wait_for_function("document.querySelector('.md-search-result__meta').textContent.includes('match')")
        links = page.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")
        assert any("explanation/questions/" in link for link in links[:3]), links
        assert not page.locator(".md-search-result .md-tag:visible").count()
