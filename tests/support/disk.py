"""A disk that is full: what every kind of binding meets at its commit, without one that is."""

from __future__ import annotations

import resource
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["full"]


@contextmanager
def full(left: int = 0) -> Generator[None]:
    """No file takes more than `left` bytes: SQLite finds out when it writes a transaction to its log, as on a real full
    disk. Processes that are started meanwhile have it so too.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
