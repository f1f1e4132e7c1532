"""Everything that is kept between runs: one folder beside the configuration, one key, one way to read and write it.

A result is JSON in `.core/cache`, under a name. Its key is everything that decides it: this version of the framework,
of Python and of SQLite, and whatever its maker adds, which are mostly stamps of the files that it was made from. A
stamp is of a file's content, not of its time, so that an edit within the same tick is seen, and a checkout that only
touches files is not. Whatever cannot be read, or has another key, is worked out anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_CORE: Final = Path(__file__).parent.parent
_FOLDERS: Final = ("config", "mypy_plugin", "openapi", "program", "routing", "sql", "statements")
_ENDINGS: Final = (".py", ".sql", ".toml", ".json", ".jsonc", ".ini", ".cfg")
_SECRETS: Final = (".env", ".dev.vars")
_FILES: Final = ("middleware/declared.py", "bindings/kinds.py")


class Cache:
    """The results that are kept for the project in a folder, which is that of its configuration file."""

    def __init__(self, project: Path) -> None:
        self.folder: Path = project / ".core" / "cache"

    def read(self, name: str, key: object) -> Any:
        """Return the value that was last written under a name.

        None where there is none, where it has another key, or where one of its files has another content now.
        """
        try:
            stored = json.loads(self._file(name).read_bytes())
            is_same = stored["key"] == _whole(key) and all(
                stamp(path) == known for path, known in stored["files"].items()
            )
            return stored["value"] if is_same else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, name: str, key: object, value: object, *, files: Iterable[str] = (), since: int = 0) -> None:
        """Keep a value of JSON under a name, in place of the one before. Raises nothing where it cannot be written.

        `files` are the files and folders that it was made from, which were read after the time `since`, in nanoseconds:
        where one of the files was written later, nothing is kept.
        """
        made_of = stamps(files)
        if since and any(written(path) >= since for path in made_of if not os.path.isdir(path)):
            return
        if not self.folder.is_dir():
            write_cache(self.folder / ".gitignore", b"*\n")
        write_cache(self._file(name), json.dumps({"key": _whole(key), "files": made_of, "value": value}).encode())

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def write_cache(file: str | Path, content: bytes) -> None:
    """Write a file, and the folder that it is in, so that a reader finds the old content or all of the new.

    Raises nothing: a cache that cannot be written is empty in the next run.
    """
    beside = f"{os.fspath(file)}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(beside), exist_ok=True)
        with open(beside, "wb") as output:
            output.write(content)
        os.replace(beside, file)
    except OSError:
        pass


def stamp(path: str) -> str:
    """A string that changes with the content of a file, or with the names in a folder; "" where there is neither.

    Of the names in a folder count those of folders, of sources and of configuration.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return _digest(file.read())
    except IsADirectoryError:
        names, folders = _counted(path)
        return _digest("\0".join([*names, "", *folders]).encode("utf-8", "surrogateescape"))
    except OSError:
        return ""


def _counted(folder: str) -> tuple[list[str], list[str]]:
    """The names in a folder that count: those of files, and those of folders."""
    names = sorted(os.listdir(folder))
    files = [name for name in names if name.endswith(_ENDINGS) or name.startswith(_SECRETS)]
    return files, [name for name in names if "." not in name and name != "__pycache__"]


def stamps(paths: Iterable[str]) -> Mapping[str, str]:
    """The stamp of each file and folder, by its path."""
    return {path: stamp(path) for path in paths}


@lru_cache(1)
def own_version() -> str:
    """A digest of the framework's own files that findings and descriptions depend on."""
    digest = hashlib.sha256()
    for path in sorted(file for folder in _FOLDERS for file in (_CORE / folder).rglob("*.py")):
        digest.update(path.read_bytes())
    for name in _FILES:
        digest.update((_CORE / name).read_bytes())
    return digest.hexdigest()[:16]


def python_of_now() -> Sequence[object]:
    """The interpreter, where modules are looked for, and the packages there with their versions: what decides what
    modules of others are.
    """
    return [sys.executable, os.getcwd(), [(path, _installed(path)) for path in dict.fromkeys(sys.path)]]


def _installed(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return []


def written(path: str) -> int:
    """The time at which a file was last written or put there, or the last such time of the files and packages that
    count in a folder; 0 where there is none.
    """
    try:
        if os.path.isdir(path):
            files, folders = _counted(path)
            inside = [*files, *(os.path.join(folder, "__init__.py") for folder in folders)]
            return max((written(os.path.join(path, name)) for name in inside), default=0)
        state = os.stat(path)
    except OSError:
        return 0
    return max(state.st_mtime_ns, state.st_ctime_ns)


def _whole(key: object) -> str:
    import sqlite3

    parts = [own_version(), sys.version, sqlite3.sqlite_version, key]
    return _digest(json.dumps(parts, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
