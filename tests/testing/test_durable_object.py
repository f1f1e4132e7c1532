"""`FakeDurableObjectNamespace`: real objects of a class, in memory, with what a test wants beside."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from core import Bindings
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject, DurableObjectNamespace
from core.errors import DurableObjectError, DurableObjectTypeError
from core.testing import FakeClock, FakeDurableObjectNamespace, env
from core.testing.calls import Call


class Counter(DurableObject["Env"]):
    async def increment(self, by: int = 1) -> int:
        count: int = (await self.ctx.storage.get("count") or 0) + by
        await self.ctx.storage.put("count", count)
        return count

    async def greet(self) -> str:
        return f"{self.env.GREETING}, {self.name}"

    async def arm(self) -> None:
        await self.ctx.storage.set_alarm(4_000_000_000_000)

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        await self.ctx.storage.put("rang", True)


@attrs.frozen
class Env(Bindings):
    COUNTERS: DurableObjectNamespace[Counter]
    GREETING: str


async def test_objects_are_real_and_each_fake_has_its_own() -> None:
    one, two = FakeDurableObjectNamespace(Counter), FakeDurableObjectNamespace(Counter)
    assert await one.get_by_name("a").increment() == 1
    assert await one.get_by_name("a").increment(by=4) == 5
    assert await two.get_by_name("a").increment() == 1


async def test_a_key_that_is_no_text_is_said_to_be_none() -> None:
    storage, key = FakeDurableObjectNamespace(Counter).storage("a"), cast("Any", 5)
    for call in (storage.get(key), storage.delete(key), storage.get([key])):
        with pytest.raises(DurableObjectTypeError, match="A key must be a str, not int"):
            await call


async def test_the_storage_of_an_object_can_be_filled_and_looked_into() -> None:
    counters = FakeDurableObjectNamespace(Counter)
    await counters.storage("a").put("count", 41)
    assert await counters.get_by_name("a").increment() == 42
    assert await counters.storage("a").get("count") == 42


async def test_calls_are_logged_with_the_objects_name_and_faults_are_raised() -> None:
    counters = FakeDurableObjectNamespace(Counter)
    await counters.get_by_name("a").increment(by=2)
    assert counters.calls == [Call("increment", ("a",), {"by": 2})]
    counters.fail_next(DurableObjectError("overloaded"), method="increment")
    with pytest.raises(DurableObjectError, match="overloaded"):
        await counters.get_by_name("a").increment()
    assert await counters.get_by_name("a").increment() == 3


async def test_an_alarm_can_be_run_without_waiting_for_it() -> None:
    counters = FakeDurableObjectNamespace(Counter, clock=FakeClock())
    assert await counters.run_alarm("a") is False
    await counters.get_by_name("a").arm()
    assert await counters.run_alarm("a") is True
    assert await counters.storage("a").get("rang") is True
    assert await counters.run_alarm("a") is False


async def test_objects_of_an_env_have_that_env() -> None:
    made = env(Env, GREETING="Hello")
    assert await made.COUNTERS.get_by_name("Ada").greet() == "Hello, Ada"
