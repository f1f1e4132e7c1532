"""A large class begins with its members in groups: every member in one, and none that is not there."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from bs4 import BeautifulSoup

MEMBERS = Path(__file__).parents[2] / "docs" / "members.py"


def hook() -> ModuleType:
    """`docs/members.py`, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("docs_members", MEMBERS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of(names: str, meta: dict[str, object]) -> str:
    """What the hook makes of a page with one class, whose methods have these names."""
    rows = "".join(
        f'<tr class="doc-section-item"><td><code>{name}</code></td><td><p>About {name}.</p></td></tr>'
        for name in names.split()
    )
    details = "".join(f'<div class="doc-function"><h3 id="core.Big.{name}">{name}</h3></div>' for name in names.split())
    html = (
        '<div class="doc doc-object doc-class"><h2 id="core.Big" class="doc-heading">Big</h2><div class="doc-contents">'
        f'<p><span class="doc-section-title">Methods:</span></p><table>{rows}</table>{details}</div></div>'
    )
    page = SimpleNamespace(meta=meta, file=SimpleNamespace(src_uri="big.md"))
    made: str = hook().on_page_content(html, page=page)
    return made


TEN = "a b c d e f g h i j"


def test_the_groups_stand_before_the_class_in_their_order() -> None:
    made = BeautifulSoup(
        page_of(TEN, {"members": {"core.Big": {"Odd": "i a c e g", "Even": "b d f h j"}}}), "html.parser"
    )
    [table] = made.select("h2 + table.members")
    assert [head.get_text() for head in table.select("th")] == ["Odd", "Even"]
    assert [cell.get_text() for cell in table.select("td code")] == [f"{name}()" for name in "iacegbdfhj"]
    assert made.get_text().count("About a.") == 1


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({}, "big.md: core.Big needs `members` in groups: a b c d e f g h i j"),
        ({"core.Big": {"All": "a b c d e f g h i"}}, "big.md: in the groups of core.Big, or in the class alone: j"),
        ({"core.Big": {"All": f"{TEN} k"}}, "big.md: in the groups of core.Big, or in the class alone: k"),
        ({"core.Big": {"All": TEN, "Some": "a"}}, "big.md: in the groups of core.Big, or in the class alone: a"),
        (
            {"core.Big": {"All": TEN}, "core.Gone": {"All": "a"}},
            "big.md: `members` of what the page does not document: core.Gone",
        ),
    ],
)
def test_groups_that_are_not_the_class_end_the_build(
    meta: dict[str, object], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "mkdocs"):
        page_of(TEN, {"members": meta})
    assert caplog.messages == [said]


@pytest.mark.slow
def test_a_request_begins_with_what_a_handler_asks_it_for(site: Path) -> None:
    page = BeautifulSoup((site / "reference/api/request/index.html").read_text("utf-8"), "html.parser")
    [table] = page.select('[id="core.Request"] + table.members')
    rows = {row.select("td")[0].get_text(): row.select("td")[1] for row in table.select("tr")}
    assert {"params", "await json()", "header()", "user", "env"} <= rows.keys()
    assert rows["await json()"].get_text(strip=True).startswith("The body parsed as JSON (RFC 8259)")
