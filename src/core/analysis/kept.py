"""The data of each module that mypy keeps beside its cache, known without reading a source while nothing has changed.

mypy asks the plugin for it in every run, and in most runs that is all there is to do. So it is kept with a stamp of
every file and folder that it was made from: the times and size of a file, the names in a folder. Imports nothing of the
checks.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from core.cache_file import write_cache

__all__ = ["Kept", "is_foreign", "is_settled", "stamp", "stamp_of_names"]

_SETTLED: Final = 2_000_000_000
"""Nanoseconds without an edit after which a file's times tell of the next: some file systems count in steps of 2 s."""
_OWN: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
"""The folder of the framework, which is not in `site-packages` where it is installed for editing."""


def is_foreign(path: str) -> bool:
    """Return True for a module that the files of a project have no part in."""
    return "site-packages" in path or path.startswith(_OWN) or not path.endswith(".py")


class Kept:
    """The data of one project in the folder of mypy's cache. `asked` is everything beside files that it depends on."""

    def __init__(self, folder: str, asked: object) -> None:
        self._file = os.path.join(folder, "core-plugin.json")
        self._key: object = json.loads(json.dumps([asked, os.getcwd(), sys.path, sys.version, _OWN]))
        self.version: str = ""
        """The version of the plugin; "" where its own files are not those that the data was made with."""
        self.made_of: Sequence[str] = ()
        """The files and folders of the plugin that `version` tells of."""
        self.data: Mapping[str, str | None] = {}
        self._stamps: dict[str, str] = {}

    def read(self) -> bool:
        """Read what is there. Return False where that is nothing, or was made from other files."""
        try:
            with open(self._file, "rb") as file:
                found: dict[str, Any] = json.loads(file.read())
            if found["key"] != self._key or not self._are_same(found["made of"]):
                return False
            self.version, self.made_of = found["version"], [*found["made of"]]
            if not self._are_same(found["stamps"]):
                return False
            self.data = found["data"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False
        return True

    def _are_same(self, stamps: Mapping[str, str]) -> bool:
        now = {path: stamp(path) for path in stamps}
        self._stamps |= now
        return now == stamps

    def write(self, paths: Iterable[str], folders: Mapping[str, str], started: int) -> None:
        """Keep the data, which was made since `started` from the files in `paths` and the folders with these stamps.

        Nothing is kept where one of the files may have changed since then.
        """
        # One that was looked at before the data was made has the stamp it had then, which is none of a later edit.
        made_of = {path: self._stamps.get(path) or stamp(path) for path in self.made_of}
        stamps = {path: self._stamps.get(path) or stamp(path) for path in (*paths, *_packages())}
        if not all(is_settled(one, started) for one in (*made_of.values(), *stamps.values())):
            return
        kept = {
            "key": self._key,
            "version": self.version,
            "made of": made_of,
            "data": self.data,
            "stamps": {**stamps, **folders},
        }
        write_cache(self._file, json.dumps(kept).encode())


def stamp(path: str) -> str:
    """A text that changes with a file, or with the names in a folder; "" where there is neither."""
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            return stamp_of_names(os.listdir(path))
    except OSError:
        return ""
    return f"{found.st_mtime_ns} {max(found.st_mtime_ns, found.st_ctime_ns)} {found.st_size} {found.st_ino}"


def is_settled(stamped: str, started: int) -> bool:
    """Return True if a file with this stamp has another one after its next edit, which is later than `started`."""
    return " " not in stamped or int(stamped.split()[1]) <= started - _SETTLED


def stamp_of_names(names: Iterable[str]) -> str:
    """The stamp of a folder with these names in it, but for hidden ones that are not configuration."""
    listed = [name for name in names if name[0] != "." or name.startswith((".env", ".dev.vars"))]
    text = "\0".join(sorted(name for name in listed if name != "__pycache__"))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _packages() -> list[str]:
    """The folders that packages are installed in, and their entry points."""
    found: list[str] = []
    for folder in dict.fromkeys(sys.path):
        found.append(folder or ".")
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        found += [
            os.path.join(folder, name, "entry_points.txt")
            for name in names
            if name.endswith((".dist-info", ".egg-info"))
        ]
    return found
