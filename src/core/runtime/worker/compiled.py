"""Run by a build's worker, as text: find the packages that need the compiled modules that they were installed with.

A worker has none of these, so every other module of such a package is imported, and the imports are followed. A
compiled module has a fallback if a module that asks for it can be imported all the same, or is itself one that others
do without. A module without an underscore that cannot be imported, and that nothing does without, is a part of the
package that is missing. A compiled module that nothing asks for while importing counts as the others of its package,
unless a function imports it, outside of `try`, in a module that asked for none.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import resolve_name
from types import FrameType

SITE = "/core/"
importers: dict[str, set[str]] = {}


class Recorder:
    """Asked first for every module: keeps who asks, and finds none itself."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(SITE):
            frame = frame.f_back
        if frame is not None:
            importers.setdefault(name, set()).add(frame.f_globals["__name__"])


def examine(asked: str) -> str:
    """The packages that do not work, as JSON: for each the compiled module, and the module that needs it or None.

    `asked` has the names of each package's `compiled` modules, and the paths of its other `modules`.
    """
    sys.meta_path.insert(0, Recorder)
    answers = {name: missing(set(found["compiled"]), found["modules"]) for name, found in json.loads(asked).items()}
    return json.dumps({name: answer for name, answer in answers.items() if answer is not None})


def missing(compiled: set[str], modules: dict[str, str]) -> tuple[str, str | None] | None:
    """A compiled module that is needed, and by which other one; None if the package works without."""
    # A folder of compiled modules alone is not there at all.
    absent = {name: {name} for name in compiled}
    for name in compiled:
        absent[name] |= {parent for parent in parents(name) if not any(one.startswith(parent) for one in modules)}
    lost = {missed: name for name, names in absent.items() for missed in names}
    for module in modules:
        try:
            import_module(module)
        except BaseException as error:
            reason = needed(error, lost)
            if reason is not None:
                lost[module] = reason

    def asking(name: str) -> set[str]:
        return {one for missed in absent.get(name, {name}) for one in importers.get(missed, ()) if one in modules}

    def has_fallback(name: str, seen: frozenset[str] = frozenset()) -> bool:
        return any(one not in lost or has_fallback(one, seen | {name}) for one in asking(name) - seen - {name})

    asked_for = [name for name in sorted(compiled) if asking(name)]
    for name, reason in lost.items():
        private = any(part.startswith("_") for part in name.split("."))
        if name in modules and not private and not has_fallback(name):
            return reason, name
    for name in asked_for or sorted(compiled):
        if not has_fallback(name):
            return name, min(asking(name), default=None)
    aware = {one for name in compiled for one in asking(name)}
    for module, path in modules.items():
        if module not in aware and module not in lost:
            with open(SITE + path, "rb") as file:
                tree = ast.parse(file.read())
            package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
            for name in called_for(tree, package):
                if name in compiled:
                    return name, module
    return None


def parents(name: str) -> Iterator[str]:
    """The packages that a module is in."""
    while name := name.rpartition(".")[0]:
        yield name


def called_for(tree: ast.AST, package: str, inside: bool = False) -> Iterator[str]:
    """The names that functions import, outside of `try`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Try):
            continue
        if inside and isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif inside and isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
        else:
            yield from called_for(node, package, inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def needed(error: BaseException | None, lost: dict[str, str]) -> str | None:
    """The compiled module that an import failed for, if it was one."""
    while error is not None:
        if isinstance(error, ImportError):
            for name in (error.name, f"{error.name}.{getattr(error, 'name_from', None)}"):
                if name in lost:
                    return lost[name]
        error = error.__cause__ or error.__context__
    return None
