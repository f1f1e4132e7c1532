"""The data of the embedded bindings as it was when each request began, for `core record`.

Kept are the versions of the pages of their databases. A page is stored again only where it changed, so a state costs
the pages that were written since the one before. Values that lie in files beside a database are not in it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.backends.embedded.store import Database

KEPT: Final = 1000
"""States, the latest of which are kept."""
LARGEST: Final = 32 * 1024 * 1024
"""Bytes of a database, above which no state is kept: copying it would hold up every request after a write."""
MOST: Final = 1000
"""Databases above which no state is kept: each Durable Object has one, and each is looked at before a request."""

_PAGE: Final = 4096
_NOW: Final = 1 << 62
_VERSIONS: Final = ("data_version", "schema_version")

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS states (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE IF NOT EXISTS pages (
  file TEXT NOT NULL, number INTEGER NOT NULL, until INTEGER NOT NULL, since INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (file, number, until)
) WITHOUT ROWID;
"""


class States:
    """The states in the database of a journal."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._latest: int | None = None
        self._seen: dict[str, tuple[object, bytes]] = {}
        connection.executescript(_SCHEMA)

    def note(self, databases: Mapping[str, Database | Path]) -> int | None:
        """Keep the data of `databases` as it is now, and return the number of that state. A path is one's file that
        nobody has open.

        None where they are too large or too many, or cannot be read or kept at this moment: the request goes on.
        """
        if len(databases) > MOST:
            return None
        with contextlib.suppress(sqlite3.Error, OSError):
            changed: dict[str, tuple[object, bytes]] = {}
            for file, database in databases.items():
                path = database if isinstance(database, Path) else database.path
                version: tuple[object, ...]
                if isinstance(database, Path):
                    kept = database.stat()
                    version = kept.st_mtime_ns, kept.st_size
                else:
                    connection = database.connection
                    numbers = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _VERSIONS)
                    # Another connection counts from 0 again.
                    version = connection, connection.total_changes, *numbers
                if file not in self._seen or self._seen[file][0] != version:
                    if path is not None and path.stat().st_size > LARGEST:
                        return None
                    changed[file] = version, _bytes_of(database)
            if changed or self._latest is None:
                self._keep(changed)
            return self._latest
        return None

    def _keep(self, changed: Mapping[str, tuple[object, bytes]]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            state: int = connection.execute("INSERT INTO states DEFAULT VALUES RETURNING id").fetchone()[0]
            if self._latest != state - 1:
                self._seen.clear()  # a process before this one has written, too
            for file, (version, data) in changed.items():
                before = self._seen[file][1] if file in self._seen else self._pages(file, _NOW)
                for at in range(0, max(len(before), len(data)), _PAGE):
                    old, new = before[at : at + _PAGE], data[at : at + _PAGE]
                    if old != new:
                        ends = "UPDATE pages SET until = ? WHERE file = ? AND number = ? AND until = ?"
                        connection.execute(ends, (state - 1, file, at, _NOW))
                        if new:
                            connection.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", (file, at, _NOW, state, new))
                self._seen[file] = version, data
            connection.execute("DELETE FROM pages WHERE until < ?", (state - KEPT,))
            connection.execute("DELETE FROM states WHERE id < ?", (state - KEPT,))
            connection.execute("COMMIT")
            self._latest = state
        except BaseException:
            self._seen.clear()
            self._latest = None
            connection.execute("ROLLBACK")
            raise

    def _pages(self, file: str, state: int) -> bytes:
        rows = self._connection.execute(
            "SELECT data FROM pages WHERE file = ? AND since <= ? AND until >= ? ORDER BY number", (file, state, state)
        )
        return b"".join(data for (data,) in rows)

    def files(self, state: int, folder: str) -> list[str]:
        """The names of the databases in a state that begin with `folder`."""
        found = self._connection.execute(
            "SELECT DISTINCT file FROM pages WHERE substr(file, 1, ?) = ? AND since <= ? AND until >= ? ORDER BY file",
            (len(folder), folder, state, state),
        )
        return [file for (file,) in found]

    def read(self, state: int, file: str) -> sqlite3.Connection | None:
        """A database as it was in a state, in memory, without a binding's rules. None where it is kept no longer."""
        if self._connection.execute("SELECT 1 FROM states WHERE id = ?", (state,)).fetchone() is None:
            return None
        data = self._pages(file, state)
        connection = sqlite3.connect(":memory:", isolation_level=None)
        if data:
            # The bytes of a file in WAL mode say so, and memory has none.
            connection.deserialize(data[:18] + b"\1\1" + data[20:])
        return connection

    def clear(self) -> None:
        self._seen.clear()
        self._latest = None
        self._connection.execute("DELETE FROM pages")
        self._connection.execute("DELETE FROM states")


def _bytes_of(database: Database | Path) -> bytes:
    if not isinstance(database, Path):
        return database.connection.serialize()
    # Through SQLite: a process that was killed may have left the last writes beside the file.
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return connection.serialize()
