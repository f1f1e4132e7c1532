"""A row of a SQLite file, read as fast as Python reads it: what the peers without bindings of their own answer with.

`CORE_BENCH_DATABASE` names the file, which `benchmarks/over_http.py` makes. The call blocks the loop, which is shorter
than a thread or aiosqlite.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

SQL = "SELECT id, name, email FROM users WHERE id = ?"


def make(file: Path) -> None:
    """Make the file, with a thousand rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL)")
        rows = [(id, f"user {id}", f"user{id}@example.test") for id in range(1000)]
        db.executemany("INSERT INTO users VALUES (?, ?, ?)", rows)
        db.commit()


@cache
def _connection() -> sqlite3.Connection:
    return sqlite3.connect(os.environ["CORE_BENCH_DATABASE"], isolation_level=None, check_same_thread=False)


def row_of(id: int) -> dict[str, int | str]:
    """Read the row of that id."""
    found = _connection().execute(SQL, (id,)).fetchone()
    return {"id": found[0], "name": found[1], "email": found[2]}
