"""Imports of names and modules that do not exist, where importing the program does not run them (`core-import`).

Those inside functions and under `if TYPE_CHECKING` are meant: a start tells of all others. Only the program's own
modules and those of the framework are judged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from core.explain.misuse import as_sentence, fix_for_name
from core.explain.names import IN_WORKERD, MODULES, WORKERD
from core.program.findings import Finding
from core.program.modules import Modules, Scope
from core.program.syntax import finding_at


def absent_names(modules: Modules, scope: Scope) -> Iterator[Finding]:
    """Every import of a scope that cannot be done."""
    for definition in (one for each in scope.names.values() for one in each if one.alias is not None):
        node = definition.node
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        taken = [definition.alias or ("", "")]
        if isinstance(node, ast.Import):
            taken = [(alias.name, "") for alias in node.names]
        for base, name in taken:
            message = _absent(modules, base, name) if _is_for_later(node, scope) else None
            if message is not None:
                typed = "import-not-found" if message == no_module(base) else "attr-defined"
                yield finding_at(node, scope, "core-import", message, typed)


def no_name(module: str, name: str, names: list[str]) -> str:
    """The message about a name that a module does not have."""
    fix = fix_for_name(module, name, names)
    return f"{module} has no {name}. {fix if fix.startswith('In core') else fix.replace('`', '')}"  # findings quote code alone


def no_module(name: str) -> str:
    """The message about a module that is not there."""
    top, dot, _ = name.partition(".")
    way = "Correct the name" if top == "core" and dot else "Install the package where this runs, or correct the name"
    way = IN_WORKERD if top in WORKERD else way
    if top == "core" and (last := name.removeprefix("core.")) in MODULES:
        way = as_sentence(MODULES[last]).rstrip(".")
    return f"there is no module {name}. {way}"


def _absent(modules: Modules, base: str, name: str) -> str | None:
    module = modules.find(base)
    if module is not None:
        known = module.scope
        if name in ("", *known.names) or name.startswith("__") or "__getattr__" in known.names or known.stars:
            return None
        return None if modules.is_module(f"{base}.{name}") else no_name(base, name, [*known.names])
    top = base.partition(".")[0]
    if top == "core":
        if not _is_there(base):
            return no_module(base)
        try:
            framework = import_module(base)
        except ImportError:  # MissingExtraError, where what it needs is not installed: its names are not known
            return None
        if not name or hasattr(framework, name) or _is_there(f"{base}.{name}"):
            return None
        return no_name(base, name, [*getattr(framework, "__all__", vars(framework))])
    return no_module(base) if "." in base and modules.find(top) is not None and not modules.is_module(base) else None


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _is_for_later(node: ast.AST, scope: Scope) -> bool:
    """Return True for an import inside a function or an `if`, and not in a `try` that expects it to fail."""
    outside = [*scope.nodes.above(node)]
    later = not isinstance(scope.node, ast.Module) or any(isinstance(one, ast.If) for one in outside)
    return later and not any(isinstance(one, ast.Try | ast.With) for one in outside)
