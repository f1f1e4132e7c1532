"""A disk that is full: what every kind of binding meets at its commit, without one that is."""

from __future__ import annotations

import resource
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["full"]


@contextmanager
def full() -> Generator[None]:
    """No file takes a byte more: SQLite finds out when it writes a transaction to its log, as on a real full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
