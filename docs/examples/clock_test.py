"""Time in tests: nothing sleeps, the clock is moved."""

from __future__ import annotations

from core.testing import FakeClock, FakeKVNamespace


# --8<-- [start:clock]
async def test_a_session_ends_after_an_hour() -> None:
    clock = FakeClock()
    sessions = FakeKVNamespace(clock=clock)
    await sessions.put("s1", "ada", expiration_ttl=3600)

    clock.advance(3599)
    assert await sessions.get("s1") == "ada"

    clock.advance(1)
    assert await sessions.get("s1") is None


# --8<-- [end:clock]
