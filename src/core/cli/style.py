"""Output of every command: colours on a terminal only, tables, and a bar for long work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, Self, TextIO

from core.dev.terminal import Style

if TYPE_CHECKING:
    from core.program.table import Table

_WIDTH: Final = 28


class Progress:
    """A bar over the terminal's last line, with the time that is left, until `with` ends."""

    def __init__(self, *, stream: TextIO | None = None, clock: Callable[[], float] = perf_counter) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._began = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, label: str, done: int, count: int) -> None:
        """Draw the bar: `done` steps of `count` are behind it, and `label` is the one that begins."""
        if not self._stream.isatty() or count < 1:
            return
        filled = _WIDTH * done // count
        left = ""
        if done:
            seconds = (self._clock() - self._began) / done * (count - done)
            left = f", {seconds:.0f} s left" if seconds < 120 else f", {seconds / 60:.0f} min left"
        self._stream.write(f"\r\x1b[K[{'#' * filled}{' ' * (_WIDTH - filled)}] {done}/{count}{left} {label}")
        self._stream.flush()


def tell_error(message: str) -> None:
    sys.stderr.write(f"{Style(sys.stderr)('error', 'bold', 'red')}: {message}\n")


def put(
    file: Path, old: str, new: str, *, check: bool, encoded: Callable[[str], bytes] = lambda text: text.encode()
) -> bool:
    """Write a file, or with `check` only show how it would change; return True if it is other than before."""
    from difflib import unified_diff

    if new == old:
        return False
    name = shown_path(file)
    if check:
        lines = unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), name, name)
        sys.stdout.write("".join(line if line.endswith("\n") else f"{line}\n" for line in lines))
        return True
    write(file, encoded(new))
    print(f"{name} written.")
    return True


def write(file: Path, content: bytes) -> None:
    """Write a file, in a folder that need not be there. Raises UsageError for a place where none can be."""
    from core.errors import UsageError

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise UsageError(f"{shown_path(file)} cannot be written: {error.strerror}. Name another file") from None


def say_refused(table: Table) -> int:
    """Say on standard error what a program's start refuses, as `core check` does. Returns the exit code."""
    from core.program.registered import refused

    for finding in map(refused, table.refusals):
        sys.stderr.write(f"{shown_path(finding.file)}:{finding.line}: error: {finding.message}  [{finding.code}]\n")
    return 1 if table.refusals else 0


def shown_path(file: str | Path) -> str:
    """A file below the current folder by its path from there, another one as it is."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return str(file)
    return str(file) if relative.startswith("..") else relative
