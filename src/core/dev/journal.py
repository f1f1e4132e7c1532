"""The exchanges that are over, in one SQLite file beside the bindings: a reload starts a new process, and keeps them.

It holds the requests and responses of a developer, headers and bodies included, so only its user may read it, and
`core dev` begins with an empty one. Losing its last rows to a power failure costs nothing, so nothing waits for the
disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.backends.embedded.store import Database
from core.http.json import JsonObject
from core.sql.connection import ClosingConnection

KEPT: Final = 5000
MOST_BYTES: Final = 256 * 1024 * 1024
_PRUNE_EVERY: Final = 100

_MOST_FAILURES: Final = 10_000

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS exchanges (
  seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, summary TEXT NOT NULL, detail BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS failures (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, error TEXT NOT NULL, exchange TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS names (binding TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (binding, name)) WITHOUT ROWID;
"""


class Journal:
    """The latest exchanges of a state folder: `KEPT` of them, or as many as fit into `MOST_BYTES`."""

    def __init__(self, path: Path | None, *, fresh: bool = True) -> None:
        try:
            self._connection = _open(path)
        except (OSError, sqlite3.Error):
            # The bindings, which are in the same folder, say that it cannot be written.
            self._connection = _open(None)
        self._writes = 0
        self.states: States = States(self._connection)
        """The data of the bindings when each exchange began."""
        if fresh:
            self.clear()

    def write(self, key: str, summary: JsonObject, detail: JsonObject) -> None:
        """Store an exchange, or replace it. A disk that is full costs the record, never the request."""
        packed = zlib.compress(json.dumps(detail).encode(), 1)
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute(
                "INSERT INTO exchanges (key, summary, detail) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
                " summary = excluded.summary, detail = excluded.detail",
                (key, json.dumps(summary), packed),
            )
            self._writes += 1
            if self._writes % _PRUNE_EVERY == 0:
                self._prune()

    def page(self, before: int | None, limit: int) -> tuple[list[JsonObject], int | None]:
        """Summaries, the latest first, and where the next page begins."""
        rows = self._connection.execute(
            "SELECT seq, summary FROM exchanges WHERE seq < ? ORDER BY seq DESC LIMIT ?", (before or 1 << 62, limit)
        ).fetchall()
        return [json.loads(summary) for _, summary in rows], rows[-1][0] if len(rows) == limit else None

    def detail(self, key: str) -> JsonObject | None:
        row = self._connection.execute("SELECT detail FROM exchanges WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(zlib.decompress(row[0]))

    def note_failure(self, ids: Iterable[str], error: str, exchange: str) -> None:
        """Note the error that a consumer raised for messages: their ids stay the same in a dead letter queue."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.executemany(
                "INSERT OR REPLACE INTO failures (id, error, exchange) VALUES (?, ?, ?)",
                [(id, error, exchange) for id in ids],
            )
            self._connection.execute(
                "DELETE FROM failures WHERE seq <= (SELECT max(seq) FROM failures) - ?", (_MOST_FAILURES,)
            )

    def failures(self, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """The error of each message that had one, and the exchange that it came up in."""
        rows = self._connection.execute(
            f"SELECT id, error, exchange FROM failures WHERE id IN ({','.join('?' * len(ids))})", ids
        )
        return {id: (error, exchange) for id, error, exchange in rows}

    def note_name(self, binding: str, name: str) -> None:
        """Note that a Durable Object was called by this name: its id does not tell."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("INSERT OR IGNORE INTO names VALUES (?, ?)", (binding, name))

    def names(self, binding: str) -> list[str]:
        return [name for (name,) in self._connection.execute("SELECT name FROM names WHERE binding = ?", (binding,))]

    def clear(self) -> None:
        self._connection.execute("DELETE FROM exchanges")
        self.states.clear()

    def close(self) -> None:
        """Close the file. Later records are lost."""
        self._connection.close()

    def _prune(self) -> None:
        self._connection.execute(
            "DELETE FROM exchanges WHERE seq <= (SELECT seq FROM (SELECT seq, row_number() OVER latest AS number,"
            " sum(length(detail)) OVER latest AS bytes FROM exchanges WINDOW latest AS (ORDER BY seq DESC))"
            " WHERE number > ? OR bytes > ? ORDER BY seq DESC LIMIT 1)",
            (KEPT, MOST_BYTES),
        )


def _open(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        ignore = path.with_name(".gitignore")
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = ClosingConnection(
        ":memory:" if path is None else path, timeout=2, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")
    connection.executescript(_SCHEMA)
    return connection


# States ---------------------------------------------------------------------------------------------------------------

KEPT_STATES: Final = 1000
"""States, the latest of which are kept."""
LARGEST_DATABASE: Final = 32 * 1024 * 1024
"""Bytes of a database, above which no state is kept: copying it would hold up every request after a write."""
MOST_DATABASES: Final = 1000
"""Databases above which no state is kept: each Durable Object has one, and each is looked at before a request."""

_PAGE: Final = 4096
_NOW: Final = 1 << 62
_VERSIONS: Final = ("data_version", "schema_version")

_STATES: Final = """
CREATE TABLE IF NOT EXISTS states (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE IF NOT EXISTS pages (
  file TEXT NOT NULL, number INTEGER NOT NULL, until INTEGER NOT NULL, since INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (file, number, until)
) WITHOUT ROWID;
"""


class States:
    """The data of the embedded bindings as it was when each request began, for `core record`, in a journal's database.

    Kept are the versions of the pages of their databases. A page is stored again only where it changed, so a state
    costs the pages that were written since the one before. Values that lie in files beside a database are not in it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._latest: int | None = None
        self._seen: dict[str, tuple[object, bytes]] = {}
        connection.executescript(_STATES)

    def note(self, databases: Mapping[str, Database | Path]) -> int | None:
        """Keep the data of `databases` as it is now, and return the number of that state. A path is one's file that
        nobody has open.

        None where they are too large or too many, or cannot be read or kept at this moment: the request goes on.
        """
        if len(databases) > MOST_DATABASES:
            return None
        with contextlib.suppress(sqlite3.Error, OSError):
            changed: dict[str, tuple[object, bytes]] = {}
            for file, database in databases.items():
                path = database if isinstance(database, Path) else database.path
                version: tuple[object, ...]
                if isinstance(database, Path):
                    file_state = database.stat()
                    version = file_state.st_mtime_ns, file_state.st_size
                else:
                    connection = database.connection
                    numbers = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _VERSIONS)
                    # Another connection counts from 0 again.
                    version = connection, connection.total_changes, *numbers
                if file not in self._seen or self._seen[file][0] != version:
                    if path is not None and path.stat().st_size > LARGEST_DATABASE:
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
            connection.execute("DELETE FROM pages WHERE until < ?", (state - KEPT_STATES,))
            connection.execute("DELETE FROM states WHERE id < ?", (state - KEPT_STATES,))
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
