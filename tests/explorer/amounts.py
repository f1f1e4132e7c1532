"""As much as a developer has after a while: 100,000 keys and rows, and 5,000 requests."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

from core.dev.exchange import RecordedCall
from core.dev.journal import Journal
from core.dev.record import Recorder

__all__ = ["MANY", "fill"]

MANY = 100_000
_NUMBERS = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})"


def fill(state: Path) -> None:
    """Put keys, rows and requests of 300 calls each where a server of the workshop that runs finds them.

    The requests take 1 to 6 ms. The latest is `/reports/4999`, and the only one that can be opened.
    """
    journal = Journal(state / "explorer.sqlite", fresh=False)
    recorder = Recorder(journal=journal)
    first = recorder.begin("request", "GET", "/reports/0")
    first.status, first.duration, first.route = 200, 1.0, "/reports/:id"
    first.calls = [
        RecordedCall("DB", "d1", "first", f"SELECT * FROM jobs WHERE id = ?  ← {call}", call / 10, 0.08)
        for call in range(300)
    ]
    first.repeats["DB.first SELECT * FROM jobs WHERE id = ?"] = 300
    for call in first.calls:
        call.statements = ["SELECT * FROM jobs WHERE id = ?"]
    recorder.end(first)
    ((summary,), _) = journal.page(None, 1)
    detail = journal.detail(first.key)
    assert detail is not None
    latest = {"key": f"{first.key}-4999", "path": "/reports/4999"}
    with contextlib.closing(sqlite3.connect(state / "explorer.sqlite")) as connection, connection:
        connection.executemany(
            "INSERT INTO exchanges (key, summary, detail) SELECT ?, ?, detail FROM exchanges WHERE key = ?",
            [
                (f"{first.key}-{number}", json.dumps(summary | _request(first.key, number)), first.key)
                for number in range(1, 4999)
            ],
        )
    journal.write(latest["key"], summary | latest, detail | latest)
    journal.close()
    posts = (
        "INSERT INTO posts (author_id, answers, title)"
        " SELECT 1 + i * 7 % 1000, iif(i % 3, NULL, i / 3), printf('post %06d', i) FROM n"
    )
    for kind, sql in (
        ("kv", "INSERT INTO kv (key, value) SELECT CAST(printf('key/%06d', i) AS BLOB), 'value' FROM n"),
        ("d1", "INSERT INTO jobs (text) SELECT printf('job %06d', i) FROM n"),
        ("d1", "INSERT INTO authors (name) SELECT printf('author %04d', i) FROM n WHERE i <= 1000"),
        ("d1", posts),
        ("d1", "INSERT INTO tags VALUES ('news'), ('code')"),
        ("d1", "INSERT INTO post_tags SELECT i, 'news' FROM n WHERE i % 10 = 0"),
    ):
        (file,) = (state / kind).glob("*.sqlite")
        with contextlib.closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(f"{_NUMBERS} {sql}")


def _request(key: str, number: int) -> dict[str, object]:
    return {
        "key": f"{key}-{number}",
        "path": f"/reports/{number}" if number % 4 else f"/users/{number}",
        "route": "/reports/:id" if number % 4 else "/users/:id",
        "method": "GET" if number % 4 else "POST",
        "status": (200, 200, 200, 404, 200, 500, 201)[number % 7],
        "duration": 1 + number % 500 / 100,
        "repeated": number % 50 == 0,
        "calls": number % 30,
    }
