"""A copy of a state folder, made while a node writes in it, and the way back.

A database is copied by SQLite's own backup, in one step and so as it was at one moment. Those that say what is to be
done come first, so that what is done meanwhile is done again after a restore and not lost. Large values are files
beside a database, named by its rows, and a file is removed only after a write: so no write comes between the copy of
such a database and the links that keep its files. workerd keeps those of KV in a folder whose rows only it can read:
what is there before or after the databases are copied comes along. All other files there (locks, a configuration with a
key in it) belong to the node and stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from core.errors import DeveloperError, UsageError
from core.runtime.state_folder import BUILDS, LOCK, lock_state
from core.statements.tokens import quoted

_MANIFEST: Final = "backup.json"
_FORMAT: Final = 1
# The files that a node has for itself, and makes anew.
_OWN: Final = frozenset({LOCK, "workerd.capnp", ".gitignore", BUILDS, _MANIFEST})
# The folders, of both runtimes, of what is still to be done, and the order in which they are copied before all others.
_FIRST: Final = {"cron": 0, "queues": 1, "durable_objects": 2, "do": 2}
# The schedules of alarms. A node makes them of its objects: a copy would be of another moment than theirs.
_SCHEDULES: Final = "durable_objects/*%2Ealarms.sqlite"


@attrs.frozen
class Copied:
    """The numbers of a copy: databases, other files, and bytes of both."""

    databases: int
    files: int
    size: int


def back_up(state: Path, target: Path) -> Copied:
    """Copy `state` to `target`, which is new. Raises DeveloperError."""
    # A copy of another folder would be taken for one until it is needed.
    if not (state / LOCK).is_file() and next(state.rglob("*.sqlite"), None) is None:
        raise UsageError(f"{state} is not a state folder. Name the folder that --state of `core serve` names")
    if target.exists():
        raise DeveloperError(f"{target} is there already. Name a new folder, or a new file that ends in .tar.gz")
    if state.resolve() in [target.resolve(), *target.resolve().parents]:
        raise UsageError(f"{target} is inside of {state}, which it is to be a copy of. Name another place")
    os.umask(0o077)
    with tempfile.TemporaryDirectory(prefix=".core-backup-", dir=_made(target.parent)) as scratch:
        folder = Path(scratch) / "copy"
        folder.mkdir()
        copied = _copy(state, folder)
        if target.name.endswith((".tar.gz", ".tgz")):
            packed = Path(scratch) / "packed"
            with tarfile.open(packed, "w:gz") as archive:
                archive.add(folder, arcname=".")
            packed.rename(target)
        else:
            folder.rename(target)
    return copied


def restore(backup: Path, state: Path, *, replace: bool = False) -> tuple[Copied, Path | None]:
    """Make the folder `state` from `backup`: the numbers, and where its old state is now. Raises DeveloperError."""
    _find(backup)
    there = state.is_dir() and any(path.name not in _OWN for path in state.iterdir())
    if there and not replace:
        raise DeveloperError(f"{state} has a state already. Name a new folder, or move it aside with --replace")
    os.umask(0o077)
    with tempfile.TemporaryDirectory(prefix=".core-restore-", dir=_made(state.parent)) as scratch:
        folder = Path(scratch) / "copy"
        if backup.is_dir():
            shutil.copytree(backup, folder)
        else:
            _unpack(backup, folder)
        copied = _check(folder, backup)
        (folder / _MANIFEST).unlink()
        aside = None
        if state.exists():
            lock = lock_state(state)
            try:
                aside = state.with_name(f"{state.name}.{time.strftime('%Y%m%dT%H%M%S')}")
                state.rename(aside)
            finally:
                os.close(lock)
        folder.rename(state)
    if aside is not None and not there:
        shutil.rmtree(aside)
        aside = None
    return copied, aside


@contextmanager
def unpacked(backup: Path) -> Generator[Path]:
    """A folder with the files of a backup, checked as `restore` does, to read. Raises DeveloperError."""
    _find(backup)
    with tempfile.TemporaryDirectory(prefix=".core-restore-", dir=backup.absolute().parent) as scratch:
        folder = backup
        if not backup.is_dir():
            folder = Path(scratch)
            _unpack(backup, folder)
        _check(folder, backup)
        yield folder


def _find(backup: Path) -> None:
    if not backup.exists():
        raise UsageError(f"{backup} is not there. Name a file or folder that `core backup` made")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# Copying --------------------------------------------------------------------------------------------------------------


def _copy(state: Path, folder: Path) -> Copied:
    copies: list[Path] = []
    _copy_others(state, folder, copies)
    sources = [path.relative_to(state) for path in state.rglob("*.sqlite") if not path.match(_SCHEDULES)]
    for source in sorted(sources, key=lambda path: (_FIRST.get(path.parts[0], len(_FIRST)), path)):
        copies += _database_and_values(state / source, folder / source)
    _copy_others(state, folder, copies)
    databases = sum(copy.suffix == ".sqlite" for copy in copies)
    files = len(copies) - databases
    hashes = {copy.relative_to(folder).as_posix(): _hash(copy) for copy in copies}
    manifest = {"format": _FORMAT, "made": time.time(), "databases": databases, "files": files, "hashes": hashes}
    (folder / _MANIFEST).write_text(json.dumps(manifest), "utf-8")
    return Copied(databases, files, sum(copy.stat().st_size for copy in copies))


def _copy_others(state: Path, folder: Path, copies: list[Path]) -> None:
    """Copy the files that are neither a database, nor of one, nor of the node itself, and not copied yet."""
    for path in sorted(state.rglob("*")):
        of_database = ".sqlite" in path.suffix or path.parent.suffix == ".files" or path.suffix in (".lock", ".tmp")
        copy = folder / path.relative_to(state)
        own = path.name in _OWN or BUILDS in path.relative_to(state).parts
        if of_database or own or not path.is_file() or copy.exists():
            continue
        _made(copy.parent)
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            shutil.copyfile(path, copy)
            copies.append(copy)


def _database_and_values(source: Path, copy: Path) -> list[Path]:
    """Copy a database, and the large values beside it that its rows name."""
    values = source.with_suffix(".files")
    if not values.is_dir():
        _copy_database(source, copy)
        return [copy]
    with (
        tempfile.TemporaryDirectory(prefix=".backup-", dir=values.parent) as links,
        closing(sqlite3.connect(source, timeout=30, isolation_level=None)) as lock,
    ):
        try:
            lock.execute("BEGIN IMMEDIATE")
            _copy_database(source, copy)
            names = sorted(_named(copy))
            for name in names:
                os.link(values / name, Path(links) / name)
            lock.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            raise _not_copied(source, error) from error
        twins = [_made(copy.with_suffix(".files")) / name for name in names]
        for twin in twins:
            shutil.copyfile(Path(links) / twin.name, twin)
    return [copy, *twins]


def _copy_database(source: Path, copy: Path) -> None:
    _made(copy.parent)
    copy.unlink(missing_ok=True)
    try:
        with (
            closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as reading,
            closing(sqlite3.connect(copy)) as writing,
        ):
            # In one step: no writer comes between two pages, and in WAL mode none waits.
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise _not_copied(source, error) from error


def _not_copied(source: Path, error: Exception) -> DeveloperError:
    """The error of a database that cannot be copied, with the way out where its file is damaged."""
    damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    way = ". Put the file of an earlier backup in its place, or move it away if nothing needs it" if damaged else ""
    return DeveloperError(f"{source} cannot be copied: {error}{way}")


def _named(database: Path) -> set[str]:
    """The files that rows of a database name: those of a column `file`, in any table."""
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute(
            "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'file' "
            "AND m.name NOT LIKE '%\\_garbage' ESCAPE '\\'"
        )
        files = (f"SELECT file FROM {quoted(table)} WHERE file IS NOT NULL" for (table,) in tables.fetchall())
        return {name for select in files for (name,) in connection.execute(select)}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The way back ---------------------------------------------------------------------------------------------------------


def _unpack(backup: Path, folder: Path) -> None:
    try:
        with tarfile.open(backup) as archive:
            for member in archive:
                path = folder / member.name
                if member.isdir():
                    continue
                if not member.isfile() or not path.resolve().is_relative_to(folder.resolve()):
                    raise DeveloperError(f"{backup} has {member.name} in it, which no backup has")
                _made(path.parent)
                content = archive.extractfile(member)
                assert content is not None
                with content, path.open("wb") as file:
                    shutil.copyfileobj(content, file)
    except (tarfile.TarError, OSError, EOFError) as error:
        reason = str(error).partition(":\n")[0]  # then tarfile says it for every compression that it tried
        raise DeveloperError(f"{backup} cannot be unpacked: {reason}. Name a file that `core backup` made") from error


def _check(folder: Path, backup: Path) -> Copied:
    """Compare everything with the manifest, and have SQLite check each database. Raises DeveloperError."""
    try:
        manifest: Any = json.loads((folder / _MANIFEST).read_bytes())
        hashes: dict[str, str] = dict(manifest["hashes"])
        if manifest["format"] != _FORMAT or not all(isinstance(text, str) for text in hashes.values()):
            raise ValueError
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise DeveloperError(
            f"{backup} is not a backup of this version of core: it has no {_MANIFEST} that can be read. Name a file or "
            "folder that `core backup` made"
        ) from None
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()} - {_MANIFEST}
    if unknown := sorted(there - set(hashes)):
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise DeveloperError(
            f"{backup} has {unknown[0]}{more} in it, of which its {_MANIFEST} says nothing. Take out what does not belong "
            "there, or take another backup"
        )
    size = databases = 0
    for name, digest in hashes.items():
        path = folder / name
        if name not in there or not path.is_file() or _hash(path) != digest:
            raise DeveloperError(f"{backup}: {name} is missing or damaged. Take another backup")
        size += path.stat().st_size
        if path.suffix == ".sqlite":
            databases += 1
            with closing(sqlite3.connect(path)) as connection:
                (said,) = connection.execute("PRAGMA quick_check").fetchone()
            if said != "ok":
                raise DeveloperError(f"{backup}: {name} is damaged: {said}. Take another backup")
    return Copied(databases, len(hashes) - databases, size)
