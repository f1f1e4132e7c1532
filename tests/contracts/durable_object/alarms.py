"""The promises of a Durable Object's alarm."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.contracts.contract import MovingClock, refused
from tests.contracts.durable_object.subject import Subject, case

from core.errors import DurableObjectTypeError

# ---------------------------------------------------------------------- alarms


@case(timed=True)
async def an_alarm_goes_off_at_its_time(one: Subject, clock: MovingClock) -> None:
    when = int(clock.time() + 10) * 1000
    await one.arm(when)
    assert await one.armed() == when
    await clock.advance(5)
    assert await one.rings() == []
    await clock.advance(6)
    # While it is handled it does not count as set.
    assert await one.rings() == [[0, False, None]]
    assert await one.armed() is None
    await clock.advance(100)
    assert len(await one.rings()) == 1


@case(timed=True)
async def an_alarm_can_be_moved_and_taken_back(one: Subject, clock: MovingClock) -> None:
    await one.arm((clock.time() + 5) * 1000)
    await one.arm_at(datetime.fromtimestamp(clock.time() + 20, UTC))
    await clock.advance(10)
    assert await one.rings() == []
    await clock.advance(11)
    assert len(await one.rings()) == 1
    await one.arm((clock.time() + 5) * 1000)
    await one.disarm()
    assert await one.armed() is None
    await clock.advance(10)
    assert len(await one.rings()) == 1


@case(timed=True)
async def an_alarm_in_the_past_goes_off_now(one: Subject, clock: MovingClock) -> None:
    await one.arm(1)
    await clock.advance(1)
    assert len(await one.rings()) == 1
    await refused(one.arm(0), DurableObjectTypeError, "setAlarm() cannot be called with an alarm time <= 0")
    for late in (one.arm(9_223_372_036_855), one.arm_at(datetime(2400, 1, 1, tzinfo=UTC))):
        await refused(late, DurableObjectTypeError, "This API doesn't support dates after 2189.")


@case(timed=True)
async def an_alarm_that_fails_is_tried_again(one: Subject, clock: MovingClock) -> None:
    await one.put("failures", 2)
    await one.arm((clock.time() + 1) * 1000)
    await clock.advance(2)
    assert len(await one.rings()) == 1
    await clock.advance(2)
    assert len(await one.rings()) == 2
    await clock.advance(5)
    assert [ring[:2] for ring in await one.rings()] == [[0, False], [1, True], [2, True]]
    await clock.advance(100)
    assert len(await one.rings()) == 3


@case(timed=True)
async def an_alarm_is_given_up_after_six_retries(one: Subject, clock: MovingClock) -> None:
    await one.put("failures", 100)
    await one.arm((clock.time() + 1) * 1000)
    await clock.advance(1000)
    assert [ring[0] for ring in await one.rings()] == [0, 1, 2, 3, 4, 5, 6]
    assert await one.armed() is None


@case(timed=True)
async def an_alarm_may_set_the_next_one(one: Subject, clock: MovingClock) -> None:
    again = int(clock.time() + 30) * 1000
    await one.put("again", again)
    await one.arm((clock.time() + 1) * 1000)
    await clock.advance(5)
    assert await one.armed() == again
    await clock.advance(30)
    assert len(await one.rings()) == 2
    assert await one.armed() is None
