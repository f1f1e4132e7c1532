"""An alarm is an event of its own: nothing of the request that set it is around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from core import DurableObject
from core.bindings.durable_object import AlarmInvocationInfo
from core.testing import FakeDurableObjectNamespace

caller: ContextVar[str] = ContextVar("caller", default="nobody")
seen: list[str] = []


class Counter(DurableObject[None]):
    async def begin(self) -> None:
        await self.ctx.storage.set_alarm(1)

    async def alarm(self, info: AlarmInvocationInfo | None = None, /) -> None:
        seen.append(caller.get())


async def test_an_alarm_runs_outside_of_what_set_it_and_is_handed_to_whoever_wants_events() -> None:
    seen.clear()
    namespace, events = FakeDurableObjectNamespace(Counter), list[str]()

    async def around(name: str, run: Callable[[], Awaitable[None]]) -> None:
        events.append(name)
        await run()

    namespace.objects.around_alarm = around
    token = caller.set("a request")
    await namespace.get_by_name("a").begin()
    await namespace.run_alarm("a")
    caller.reset(token)
    assert set(seen) == {"nobody"}
    assert set(events) == {"Counter"}
