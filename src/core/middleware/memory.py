"""What middleware keeps in the memory of the process, and how a test begins with nothing kept.

A server keeps it for as long as it runs. Each run of a simulated test, and each replay of a recorded one, forgets what
the one before has left.
"""

from __future__ import annotations

from weakref import WeakSet

__all__ = ["Memory", "forget_all"]


class Memory:
    """The base of a store in memory."""

    def __init__(self) -> None:
        _stores.add(self)
        self.clear()

    def clear(self) -> None:
        """Keep nothing any more."""
        raise NotImplementedError


_stores: WeakSet[Memory] = WeakSet()


def forget_all() -> None:
    """Clear every store that there is."""
    for store in [*_stores]:
        store.clear()
