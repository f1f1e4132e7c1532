"""The disk below a store: its failures and those of SQLite, in words that name the fix (it is full, damaged, read-only,
held by another process), a file that one process at a time has locked, and large values as files beside a database.

An acknowledged write survives, and leftovers of a killed process are deleted: such a file is written whole, down to the
disk, before the row that names it. This file knows no binding.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from core.errors import DeveloperError

_STALE_TEMPORARY: Final = 3600.0


class StoreError(DeveloperError):
    """A file of the store cannot be read or written: the disk is full, the file damaged, not a database, read-only.

    Opening a store raises it as it is; a call of a binding raises that binding's own error, with this text in it. The
    reason comes before the path, which may be long: `BindingError.retryable` looks at where a text begins.
    `reason` is the message of SQLite or the system, `code` SQLite's name for it.
    """

    def __init__(self, text: str, reason: str, code: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.code = code


class StoreBusyError(StoreError):
    """Another process has held the database for longer than the busy timeout."""

    def __init__(self, location: str, seconds: float) -> None:
        super().__init__(
            f"Another process, or another connection of this one, has held the database for more than {seconds:g} "
            f"seconds: {location}. Wait for its transaction to finish, or end it, and try again",
            "database is locked",
            "SQLITE_BUSY",
        )


_EMPTY_AGAIN: Final = (
    "Restore the file from a copy, or end every process that has it open and delete it, with the -wal and -shm beside "
    "it, to begin with an empty one"
)
_WRITABLE: Final = "See that its directory is there and that this user may write both"
_WAYS_OUT: Final = {
    "SQLITE_FULL": "Free some space on its disk and try again: everything stored before is untouched",
    "SQLITE_CORRUPT": _EMPTY_AGAIN,
    "SQLITE_NOTADB": _EMPTY_AGAIN,
    "SQLITE_READONLY": _WRITABLE,
    "SQLITE_PERM": _WRITABLE,
    "SQLITE_CANTOPEN": _WRITABLE,
    "SQLITE_IOERR": "See that its disk is there and in order, and try again",
}
_NAMES: Final[Mapping[int, str]] = {getattr(sqlite3, name): name for name in _WAYS_OUT}
_SYSTEM: Final[Mapping[int | None, int]] = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), sqlite3.SQLITE_FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM), sqlite3.SQLITE_PERM),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST), sqlite3.SQLITE_CANTOPEN),
    errno.EROFS: sqlite3.SQLITE_READONLY,
}
# A virtual table's own error about a statement: the statement's mistake, not the file's.
_CORRUPT_VIRTUAL_TABLE: Final = 267


def store_error(location: str | os.PathLike[str], error: OSError | sqlite3.Error) -> StoreError | None:
    """The StoreError for an error of SQLite or the system; None where the statement is at fault, or another process."""
    if isinstance(error, OSError):
        code, reason = _SYSTEM.get(error.errno, sqlite3.SQLITE_IOERR), error.strerror or str(error)
    else:
        # Errors of the sqlite3 module itself have no code of SQLite's.
        full: int = getattr(error, "sqlite_errorcode", 0)
        code, reason = full & 0xFF if full != _CORRUPT_VIRTUAL_TABLE else 0, str(error)
    name = _NAMES.get(code)
    return None if name is None else StoreError(f"{reason}: {os.fspath(location)}. {_WAYS_OUT[name]}", reason, name)


@contextmanager
def on_disk(location: str | os.PathLike[str]) -> Generator[None]:
    """Raise StoreError for errors of the files at `location` meanwhile."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        failure = store_error(location, error)
        if failure is None:
            raise
        raise failure from error


def lock_file(path: str) -> int | None:
    """Lock a file for this process, or return None when another one has it. The system frees it when we end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


class Files:
    """Large values as files beside their database, each written whole or not at all.

    A row names its file, and only the row makes it real: write the file, `publish` it inside the transaction that
    stores its name, and `remove` the file of the row that was replaced after that transaction. What a killed process
    leaves behind is found by `sweep`.
    """

    __slots__ = ("_doomed", "_held", "folder")

    def __init__(self, folder: Path) -> None:
        self.folder: Path = folder
        # Files that somebody in this process may still read, and those of them that are to be removed.
        self._held: Counter[str] = Counter()
        self._doomed: set[str] = set()

    def stage(self, chunks: Iterable[bytes]) -> Path:
        """Write a new file, down to the disk, under a temporary name. Who does not publish it deletes it.

        Blocks: call it in a thread when it is large.

        Raises StoreError where it cannot be written.
        """
        with on_disk(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            try:
                with open(descriptor, "wb") as file:
                    file.writelines(chunks)
                    file.flush()
                    os.fsync(file.fileno())
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        return Path(name)

    def publish(self, staged: Path) -> str:
        """Give a staged file its final name and return it, for its row. Call it inside the row's transaction."""
        name = staged.stem
        staged.rename(self.folder / name)
        if os.name == "posix":
            # The row must not outlive the name of its file when the power fails.
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return name

    def read(self, name: str) -> bytes:
        """Return a whole file.

        Raises FileNotFoundError where its row has been replaced meanwhile: read the row again.
        """
        path = self.folder / name
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise store_error(path, error) or error from error

    def hold(self, names: Sequence[str], reader: object) -> None:
        """Keep files for as long as `reader` lives, also those that are removed meanwhile."""
        self._held.update(names)
        weakref.finalize(reader, self._release, names).atexit = False

    def _release(self, names: Sequence[str]) -> None:
        self._held.subtract(names)
        free = [name for name in names if self._held[name] <= 0]
        for name in free:
            del self._held[name]
        self.remove(self._doomed.intersection(free))
        self._doomed.difference_update(free)

    def remove(self, names: Iterable[str]) -> None:
        """Delete files that no row names any more, those that are held once they are not. Missing ones are fine."""
        for name in names:
            if self._held[name] > 0:
                self._doomed.add(name)
            else:
                (self.folder / name).unlink(missing_ok=True)

    def sweep(self, rows: Iterable[tuple[str]]) -> None:
        """Delete the files that no row names. Call it inside a writing transaction.

        Inside one, no other process can be between `publish` and its commit. A temporary file is another process's
        work until it is an hour old.
        """
        if not self.folder.is_dir():
            return
        keep = {name for (name,) in rows}
        oldest = time.time() - _STALE_TEMPORARY
        for path in self.folder.iterdir():
            if path.name in keep:
                continue
            if path.suffix == ".tmp":
                try:
                    if path.stat().st_mtime > oldest:
                        continue
                except FileNotFoundError:
                    continue
            path.unlink(missing_ok=True)
