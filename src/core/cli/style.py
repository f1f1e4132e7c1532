"""Output of every command: colours on a terminal only, tables, and a bar for long work."""

from __future__ import annotations

import sys

from core.dev.terminal import Style, table

__all__ = ["Style", "show_progress", "table"]

_WIDTH = 28


def show_progress(label: str, done: int, count: int) -> None:
    """Draw a bar over the terminal's last line, and take it away when all is done. Nothing where there is no terminal."""
    stream = sys.stderr
    if not stream.isatty() or count < 1:
        return
    if done >= count:
        stream.write("\r\x1b[K")
    else:
        filled = _WIDTH * done // count
        stream.write(f"\r\x1b[K[{'#' * filled}{' ' * (_WIDTH - filled)}] {done}/{count} {label}")
    stream.flush()
