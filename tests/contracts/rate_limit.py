"""The promises of every `RateLimit` that counts for itself: here, of two requests in ten seconds."""

from __future__ import annotations

import asyncio

from tests.contracts.contract import Contract, MovingClock

from core.bindings.rate_limit import RateLimit

LIMIT, PERIOD = 2, 10


async def clean(limiter: RateLimit) -> None:
    """There is nothing to clean: each case has keys of its own."""


contract: Contract[RateLimit] = Contract("rate_limit", clean)


async def passed(limiter: RateLimit, key: str, times: int) -> list[bool]:
    """Whether each of so many requests is within the limit."""
    return [(await limiter.limit(key=key)).success for _ in range(times)]


@contract.case()
async def a_key_is_let_through_as_often_as_the_limit_says(limiter: RateLimit) -> None:
    assert await passed(limiter, "ada", 4) == [True, True, False, False]


@contract.case()
async def keys_are_counted_apart(limiter: RateLimit) -> None:
    assert await passed(limiter, "bob", 3) == [True, True, False]
    assert await passed(limiter, "eve", 1) == [True]
    assert await passed(limiter, "", 1) == [True]
    assert await passed(limiter, "Bob", 1) == [True]


@contract.case()
async def requests_at_once_are_counted_together(limiter: RateLimit) -> None:
    outcomes = await asyncio.gather(*[limiter.limit(key="all") for _ in range(5)])
    assert [outcome.success for outcome in outcomes].count(True) == LIMIT


@contract.case(paired=True)
async def each_limiter_counts_for_itself(limiter: RateLimit, other: RateLimit) -> None:
    assert await passed(limiter, "both", 3) == [True, True, False]
    assert await passed(other, "both", 1) == [True]


@contract.case(timed=True)
async def the_count_begins_anew_a_period_after_the_first_request(limiter: RateLimit, clock: MovingClock) -> None:
    assert await passed(limiter, "late", 1) == [True]
    await clock.advance(PERIOD - 1)
    assert await passed(limiter, "late", 2) == [True, False]
    await clock.advance(1)
    assert await passed(limiter, "late", 3) == [True, True, False]


@contract.case(timed=True)
async def a_refused_request_makes_the_period_no_longer(limiter: RateLimit, clock: MovingClock) -> None:
    await passed(limiter, "often", LIMIT)
    for _ in range(PERIOD - 1):
        await clock.advance(1)
        assert await passed(limiter, "often", 1) == [False]
    await clock.advance(1)
    assert await passed(limiter, "often", 1) == [True]
