"""A connection to SQLite that nobody has to close."""

from __future__ import annotations

import contextlib
import sqlite3


class ClosingConnection(sqlite3.Connection):
    """A connection that closes with its last user; Python 3.13 warns of one that is only forgotten."""

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.ProgrammingError):  # one that could not be opened
            self.close()
