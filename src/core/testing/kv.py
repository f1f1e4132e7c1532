"""`FakeKVNamespace`: the embedded namespace in memory, with a call log, faults, and reads that lag behind."""

from __future__ import annotations

from collections.abc import Mapping

from core.backends.embedded.kv import EmbeddedKVNamespace, KeyRows, Stored
from core.backends.embedded.store import Store
from core.context import Clock, system_clock
from core.testing import seam
from core.testing.calls import Faulty

# Seconds after which every place of the platform sees a write.
_OLDEST = 60.0


class _Place(EmbeddedKVNamespace):
    """The namespace as one place sees it: its own store, and the writes that have not come there."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self._unseen: list[tuple[float, bytes, Stored | None]] = []
        super().__init__(Store(clock=clock), "KV")

    def _apply(self, raw: bytes, stored: Stored | None) -> None:
        EmbeddedKVNamespace._write(self, raw, stored)

    def _learn(self, after: float, raw: bytes, stored: Stored | None) -> None:
        """See a write `after` seconds from now."""
        if after > 0:
            self._unseen.append((self._now() + after, raw, stored))
        else:
            # What was written before it is never seen here any more.
            self._unseen = [write for write in self._unseen if write[1] != raw]
            self._apply(raw, stored)

    def _see(self, now: float) -> None:
        """See every write whose time has come."""
        while self._unseen and self._unseen[0][0] <= now:
            _, raw, stored = self._unseen.pop(0)
            self._apply(raw, stored)

    def _see_first(self, raw: bytes | None, count: int) -> None:
        """See the first `count` writes of a key, of every key when it is None."""
        left: list[tuple[float, bytes, Stored | None]] = []
        for write in self._unseen:
            if count > 0 and raw in (None, write[1]):
                count -= 1
                self._apply(write[1], write[2])
            else:
                left.append(write)
        self._unseen = left


class FakeKVNamespace(Faulty, _Place):
    """A `KVNamespace` in memory for tests, with the semantics of the embedded one.

        kv = FakeKVNamespace({"greeting": "hello"}, clock=clock)
        kv.fail_next(KVError("KV GET failed: 500 Internal Error"))
        kv.staleness = 60

    `values`: its values at the start, as text or bytes. `clock`: the clock of its expirations. `latency`:
    seconds on the clock that every call takes. `staleness`: seconds until a write is seen by reads and lists, as
    from another place on the platform (up to 60 there); 0 is at once.

    `places`: how many places the namespace is read and written from. Each sees its own writes at once and those of the
    others after `staleness` seconds (60 unless given), never backwards. A request comes in at the place of its client:
    `Client(app, env, place=1)`. In a simulation of several places, the age of each read is drawn.
    """

    def __init__(
        self,
        values: Mapping[str, str | bytes] | None = None,
        *,
        clock: Clock = system_clock,
        latency: float = 0.0,
        staleness: float | None = None,
        places: int = 1,
    ) -> None:
        if places < 1:
            raise ValueError(f"FakeKVNamespace(places={places}) must be at least 1")
        places = max(places, seam.running.places)
        super().__init__(clock)
        # Several places have a store of their own each, and this one has every write.
        self._places: list[_Place] = [_Place(clock) for _ in range(places)] if places > 1 else [self]
        self._begin("KV", "kv", clock, latency)
        for key, value in (values or {}).items():
            data = value.encode() if isinstance(value, str) else bytes(memoryview(value))
            for place in {self, *self._places}:
                place._apply(key.encode(), (data, None, None, None))
        self._staleness = staleness if staleness is not None else _OLDEST if places > 1 else 0.0

    @property
    def staleness(self) -> float:
        """Seconds until a write is seen. Setting it concerns later writes; at 0 everything is seen at once again."""
        return self._staleness

    @staleness.setter
    def staleness(self, seconds: float) -> None:
        self._staleness = seconds
        if seconds <= 0:
            for place in self._places:
                place._see(float("inf"))

    def _write(self, raw: bytes, stored: Stored | None) -> None:
        here = seam.place.get() % len(self._places)
        for number, place in enumerate(self._places):
            is_own = place is not self and number == here
            place._learn(0.0 if is_own else self._staleness, raw, stored)
        if self not in self._places:
            self._apply(raw, stored)

    def _select(self, raw: bytes) -> Stored | None:
        # Reading in one place that lags behind nothing is in every count of a request's cost.
        place = self if not self._unseen and self._places[0] is self else self._here(raw)
        return EmbeddedKVNamespace._select(place, raw)

    def _rows(self, start: bytes, after: bytes, count: int) -> KeyRows:
        return EmbeddedKVNamespace._rows(self._here(None), start, after, count)

    def _here(self, raw: bytes | None) -> _Place:
        """The place of the running request, with all of `raw` (of every key, when None) that it sees by now."""
        place = self._places[seam.place.get() % len(self._places)]
        place._see(self._now())
        if seam.running.places > 1:
            unseen = sum(raw in (None, write[1]) for write in place._unseen)
            # 0 is the newest value: the plain order sees every write at once.
            place._see_first(raw, unseen - seam.running.draw("places", unseen + 1))
        return place
