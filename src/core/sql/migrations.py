"""The migrations of a D1 database as files: `migrations/*.sql`, their order, and their statements."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import D1Error
from core.values import field, frozen

if TYPE_CHECKING:
    from core.statements.tokens import StatementText


@frozen
class Migration:
    """One file: its `name`, by which it is recorded, and its SQL."""

    name: str
    path: Path
    sql: str = field(repr=False)

    @property
    def statements(self) -> list[tuple[int, StatementText]]:
        """Its statements with the line, from 1, that each begins on."""
        from core.statements.tokens import (
            statements_of,  # a checker that has analysed all statements asks for digests alone
        )

        found: list[tuple[int, StatementText]] = []
        line, counted = 1, 0
        for piece in statements_of(self.sql):
            if piece.tokens:
                begin = piece.start + piece.tokens[0].start
                line += self.sql.count("\n", counted, begin)
                counted = begin
                found.append((line, piece))
        # A file from a dump has a BEGIN and a COMMIT around all but a pragma; the transaction is there anyway.
        at = next((at for at, (_, one) in enumerate(found) if one.keyword != "PRAGMA"), 0)
        if found[at + 1 :] and found[at][1].keyword == "BEGIN" and found[-1][1].keyword in ("COMMIT", "END"):
            return [*found[:at], *found[at + 1 : -1]]
        return found

    @property
    def digest(self) -> str:
        """A hash of its statements, without comments and blanks."""
        texts = ("\0".join(token.text for token in piece.tokens) for _, piece in self.statements)
        return hashlib.sha256("\0;\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


class MigrationError(D1Error):
    """A migration failed and changed nothing, at `path` and `line`; `reason` is the database's message."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(
            f"{path}:{line}: {reason}. The file changed nothing, and the ones before it stay applied. "
            "Correct it and migrate again"
        )
        self.path = path
        self.line = line
        self.reason = reason


def migration_files(folder: Path) -> list[Path]:
    """Return the `.sql` files of a folder in the order in which they are applied: by their number, then by their name.

    Files without a number come last.
    """
    return sorted((path for path in folder.glob("?*.sql") if path.is_file()), key=_order)


def _order(path: Path) -> tuple[int, int, str]:
    digits = path.name[: len(path.name) - len(path.name.lstrip("0123456789"))]
    return (0, int(digits), path.name) if digits else (1, 0, path.name)


def migration_digest(folder: Path) -> str:
    """Return a digest of all migrations: their names, their order and their texts."""
    digest = hashlib.sha256(str(folder).encode())
    for path in migration_files(folder):
        digest.update(b"\0" + path.name.encode() + b"\0")
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            digest.update(str(error).encode())
    return digest.hexdigest()


def read_migrations(folder: str | os.PathLike[str]) -> list[Migration]:
    """Return every `*.sql` file of a folder, in the order of `migration_files`: `0001_first.sql` before `10_last.sql`.

    Raises FileNotFoundError for a folder that is missing, and `MigrationError` for a file that is not UTF-8.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a folder. Migrations are its *.sql files; make it with the first one")
    migrations: list[Migration] = []
    for path in migration_files(root):
        try:
            text = path.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MigrationError(path, 1, f"not UTF-8 ({error})") from error
        migrations.append(Migration(path.name, path, text))
    return migrations
