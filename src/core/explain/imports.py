"""The fix for an import that fails: where the framework has a name, which name of a module was meant, and what Python
cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from core.explain.names import MODULE

_SOURCES: Final = Path(__file__).parent.parent
_PUBLIC: Final = ("", "errors", "http", "bindings", "middleware", "testing", "hosts", "mcp")
"""The folders with the modules that programs import from. The first is that of the files that have none."""


def fix_for_name(module: str, name: str, names: Sequence[str]) -> str:
    """The fix for `from module import name`, without a full stop; `names` are those that the module has."""
    ours = module.partition(".")[0] == "core"
    if ours and name in MODULE:
        return f"In core this is {MODULE[name]}"
    if ours and (fix := next(_fixes(name), None)) is not None:
        return fix
    visible = [each for each in names if each[:1] != "_"]
    near = [each for each in visible if each.lower().startswith(name.lower())]
    near = near or get_close_matches(name, visible, 1, 0.65)
    if near:
        return f"Did you mean `{near[0]}`?"
    return "Correct the name" if ours else "Correct the name, or define it there"


def fix_for_syntax(message: str) -> str | None:
    """The fix for a syntax error, without a full stop."""
    # Of `await`, `async with` and `async for` alike; a comprehension is "outside of an asynchronous function".
    is_async = "outside async function" in message or "outside of an asynchronous function" in message
    return "Write `async def` for the function around it" if is_async else None


def _fixes(name: str) -> Iterator[str]:
    """Imports from the modules of the framework that list a public name, that define it, and that are called so."""
    listed = re.compile(rf'^    "{name}",$', re.MULTILINE)
    defined = re.compile(rf"^(?:(?:async )?def {name}\b|class {name}\b|{name}(?:: | = ))", re.MULTILINE)
    folders = {".".join(filter(None, ("core", each))): _SOURCES / each for each in _PUBLIC if name[:1] != "_"}
    for package, folder in folders.items():
        if (file := folder / "__init__.py").exists() and listed.search(file.read_text("utf-8")):
            yield f"Write `from {package} import {name}`"
    for package, folder in folders.items():
        for file in sorted(folder.glob("[a-z]*.py")):
            if defined.search(file.read_text("utf-8")):
                yield f"Write `from {package}.{file.stem} import {name}`"
    for package, folder in folders.items():
        if (folder / f"{name}.py").exists():
            yield f"Import what you need from `{package}.{name}`"
