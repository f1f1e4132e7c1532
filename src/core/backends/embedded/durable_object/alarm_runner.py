"""The alarm of one object: how one that is due runs, fails and is tried again."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from functools import partial
from typing import Any, Final, Protocol

from core.backends.embedded.durable_object.living import Living
from core.backends.embedded.durable_object.records import ObjectRecords
from core.bindings.durable_object import AlarmInvocationInfo

ALARM_RETRIES: Final = 6
ALARM_BACKOFF: Final = 2.0

_log = logging.getLogger("core.durable_object")


class Alarmed(Living, Protocol):
    """An object that lives, as its alarm sees it."""

    @property
    def storage(self) -> ObjectRecords:
        """Its storage."""
        ...

    async def call(self, method: str, args: tuple[Any, ...], options: Mapping[str, Any], /) -> Any:
        """Run a method in it."""
        ...


class AlarmRunner:
    """Runs the alarms of one object."""

    def __init__(self, living: Alarmed) -> None:
        self._object = living
        self.task: asyncio.Task[None] | None = None

    def _now(self, after: float = 0.0) -> int:
        """The time in milliseconds since 1970, `after` seconds from now."""
        return math.floor((self._object.objects.clock.time() + after) * 1000)

    def fire(self) -> None:
        """Run the alarm, if the storage says that it is due and it does not run yet."""
        if self.task is None:
            # An event of its own: nothing of whoever set the alarm, or its timer, is around it.
            self.task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def fire_now(self) -> bool:
        """Run the alarm whatever the time. Returns True if one was set."""
        row = self._object.storage.read_alarm()
        if row is None:
            return False
        self._object.storage.postpone(row, self._now(), retries=row.retries)
        self.fire()
        task = self.task
        if task is not None:
            await asyncio.shield(task)
        return True

    async def _run(self) -> None:
        try:
            await self._handle()
            later = self._object.storage.read_alarm()
            if later is not None:
                self._object.objects.alarms.note(self._object.id, later.time)
        except Exception:
            _log.exception("the alarm of %r could not be handled; it is looked at again", self._object.id)
            # Not at once: a disk that is full stays so for a while.
            self._object.objects.alarms.plan(self._object.id, self._now(ALARM_BACKOFF))
        finally:
            self.task = None

    def _forget(self) -> None:
        # One that is being taken back may yet stay, while that is not kept.
        if not self._object.storage.is_writing:
            self._object.objects.alarms.note(self._object.id, None)

    async def _call(self, alarm: Callable[[], Awaitable[None]]) -> None:
        objects = self._object.objects
        await (alarm() if objects.around_alarm is None else objects.around_alarm(objects.cls.__name__, alarm))

    async def _handle(self) -> None:
        storage = self._object.storage
        row = storage.read_alarm()
        if row is None:
            self._forget()
            return
        if row.time > self._object.objects.clock.time() * 1000:
            return
        storage.firing = row.mark
        try:
            info = AlarmInvocationInfo(row.retries, row.retries > 0, row.scheduled)
            await self._call(partial(self._object.call, "alarm", (info,), {}))
        except Exception:
            storage.firing = None
            again = row.retries < ALARM_RETRIES
            _log.exception(
                "the alarm of %s %s failed; %s",
                self._object.objects.cls.__name__,
                self._object.id.name or self._object.id,
                "it is tried again" if again else "it failed too often and is given up",
            )
            later = self._now(ALARM_BACKOFF * 2**row.retries) if again else None
            storage.postpone(row, later, retries=row.retries + 1)
        else:
            storage.firing = None
            storage.postpone(row, None)
        if storage.read_alarm() is None:
            self._forget()
