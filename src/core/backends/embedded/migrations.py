"""The migrations of a D1 database: `migrations/*.sql`, in order, each applied once and recorded as the platform does.

The record is the platform's own table, so that a database may go from here to there. A file is applied whole or not
at all, in one transaction with its record; two processes that migrate at once apply every file once between them.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from core.backends.embedded.d1 import EmbeddedD1Database, Refused
from core.backends.embedded.sql import Piece, locate, split
from core.backends.embedded.store import StoreBusyError, is_busy
from core.errors import D1Error

__all__ = ["Migration", "MigrationError", "applied", "apply", "apply_at_once", "pending", "read"]

TABLE: Final = "d1_migrations"

_SCHEMA: Final = """CREATE TABLE IF NOT EXISTS {table}(
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		name       TEXT UNIQUE,
		applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)"""


@attrs.frozen
class Migration:
    """One file: its `name`, by which it is recorded, and its text."""

    name: str
    path: Path
    sql: str = attrs.field(repr=False)

    @property
    def statements(self) -> list[tuple[int, Piece]]:
        """Its statements with the line, from 1, that each begins on."""
        found: list[tuple[int, Piece]] = []
        rest = self.sql
        for piece in split(self.sql):
            start = len(self.sql) - len(rest) + rest.index(piece.text)
            rest = self.sql[start + len(piece.text) :]
            if piece.words:
                found.append((self.sql.count("\n", 0, start + piece.words[0].start) + 1, piece))
        return _without_transaction(found)


class MigrationError(D1Error):
    """A migration failed and changed nothing. `path` and `line` say where, `reason` what the database said."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(
            f"{path}:{line}: {reason}. The file changed nothing, and the ones before it stay applied: "
            "mend it and migrate again"
        )
        self.path = path
        self.line = line
        self.reason = reason


def read(folder: str | os.PathLike[str]) -> list[Migration]:
    """Every `*.sql` file of a folder, in the order of their names: `0001_first.sql` before `0002_second.sql`.

    Numbers at the beginning count as numbers, so `10_` comes after `9_`. Raises FileNotFoundError for a folder that is
    missing, and `MigrationError` for a file that is not UTF-8.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a folder. Migrations are its *.sql files; make it with the first one")
    migrations: list[Migration] = []
    for path in sorted(root.glob("*.sql"), key=_order):
        try:
            text = path.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MigrationError(path, 1, f"not UTF-8 ({error})") from error
        migrations.append(Migration(path.name, path, text))
    return migrations


def _order(path: Path) -> tuple[int, str]:
    number = re.match(r"\d+", path.name)
    return (int(number[0]) if number else 0, path.name)


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


async def apply(
    database: EmbeddedD1Database,
    migrations: Sequence[Migration],
    *,
    table: str = TABLE,
    progress: Callable[[Migration, int, int], None] | None = None,
) -> list[Migration]:
    """Apply what is pending, in order, and return it.

    `progress(migration, index, count)` is called before each, `index` from 1. Raises `MigrationError` at the first
    that fails: it has changed nothing, and those before it stay applied.
    """
    waiting = await pending(database, migrations, table=table)
    done: list[Migration] = []
    for index, migration in enumerate(waiting, start=1):
        if progress is not None:
            progress(migration, index, len(waiting))
        try:
            if await database.engine.database.patiently(_File(database, migration, table).apply):
                done.append(migration)
        except StoreBusyError as busy:
            raise MigrationError(migration.path, 1, str(busy)) from busy
    return done


def apply_at_once(
    database: EmbeddedD1Database, migrations: Sequence[Migration], *, table: str = TABLE
) -> list[Migration]:
    """`apply`, blocking: for a database that is only being made, such as a fake's in memory."""
    insist = database.engine.database.insist
    return [migration for migration in migrations if insist(_File(database, migration, table).apply)]


class _File:
    """One migration on its way into a database."""

    def __init__(self, database: EmbeddedD1Database, migration: Migration, table: str) -> None:
        self.engine = database.engine
        self.migration = migration
        self.table = _quoted(table)
        self.statements = migration.statements

    def apply(self) -> bool:
        """Apply it and record it, in one transaction; False where it is recorded already, perhaps just now."""
        line: int = 1
        piece: Piece | None = None
        try:
            with self.engine.database.transaction() as connection:
                connection.execute(_SCHEMA.format(table=self.table))
                record = f"INSERT OR IGNORE INTO {self.table} (name) VALUES (?)"
                if connection.execute(record, (self.migration.name,)).rowcount == 0:
                    return False
                for statement in self.statements:
                    line, piece = statement
                    self.engine.execute(piece)
            return True
        except Refused as refused:
            raise MigrationError(self.migration.path, line, str(refused)) from None
        except sqlite3.Error as error:
            if is_busy(error) and piece is None:
                raise
            raise MigrationError(
                self.migration.path, line + _lines(piece, error), self.engine.explain(error)
            ) from error


def _lines(piece: Piece | None, error: sqlite3.Error) -> int:
    """How many lines into a statement its mistake is."""
    token = None if piece is None else locate(piece, str(error))
    if piece is None or token is None:
        return 0
    return piece.text.count("\n", piece.words[0].start, token.start)


def _without_transaction(statements: list[tuple[int, Piece]]) -> list[tuple[int, Piece]]:
    """A file from a dump has a BEGIN and a COMMIT around all of it; the transaction is there anyway."""
    if len(statements) >= 2 and statements[0][1].keyword == "BEGIN" and statements[-1][1].keyword in ("COMMIT", "END"):
        return statements[1:-1]
    return statements


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else '"' + name.replace('"', '""') + '"'
