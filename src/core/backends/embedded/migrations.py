"""Applies migrations to an embedded D1 database: each once, in order, and recorded as the platform does.

The record is the platform's own table, so that a database may go from here to there. A file is applied whole or not
at all, in one transaction with its record; two processes that migrate at once apply every file once between them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from core.backends.embedded.d1 import EmbeddedD1Database, Refused
from core.backends.embedded.disk import StoreError, store_error
from core.backends.embedded.store import is_busy
from core.sql.location import locate
from core.sql.migrations import Migration, MigrationError
from core.statements.tokens import StatementText

TABLE: Final = "d1_migrations"

HASHES: Final = "_hashes"
"""The suffix of our own table beside the platform's: it holds the hash of each file at the time it was applied."""

_HASH_SCHEMA: Final = "CREATE TABLE IF NOT EXISTS {hashes} (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL)"

_SCHEMA: Final = """CREATE TABLE IF NOT EXISTS {table}(
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		name       TEXT UNIQUE,
		applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)"""


async def applied(database: EmbeddedD1Database, *, table: str = TABLE) -> list[str]:
    """The names of the migrations that are recorded, in the order in which they were applied. Changes nothing."""
    exists = await database.prepare("SELECT 1 FROM sqlite_master WHERE name = ?").bind(table).first()
    if exists is None:
        return []
    rows = await database.prepare(f"SELECT name FROM {_quoted(table)} ORDER BY id").raw()
    return [row[0] for row in rows]


async def pending(
    database: EmbeddedD1Database, migrations: Sequence[Migration], *, table: str = TABLE
) -> list[Migration]:
    """The migrations that are not recorded yet, in order. Changes nothing."""
    done = set(await applied(database, table=table))
    return [migration for migration in migrations if migration.name not in done]


async def late(
    database: EmbeddedD1Database, migrations: Sequence[Migration], *, table: str = TABLE
) -> list[tuple[Migration, str]]:
    """The pending migrations whose name sorts before one that is applied already, each with that one's name.

    They are applied after it here, and before it in a new database.
    """
    names = {migration.name for migration in migrations}
    last = max((name for name in await applied(database, table=table) if name in names), default="")
    return [(each, last) for each in await pending(database, migrations, table=table) if each.name < last]


def changed(file: Path | None, migrations: Sequence[Migration], *, table: str = TABLE) -> list[Migration]:
    """The migrations that differ from the one that was applied under their name to the database in `file`.

    Changes nothing, and finds none where the file is not there or cannot be read. Known of migrations applied here and
    on disk: those that the platform's own tool applied have no hash, and count as unchanged.
    """
    if file is None or not file.is_file():
        return []
    # Only migrations that count as applied: the record may have been taken back by hand.
    sql = f"SELECT name, sha256 FROM {_quoted(table + HASHES)} WHERE name IN (SELECT name FROM {_quoted(table)})"
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            then: dict[str, str] = dict(connection.execute(sql).fetchall())
    except sqlite3.Error:
        return []
    return [migration for migration in migrations if then.get(migration.name, migration.digest) != migration.digest]


async def apply(
    database: EmbeddedD1Database,
    migrations: Sequence[Migration],
    *,
    table: str = TABLE,
    progress: Callable[[Migration, int, int], None] | None = None,
) -> list[Migration]:
    """Apply the pending migrations, in order, and return them.

    `progress(migration, index, count)` is called before each, `index` from 1. Raises `MigrationError` at the first
    that fails: it has changed nothing, and those before it stay applied.
    """
    waiting = await pending(database, migrations, table=table)
    done: list[Migration] = []
    for index, migration in enumerate(waiting, start=1):
        if progress is not None:
            progress(migration, index, len(waiting))
        try:
            if await database.engine.database.patiently(partial(_apply, database, migration, table)):
                done.append(migration)
        except StoreError as error:
            raise MigrationError(migration.path, 1, str(error)) from error
    return done


def apply_at_once(database: EmbeddedD1Database, migrations: Sequence[Migration]) -> list[Migration]:
    """`apply`, blocking: for a database that is only being made, such as a fake's in memory."""
    insist = database.engine.database.insist
    return [migration for migration in migrations if insist(partial(_apply, database, migration, TABLE))]


def _apply(database: EmbeddedD1Database, migration: Migration, table: str) -> bool:
    """Apply a migration and record it, in one transaction; False where it is recorded already, perhaps just now."""
    engine = database.engine
    line: int = 1
    piece: StatementText | None = None
    try:
        with engine.database.transaction() as connection:
            connection.execute(_SCHEMA.format(table=_quoted(table)))
            record = f"INSERT OR IGNORE INTO {_quoted(table)} (name) VALUES (?)"
            if connection.execute(record, (migration.name,)).rowcount == 0:
                return False
            if engine.database.path is not None:
                # In memory nothing outlives the files.
                hashes = _quoted(table + HASHES)
                connection.execute(_HASH_SCHEMA.format(hashes=hashes))
                values = (migration.name, migration.digest)
                connection.execute(f"INSERT OR REPLACE INTO {hashes} VALUES (?, ?)", values)
            for statement in migration.statements:
                line, piece = statement
                engine.execute(piece)
        return True
    except Refused as refused:
        raise MigrationError(migration.path, line, str(refused)) from None
    except sqlite3.Error as error:
        if (is_busy(error) and piece is None) or store_error(engine.database.location, error) is not None:
            raise
        raise MigrationError(migration.path, line + _lines(piece, error), engine.explain(error)) from error


def _lines(piece: StatementText | None, error: sqlite3.Error) -> int:
    token = None if piece is None else locate(piece, str(error))
    if piece is None or token is None:
        return 0
    return piece.text.count("\n", piece.tokens[0].start, token.start)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else '"' + name.replace('"', '""') + '"'
