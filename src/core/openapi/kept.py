"""A result that is kept with the state of everything it was made from, and taken up while all of that is as it was.

A run imports the application and asks mypy, and most runs find the same as the one before. So a run notes the files it
reads: every module that is imported, every file that mypy follows, every file and folder that is opened on the way, the
environment and the interpreter. Files of the project are compared by their content, all others by time and size, as
mypy does; a folder by the names in it, so that a module that appears in front of another one is seen.

A result is not kept where an import starts a process, connects or opens a database, which no file tells, or where a
file changed while it was read. Only the standard library is imported here: taking a result up has to cost next to
nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from core.cache_file import write_cache

__all__ = ["Kept", "Watch"]

_OWN_STATE: Final = frozenset(
    ["__pycache__", ".core", ".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"]
)
"""Names in a folder that tools make, whatever the program is."""
_OF_A_SHELL: Final = frozenset(["_", "OLDPWD", "SHLVL", "COLUMNS", "LINES"])
"""Variables that change from one command to the next."""
_UNREPEATABLE: Final = frozenset(
    [
        "subprocess.Popen",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
        "socket.connect",
        "socket.getaddrinfo",
        "sqlite3.connect",
    ]
)


class Watch:
    """Notes the files read from here on.

    A process has one at a time, since an audit hook cannot be taken away again.
    """

    def __init__(self, root: Path) -> None:
        self.root: str = str(root)
        self.start: int = time.time_ns()
        self.opened: set[str] = set()
        self.listed: set[str] = set()
        self.is_repeatable: bool = True
        self._is_importing: bool = False

    def event(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Take in an event of the interpreter (PEP 578)."""
        if name == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes) and isinstance(flags, int) and flags & os.O_ACCMODE != os.O_WRONLY:
                self.opened.add(os.path.abspath(os.fsdecode(path)))
        elif name in ("os.listdir", "os.scandir"):
            path = arguments[0] if arguments[0] is not None else "."
            if isinstance(path, str | bytes):
                self.listed.add(os.path.abspath(os.fsdecode(path)))
        elif self._is_importing and name in _UNREPEATABLE:
            self.is_repeatable = False

    @contextmanager
    def importing(self) -> Generator[None]:
        """Mark the part of a run in which the application's own code runs."""
        self._is_importing = True
        try:
            yield
        finally:
            self._is_importing = False


_watch: Watch | None = None


def _hook(name: str, arguments: tuple[Any, ...]) -> None:
    if _watch is not None:
        _watch.event(name, arguments)


class Kept:
    """One result of a project, by everything that decides it beside files.

    `written` are files that the run itself writes.
    """

    def __init__(self, root: Path, name: str, key: Mapping[str, str], written: Iterable[Path] = ()) -> None:
        self.root: Path = root
        self._written: frozenset[str] = frozenset(os.path.abspath(path) for path in written)
        self._key: str = _digest([*map(repr, sorted(key.items())), *_interpreter()])
        self._file: Path = root / ".core" / name / f"{self._key[:16]}.json"

    @contextmanager
    def watching(self) -> Generator[Watch]:
        """Note the files that the block reads."""
        global _watch
        if _watch is None:
            sys.addaudithook(_hook)
        _watch = watch = Watch(self.root)
        try:
            yield watch
        finally:
            _watch = Watch(self.root)  # whose notes nobody reads

    def take_up(self) -> Any:
        """Return the result, None where there is none or something that it was made from has changed."""
        try:
            record: dict[str, Any] = json.loads(self._file.read_bytes())
            if record["key"] != self._key:
                return None
            for path, known in record["files"].items():
                if self._file_state(path, known) != known:
                    return None
            for path, (changed, names) in record["folders"].items():
                if os.stat(path).st_mtime_ns != changed and self._names(path) != names:
                    return None
            return record["value"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, value: Any, watch: Watch, *, followed: Iterable[str], folders: Iterable[str], without: str) -> None:
        """Keep a result of JSON. `followed` are the files that it was made from, `folders` those that modules were
        looked for in, and files below `without` are state of tools.
        """
        if not watch.is_repeatable:
            return
        needed = {*map(os.path.abspath, followed), *_imported()}
        opened = {path for path in watch.opened if not path.startswith((without + os.sep, "/dev/"))}
        looked = {*map(os.path.abspath, folders), *watch.listed, *_looked_through(needed, str(self.root))}
        files: dict[str, Any] = {}
        try:
            for path in sorted(needed | opened - self._written):
                if "__pycache__" in path:
                    continue
                if not os.path.isdir(path):
                    files[path] = state = self._file_state(path, None)
                    if (state is None and path in needed) or (state is not None and state[0] >= watch.start):
                        return
            listed: dict[str, tuple[int, str]] = {}
            for path in sorted(looked):
                if os.path.isdir(path) and not path.startswith(without) and "__pycache__" not in path:
                    changed = os.stat(path).st_mtime_ns
                    if changed >= watch.start and self._has_news(path, watch.start):
                        return
                    listed[path] = (changed, self._names(path))
            record = {"key": self._key, "files": files, "folders": listed, "value": value}
        except OSError:
            return  # one of the files is gone, or cannot be read
        write_cache(self._file.with_name(".gitignore"), b"*\n")
        write_cache(self._file, json.dumps(record).encode())

    def _file_state(self, path: str, known: Any) -> list[Any] | None:
        """Return the time, size and, for a file of the project, the content. None where there is no such file."""
        try:
            stat = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not self._is_own(path):
            return [stat.st_mtime_ns, stat.st_size]
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        # The time of a file that was only touched says nothing.
        if known is not None and known[2:] == [content]:
            return list(known)
        return [stat.st_mtime_ns, stat.st_size, content]

    def _is_own(self, path: str) -> bool:
        return path.startswith(str(self.root) + os.sep) and "site-packages" not in path

    def _relevant(self, folder: str) -> Iterator[os.DirEntry[str]]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name not in _OWN_STATE and entry.path not in self._written:
                    yield entry

    def _names(self, folder: str) -> str:
        return _digest(sorted(entry.name for entry in self._relevant(folder)))

    def _has_news(self, folder: str, start: int) -> bool:
        """Return True if something in a folder was made since the start, and a run may have missed it."""
        for entry in self._relevant(folder):
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_ctime_ns >= start:
                    return True
        return False


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _interpreter() -> list[str]:
    """Everything that decides how modules are found and run, and the environment."""
    environment = sorted(f"{name}={value}" for name, value in os.environ.items() if name not in _OF_A_SHELL)
    return [sys.version, sys.executable, sys.prefix, os.getcwd(), repr(sys.flags), *sys.path, *environment]


def _imported() -> set[str]:
    """The files of all modules there are."""
    files: set[str] = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            files.add(os.path.abspath(file))
    return files


def _looked_through(files: Iterable[str], root: str) -> set[str]:
    """The folders that modules were looked for in: those of all files, up to the project's, and the import path."""
    found = {os.path.abspath(entry) for entry in sys.path}
    for module in list(sys.modules.values()):
        with suppress(Exception):  # a module may be an object of any kind
            found.update(os.path.abspath(entry) for entry in module.__path__)
    for file in files:
        folder = os.path.dirname(file)
        while folder not in found:
            found.add(folder)
            if not folder.startswith(root + os.sep):
                break
            folder = os.path.dirname(folder)
    return found
