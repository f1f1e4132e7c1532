"""The memory between two looks at one program, for `core check --watch`: modules that were read, and their findings.

A module is looked at again when its text changes, or that of a module it imports, directly or not; when what other
modules register of it changes; or when something does that all of them depend on. Everything else is worked out anew by
each look, which is a small part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.analysis.registrations import path_of

if TYPE_CHECKING:
    from core.analysis.module_rules import Looked, ModuleRules
    from core.analysis.modules import Module, Problems
    from core.analysis.syntax import Registered

__all__ = ["Memory"]


class Memory:
    """The modules and findings of the last look. `looked` counts the modules that rules have looked at."""

    def __init__(self) -> None:
        self.looked: int = 0
        self._modules: dict[Path, tuple[Hashable, Module | None, Problems]] = {}
        self._found: dict[Path, tuple[Hashable, Looked]] = {}

    def module(
        self, path: Path, read: Callable[[Path], tuple[Module | None, Problems]]
    ) -> tuple[Module | None, Problems]:
        """Return the module in a file and the mistakes of its text, read again where the file has changed."""
        try:
            stat = path.stat()
        except OSError:
            return read(path)
        # Both times: a tool that copies files may keep the time of their content, as `cp -p` does.
        state = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
        known = self._modules.get(path)
        if known is None or known[0] != state:
            known = self._modules[path] = (state, *read(path))
        return known[1], known[2]

    def look(self, rules: ModuleRules, module: Module, registered: Sequence[Registered], whole: str) -> Looked:
        """Return the findings of a module: those of the last look, or new ones where something changed."""
        key = (whole, *_depends_on(rules, module, registered))
        known = self._found.get(module.path)
        if known is None or known[0] != key:
            self.looked += 1
            known = self._found[module.path] = (key, rules.look(module, registered))
        return known[1]


def _depends_on(rules: ModuleRules, module: Module, registered: Sequence[Registered]) -> tuple[Hashable, ...]:
    """The texts that the findings of a module come from, and the facts of other modules about its routers and
    handlers.
    """
    trees = rules.trees
    # Modules and classes themselves, not their names: one that was read again is another one.
    texts = tuple(trees.modules.reachable([module]))
    envs = tuple(trees.env_of(registration.on) for registration in registered)
    routes: list[Hashable] = []
    for function in _functions(module):
        for route in trees.routes.get(function, ()):
            if route.call.scope.module is not module:
                routes.append((function.lineno, path_of(trees, route), route.on.app, trees.env_of(route.on)))
    return texts, envs, tuple(routes)


def _functions(module: Module) -> Sequence[ast.FunctionDef | ast.AsyncFunctionDef]:
    todo = [module.scope]
    found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    while todo:
        scope = todo.pop()
        todo += scope.children.values()
        if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(scope.node)
    return found
