"""JSON with comments and trailing commas, and the position of each key.

The values are RFC 8259's: no `NaN`, no single quotes, no bare keys. Added are `//` and `/* */` comments and a comma
before a closing bracket, as the platform's own tools take them, also in a file called `.json`. Read once, from left
to right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from core.config.toml_text import LONGEST, KeyPath, LineIndex

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_HALF: Final = re.compile("[\ud800-\udfff]")
DEEPEST: Final = 200


class JsoncError(ValueError):
    """The text is not JSON. `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def parse_jsonc(text: str) -> tuple[object, dict[KeyPath, int]]:
    """The value, and the line of every key and array element by its path.

    Raises JsoncError for the first mistake: two keys of one name and nesting deeper than 200 are mistakes as well.
    """
    reader = _Reader(text)
    reader.blank()
    value = reader.value((), 0)
    reader.blank()
    if reader.at < len(text):
        raise reader.error("there is something after the end of the value. Remove it")
    return value, reader.lines


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.index = LineIndex(text)
        self.lines: dict[KeyPath, int] = {}

    def error(self, message: str, at: int | None = None) -> JsoncError:
        at = min(self.at if at is None else at, len(self.text))
        return JsoncError(message, self.index.line(at), self.index.column(at))

    def blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = self.at if match is None else match.end()
        if self.text.startswith("/*", self.at):
            raise self.error("this comment does not end. Close it with */")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, path: KeyPath, depth: int) -> object:
        if depth > DEEPEST:
            raise self.error(f"this is nested deeper than {DEEPEST} levels. Make it flatter")
        match self.peek():
            case "{":
                return self.object(path, depth)
            case "[":
                return self.array(path, depth)
            case '"':
                return self.string()
            case "":
                raise self.error(
                    "the text ends where a value is wanted. Close the open brackets, or write {} for nothing"
                )
            case "'":
                raise self.error("JSON has no single quotes. Use double quotes")
            case _:
                return self.scalar()

    def scalar(self) -> object:
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            if len(number[0]) > LONGEST:
                raise self.error("this number is too long. Put it in double quotes")
            self.at = number.end()
            return float(number[0]) if number["fraction"] or number["exponent"] else int(number[0])
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise self.error(f"a value is wanted here, not {self.peek()!r}. Put a string in double quotes")
        if word[0] not in _WORDS:
            raise self.error(f"{word[0]} is not a value in JSON. Put a string in double quotes")
        self.at = word.end()
        return _WORDS[word[0]]

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise self.error("this string does not end on its line, or has an escape that JSON does not know. Fix it")
        self.at = match.end()
        text: str = json.loads(match[0])
        half = _HALF.search(text)
        if half is not None:
            escape = f"\\u{ord(half[0]):04x}"
            # The place of the escape itself; a whole pair before it may be spelled the same.
            at = match.start() + max(match[0].lower().find(escape), 0)
            raise self.error(f"{escape} is half of a character. Write its other half beside it, or leave it out", at)
        return text

    def array(self, path: KeyPath, depth: int) -> list[object]:
        items: list[object] = []
        for _ in self.members("[", "]"):
            element = (*path, len(items))
            self.lines[element] = self.index.line(self.at)
            items.append(self.value(element, depth + 1))
        return items

    def object(self, path: KeyPath, depth: int) -> dict[str, object]:
        start = self.at
        items: dict[str, object] = {}
        for _ in self.members("{", "}"):
            if self.peek() != '"':
                if self.at >= len(self.text):
                    raise self.error("this { is not closed. Write } where it ends", start)
                raise self.error("a key in double quotes is wanted here")
            at = self.at
            key = self.string()
            if key in items:
                first = self.lines[*path, key]
                raise self.error(f'"{key}" is here for the second time, first on line {first}. Remove one', at)
            self.lines[*path, key] = self.index.line(at)
            self.blank()
            if self.peek() != ":":
                raise self.error(f'a colon is wanted after "{key}"')
            self.at += 1
            self.blank()
            items[key] = self.value((*path, key), depth + 1)
        return items

    def members(self, opening: str, closing: str) -> Iterator[None]:
        """Stop where each member begins, up to the end of the array or object."""
        start = self.at
        self.at += 1
        self.blank()
        while self.peek() != closing:
            yield
            self.blank()
            if self.peek() == ",":
                self.at += 1
                self.blank()
            elif self.at >= len(self.text):
                raise self.error(f"this {opening} is not closed. Write {closing} where it ends", start)
            elif self.peek() != closing:
                raise self.error(f"a comma or {closing} is wanted here")
        self.at += 1
