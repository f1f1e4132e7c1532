"""A configuration file as it was written: its data, the line of every key, and the mistakes found so far."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import attrs

from core.config.jsonc_text import DEEPEST, JsoncError, parse_jsonc
from core.config.toml_text import KeyPath, toml_lines
from core.config.words import dotted, type_name
from core.errors import ConfigurationError

Table: TypeAlias = Mapping[str, Any]


@attrs.frozen
class Document:
    """A file that was read. `lines` has the line of every key path, from 1; `content` is the file's bytes."""

    path: Path
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    content: bytes

    @property
    def is_json(self) -> bool:
        """True for `wrangler.json` and `wrangler.jsonc`."""
        return self.path.suffix != ".toml"

    def level(self, environment: str | None) -> tuple[KeyPath, Table]:
        """The key path of an environment, None for the top level, and its table."""
        if environment is None:
            return (), self.data
        return ("env", environment), self.data["env"][environment]

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest table around it that has one."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None


def read_document(path: Path) -> Document:
    """Read a file. Raises ConfigurationError for one that is absent or malformed."""
    name = path.name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        _fail(f"{name}: there is no such file: {path}. Write one with name and main, or name another file.")
    except IsADirectoryError:
        _fail(f"{name}: this is a directory: {path}. Name the file itself, for example {path / 'wrangler.toml'}.")
    except OSError as error:
        _fail(f"{name}: this cannot be read: {error.strerror}: {path}. Make it a readable file.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        _fail(f"{name}:{line}: this is not UTF-8 (byte 0x{content[error.start]:02x}). Save the file as UTF-8.")
    try:
        if path.suffix == ".toml":
            data, lines = _parse_toml(text)
            deepest = max(lines, key=len, default=())
            if len(deepest) > DEEPEST:
                _fail(
                    f"{name}:{lines[deepest]}: this is nested deeper than {DEEPEST} levels. Make it flatter: each dot in a "
                    "key is a level."
                )
        else:
            data, lines = parse_jsonc(text)
    except tomllib.TOMLDecodeError as error:
        _fail(_toml_mistake(name, text, error))
    except JsoncError as error:
        _fail(f"{name}:{error.line}: this is not JSON (column {error.column}): {error.message}.")
    except RecursionError:
        _fail(f"{name}: this is nested too deeply to be read. Make it flatter.")
    if not isinstance(data, dict):
        _fail(f"{name}:1: this must be a JSON object, not {type_name(data)}. Begin it with {{.")
    return Document(path, as_table(data), lines, content)


def _parse_toml(text: str) -> tuple[object, dict[KeyPath, int]]:
    try:
        return tomllib.loads(text), toml_lines(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        # A number is too long, which `toml_lines` tells with its place.
        return {}, toml_lines(text)


_TOML_PLACE: Final = re.compile(
    r"(?P<problem>.*?) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)"
)


def _toml_mistake(name: str, text: str, error: tomllib.TOMLDecodeError) -> str:
    match = _TOML_PLACE.fullmatch(str(error))
    if match is None:
        return f"{name}: this is not TOML: {error}."
    line = int(match["line"] or text.rstrip("\n").count("\n") + 1)
    column = f" (column {match['column']})" if match["column"] else ""
    source = text.split("\n")[line - 1].strip() if line <= text.count("\n") + 1 else ""
    shown = f": {source[:60]}" if source else ""
    problem = match["problem"][:1].lower() + match["problem"][1:]
    return f"{name}:{line}: this is not TOML{column}: {problem}{shown}. Put strings in quotes, and each key on its own line."


def _fail(problem: str) -> NoReturn:
    raise ConfigurationError([problem])


class Problems:
    """The mistakes so far, in the order of the file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.found: list[tuple[int, str]] = []
        self.misspelt: int = 0
        self.foreign: list[str] = []
        # Keys inside of tables that are read over, with whether the platform is known to have them.
        self.unknown: dict[KeyPath, bool] = {}

    def add(self, path: KeyPath, text: str, *, misspelt: bool = False) -> None:
        """Add a mistake at a key path, which `text` goes on from. Those of a key, not of a value, are `misspelt`."""
        line = self.document.line(path)
        place = self.document.path.name if line is None else f"{self.document.path.name}:{line}"
        self.misspelt += misspelt
        self.found.append((line or 0, f"{place}: {dotted(path)}{text}"))

    def raise_all(self) -> None:
        """Raise ConfigurationError if there is a mistake."""
        if self.found or self.foreign:
            self.found.sort(key=lambda item: item[0])
            raise ConfigurationError([*dict.fromkeys(text for _, text in self.found), *self.foreign])


def as_table(value: Any) -> dict[str, Any]:
    """The value if it is a table, else an empty one: its type is someone else's complaint."""
    given = value  # not narrowed by what follows
    return given if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    given = value  # not narrowed by what follows
    return [*given] if isinstance(value, list) else []
