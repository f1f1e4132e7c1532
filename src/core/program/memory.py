"""The findings of each module of a program, kept for the next look and, in a cache, for the next run.

A module is looked at again when its text changes, or that of a module it imports, directly or not; when what other
modules register of it changes; or when something does that all of them depend on. Everything else is worked out anew by
each look, which is a small part of it.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from core.program.findings import Finding, Unread, syntax_error
from core.program.module_rules import Looked, look

if TYPE_CHECKING:
    from core.program.cache import Cache
    from core.program.databases import Databases
    from core.program.modules import Module, Read

_NAME: Final = "modules"


class Memory:
    """The modules and findings of the last look. `looked` counts the modules that rules have looked at."""

    def __init__(self, cache: Cache | None = None) -> None:
        self.looked: int = 0
        self._cache = cache
        self._modules: dict[Path, tuple[str, Module | Finding]] = {}
        self._found: dict[str, tuple[str, Looked]] = {}
        kept: dict[str, Any] = (cache.read(_NAME, []) if cache is not None else None) or {}
        for path, (key, findings, statements, unread) in kept.items():
            found, left = [Finding(*one) for one in findings], [Unread(*one) for one in unread]
            self._found[path] = key, Looked(found, statements, left)

    def module(self, path: Path, read: Read) -> Module | Finding:
        """Return the module in a file, or the mistake of its text, read again where the text has changed."""
        try:
            text = path.read_bytes()
        except OSError as error:
            return syntax_error(str(path), 1, str(error))
        digest = hashlib.sha256(text).hexdigest()
        known = self._modules.get(path)
        if known is None or known[0] != digest:
            known = self._modules[path] = (digest, read(path, text))
        return known[1]

    def look(self, receivers: Databases, module: Module, whole: str) -> Looked:
        """Return the findings of a module: those of the last look, or new ones where something changed."""
        reachable = sorted(receivers.modules.reachable([module]), key=lambda one: one.path)
        texts = (part for one in reachable for part in (str(one.path), one.name, self._modules[one.path][0]))
        parts = [whole, receivers.bodies.facts(module), *texts]
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
        known = self._found.get(str(module.path))
        if known is None or known[0] != key:
            self.looked += 1
            known = self._found[str(module.path)] = (key, look(receivers, module))
        return known[1]

    def keep(self) -> None:
        """Write the findings into the cache, for the next run."""
        if self._cache is not None and self.looked:
            found = {
                path: (key, [attrs.astuple(finding) for finding in one.findings], one.statements, one.unread)
                for path, (key, one) in self._found.items()
                if os.path.exists(path)
            }
            self._cache.write(_NAME, [], found)


@contextmanager
def without_collecting() -> Generator[None]:
    """No looking for garbage inside: what a look reads stays, and that would take up to a fifth of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # What was read counts as old: the next look at what is young would go through all of it. Where something is
        # frozen that would not stay so, and each look at what is old would go through all of that.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()
