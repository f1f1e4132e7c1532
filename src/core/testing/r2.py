"""`FakeR2Bucket`: the embedded bucket in memory, with a call log and faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store
from core.context import Clock, system_clock
from core.testing.calls import Faulty


class FakeR2Bucket(Faulty, EmbeddedR2Bucket):
    """An `R2Bucket` in memory for tests, with the semantics of the embedded one.

        bucket = FakeR2Bucket({"logo.png": b"..."}, clock=clock)
        bucket.fail_next(R2Error("put: We encountered an internal error. Please try again. (10001)"))

    `objects`: its objects at the start, as text or bytes. `clock`: the clock of `uploaded`. `latency`: seconds on
    the clock that every call takes. The calls of a multipart upload are logged here too, as `upload_part`, `complete`
    and `abort`.
    """

    def __init__(
        self, objects: Mapping[str, str | bytes] | None = None, *, clock: Clock = system_clock, latency: float = 0.0
    ) -> None:
        super().__init__(Store(clock=clock), "BUCKET")
        self._begin("BUCKET", "r2", clock, latency)
        for key, value in (objects or {}).items():
            self.store(key, value.encode() if isinstance(value, str) else bytes(memoryview(value)))

    async def delete(self, keys: str | Iterable[str]) -> None:
        """Delete objects. See `R2Bucket.delete`."""
        # A list, so that the call log can show the keys of an iterator.
        await super().delete(keys if isinstance(keys, str) else [*keys])
