"""The position of each key of a TOML document.

`tomllib` gives the values of a document without their places; this walks the same text once and gives the places. It
relies on `tomllib` having accepted the document (TOML 1.0), so it only has to find the ends of things. The one thing it
refuses is a number that is so long that Python does not read or write it.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from itertools import count
from typing import Final, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")

LONGEST: Final = 1000
"""The characters of the longest number. Python reads and writes whole numbers of 4300 decimal digits at most."""


class LineIndex:
    """Turns offsets into line numbers, which count from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line(self, offset: int) -> int:
        """The line that the offset is on."""
        return bisect_right(self._starts, offset)

    def column(self, offset: int) -> int:
        """The column of the offset in its line, from 1."""
        return offset - self._starts[self.line(offset) - 1] + 1


def toml_lines(text: str) -> dict[KeyPath, int]:
    """The line of every table, key and array element of a document that `tomllib` accepts, by its path.

    An array of tables has the line of its first header, and each of its elements that of its own. A table that only a
    deeper header or a dotted key implies has the line of the first of those.

    Raises TOMLDecodeError for a number that is longer than `LONGEST`, which `tomllib` may have failed to read.
    """
    walker = _Walker(text.replace("\r\n", "\n"))
    walker.document()
    return walker.lines


class _Walker:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.index = LineIndex(text)
        self.lines: dict[KeyPath, int] = {}
        self.tables: dict[KeyPath, int] = {}  # how many elements an array of tables has so far

    def document(self) -> None:
        table: KeyPath = ()
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)

    def header(self) -> KeyPath:
        line = self.index.line(self.at)
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        keys = self.dotted_key()
        self.at += 2 if many else 1
        path: KeyPath = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            self.lines.setdefault(path, line)
            if many and position == len(keys) - 1:
                self.tables[path] = self.tables.get(path, -1) + 1
            if path in self.tables:
                # A header speaks of the last element that an array of tables has.
                path = (*path, self.tables[path])
        self.lines.setdefault(path, line)
        return path

    def pair(self, table: KeyPath) -> None:
        line = self.index.line(self.at)
        path = table
        for key in self.dotted_key():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        self.value(path)

    def dotted_key(self) -> list[str]:
        """The parts of a key, up to the text behind its last one."""
        keys: list[str] = []
        while True:
            self.skip(_SPACE)
            keys.append(self.simple_key())
            self.skip(_SPACE)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def simple_key(self) -> str:
        if self.text[self.at] in "\"'":
            quoted = self.skip(_STRING)
            key: str = tomllib.loads(f"key = {quoted}")["key"]
            return key
        return self.skip(_BARE_KEY)

    def value(self, path: KeyPath) -> None:
        self.skip(_SPACE)
        match self.text[self.at]:
            case '"' | "'":
                self.skip(_STRING)
            case "[":
                for position in self.members("]"):
                    self.lines[*path, position] = self.index.line(self.at)
                    self.value((*path, position))
            case "{":
                for _ in self.members("}"):
                    self.pair(path)
            case _:
                start = self.at
                if len(self.skip(_SCALAR).rstrip()) > LONGEST:
                    line, column = self.index.line(start), self.index.column(start)
                    raise tomllib.TOMLDecodeError(f"Number too long (at line {line}, column {column})")

    def members(self, closing: str) -> Iterator[int]:
        """The numbers of the members of an array or inline table, where each begins. TOML 1.1 lets both span lines."""
        self.at += 1
        for position in count():
            self.skip(_BLANK)
            if self.text[self.at] == closing:
                self.at += 1
                return
            yield position
            self.skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"line {self.index.line(self.at)}: this is not TOML")
        self.at = match.end()
        return match[0]
