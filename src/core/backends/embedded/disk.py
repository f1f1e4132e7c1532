"""The failures of the disk and of SQLite, in words that name the fix: full, damaged, read-only, held by another
process; and a file that one process at a time has locked: who consumes a queue, who has the objects of a namespace.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from core.errors import DeveloperError


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
