"""SQL migrations inside the runtime: each file whole or not at all, in one transaction with its record.

The record is the platform's own table, so that a database may go from here to there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from core.backends.workerd.d1 import WorkerdD1Database
from core.errors import D1Error

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS {table} (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, "
    "applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)"
)


async def apply(
    database: object, table: str, files: Sequence[tuple[str, Sequence[str]]], hashes: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Apply the files that `table` does not record yet, in order. Gives their names, and those changed since applied.

    `hashes` are kept in a table of our own, `<table>_hashes`; what was applied without one is never changed. Raises
    D1Error that names the file; what came before it stays applied.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", table):
        raise D1Error(f"{table!r} is not the name of a table for migrations. Use letters, digits and _")
    db = WorkerdD1Database(database)
    await db.prepare(_SCHEMA.format(table=table)).run()
    await db.prepare(f"CREATE TABLE IF NOT EXISTS {table}_hashes (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL)").run()
    then = dict(await db.prepare(f"SELECT name, sha256 FROM {table}_hashes").raw())
    known = {row["name"] for row in (await db.prepare(f"SELECT name FROM {table}").all()).results}
    applied: list[str] = []
    for name, statements in files:
        if name in known:
            continue
        records = [db.prepare(f"INSERT INTO {table} (name) VALUES (?)").bind(name)]
        if name in hashes:
            keep = f"INSERT OR REPLACE INTO {table}_hashes VALUES (?, ?)"
            records.append(db.prepare(keep).bind(name, hashes[name]))
        try:
            await db.batch([*(db.prepare(statement) for statement in statements), *records])
        except D1Error as error:
            if error.constraint == "UNIQUE" and error.columns == (f"{table}.name",):
                continue  # another node was quicker
            raise D1Error(f"{name}: {error}") from None
        applied.append(name)
    changed = [name for name in known if name in hashes and then.get(name, hashes[name]) != hashes[name]]
    return applied, sorted(changed)
