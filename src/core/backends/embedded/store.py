"""The storage of embedded bindings: SQLite databases and files in one directory, or memory.

A `Store` gives one `Database` for each binding of a kind, and one `Files` beside it for what is too large
for a row. Decided here: what an acknowledged write survives, how two processes share a directory, and
how long one waits for the other. This file knows no binding.

Every statement runs on the event loop's own thread: SQLite answers in microseconds, a hop to another thread
costs more than that. Only waiting for another process, and reading and writing large files, leave the loop free.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from core.context import Clock, system_clock
from core.errors import DeveloperError

__all__ = [
    "Database",
    "Files",
    "Store",
    "StoreBusyError",
    "StoreError",
    "is_busy",
    "on_disk",
    "run_script",
    "store_error",
]

T = TypeVar("T")

BUSY_TIMEOUT: Final = 5.0
"""Seconds that a write waits for another process before it gives up."""

_CACHED_STATEMENTS: Final = 512
_STALE_TEMPORARY: Final = 3600.0


class StoreError(DeveloperError):
    """A file of the store cannot be read or written: the disk is full, the file damaged, not a database, read-only.

    Opening a store raises it as it is; a call of a binding raises that binding's own error, with this text in it.
    `reason` is what SQLite or the system said, `code` SQLite's name for it.
    """

    def __init__(self, text: str, reason: str, code: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.code = code


class StoreBusyError(StoreError):
    """Another process has held the database for longer than the busy timeout."""

    def __init__(self, location: str, seconds: float) -> None:
        super().__init__(
            f"{location} has been held by another process for more than {seconds:g} seconds. "
            "Wait for that process to finish its transaction, or end it, and try again",
            "database is locked",
            "SQLITE_BUSY",
        )


_EMPTY_AGAIN: Final = (
    "Restore the file from a copy, or end every process that has it open and delete it, with the -wal and -shm beside "
    "it, to begin with an empty one"
)
_WRITABLE: Final = "See that its directory is there and that this user may write both"
_WAYS_OUT: Final[Mapping[int, tuple[str, str]]] = {
    sqlite3.SQLITE_FULL: (
        "SQLITE_FULL",
        "Free some space on its disk and try again: what was stored before is untouched",
    ),
    sqlite3.SQLITE_CORRUPT: ("SQLITE_CORRUPT", _EMPTY_AGAIN),
    sqlite3.SQLITE_NOTADB: ("SQLITE_NOTADB", _EMPTY_AGAIN),
    sqlite3.SQLITE_READONLY: ("SQLITE_READONLY", _WRITABLE),
    sqlite3.SQLITE_PERM: ("SQLITE_PERM", _WRITABLE),
    sqlite3.SQLITE_CANTOPEN: ("SQLITE_CANTOPEN", _WRITABLE),
    sqlite3.SQLITE_IOERR: ("SQLITE_IOERR", "See that its disk is there and in order, and try again"),
}
_SYSTEM: Final[Mapping[int | None, int]] = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EACCES: sqlite3.SQLITE_PERM,
    errno.EPERM: sqlite3.SQLITE_PERM,
    errno.EROFS: sqlite3.SQLITE_READONLY,
    errno.ENOENT: sqlite3.SQLITE_CANTOPEN,
    errno.ENOTDIR: sqlite3.SQLITE_CANTOPEN,
    errno.EISDIR: sqlite3.SQLITE_CANTOPEN,
    errno.EEXIST: sqlite3.SQLITE_CANTOPEN,
}
# A virtual table's own complaint of what it was told to do: the statement's mistake, not the file's.
_CORRUPT_VIRTUAL_TABLE: Final = 267


def store_error(location: str | os.PathLike[str], error: BaseException) -> StoreError | None:
    """The StoreError for what SQLite or the system raised; None where the statement is at fault, or another process."""
    match error:
        case OSError():
            code, reason = _SYSTEM.get(error.errno, sqlite3.SQLITE_IOERR), error.strerror or str(error)
        case sqlite3.Error():
            # Errors of the sqlite3 module itself have no code of SQLite's.
            full: int = getattr(error, "sqlite_errorcode", 0)
            code, reason = full & 0xFF if full != _CORRUPT_VIRTUAL_TABLE else 0, str(error)
        case _:
            return None
    way = _WAYS_OUT.get(code)
    return None if way is None else StoreError(f"{os.fspath(location)}: {reason}. {way[1]}", reason, way[0])


@contextmanager
def on_disk(location: str | os.PathLike[str]) -> Generator[None]:
    """Raise StoreError for what goes wrong with the files at `location` meanwhile."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        failure = store_error(location, error)
        if failure is None:
            raise
        raise failure from error


class Database:
    """One SQLite database: a file that other processes may have open too, or memory.

    Writes are in WAL mode with `synchronous=NORMAL`: what was acknowledged survives the end of the process, however
    it ends, and a power failure leaves the database whole, though it may lose its last writes.
    """

    __slots__ = ("connection", "engine", "path", "timeout")

    def __init__(self, path: Path | None, *, timeout: float = BUSY_TIMEOUT) -> None:
        self.path: Path | None = path
        self.timeout: float = timeout
        # What a kind of binding keeps with its connection, whichever object of the binding asks.
        self.engine: Any = None
        # autocommit: transactions are begun here, by name, and never by the sqlite3 module.
        with on_disk(self.location):
            self.connection: sqlite3.Connection = sqlite3.connect(
                ":memory:" if path is None else str(path),
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_CACHED_STATEMENTS,
            )
        if path is not None:
            self.insist(self._set_up)

    @property
    def location(self) -> str:
        """The name of the store in an error."""
        return ":memory:" if self.path is None else str(self.path)

    def _set_up(self) -> None:
        # Once the file is in WAL mode it stays so; the change itself needs the file alone.
        if self.connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self.connection.execute("PRAGMA journal_mode=WAL").fetchone()
        self.connection.execute("PRAGMA synchronous=NORMAL")

    @contextmanager
    def transaction(self, *, write: bool = True) -> Generator[sqlite3.Connection]:
        """One transaction: committed at the end, rolled back by an exception. Never await inside it.

        A writing one takes its lock at once, so that it fails at its beginning or not at all.
        """
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself after some errors (a full disk, RAISE(ROLLBACK)).
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def insist(self, action: Callable[[], T]) -> T:
        """Return `action()`, tried again while another process holds the database. For set-up: it blocks the loop.

        Raises StoreBusyError after the timeout, and StoreError for a file that cannot be read or written. `action` is
        one statement, or one transaction.
        """
        deadline = time.monotonic() + self.timeout
        for pause in _pauses():
            try:
                return action()
            except (sqlite3.Error, OSError) as error:
                self._give_up(error, deadline)
            time.sleep(pause)
        raise AssertionError("the pauses never end")

    async def patiently(self, action: Callable[[], T]) -> T:
        """Return `action()`, tried again while another process holds the database. The loop runs on meanwhile.

        Raises StoreBusyError after the timeout, and StoreError for a file that cannot be read or written. `action` is
        one statement, or one transaction: another task may run between two tries, none during one.
        """
        try:
            return action()
        except (sqlite3.Error, OSError) as error:
            deadline = time.monotonic() + self.timeout
            self._give_up(error, deadline)
        for pause in _pauses():
            # The machine's own time: another process does not follow a test's clock.
            await asyncio.sleep(pause)
            try:
                return action()
            except (sqlite3.Error, OSError) as error:
                self._give_up(error, deadline)
        raise AssertionError("the pauses never end")

    def _give_up(self, error: sqlite3.Error | OSError, deadline: float) -> None:
        """Return if it is worth another try; raise otherwise."""
        if isinstance(error, OSError) or not is_busy(error):
            failure = store_error(self.location, error)
            if failure is None:
                raise error
            raise failure from error
        if time.monotonic() >= deadline:
            raise StoreBusyError(self.location, self.timeout) from error

    def close(self) -> None:
        """Close it. A second call does nothing."""
        self.connection.close()

    def __del__(self) -> None:
        # A fake that a test forgets is closed with it; Python 3.13 warns of connections that are not.
        if hasattr(self, "connection"):
            self.connection.close()


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run the statements of a script in the transaction there is; sqlite3's `executescript` would commit it."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        # A trigger has semicolons inside.
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def is_busy(error: sqlite3.Error) -> bool:
    """Return True if SQLite failed only because somebody else has the database."""
    # Errors of the sqlite3 module itself have no code of SQLite's.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _pauses() -> Iterator[float]:
    pause = 0.001
    while True:
        yield pause
        pause = min(pause * 2, 0.05)


class Files:
    """Large values as files beside their database, each written whole or not at all.

    A row names its file, and only the row makes it real: write the file, `publish` it inside the transaction that
    stores its name, and `remove` the file of the row that was replaced after that transaction. What a killed process
    leaves behind is found by `sweep`.
    """

    __slots__ = ("folder",)

    def __init__(self, folder: Path) -> None:
        self.folder: Path = folder

    def stage(self, chunks: Iterable[bytes]) -> Path:
        """Write a new file, down to the disk, under a temporary name. Blocks: call it in a thread when it is large.

        Raises StoreError where it cannot be written.
        """
        with on_disk(self.folder):
            return self._stage(chunks)

    def _stage(self, chunks: Iterable[bytes]) -> Path:
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

    def discard(self, staged: Path) -> None:
        """Delete a staged file that was not published. One that was published is left alone."""
        staged.unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """Return a whole file. Raises FileNotFoundError where its row has been replaced meanwhile: read the row again."""
        path = self.folder / name
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise store_error(path, error) or error from error

    def path(self, name: str) -> Path:
        """Return where a file is, to read a part of it."""
        return self.folder / name

    def remove(self, names: Iterable[str]) -> None:
        """Delete files that no row names any more. Missing ones are fine."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def sweep(self, named: Callable[[], Iterable[str]]) -> int:
        """Delete what no row names, and return how many files that were. Call it inside a writing transaction.

        Inside one, no other process can be between `publish` and its commit. A temporary file is another process's
        work until it is an hour old.
        """
        if not self.folder.is_dir():
            return 0
        keep = set(named())
        removed = 0
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
            removed += 1
        return removed


class Store:
    """The state of all embedded bindings of an application: `Store(path)` in a directory, `Store()` in memory.

    One process may open it once, another process at the same time; a thread with an event loop of its own opens its
    own. Everything that depends on time asks `clock`. `busy_timeout`: seconds that a write waits for another process.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        clock: Clock = system_clock,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        self.path: Path | None = None if path is None else Path(path)
        self.clock = clock
        self.busy_timeout = busy_timeout
        self._databases: dict[tuple[str, str], Database] = {}

    def database(self, kind: str, name: str) -> Database:
        """Return the database of one binding: `<path>/<kind>/<name>.sqlite`. The same pair gives the same one."""
        key = (kind, name)
        database = self._databases.get(key)
        if database is None:
            file = self.file(kind, name)
            if file is not None:
                with on_disk(file.parent):
                    file.parent.mkdir(parents=True, exist_ok=True)
            database = self._databases[key] = Database(file, timeout=self.busy_timeout)
        return database

    def file(self, kind: str, name: str) -> Path | None:
        """Return where the database of one binding is, whether it is there yet or not; None in memory."""
        return None if self.path is None else self.path / kind / f"{_file_name(name)}.sqlite"

    def files(self, kind: str, name: str) -> Files | None:
        """Return the folder for large values of one binding, or None in memory, where the rows hold them."""
        return None if self.path is None else Files(self.path / kind / f"{_file_name(name)}.files")

    def close(self) -> None:
        """Close every database. A second call does nothing."""
        while self._databases:
            self._databases.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _file_name(name: str) -> str:
    """A name of any characters as one of a file; two names never share one, on a file system that folds case either."""
    quoted = quote(name, safe="").replace(".", "%2E").replace("~", "%7E")
    # Upper-case letters are marked: `Users` and `users` are two namespaces everywhere.
    return "".join(f"^{letter.lower()}" if letter.isupper() else letter for letter in quoted) or "^"
