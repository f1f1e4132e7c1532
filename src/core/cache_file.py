"""Files of a cache, which other processes may read while they are written."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_cache"]


def write_cache(file: str | Path, content: bytes) -> None:
    """Write a file, and the folder that it is in, so that a reader finds the old content or all of the new.

    Raises nothing: a cache that cannot be written is empty in the next run.
    """
    beside = f"{os.fspath(file)}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(beside), exist_ok=True)
        with open(beside, "wb") as output:
            output.write(content)
        os.replace(beside, file)
    except OSError:
        pass
