"""Results of one run of mypy that the next may use: what a configuration file says, and the facts about statements.

Each has a file of its own in the folder of mypy's cache, and a key of everything that it follows from. Whatever cannot
be read there is worked out anew.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any, Final

from core.cache_file import write_cache

__all__ = ["Results"]

_MODULES: Final = frozenset(
    ["core.analysis.settings", "core.analysis.sources", "core.config.model", "core.sql.statement"]
)


class _Reader(pickle.Unpickler):
    """Reads values of the checks' own classes alone: a file in a cache runs nothing."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """The class of a value."""
        if module_name.startswith("pathlib"):
            return Path
        found = super().find_class(module_name, global_name) if module_name in _MODULES else None
        if isinstance(found, type) and found.__module__ == module_name:
            return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name}")


class Results:
    """The results in the folder of one cache, made by the same version of the plugin, of Python and of SQLite."""

    def __init__(self, folder: str, version: str) -> None:
        import sqlite3

        self._folder = os.path.join(folder, "core-plugin")
        self._version = f"{version} {sys.version} {sqlite3.sqlite_version} "

    def read(self, name: str, key: str) -> Any:
        """The result of that name; None where there is none with this key."""
        try:
            with open(self._file(name), "rb") as file:
                return _Reader(file).load() if file.read(64) == self._digest(key) else None
        except Exception:  # a file that was cut off may be wrong in any way
            return None

    def write(self, name: str, key: str, result: object) -> None:
        """Keep a result for the next run."""
        try:
            content = self._digest(key) + pickle.dumps(result, 5)
        except (pickle.PicklingError, TypeError, AttributeError):
            return  # nothing is kept then
        write_cache(self._file(name), content)

    def _file(self, name: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32])

    def _digest(self, key: str) -> bytes:
        return hashlib.sha256((self._version + key).encode("utf-8", "surrogateescape")).hexdigest().encode()
