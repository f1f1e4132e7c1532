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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from core.dev.states import States
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
