"""What the Python sources of a project say as texts, for a question that no one file can answer.

A type checker sees one module at a time, and a cached one not at all. Two things are therefore read from the texts:
which classes are derived from, and which path parameters a prefix may bring along. Both only ever keep a finding back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Sources", "defined_names", "read_sources"]

FILES_AT_MOST: Final = 4_000

# Each begins with a text, which is searched for many times faster than a place: what stands before it is asked behind it.
_CLASS: Final = re.compile(rb"class\s(?<![^\s]class\s)\s*\w+\s*(?:\[[^\]]*\])?\(([^)]*)\)")
_PREFIX: Final = re.compile(rb"use\((?<!\wuse\()\s*[rRuU]?(?:\"([^\"\n]*)\"|'([^'\n]*)')")
_CONSTANT: Final = re.compile(rb"=\s*[rRuUfF]*(?:\"(/[^\"\n]*)\"|'(/[^'\n]*)')")
_FORMATTED: Final = re.compile(rb"use\((?<!\wuse\()\s*[fF][\"']")
_NAME: Final = re.compile(r"[^\W\d]\w*")
_PARAMETER: Final = re.compile(r"/:([^/\"'\s]+)")
_LEFT_OUT: Final = frozenset(
    ["node_modules", "__pycache__", "site-packages", "build", "dist", "python_modules", "venv"]
)


# A tuple and not an attrs class: the mypy plugin reads the sources in every run, also where there is nothing to check,
# and importing attrs would be most of what that costs.
class Sources(NamedTuple):
    """What the texts say.

    `bases` are the names, without their modules, that stand among the bases of a class. `prefixes` are the names of
    parameters in what may be a prefix. `complete` is False where there are too many files, or a prefix is put together
    at run time: then any name may come from a prefix, and any class may be derived from. `others` are the paths of
    files that were asked for beside the sources.
    """

    bases: frozenset[str]
    prefixes: frozenset[str]
    complete: bool
    others: tuple[Path, ...] = ()


def read_sources(root: Path, others: Sequence[str] = (), each: Callable[[str, bytes], object] | None = None) -> Sources:
    """Read the `.py` files below `root`, without environments, packages of others and hidden folders.

    `others` are names of files that are to be found on the way. `each` is given every source with its path.
    """
    bases: set[str] = set()
    prefixes: set[str] = set()
    found: list[Path] = []
    complete = True
    left = FILES_AT_MOST
    for path in _files(root, others):
        if not path.endswith(".py"):
            found.append(Path(path))
            continue
        left -= 1
        if left < 0:
            complete = False
            continue
        try:
            with open(path, "rb", buffering=0) as file:
                text = file.read()
        except OSError:
            continue
        if each is not None:
            each(path, text)
        if b"class " in text:
            for match in _CLASS.finditer(text):
                bases.update(_NAME.findall(match[1].decode("utf-8", "replace")))
        if b"/:" in text:
            for match in (*_PREFIX.finditer(text), *_CONSTANT.finditer(text)):
                prefixes.update(_PARAMETER.findall((match[1] or match[2] or b"").decode("utf-8", "replace")))
        if b"use(" in text and _FORMATTED.search(text):
            complete = False
    return Sources(frozenset(bases), frozenset(prefixes), complete, tuple(sorted(found)))


def _files(root: Path, others: Sequence[str]) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        for name in names:
            if name.endswith(".py") or name in others:
                yield os.path.join(folder, name)


def defined_names(path: Path) -> frozenset[str] | None:
    """The names that a module defines or imports at its top; None where that cannot be told."""
    import ast

    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None
    names: set[str] = set()
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        statement = todo.pop()
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(statement.name)
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    if alias.name == "*":
                        return None
                    names.add(alias.asname or alias.name.partition(".")[0])
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            case _:
                todo += [
                    child for child in ast.walk(statement) if isinstance(child, ast.stmt) and child is not statement
                ]
    return frozenset(names)
