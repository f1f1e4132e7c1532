"""The Python sources of a project as strings, for questions that no single file can answer.

A body is read a module at a time, and one that is kept not at all. Two things are therefore read from the texts: which
classes are derived from, and which tables the program makes by itself. Both only ever keep a finding back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

# Each begins with a literal string, which is searched for many times faster than a position; the look-behind then tests
# the text before it.
_CLASS: Final = rb"class\s(?<![^\s]class\s)\s*\w+\s*(?:\[[^\]]*\])?\(([^)]*)\)"
_TABLES: Final = rb"(?i)create\s+table\s+(?:if\s+not\s+exists\s+)?[\"'`\[]?(\w+)"
_NAME: Final = r"[^\W\d]\w*"
_LEFT_OUT: Final = frozenset(
    ["node_modules", "__pycache__", "site-packages", "build", "dist", "python_modules", "venv"]
)


class Sources(NamedTuple):
    """The facts found in the sources.

    `bases` are the names, without their modules, that stand among the bases of a class. `tables` are the names, in
    lower case, of tables that the program itself creates. `files` are all of them.
    """

    bases: frozenset[str]
    tables: frozenset[str]
    files: tuple[str, ...]


def read_sources(root: Path) -> Sources:
    """Read the `.py` files below `root`, without environments, packages of others and hidden folders."""
    bases: set[str] = set()
    tables: set[str] = set()
    files: list[str] = []
    for path in source_files(root):
        try:
            with open(path, "rb", buffering=0) as file:
                text = file.read()
        except OSError:
            continue
        files.append(path)
        if b"class " in text:
            for match in re.finditer(_CLASS, text):
                bases.update(re.findall(_NAME, match[1].decode("utf-8", "replace")))
        if b"reate " in text or b"REATE " in text:
            tables.update(name.decode("utf-8", "replace").lower() for name in re.findall(_TABLES, text))
    return Sources(frozenset(bases), frozenset(tables), tuple(files))


def source_files(root: Path) -> Iterator[str]:
    """The `.py` files below a folder, without environments, packages of others and hidden folders."""
    for folder, folders, names in os.walk(os.path.abspath(root)):
        folders[:] = [
            name
            for name in folders
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))


def dotted_names(path: str) -> Iterator[str]:
    """The names that a module may go by, shortest first: imports may start from any folder above it."""
    parts = [part for part in os.path.splitext(path)[0].split(os.sep) if part]
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    for at in reversed(range(len(parts))):
        yield ".".join(parts[at:])


def may_have(path: str, pattern: str) -> bool:
    """Return True if a file may have a class of a full name or pattern, by the text of the file alone."""
    try:
        with open(path, "rb") as file:
            names = [name.decode("utf-8", "replace") for name in re.findall(rb"class\s+(\w+)", file.read())]
    except OSError:
        return False
    # Whether a class is in another one cannot be seen from its bare name.
    bare = [*names, *(f"{outer}.{inner}" for outer in names for inner in names)]
    return any(fnmatchcase(f"{module}.{name}", pattern) for module in dotted_names(path) for name in bare)
