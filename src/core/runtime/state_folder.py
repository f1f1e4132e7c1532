"""A state folder and the one node that has it: locked while it serves, and readable by its user alone.

Where workerd keeps a database in it is known here too: its D1 is a Durable Object for each database.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from core.backends.embedded.disk import lock_file
from core.backends.embedded.durable_object.ids import id_from_name
from core.backends.embedded.store import Store
from core.errors import DeveloperError

BUILDS = ".builds"
"""The folder in it that has the builds which are running."""

LOCK = "node.lock"


def lock_state(folder: Path) -> int:
    """Make `folder`, for its user alone, and lock it. Raises DeveloperError where another process has it.

    The lock ends with the descriptor that is returned: with this process, and with those that were given it. Every file
    that this process makes from now on is for its user alone.
    """
    os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
        lock, holder = _lock(folder)
        if lock is None:
            raise DeveloperError(
                f"{folder} is in use by process {holder}. Two would damage the state there: end that one, or choose "
                "another folder with --state, and other addresses with --port and --health"
            )
    except OSError as error:
        raise DeveloperError(f"{folder}: {error.strerror}. Choose another folder for the state") from error
    return lock


@contextmanager
def shared_state(folder: Path) -> Generator[str | None]:
    """Lock `folder` meanwhile, as far as it is free, and give the number of the process that has it, or None."""
    lock = holder = None
    with suppress(OSError):  # whoever opens a database there tells it better
        folder.mkdir(parents=True, exist_ok=True)
        lock, holder = _lock(folder)
    try:
        yield holder
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> tuple[int, None] | tuple[None, str]:
    """The lock of `folder`, with our number in it, or the number of the process that has it."""
    lock = lock_file(str(folder / LOCK))
    if lock is None:
        return None, (folder / LOCK).read_text("utf-8", "replace").strip() or "unknown"
    os.truncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return lock, None


def database_file(folder: Path, database: str) -> Path:
    """The file in which workerd keeps the D1 database of an id, in the state folder `folder`."""
    return folder / "d1" / "D1Database" / f"{id_from_name('D1Database', None, database)}.sqlite"


class WorkerdStore(Store):
    """The D1 databases that workerd keeps in a state folder, to be opened as embedded ones while no node has it."""

    def file(self, kind: str, name: str) -> Path:
        assert self.path is not None
        return database_file(self.path, name)


def empty_databases(folder: Path, databases: Iterable[str]) -> list[str]:
    """Empty D1 databases in workerd's state folder, by id; those that there were. DeveloperError while in use."""
    there = {name: file for name in databases if (file := database_file(folder, name)).exists()}
    if there:
        lock = lock_state(folder)
        try:
            for file in there.values():
                for part in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
                    part.unlink(missing_ok=True)
        finally:
            os.close(lock)
    return [*there]
