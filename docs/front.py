"""What only the front page has: the example with two wrong letters, each with its finding below, and three figures.

`{{ wrong_letters }}` is `examples/hello.py` and `examples/hello.checked.txt`, which a test compares with the checkers;
`{{ proofs }}` reads each figure from the page that says how it came about.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any, Final

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

HERE: Final = Path(__file__).parent
WRONG: Final = {"GREETINGS: KV": "GREETING: KV", 'params["name"]': 'params["nam"]'}
"""What is right in the example, and what a hurried hand wrote."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    markdown = re.sub(r"^\{\{ wrong_letters \}\}$", lambda _: wrong_letters(), markdown, flags=re.MULTILINE)
    return re.sub(r"^\{\{ proofs \}\}$", lambda _: proofs(), markdown, flags=re.MULTILINE)


def wrong_letters() -> str:
    """The example, from its first import on, with the wrong words marked and the findings below their lines."""
    source = (HERE / "examples" / "hello.py").read_text("utf-8")
    for right, wrong in WRONG.items():
        source = source.replace(right, wrong)
    coloured = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines()
    first = source[: source.index("import ")].count("\n")
    rows: list[str] = []
    found = findings()
    for number, line in enumerate(coloured[first:], first + 1):
        if not line and not coloured[number]:
            continue  # one empty line is enough here
        if number not in found:
            rows.append(f'<span class="row">{line}\n</span>')
            continue
        message, code = found[number]
        word = re.search(r'^Env\.(\w+)|^req\.params\["(\w+)"\]', message)
        assert word is not None, message
        marked, count = re.subn(rf"(?<=[>;\"]){word[1] or word[2]}(?=[<&\"])", r"<mark>\g<0></mark>", line)
        assert count == 1, line
        link = f'<a href="reference/checks/{code}/">{code}</a>'
        rows.append(f'<span class="row">{marked}\n</span><span class="says">{html.escape(message)} {link}\n</span>')
    return (
        '<div class="editor" data-search-exclude markdown="0"><p class="editor-title">hello.py '
        f'<span>{len(found)} errors</span></p><div class="highlight no-copy"><pre tabindex="0">'
        f"<code>{''.join(rows)}</code></pre></div></div>"
    )


def findings() -> dict[int, tuple[str, str]]:
    """What the checkers print of the wrong example: message and code by line."""
    said = (HERE / "examples" / "hello.checked.txt").read_text("utf-8")
    return {
        int(line): (message, code)
        for line, message, code in re.findall(r"^hello\.py:(\d+): error: (.+?)  \[([\w-]+)\]$", said, re.MULTILINE)
    }


def proofs() -> str:
    """Three figures, with the pages that they are from."""
    codes = len(
        re.findall(r"^\| \[`core-", (HERE / "reference" / "checks" / "index.md").read_text("utf-8"), re.MULTILINE)
    )
    kept = (HERE / "reference" / "workerd.md").read_text("utf-8")
    promises = sum(int(count) for count in re.findall(r"^\| [\w ]+ \| (\d+) \|", kept, re.MULTILINE))
    ours, theirs = ratio("core"), ratio("fastapi")
    cards = [
        (codes, "kinds of mistake, found before a request is sent", "reference/checks/", "What is checked"),
        (
            promises,
            "promises of bindings, all kept by the fakes; a table says what each other place keeps",
            "reference/workerd/",
            "Place by place",
        ),
        (
            f"{ours}×",
            f"the time of an application written by hand, for a request with a parameter. FastAPI: {theirs}×",
            "explanation/performance/",
            "How it was measured",
        ),
    ]
    assert codes
    assert promises
    return "".join(
        [
            '<div class="proofs" markdown="0">',
            *(
                f'<p><strong>{figure}</strong> {words}. <a href="{link}">{title}</a></p>'
                for figure, words, link, title in cards
            ),
            "</div>",
        ]
    )


def ratio(framework: str) -> str:
    """The time of a request with a parameter, by the first table of what was measured."""
    lines = (HERE / "explanation" / "performance.md").read_text("utf-8").splitlines()
    head = next(line for line in lines if line.startswith("| | plaintext"))
    row = next(line for line in lines[lines.index(head) :] if line.startswith(f"| {framework} |"))
    return row.split("|")[head.split("|").index(" param ")].strip()
