"""The place of `import attrs` in a module that people have written, as sorted imports have it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection


def with_attrs(text: str, local: Collection[str] = ()) -> str:
    """The text of a module with `import attrs` in it. `local` are the top names of the program's own modules."""
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias for node in imports if isinstance(node, ast.Import) for alias in node.names]
    if any(alias.name == "attrs" and alias.asname is None for alias in names):
        return text
    lines = text.split("\n")
    before: ast.Import | ast.ImportFrom | None = None
    for node in imports:
        place = _section(node, local), isinstance(node, ast.ImportFrom), _root(node)
        if place > (2, False, "attrs"):
            before = node
            break
    if before is not None:
        own = _section(before, local) == 2
        last = imports[imports.index(before) - 1] if imports.index(before) else None
        apart = last is not None and _section(last, local) < 2 and lines[before.lineno - 2].strip() != ""
        at = before.lineno - 1
        lines[at:at] = [*([""] if apart else []), "import attrs", *([] if own else [""])]
    elif imports:
        end = imports[-1].end_lineno or imports[-1].lineno
        lines[end:end] = ["import attrs"] if _section(imports[-1], local) == 2 else ["", "import attrs"]
    else:
        lines = _first_import(tree, lines)
    return "\n".join(lines)


def _first_import(tree: ast.Module, lines: list[str]) -> list[str]:
    first = tree.body[0] if tree.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        end = first.end_lineno or first.lineno
        return [*lines[:end], "", "import attrs", *lines[end:]]
    at = 0
    while at < len(lines) and lines[at].startswith("#"):
        at += 1
    return [*lines[:at], "import attrs", "", *lines[at:]]


def _root(node: ast.Import | ast.ImportFrom) -> str:
    name = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return name.partition(".")[0]


def _section(node: ast.Import | ast.ImportFrom, local: Collection[str]) -> int:
    """0 for `__future__`, 1 for the standard library, 2 for packages of others, 3 for the program's own modules."""
    root = _root(node)
    if root == "__future__":
        return 0
    if (isinstance(node, ast.ImportFrom) and node.level) or root in local:
        return 3
    return 1 if root in sys.stdlib_module_names else 2
