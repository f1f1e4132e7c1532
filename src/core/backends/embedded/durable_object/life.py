"""The life of one object: the calls that run in it, the reasons for others to wait, the effect of a reset on them, and
how an alarm that is due runs, fails and is tried again.

Calls run in the event loop's thread, so an object is never in two threads. A call that waits for something else
(another object, a timer) lets others in meanwhile; while a critical section runs, no other call begins. An answer
is sent only after the writes are kept (the platform's output gate).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context, ContextVar
from functools import partial
from typing import Any, Final, TypeVar

from core.backends.embedded.durable_object.arguments import reset_error
from core.backends.embedded.durable_object.ids import ObjectId
from core.backends.embedded.durable_object.records import Home
from core.backends.embedded.durable_object.sockets import ObjectSockets
from core.backends.embedded.durable_object.storage import ObjectStorage
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject
from core.errors import DurableObjectError

T = TypeVar("T")

BLOCK_TIMEOUT: Final = 30.0
ALARM_RETRIES: Final = 6
ALARM_BACKOFF: Final = 2.0

_log = logging.getLogger("core.durable_object")


class LiveObject:
    """One object: its instance while it lives, the calls that run in it, and the reasons for others to wait."""

    def __init__(self, objects: Home, id: ObjectId) -> None:
        self.objects: Home = objects
        self.id = id
        self.storage: ObjectStorage = ObjectStorage(self)
        self.blocked: asyncio.Future[None] | None = None
        self.broken: BaseException | None = None
        # The awaitables of `wait_until` that still run.
        self.background: set[asyncio.Future[object]] = set()
        self._instance: DurableObject[Any] | None = None
        # Each call with the answer that its caller waits for; a critical section has none.
        self._tasks: dict[asyncio.Task[object], asyncio.Future[object] | None] = {}
        self.alarm: AlarmRunner = AlarmRunner(self)
        # On the namespace's clock: when the last call began or ended.
        self.used: float = objects.clock.monotonic()

    @property
    def is_idle(self) -> bool:
        """True if nothing runs in it, and nothing is left to be kept."""
        running = self._tasks or self.background or self.blocked is not None or self.alarm.task is not None
        return not running and not self.storage.is_writing

    @property
    def sockets(self) -> ObjectSockets:
        return self.objects.sockets(self.id)

    async def call(self, method: str, args: tuple[object, ...], options: Mapping[str, object]) -> Any:
        """Run a method in it, as a task of its own: a caller that goes away does not end it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[object] = loop.create_future()
        self._begin(loop.create_task(self._run(answer, method, args, options)), answer)
        return await answer

    def _begin(self, task: asyncio.Task[object], answer: asyncio.Future[object] | None) -> None:
        self.used = self.objects.clock.monotonic()
        self._tasks[task] = answer
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[object]) -> None:
        self.used = self.objects.clock.monotonic()
        answer = self._tasks.pop(task)
        if answer is not None:
            # It has one, unless the task was cancelled.
            answer.cancel()

    async def _run(
        self, answer: asyncio.Future[object], method: str, args: tuple[object, ...], options: Mapping[str, object]
    ) -> None:
        """Run a method, and give its answer. A reset gave another one before, and that one counts."""
        try:
            try:
                instance = await self._enter()
                result = await getattr(instance, method)(*args, **options)
            finally:
                # The answer is sent only after the writes it was based on are safe. An error is an answer, too.
                self.storage.commit()
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(result)

    async def _enter(self) -> DurableObject[Any]:
        """The instance, once nothing blocks it."""
        if self._instance is None and self.broken is None:
            try:
                self._instance = self.objects.make(self)
            except Exception as error:
                self.reset(error, raised_by=asyncio.current_task())
                raise reset_error(error) from error
        while self.blocked is not None:
            # From inside a section too: a call that comes back to the object waits, and after 30 seconds fails.
            await asyncio.shield(self.blocked)
        if self.broken is not None:
            raise reset_error(self.broken) from self.broken
        assert self._instance is not None
        return self._instance

    def block(self, callback: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        """Run `callback` with no other call beginning. An error that it raises resets the object."""
        # Entered here and not in the task: the call that made the object must find it blocked.
        leave = self._enter_section() if self._may_enter() else None

        async def run() -> T:
            try:
                return await callback()
            except Exception as error:
                # At once, so that the writes since it last waited are not kept.
                self.reset(error)
                raise

        task = asyncio.get_running_loop().create_task(self.exclusively(run, leave))
        self._begin(task, None)
        task.add_done_callback(self._end_section)
        return task

    def _end_section(self, section: asyncio.Future[Any]) -> None:
        if section.cancelled():
            self.reset(DurableObjectError("a critical section of the object was cancelled"))
        else:
            section.exception()  # whoever does not await it learns of its failure from the calls that it broke

    async def exclusively(self, action: Callable[[], Awaitable[T]], leave: Callable[[], None] | None = None) -> T:
        """Run `action` with no other call beginning, and no other's storage at hand. After 30 seconds, reset."""
        if leave is None:
            await self.turn()
            leave = self._enter_section()
        inside = _inside.set(self)
        running = asyncio.ensure_future(action())
        too_long = self.objects.clock.call_later(BLOCK_TIMEOUT, running.cancel)
        try:
            return await running
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not running.cancelled() or self.broken is not None or (current is not None and current.cancelling()):
                running.cancel()
                raise
            error = DurableObjectError(
                "A call to blockConcurrencyWhile() in a Durable Object waited for too long. "
                "The call was canceled and the Durable Object was reset."
            )
            self.reset(error)
            raise error from None
        finally:
            too_long.cancel()
            _inside.reset(inside)
            leave()

    def _may_enter(self) -> bool:
        # Inside a critical section another one begins at once.
        return self.blocked is None or _inside.get() is self

    def _enter_section(self) -> Callable[[], None]:
        """Begin a critical section, and return what ends it."""
        before, ended = self.blocked, asyncio.get_running_loop().create_future()
        self.blocked = ended

        def leave() -> None:
            self.blocked = before
            ended.set_result(None)

        return leave

    async def turn(self) -> None:
        """Wait until no critical section runs but those that this task is in."""
        while not self._may_enter():
            assert self.blocked is not None
            await asyncio.shield(self.blocked)

    def reset(self, why: BaseException, *, raised_by: asyncio.Task[object] | None = None) -> None:
        """Drop the instance: writes that were not kept are gone, and running calls fail with `why`.

        Every call has its answer from here on, whatever its method makes of it. `raised_by` is the task that raises
        `why` itself.
        """
        if self.broken is not None:
            return
        self.broken = why
        self.objects.forget(self)
        self.storage.discard()
        for task, answer in [*self._tasks.items()]:
            if task is raised_by:
                continue
            if answer is not None and not answer.done():
                error = reset_error(why)
                error.__cause__ = why
                answer.set_exception(error)
            task.cancel()
        for running in self.background:
            running.cancel()
        # The alarm is what it was before; one that runs now plans the next itself. A database that cannot be read has
        # given its reason already.
        if self.alarm.task is None:
            with contextlib.suppress(DurableObjectError):
                self.storage.plan_alarm()

    async def end(self) -> None:
        """Wait for running calls, and keep the writes."""
        while self._tasks or self.alarm.task is not None:
            waiting: set[asyncio.Future[Any]] = {*self._tasks}
            if self.alarm.task is not None:
                waiting.add(self.alarm.task)
            await asyncio.wait(waiting)
        self.storage.commit_idle()

    async def rest(self) -> None:
        """Wait until nothing runs in it, the awaitables of `wait_until` included."""
        while not self.is_idle:
            await self.end()
            if self.background:
                await asyncio.wait({*self.background})


_inside: ContextVar[LiveObject | None] = ContextVar("inside", default=None)


class AlarmRunner:
    def __init__(self, living: LiveObject) -> None:
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
            # One that is being taken back may yet stay, while that is not kept.
            if later is not None or not self._object.storage.is_writing:
                self._object.objects.alarms.note(self._object.id, None if later is None else later.time)
        except Exception:
            _log.exception("the alarm of %r could not be handled; it is looked at again", self._object.id)
            # Not at once: a disk that is full stays so for a while.
            self._object.objects.alarms.plan(self._object.id, self._now(ALARM_BACKOFF))
        finally:
            self.task = None

    async def _handle(self) -> None:
        objects, storage = self._object.objects, self._object.storage
        row = storage.read_alarm()
        if row is None or row.time > objects.clock.time() * 1000:
            return
        storage.firing = row.mark
        try:
            info = AlarmInvocationInfo(row.retries, row.retries > 0, row.scheduled)
            alarm = partial(self._object.call, "alarm", (info,), {})
            await (alarm() if objects.around_alarm is None else objects.around_alarm(objects.cls.__name__, alarm))
        except Exception:
            storage.firing = None
            again = row.retries < ALARM_RETRIES
            _log.exception(
                "the alarm of %s %s failed; %s",
                objects.cls.__name__,
                self._object.id.name or self._object.id,
                "it is tried again" if again else "it failed too often and is given up",
            )
            later = self._now(ALARM_BACKOFF * 2**row.retries) if again else None
            storage.postpone(row, later, retries=row.retries + 1)
        else:
            storage.firing = None
            storage.postpone(row, None)
