"""The members of a large class in groups, where it begins: what a handler or a test can ask it for, at a glance.

A page of the reference has the groups in its front matter, by the path of the class:

    members:
      core.Request:
        What came in: method path params

They take the place of the class's summary, whose rows they have. A class that needs groups and has none, a member in
none or in two, and a name that no member has end the build.
"""

from __future__ import annotations

import logging
from copy import copy
from typing import Any, Final

from bs4 import BeautifulSoup, Tag

log: Final = logging.getLogger("mkdocs.hooks.members")
"""What is written here ends the build, which is strict."""
MANY: Final = 10
"""A class with a method and so many members needs groups."""


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page that was made."""
    groups: dict[str, dict[str, str]] = dict(page.meta.get("members", {}))
    if not groups and html.count("doc-section-item") < MANY:
        return html
    soup = BeautifulSoup(html, "html.parser")
    for cls in soup.select(".doc-class"):
        heading, contents = cls.select_one(".doc-heading"), cls.select_one(".doc-contents")
        assert heading is not None
        assert contents is not None
        path = str(heading["id"])
        summary = [
            element
            for element in contents.find_all(["p", "table"], recursive=False)
            if element.select_one(".doc-section-title, .doc-section-item")
        ]
        found = [row for table in summary for row in table.select(".doc-section-item")]
        rows = {row.td.get_text(strip=True): row for row in found if row.td is not None}
        own = groups.pop(path, None)
        if own is None:
            if len(rows) >= MANY and any("Methods" in element.get_text() for element in summary):
                log.warning(f"{page.file.src_uri}: {path} needs `members` in groups: {' '.join(rows)}")
            continue
        names = " ".join(own.values()).split()
        if sorted(names) != sorted(rows):
            wrong = sorted({*names} ^ {*rows}) or [name for name in rows if names.count(name) > 1]
            log.warning(f"{page.file.src_uri}: in the groups of {path}, or in the class alone: {' '.join(wrong)}")
            continue
        for element in summary:
            element.extract()
        heading.insert_after(table_of(soup, path, own, rows))
    if groups:
        log.warning(f"{page.file.src_uri}: `members` of what the page does not document: {' '.join(groups)}")
    return str(soup)


def table_of(soup: BeautifulSoup, path: str, groups: dict[str, str], rows: dict[str, Tag]) -> Tag:
    """The groups as one table: a group's title, a member as it is called, and what it is."""
    table = soup.new_tag("table", attrs={"class": "members"})
    for title, names in groups.items():
        body = soup.new_tag("tbody")
        for number, name in enumerate(names.split()):
            row = soup.new_tag("tr")
            if not number:
                head = soup.new_tag("th", attrs={"scope": "rowgroup", "rowspan": str(len(names.split()))})
                head.string = title
                row.append(head)
            link, *_, text = rows[name].find_all("td", recursive=False)
            code = link.select_one("code")
            assert code is not None
            detail = soup.find(id=f"{path}.{name}")
            assert isinstance(detail, Tag)
            assert detail.parent is not None
            if "async" in {label.get_text() for label in detail.select(".doc-label")}:
                code.insert(0, "await ")
            if "doc-function" in detail.parent.get_attribute_list("class"):
                code.append("()")
            if not text.get_text().rstrip().endswith("."):  # a summary is one line, whatever its sentence
                whole = detail.parent.select_one(".doc-contents > p")
                assert whole is not None
                text.clear()
                text.append(copy(whole))
            row.extend([link.extract(), text.extract()])
            body.append(row)
        table.append(body)
    return table
