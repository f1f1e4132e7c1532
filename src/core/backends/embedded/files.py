"""Large values as files beside a database: an acknowledged write survives, and leftovers of a killed process are
deleted.

A file is written whole, down to the disk, before the row that names it; this file knows no binding.
"""

from __future__ import annotations

import os
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from core.backends.embedded.disk import on_disk, store_error

_STALE_TEMPORARY: Final = 3600.0


class Files:
    """Large values as files beside their database, each written whole or not at all.

    A row names its file, and only the row makes it real: write the file, `publish` it inside the transaction that
    stores its name, and `remove` the file of the row that was replaced after that transaction. What a killed process
    leaves behind is found by `sweep`.
    """

    __slots__ = ("_doomed", "_held", "folder")

    def __init__(self, folder: Path) -> None:
        self.folder: Path = folder
        # Files that somebody in this process may still read, and those of them that are to be removed.
        self._held: Counter[str] = Counter()
        self._doomed: set[str] = set()

    def stage(self, chunks: Iterable[bytes]) -> Path:
        """Write a new file, down to the disk, under a temporary name. Who does not publish it deletes it.

        Blocks: call it in a thread when it is large.

        Raises StoreError where it cannot be written.
        """
        with on_disk(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            try:
                with open(descriptor, "wb") as file:
                    file.writelines(chunks)
                    file.flush()
                    os.fsync(file.fileno())
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        return Path(name)

    def publish(self, staged: Path) -> str:
        """Give a staged file its final name and return it, for its row. Call it inside the row's transaction."""
        name = staged.stem
        staged.rename(self.folder / name)
        if os.name == "posix":
            # The row must not outlive the name of its file when the power fails.
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return name

    def read(self, name: str) -> bytes:
        """Return a whole file.

        Raises FileNotFoundError where its row has been replaced meanwhile: read the row again.
        """
        path = self.folder / name
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise store_error(path, error) or error from error

    def hold(self, names: Sequence[str], reader: object) -> None:
        """Keep files for as long as `reader` lives, also those that are removed meanwhile."""
        self._held.update(names)
        weakref.finalize(reader, self._release, names).atexit = False

    def _release(self, names: Sequence[str]) -> None:
        self._held.subtract(names)
        free = [name for name in names if self._held[name] <= 0]
        for name in free:
            del self._held[name]
        self.remove(self._doomed.intersection(free))
        self._doomed.difference_update(free)

    def remove(self, names: Iterable[str]) -> None:
        """Delete files that no row names any more, those that are held once they are not. Missing ones are fine."""
        for name in names:
            if self._held[name] > 0:
                self._doomed.add(name)
            else:
                (self.folder / name).unlink(missing_ok=True)

    def sweep(self, rows: Iterable[tuple[str]]) -> None:
        """Delete the files that no row names. Call it inside a writing transaction.

        Inside one, no other process can be between `publish` and its commit. A temporary file is another process's
        work until it is an hour old.
        """
        if not self.folder.is_dir():
            return
        keep = {name for (name,) in rows}
        oldest = time.time() - _STALE_TEMPORARY
        for path in self.folder.iterdir():
            if path.name in keep:
                continue
            if path.suffix == ".tmp":
                try:
                    if path.stat().st_mtime > oldest:
                        continue
                except FileNotFoundError:
                    continue
            path.unlink(missing_ok=True)
