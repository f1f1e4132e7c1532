"""A live object and its namespace, as the object's storage and alarm see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from core.backends.embedded.durable_object.alarms import AlarmSchedule
from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.durable_object.sockets import ObjectSockets
from core.backends.embedded.store import Database
from core.bindings.durable_object import DurableObject
from core.context import Clock

T = TypeVar("T")

AroundAlarm: TypeAlias = Callable[[str, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Takes the name of an object's class, and what runs its alarm."""


class Home(Protocol):
    """The objects of a namespace, as one of them sees them."""

    cls: type[DurableObject[Any]]
    clock: Clock
    alarms: AlarmSchedule
    around_alarm: AroundAlarm | None
    """Runs an alarm as an event of the application; None runs it alone."""

    def database(self, id: ObjectId) -> Database:
        """Return the database of an object."""
        ...

    def make(self, living: Any, /) -> DurableObject[Any]:
        """Return a new instance for an object."""
        ...

    def sockets(self, id: ObjectId, /) -> ObjectSockets:
        """Return the WebSockets of an object, whichever instance of it lives."""
        ...

    def forget(self, living: Any, /) -> None:
        """Drop an object that was reset."""
        ...


class Living(Protocol):
    """An object that lives, as its storage sees it."""

    id: ObjectId
    broken: BaseException | None

    @property
    def objects(self) -> Home:
        """Its namespace."""
        ...

    def reset(self, why: BaseException, /) -> None:
        """Drop the instance: writes that were not kept are gone, and running calls fail with `why`."""
        ...

    async def turn(self) -> None:
        """Wait until no critical section runs but those that this task is in."""
        ...

    async def exclusively(self, action: Callable[[], Awaitable[T]], /) -> T:
        """Run `action` with no other call beginning."""
        ...
