"""The process that `test_kill.py` kills: it writes as fast as it can and says what was acknowledged.

    python killed.py STATE kv|d1

Every line on its standard output is a write that returned before the line was written.
"""

from __future__ import annotations

import asyncio
import os
import sys

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.store import Store

BATCH = 10
LARGE_EVERY = 50


def acknowledge(text: str) -> None:
    """Say it in one system call: a line that arrived is a line that was meant."""
    os.write(1, f"{text}\n".encode())


def value_of(index: int) -> bytes:
    """The value stored under a number: mostly small, sometimes large enough for a file."""
    return f"{index}:".encode() * (40_000 if index % LARGE_EVERY == 0 else 3)


async def put(store: Store) -> None:
    """Put values for ever, overwriting a hundred keys again and again beside new ones."""
    kv = EmbeddedKVNamespace(store, "kv")
    index = 0
    while True:
        index += 1
        await kv.put(f"new-{index}", value_of(index), metadata=index)
        await kv.put(f"again-{index % 100}", value_of(index), metadata=index)
        acknowledge(str(index))


async def batch(store: Store) -> None:
    """Run batches for ever, each of ten rows and a count of them."""
    db = EmbeddedD1Database(store, "db")
    await db.exec(
        "CREATE TABLE IF NOT EXISTS rows (batch INTEGER, row INTEGER, PRIMARY KEY (batch, row))\n"
        "CREATE TABLE IF NOT EXISTS batches (batch INTEGER PRIMARY KEY, size INTEGER)"
    )
    insert = db.prepare("INSERT INTO rows VALUES (?, ?)")
    index = (await db.prepare("SELECT coalesce(max(batch), 0) AS last FROM batches").first("last")) or 0
    while True:
        index += 1
        rows = [insert.bind(index, row) for row in range(BATCH)]
        await db.batch([*rows, db.prepare("INSERT INTO batches VALUES (?, ?)").bind(index, BATCH)])
        acknowledge(str(index))


def main() -> None:
    """Write until killed."""
    state, kind = sys.argv[1:]
    with Store(state) as store:
        asyncio.run(put(store) if kind == "kv" else batch(store))


if __name__ == "__main__":
    main()
