"""`FakeDurableObjectNamespace`: the embedded Durable Objects in memory, with a call log and faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from typing_extensions import TypeVar

from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.store import Store
from core.bindings.calls import BindingCall, Proceed, add_hook
from core.bindings.durable_object import DurableObject, DurableObjectStorage
from core.context import Clock, system_clock
from core.testing import seam
from core.testing.calls import Faulty

D = TypeVar("D", bound=DurableObject[Any], default=Any)


class FakeDurableObjectNamespace(Faulty, EmbeddedDurableObjectNamespace[D]):
    """A `DurableObjectNamespace[T]` in memory for tests: real objects of the class, one per id.

        counters = FakeDurableObjectNamespace(Counter, clock=clock)
        assert await counters.get_by_name("visits").increment() == 1
        assert await counters.storage("visits").get("count") == 1

    `env`: the Env of the objects, or a function that gives it when the first object is made. `clock`: what
    alarms follow. `latency`: seconds on the clock that every call takes. A call is logged under the method's name,
    with the object's name (its id when it has none) before the arguments: `Call("increment", ("visits",))`. `name`: the
    namespace's own, the class's by default; ids of one name are good in every namespace of that name.
    """

    def __init__(
        self,
        cls: type[D],
        env: object = None,
        *,
        name: str | None = None,
        clock: Clock = system_clock,
        latency: float = 0.0,
    ) -> None:
        super().__init__(Store(clock=clock), name or cls.__name__, cls, env)
        self.objects.around_alarm = _run_again
        if "evict" in seam.running.faults:
            add_hook(self, self._evicting, name=name or cls.__name__, kind="durable_object")
        self._begin(name or cls.__name__, "durable_object", clock, latency)

    async def _evicting(self, call: BindingCall, proceed: Proceed, /) -> object:
        """Let a simulation evict the objects in which nothing runs, before a call."""
        idle = self.objects.idle
        if idle and seam.running.draw("evict", 2):
            for living in idle:
                self.objects.let_go(living)
        return await proceed()

    def storage(self, name: str) -> DurableObjectStorage:
        """The storage of the object of that name, to look into or to fill. The object is not made for it."""
        return self.objects.object(self.id_from_name(name)).storage

    async def run_alarm(self, name: str) -> bool:
        """Let the alarm of the object of that name go off now, and say whether one was set."""
        return await self.objects.object(self.id_from_name(name)).alarm.fire_now()

    async def evict(self, name: str) -> None:
        """Let the instance of the object of that name go, once nothing runs in it, as the platform does with an idle
        one.

        Its storage stays, and so do its WebSockets with their attachments and tags. The next call or message
        makes a new instance.
        """
        await self.objects.evict(self.id_from_name(name))


async def _run_again(name: str, alarm: Callable[[], Awaitable[None]]) -> None:
    """Let a simulation retry an alarm that ended well, as the platform does where it could not note the end."""
    await alarm()
    if seam.running.draw("alarm", 2):
        raise ConnectionError(f"the simulation lost the end of an alarm of {name}: it is retried")
