"""`FakeKVNamespace`: the embedded namespace in memory, with a call log, faults, and reads that lag behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path

from core.backends.embedded.kv import EmbeddedKVNamespace, KeyRows, Stored
from core.backends.embedded.store import Store
from core.calls import add_hook
from core.context import Clock, system_clock
from core.testing.faults import Faults, Faulty

__all__ = ["FakeKVNamespace"]


class FakeKVNamespace(Faulty, EmbeddedKVNamespace):
    """A `KVNamespace` in memory for tests, with the semantics of the embedded one.

        kv = FakeKVNamespace({"greeting": "hello"}, clock=clock)
        kv.fail_next(KVError("KV GET failed: 500 Internal Error"))
        kv.staleness = 60

    `values`: its values at the start, as text or bytes. `clock`: the clock of its expirations. `latency`:
    seconds on the clock that every call takes. `staleness`: seconds until a write is seen by reads and lists, as
    from another place on the platform (up to 60 there); 0 is at once.
    """

    def __init__(
        self,
        values: Mapping[str, str | bytes] | None = None,
        *,
        clock: Clock = system_clock,
        latency: float = 0.0,
        staleness: float = 0.0,
    ) -> None:
        self.clock: Clock = clock
        self.faults: Faults = Faults(clock, latency=latency)
        self._staleness = 0.0
        self._unseen: deque[tuple[float, bytes, Stored | None]] = deque()
        super().__init__(Store(clock=clock), "KV")
        add_hook(self, self.faults, name="KV", kind="kv")
        for key, value in (values or {}).items():
            data = value.encode() if isinstance(value, str) else bytes(value)
            self._write(key.encode(), (data, None, None, None))
        self._staleness = staleness

    @property
    def staleness(self) -> float:
        """Seconds until a write is seen. Setting it concerns later writes; at 0 everything is seen at once again."""
        return self._staleness

    @staleness.setter
    def staleness(self, seconds: float) -> None:
        self._staleness = seconds
        if seconds <= 0:
            self._see(float("inf"))

    def _see(self, now: float) -> None:
        """Let the reads see every write that is old enough, in the order of the writes."""
        while self._unseen and self._unseen[0][0] <= now:
            _, raw, stored = self._unseen.popleft()
            super()._write(raw, stored)

    def _write(self, raw: bytes, stored: Stored | None, *, publish: Path | None = None) -> None:
        if self._staleness > 0:
            self._unseen.append((self.clock.monotonic() + self._staleness, raw, stored))
        else:
            super()._write(raw, stored, publish=publish)

    def _select(self, raw: bytes) -> Stored | None:
        if self._unseen:
            self._see(self.clock.monotonic())
        return super()._select(raw)

    def _list(self, start: bytes, after: bytes, count: int) -> KeyRows:
        if self._unseen:
            self._see(self.clock.monotonic())
        return super()._list(start, after, count)
