"""The numbers of `core serve`: all of its processes added up, with the counts of their supervisor.

A process that ended leaves its counters behind, as it gave them last, so that no counter goes down.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Protocol

from core.metrics import Meter, Snapshot, add_up, exposition
from core.runtime.ending import memory_of

__all__ = ["Measured", "Totals"]


class Measured(Protocol):
    """A process, as far as its numbers go."""

    numbers: Snapshot

    @property
    def pid(self) -> int:
        """The process id."""
        ...

    async def measure(self) -> None:
        """Renew `numbers`."""
        ...


class Totals:
    """The numbers of a supervisor and all its processes."""

    def __init__(self, place: str, build: str = "") -> None:
        self._meter = Meter()
        self._meter.set("core_start_time_seconds", to=time.time())
        self._meter.set("core_build", version("core-edge"), place, build, to=1)
        for outcome in ("replaced", "refused"):
            self._meter.add("core_reloads", outcome, by=0)
        self._left: Snapshot = {}
        self._leaving: list[Measured] = []

    def leave(self, leaving: Measured) -> None:
        """Go on counting a process that another one has taken over from, until `keep`."""
        self._leaving.append(leaving)

    def keep(self, ended: Measured) -> None:
        """Keep the counters of a process that has ended."""
        self._left = add_up([self._left, ended.numbers], gauges=False)
        ended.numbers = {}
        self._leaving = [process for process in self._leaving if process is not ended]

    def restarted(self, name: str) -> None:
        """Count a process that had to be replaced."""
        self._meter.add("core_process_restarts", name)

    def reloaded(self, outcome: str) -> None:
        """Count a new version, `replaced` or `refused`."""
        self._meter.add("core_reloads", outcome)

    async def text(self, processes: Mapping[str, tuple[Measured, bool]]) -> str:
        """The numbers as the text of OpenMetrics. A process goes with True while it serves."""
        await asyncio.gather(*(process.measure() for process, _ in processes.values()))
        for name, (process, up) in processes.items():
            self._meter.add("core_process_restarts", name, by=0)
            self._meter.set("core_process_up", name, to=float(up))
            self._meter.set("core_process_resident_memory_bytes", name, to=memory_of(process.pid))
        counted = [*(process for process, _ in processes.values()), *self._leaving]
        return exposition([self._left, self._meter.snapshot(), *(process.numbers for process in counted)])
