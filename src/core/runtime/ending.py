"""A process that ends with the one that started it, and how much memory it takes, by Linux's account of processes."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["die_with_parent", "memory_of"]

_PR_SET_PDEATHSIG = 1
# Found beforehand: a process that was forked a moment ago does as little as it can.
_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def die_with_parent(parent: int) -> None:
    """Have this process killed when `parent`, which started it, ends, however it ends. On Linux; nothing elsewhere.

    Nothing that was acknowledged is lost by it, and no process goes on in a state folder that has another owner.
    """
    if _prctl is None:
        return
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before we had asked.
        os.kill(os.getpid(), signal.SIGKILL)


def memory_of(pid: int) -> int:
    """The resident memory of a process in bytes; 0 where it is gone, or the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
