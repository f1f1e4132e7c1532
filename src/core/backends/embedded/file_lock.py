"""A file that one process at a time has locked: who consumes a queue, who has the objects of a namespace."""

from __future__ import annotations

import os
import sys


def lock_file(path: str) -> int | None:
    """Lock a file for this process, or return None when another one has it. The system frees it when we end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
