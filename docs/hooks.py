"""Generated parts of the documentation: the command line's own help, and lists of modules.

A line `{{ help: dev }}` becomes what `core dev --help` prints; `{{ module: core.errors }}` becomes the reference of every
public name of that module.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    markdown = re.sub(r"^\{\{ help: ([\w-]+) \}\}$", lambda found: help_of(found[1]), markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\{\{ overview \}\}$", lambda found: overview(), markdown, flags=re.MULTILINE)
    return re.sub(r"^\{\{ module: ([\w.]+) \}\}$", lambda found: module_of(found[1]), markdown, flags=re.MULTILINE)


def help_of(command: str) -> str:
    """The help of a command as a block of text."""
    from core.cli import parser_for

    os.environ["COLUMNS"] = "100"
    os.environ["NO_COLOR"] = "1"
    chosen = parser_for(command).commands[command]
    return f"```text\n{chosen.format_help().rstrip()}\n```"


def overview() -> str:
    """The output of `core --help`."""
    from core.cli import _overview

    os.environ["NO_COLOR"] = "1"
    return f"```text\n{_overview().rstrip()}\n```"


def module_of(module: str) -> str:
    """One public module."""
    return reference(module, public_names(SOURCE / f"{module.replace('.', '/')}.py"))


def reference(module: str, names: list[str]) -> str:
    """One module: its docstring, and its public names."""
    members = ", ".join(names)
    return (
        f"## `{module}`\n\n::: {module}\n    options:\n      members: [{members}]\n      heading_level: 3\n"
        "      show_root_heading: false\n"
    )


def public_names(file: Path) -> list[str]:
    """`__all__` of a module, read without importing it."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return []
