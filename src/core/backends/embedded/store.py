"""The storage of embedded bindings: SQLite databases and files in one directory, or memory.

A `Store` gives one `Database` for each binding of a kind, and one `Files` beside it for values too large
for a row. Decided here: the failures that an acknowledged write survives, how two processes share a directory, and
how long one waits for the other. This file knows no binding.

Every statement runs on the event loop's own thread: SQLite answers in microseconds, a hop to another thread
costs more than that. Only waiting for another process, and reading and writing large files, leave the loop free.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from core.backends.embedded.disk import Files, StoreBusyError, StoreError, on_disk, store_error
from core.context import Clock, system_clock
from core.sql.connection import ClosingConnection

T = TypeVar("T")

BUSY_TIMEOUT: Final = 5.0
"""Seconds that a write waits for another process before it gives up."""

# Seconds between two tries while another process has the database; each is twice as long as the one before.
_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05

_CACHED_STATEMENTS: Final = 512


class Database:
    """One SQLite database: a file that other processes may have open too, or memory.

    Writes are in WAL mode with `synchronous=NORMAL`: acknowledged writes survive the end of the process, however
    it ends, and a power failure leaves the database whole, though it may lose its last writes.
    """

    __slots__ = ("beside", "connection", "engine", "path", "timeout")

    def __init__(self, path: Path | None, *, timeout: float = BUSY_TIMEOUT) -> None:
        self.path: Path | None = path
        self.timeout: float = timeout
        # The data that a kind of binding keeps with its connection, whichever object of the binding asks.
        self.engine: Any = None
        # Has connections of its own to the same database, which are closed with it.
        self.beside: Any = None
        # autocommit: transactions are begun here, by name, and never by the sqlite3 module.
        with on_disk(self.location):
            self.connection: sqlite3.Connection = ClosingConnection(
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
        deadline, pause = time.monotonic() + self.timeout, _FIRST_PAUSE
        while True:
            try:
                return action()
            except (sqlite3.Error, OSError) as error:
                self._give_up(error, deadline)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def patiently(self, action: Callable[[], T]) -> T:
        """Return `action()`, tried again while another process holds the database. The loop runs on meanwhile.

        Raises StoreBusyError after the timeout, and StoreError for a file that cannot be read or written. `action` is
        one statement, or one transaction: another task may run between two tries, none during one.
        """
        # The machine's own time: another process does not follow a test's clock.
        deadline, pause = time.monotonic() + self.timeout, _FIRST_PAUSE
        while True:
            try:
                return action()
            except (sqlite3.Error, OSError) as error:
                self._give_up(error, deadline)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def answer(self, action: Callable[[], T], failed: Callable[[StoreError], Exception]) -> T:
        """`patiently`; where it fails, raise what `failed` makes of the StoreError."""
        try:
            return await self.patiently(action)
        except StoreError as error:
            raise failed(error) from error

    def _give_up(self, error: sqlite3.Error | OSError, deadline: float) -> None:
        """Return if it is worth another try; raise otherwise."""
        if isinstance(error, OSError) or not is_busy(error):
            failure = store_error(self.location, error)
            if failure is None:
                raise error
            raise failure from error
        if time.monotonic() >= deadline:
            raise StoreBusyError(self.location, self.timeout) from error

    def empty_garbage(self, files: Files, table: str) -> None:
        """Remove the files that `table` names: no other row does any more."""
        try:
            if self.connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None:
                return
            with self.transaction() as connection:
                files.remove([name for (name,) in connection.execute(f"SELECT file FROM {table}")])
                connection.execute(f"DELETE FROM {table}")
        except sqlite3.OperationalError:
            # Another process is writing. Garbage of now is still garbage at the next put.
            return

    def close(self) -> None:
        """Close it. A second call does nothing."""
        if self.beside is not None:
            self.beside.close()
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
    # Errors of the sqlite3 module itself have no code of SQLite's.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


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
