"""Files of a cache, which other processes may read while they are written."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_cache"]


def write_cache(file: str | Path, content: bytes) -> None:
    """Write a file, and the folder that it is in, so that a reader finds the old content or all of the new.

    Raises nothing: a cache that cannot be written is empty in the next run.
    """
    path = Path(file)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        beside.replace(path)
    except OSError:
        pass
