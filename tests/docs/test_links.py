"""No link of the documentation is dead: those within the site are followed, those to elsewhere are written well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.links import dead_links, external_links, plausible

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    assert dead_links(site) == []


def test_every_link_to_elsewhere_may_be_one(site: Path) -> None:
    links = external_links(site)
    assert len(links) > 5
    assert {link: pages for link, pages in links.items() if not plausible(link)} == {}


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/">x</a> <a href="a/#no">x</a> <a href="b/">x</a> <img src="c.png">'
    )
    (tmp_path / "a" / "index.html").write_text('<h1 id="yes">x</h1> <a href="../#">x</a> <a href="#yes">x</a>')
    assert dead_links(tmp_path) == ["index.html: a/#no", "index.html: b/", "index.html: c.png"]


def test_every_link_of_the_page_for_contributors_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    inner = [link for link in links if not link.startswith("https:")]
    assert inner
    assert [link for link in inner if not (ROOT / link.partition("#")[0]).exists()] == []


def test_every_page_has_its_way_back_and_on(site: Path) -> None:
    for page in sorted(site.rglob("index.html")):
        html = page.read_text("utf-8")
        if page.parent == site:
            continue
        assert 'class="md-path"' in html, page
        assert 'class="md-footer__link' in html, page
        assert "core-edge 0." in html, page


def test_the_page_for_what_is_missing_leads_on(site: Path) -> None:
    html = (site / "404.html").read_text("utf-8")
    for word in ("This page does not exist", "Tutorial", "How to", "Reference", "Explanation", "search"):
        assert word in html
