"""Lines on a terminal: colours where there is one, plain text everywhere else.

`NO_COLOR` turns colours off and `FORCE_COLOR` on, as https://no-color.org and https://force-color.org say.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Sequence
from typing import Final, TextIO

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


class Style:
    """Paints text, or leaves it alone: `Style(sys.stdout)("ok", "green")`."""

    __slots__ = ("on",)

    def __init__(self, stream: TextIO) -> None:
        wanted = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.on: bool = not os.environ.get("NO_COLOR") and bool(os.environ.get("FORCE_COLOR") or wanted)

    def __call__(self, text: str, *names: str) -> str:
        """`text` in the colours and weights of these names."""
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def status(self, status: int) -> str:
        colour = "red" if status >= 500 else "yellow" if status >= 400 else "cyan" if status >= 300 else "green"
        return self(str(status), colour)


def core_version(otherwise: str = "(from source)") -> str:
    """The version of the framework that is installed, or `otherwise` where it runs from its source."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("core-edge")
    except PackageNotFoundError:
        return otherwise


def write_lines_at_once() -> None:
    """Keep no line back, also where the output is a file or a container's log: whoever reads it reads along.

    A letter that the output's encoding does not have is written as its number.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")


def drop_output() -> None:
    """Throw away what is written from now on: whoever read it has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def table(rows: Sequence[tuple[str, ...]], *, indent: str = "  ", numbers: Collection[int] = ()) -> list[str]:
    """Rows as lines of aligned columns, those of `numbers` at the right. Cells are plain text: paint the lines."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    aligned = [
        [
            cell.rjust(width) if at in numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return [f"{indent}{'  '.join(cells)}".rstrip() for cells in aligned]
