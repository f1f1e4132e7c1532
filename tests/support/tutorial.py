"""The pages of the tutorial as somebody follows them: files to write, lines to add, commands to type.

A block with a file's name is that whole file; with "…, at its end" behind the name its lines are added there. A console
block is commands, each with what it prints. No other block may stand on a page, except `text`, which is only shown.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs

__all__ = ["CHAPTERS", "EXAMPLES", "Command", "Step", "Text", "steps", "write"]

ROOT: Final = Path(__file__).parents[2]
TUTORIAL: Final = ROOT / "docs" / "tutorial"
EXAMPLES: Final = ROOT / "docs" / "examples"
CHAPTERS: Final = (
    "begin",
    "bindings",
    "accounts",
    "queue",
    "files",
    "durable-object",
    "live",
    "explorer",
    "description",
    "deploy",
)

_BLOCK: Final = re.compile(
    r'^```(\w+)(?: title="([^"]+)")?(?: hl_lines="[^"]+")?\n(.*?)^```$', re.MULTILINE | re.DOTALL
)
_SNIPPET: Final = re.compile(r'^--8<-- "([^":]+)"$', re.MULTILINE)
_AT_ITS_END: Final = ", at its end"


@attrs.frozen
class Text:
    """Lines of a file: all of them, or further ones."""

    file: str
    text: str
    adds: bool


@attrs.frozen
class Command:
    """A command, and what the page shows below it."""

    line: str
    printed: str


Step = Text | Command


def steps(chapter: str) -> list[Step]:
    """The steps of one page, in their order."""
    page = (TUTORIAL / f"{chapter}.md").read_text("utf-8")
    found: list[Step] = []
    for language, title, block in _BLOCK.findall(page):
        text = _SNIPPET.sub(lambda name: (EXAMPLES / name[1]).read_text("utf-8").rstrip("\n"), block)
        if title:
            found.append(Text(title.removesuffix(_AT_ITS_END), text, adds=title.endswith(_AT_ITS_END)))
        elif language == "console":
            found += [
                Command(line, printed)
                for line, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
            ]
        elif language != "text":
            raise AssertionError(
                f"{chapter}.md: a block of {language} has no title, so nobody knows what to do with it"
            )
    return found


def write(folder: Path, step: Text) -> None:
    """Do to the project what a block with a file's name says."""
    file = folder / step.file
    file.parent.mkdir(parents=True, exist_ok=True)
    before = f"{file.read_text('utf-8')}\n" if step.adds else ""
    file.write_text(before + step.text, "utf-8")
