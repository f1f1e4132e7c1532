"""The links of the built documentation: those within it are followed,
those to elsewhere are asked for by `make links`.
"""

from __future__ import annotations

import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Page", "dead_links", "external_links", "pages", "plausible"]

EXAMPLES = re.compile(r"(127\.0\.0\.1|localhost|(^|\.)example(\.(com|org|net))?$|\.test$|\.invalid$)")
"""Hosts of examples, which nobody should ask for."""


class Page(HTMLParser):
    """The addresses that a page refers to, and the places in it that have a name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what a tag refers to and is called."""
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.names.add(value or "")
            elif value and (name == "src" or (name == "href" and not (tag == "link" and "://" in value))):
                self.links.append(value)


@cache
def pages(site: Path) -> dict[Path, Page]:
    """Every page of a built site, which is read once."""
    return {file: Page(file.read_text("utf-8")) for file in sorted(site.rglob("*.html"))}


def dead_links(site: Path) -> list[str]:
    """The links within a site that lead nowhere, anchors included."""
    found = pages(site)
    dead: list[str] = []
    for file, page in found.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (
                site / unquote(parts.path).lstrip("/")
                if parts.path.startswith("/")
                else file.parent / unquote(parts.path)
            )
            target = file if not parts.path else (target / "index.html" if target.is_dir() else target).resolve()
            anchor = unquote(parts.fragment)
            if not target.is_file() or (target in found and anchor not in found[target].names and anchor[:1] != "_"):
                dead.append(f"{file.relative_to(site)}: {link}")
    return dead


def external_links(site: Path) -> dict[str, list[str]]:
    """The addresses elsewhere that a site links to, and the pages that do."""
    found: dict[str, list[str]] = {}
    for file, page in pages(site).items():
        for link in page.links:
            parts = urlsplit(link)
            if (parts.scheme or parts.netloc) and not EXAMPLES.search(parts.hostname or ""):
                found.setdefault(link, []).append(str(file.relative_to(site)))
    return found


def plausible(link: str) -> bool:
    """True if an address elsewhere may be one: https, a host with a dot,
    nothing that belongs to a sentence at its end.
    """
    parts = urlsplit(link)
    host = parts.hostname or ""
    return parts.scheme == "https" and "." in host and " " not in link and link[-1] not in ".,;:)" and ".." not in host


def answer(link: str) -> str:
    """The error of a dead link, else an empty string. Sites that refuse programs are not dead."""
    request = urllib.request.Request(link, headers={"User-Agent": "Mozilla/5.0 (link check)"})
    try:
        with urllib.request.urlopen(request, timeout=20):
            return ""
    except urllib.error.HTTPError as error:
        return "" if error.code in (401, 403, 405, 429) else str(error)
    except OSError as error:
        return str(error)


def main(site: Path) -> int:
    """Ask for every address elsewhere, and print those that do not answer."""
    links = external_links(site)
    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(links, pool.map(answer, links), strict=True))
    for link, problem in answers.items():
        if problem:
            print(f"{link}: {problem} ({', '.join(dict.fromkeys(links[link]))})")
    print(f"{len(links)} links elsewhere, {sum(map(bool, answers.values()))} without an answer")
    return 1 if any(answers.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
