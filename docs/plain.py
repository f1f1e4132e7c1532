"""Writes each page as Markdown beside its HTML, and `llms.txt`, which lists them (https://llmstxt.org).

`how-to/errors/` is `how-to/errors/index.md` too. It is made from the page's HTML, since examples, tables from the
program and docstrings are in that alone. `llms-full.txt` is every page, one behind the other.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import Any, Final

from bs4 import BeautifulSoup, Tag
from markdownify import ATX, MarkdownConverter

NOT_TEXT: Final = "svg, img, button, a.headerlink, .doc-labels, .tabbed-labels"
"""What a reader of text gets nothing of."""
_CODE: Final = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
_COLOURS: Final = re.compile(r"<(?!/?(?:pre|code)\b)[^>]*>")
"""The tags of the highlighter, of which a page of code has thousands."""
_texts: Final[dict[str, tuple[str, str]]] = {}
"""The address and the text of each page, by its source."""


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page that was made."""
    soup = BeautifulSoup(_CODE.sub(lambda code: _COLOURS.sub("", code[0]), html), "html.parser")
    for element in soup.select(NOT_TEXT):
        element.decompose()
    for link in soup.select("a[href]"):
        link["href"] = address_of_text(str(link["href"]))
    for word in [word for cell in soup.select("td") for word in cell.find_all(string=True)]:
        word.replace_with(word.replace("|", r"\|"))  # a bar would end the cell
    converter = MarkdownConverter(
        bullets="-",
        heading_style=ATX,
        escape_underscores=False,
        escape_asterisks=False,
        code_language_callback=language,
    )
    # Code is left as it is; the text between has one empty line at most.
    parts = re.split(r"(^```.*?^```$)", converter.convert_soup(soup).strip() + "\n", flags=re.MULTILINE | re.DOTALL)
    text = "".join(part if part.startswith("```") else re.sub(r"\n{3,}", "\n\n", part) for part in parts)
    _texts[page.file.src_uri] = (address_of_text(page.file.dest_uri), text)
    return html


def on_post_build(*, config: Any, **_: Any) -> None:
    """Called by MkDocs when the site is written."""
    site = Path(config["site_dir"])
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    everything: list[str] = []
    for entry in config["nav"]:
        for title, pages in entry.items():
            lines += [f"## {title}", ""]
            for source in sources(pages):
                address, text = _texts[source]
                (site / address).write_text(text, "utf-8")
                heading = re.search(r"^# (.+)$", text, re.MULTILINE)
                lines.append(f"- [{heading[1] if heading else config['site_name']}]({address})")
                everything.append(text)
            lines.append("")
    (site / "llms.txt").write_text("\n".join(lines), "utf-8")
    (site / "llms-full.txt").write_text("\n".join(everything), "utf-8")


def sources(menu: Any) -> list[str]:
    """The pages of a part of the menu, in its order."""
    match menu:
        case str():
            return [menu]
        case dict():
            return [source for part in menu.values() for source in sources(part)]
        case _:
            return [source for part in menu for source in sources(part)]


def address_of_text(address: str) -> str:
    """The address of a page's text, where that of its HTML leads; other addresses stay what they are."""
    path, mark, fragment = address.partition("#")
    if re.match(r"[a-z][a-z0-9+.-]*:|/|$", path):
        return address
    if path.endswith("/") or path in (".", ".."):
        path = os.path.join(path, "index.md")
    return path.removesuffix(".html") + ".md" * path.endswith(".html") + mark + fragment


def language(element: Tag) -> str:
    """The language of a block of code, by the class that the highlighter gave to what is around it."""
    classes = [name for outer in (element, element.parent) if outer for name in outer.get_attribute_list("class")]
    return next((name.removeprefix("language-") for name in classes if name and name.startswith("language-")), "")
