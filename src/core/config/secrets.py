"""Local secrets: `.dev.vars` and `.env`, which file counts, and its values.

The dialect is dotenv's, as the platform's tools read it: `KEY=value`, `export KEY=value`, three kinds of quotes,
comments. A line that dotenv would silently leave out is a mistake here. Values are `Secret` from the first moment.
"""

from __future__ import annotations

import re
from os.path import isfile
from pathlib import Path
from typing import Final

from core.bindings.secret import Secret
from core.errors import ConfigurationError
from core.values import frozen

_LINE: Final = re.compile(
    r"""
    [ \t]*(?:export[ \t]+)?
    (?P<key>[A-Za-z_][\w.-]*)
    [ \t]*(?:=|:[ \t])[ \t]*
    (?:
        "(?P<double>(?:[^"\\]|\\.)*+)"
      | '(?P<single>[^']*)'
      | `(?P<back>[^`]*)`
      | (?P<bare>(?!["'`])[^\#\r\n]*)
    )
    [ \t]*(?:\#[^\r\n]*)?(?:\r?\n|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_NOTHING: Final = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")
_OPENING: Final = re.compile(r"[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*(?:=|:[ \t])[ \t]*([\"'`])")
_KEY: Final = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<key>[^=\s]*)")


@frozen
class LocalSecret:
    """A secret of this machine, and the line that has it."""

    name: str
    value: Secret
    file: Path
    line: int


def parse_dotenv(text: str, file: Path) -> tuple[list[LocalSecret], list[str]]:
    """The entries of a dotenv file, and its mistakes with their lines. A later entry of a name wins over an earlier."""
    entries: list[LocalSecret] = []
    problems: list[str] = []
    at, line = 0, 1
    text = text.removeprefix("\ufeff")
    while at < len(text):
        if (nothing := _NOTHING.match(text, at)) is not None:
            end = nothing.end()
        elif (match := _LINE.match(text, at)) is not None:
            end = match.end()
            entries.append(LocalSecret(match["key"], Secret(_value(match)), file, line))
        else:
            end = text.find("\n", at) + 1 or len(text)
            problems.append(f"{file.name}:{line}: {_mistake(text[at:end])}")
        line += text.count("\n", at, end)
        at = end
    return entries, problems


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        # Only these two escapes mean something in dotenv; all others stay as they are.
        return match["double"].replace("\r\n", "\n").replace("\\n", "\n").replace("\\r", "\r")
    for quoted in ("single", "back"):
        if match[quoted] is not None:
            return match[quoted].replace("\r\n", "\n")
    return match["bare"].strip()


def _mistake(text: str) -> str:
    opening = _OPENING.match(text)
    if opening is not None:
        return f"the text after {opening[1]} does not end, or something follows its end. Close it with {opening[1]}"
    key = _KEY.match(text)
    name = key["key"] if key is not None else ""
    if "=" not in text:
        return "this is not KEY=value. Write an equals sign, or # before a comment"
    return f'"{name}" is not the name of a secret. Use letters, digits and _, for example JWT_SECRET=…'


def read_local_secrets(directory: Path, environment: str | None = None) -> dict[str, LocalSecret]:
    """Read the secrets that lie beside a configuration file, by their names.

    `.dev.vars.<environment>` if it is there, else `.dev.vars`. Only where neither is: `.env`, `.env.<environment>`,
    `.env.local` and `.env.<environment>.local`, each winning over those before it.

    Raises ConfigurationError with every mistake of every file that counts.
    """
    problems: list[str] = []
    secrets: dict[str, LocalSecret] = {}
    for file in reversed(_files(directory, environment)):
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            problems.append(f"{file.name}: this is not UTF-8. Save the file as UTF-8")
            continue
        except OSError as error:
            problems.append(f"{file.name}: this cannot be read: {error.strerror}. Make it a readable file")
            continue
        entries, mistakes = parse_dotenv(text, file)
        problems += mistakes
        secrets |= {entry.name: entry for entry in entries}
    if problems:
        raise ConfigurationError(problems)
    return secrets


def _files(directory: Path, environment: str | None) -> list[Path]:
    """The files that count, the first one winning."""
    dev_vars = [".dev.vars"] if environment is None else [f".dev.vars.{environment}", ".dev.vars"]
    for name in dev_vars:
        if isfile(directory / name):
            return [directory / name]
    dot_env = [".env.local", ".env"]
    if environment is not None:
        dot_env = [f".env.{environment}.local", ".env.local", f".env.{environment}", ".env"]
    return [directory / name for name in dot_env if isfile(directory / name)]
