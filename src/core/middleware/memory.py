"""What middleware keeps in the memory of the process, told apart by the run of a test that it was kept in.

A server has one run. Each run of a simulated test and each replay of a recorded one is another, that finds
nothing kept.
"""

from __future__ import annotations

__all__ = ["Memory"]


class Memory:
    """The base of a store in memory. `is_old` is asked before it is read."""

    run: int = 0
    """The number of the run, of the whole process."""
    _seen: int = 0

    @staticmethod
    def forget() -> None:
        """Begin a run."""
        Memory.run += 1

    def is_old(self) -> bool:
        """Return True, once in each run, if what is kept is of a run before."""
        if self._seen == Memory.run:
            return False
        self._seen = Memory.run
        return True
