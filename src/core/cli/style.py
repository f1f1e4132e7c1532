"""How every command writes: colours on a terminal only, tables, and a bar for what takes long."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TextIO, TypeVar

from core.hosts.dev.terminal import Style, table

__all__ = ["Style", "progress", "table"]

T = TypeVar("T")

_WIDTH = 28


def progress(items: Iterable[T], *, label: str, total: int | None = None, stream: TextIO | None = None) -> Iterator[T]:
    """Go through `items` with a bar on the terminal. Where the stream is none, nothing is written."""
    out = stream if stream is not None else sys.stderr
    count = total if total is not None else (len(items) if isinstance(items, Sized) else None)
    if not out.isatty() or count is None or count == 0:
        yield from items
        return
    try:
        for index, item in enumerate(items):
            filled = _WIDTH * index // count
            out.write(f"\r{label} [{'#' * filled}{' ' * (_WIDTH - filled)}] {index}/{count}")
            out.flush()
            yield item
    finally:
        out.write("\r\x1b[K")
        out.flush()
