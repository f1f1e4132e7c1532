"""One simulated run: calls of bindings wait here, and one goes on when every task of the loop waits.

The event loop stays asyncio's; time is a `FakeClock` that moves when nothing else can happen. While a run is installed
the machine's clock and randomness are its own, so that the same tape is the same run.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count, cycle
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args
from unittest import mock

import attrs

from core.bindings.calls import BindingCall
from core.context import Clock, SystemClock
from core.errors import BindingError, D1Error, DurableObjectError, KVError, QueueError, R2Error
from core.middleware.memory import forget_all
from core.middleware.request_id import forget_ids
from core.testing import seam
from core.testing.clock import FakeClock
from core.testing.context import forget_contexts, left_behind
from core.testing.seam import IsolateDied, Seam
from core.testing.simulation.choices import Point, Strategy, Tape, below, draw_strategy
from core.testing.simulation.log import SimulatedCall

T = TypeVar("T")

Fault: TypeAlias = Literal["error", "crash", "queue", "evict", "alarm", "cron", "replica"]
"""A fault that a simulation draws where it was asked for."""

FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)

Check: TypeAlias = Callable[[Sequence[SimulatedCall]], None]
"""Reads the calls of a run. Raises AssertionError for a run that breaks its rule."""

_LOST: Final = "Network connection lost."
_ERRORS: Final[Mapping[str, tuple[type[BindingError], str, str]]] = {
    "kv": (KVError, "KV {METHOD} failed: 429 Too Many Requests", "KV {METHOD} failed: 500 Internal Server Error"),
    "d1": (D1Error, f"D1_ERROR: {_LOST}", "D1_ERROR: D1 DB is overloaded. Requests queued for too long."),
    "r2": (
        R2Error,
        "{method}: We encountered an internal error. Please try again. (10001)",
        "{method}: Reduce your rate of simultaneous requests on the same object. (10058)",
    ),
    "queue": (QueueError, "Queue send failed: Too Many Requests", _LOST),
    "durable_object": (DurableObjectError, _LOST, "Durable Object is overloaded. Requests queued for too long."),
}
# How long tasks may wait for the machine itself (a thread, a socket) before a run counts as stuck.
_PATIENCE: Final = 5.0


class StuckError(AssertionError):
    """Nothing in a simulated run can go on: its tasks wait for each other."""


@attrs.frozen(kw_only=True)
class Settings:
    """Settings of `simulate`."""

    runs: int = 200
    faults: Collection[str] = ()
    places: int = 1
    seed: int = 0
    checks: Sequence[Check] = ()
    replay: str | None = None

    def __attrs_post_init__(self) -> None:
        unknown = [fault for fault in self.faults if fault not in FAULTS]
        if unknown:
            raise ValueError(f"simulate(faults={unknown}): the faults are {', '.join(FAULTS)}")
        if self.runs < 1 or self.places < 1:
            raise ValueError(f"simulate(runs={self.runs}, places={self.places}) must be at least 1 each")


@attrs.define(eq=False)
class Event:
    """A request, a batch or a schedule of a run. A mortal one can die with its isolate."""

    label: str
    mortal: bool = True
    alive: bool = True


_TEST: Final = Event("", mortal=False)
_event: ContextVar[Event] = ContextVar("event", default=_TEST)


class Simulation(Seam):
    """One run. `tape` repeats a run; `seed` and `lengths` choose a new one."""

    def __init__(
        self, tape: Tape, settings: Settings, *, seed: int = 0, lengths: Mapping[int, int] | None = None
    ) -> None:
        self.tape = tape
        self.clock: FakeClock = FakeClock()
        self.places: int = settings.places
        self.turns: Iterator[int] = cycle(range(settings.places))
        self.faults: Collection[str] = settings.faults
        self.checks: Sequence[Check] = settings.checks
        self.log: list[SimulatedCall] = []
        self.error: BaseException | None = None
        """The failure of a run that was made."""
        self.reached: set[str] = set()
        self.lengths: dict[int, int] = {}
        """The points of each task, for the strategies of later runs."""
        self._random = random.Random(seed)
        self._strategy: Strategy = draw_strategy(self._random, lengths or {})
        # Each run draws which of the faults it has, and how often: rare ones alone find what a storm of all hides.
        self._rates: dict[str, float] = {
            fault: (0.0, 0.05, 0.3)[below(self._random, 3)] for fault in FAULTS if fault in self.faults
        }
        self._moments = count(1)
        self._parked: list[Point] = []
        self._last = -1
        self._tasks: dict[asyncio.Task[object] | None, int] = {}
        self._fakes: dict[object, str] = {}
        self._clocks: dict[FakeClock, None] = {self.clock: None}
        self._walkers: list[asyncio.Future[None]] = []
        self._counts: dict[str, int] = {}
        self._driving = False

    # ------------------------------------------------------------------ what the fakes see

    def time(self) -> FakeClock:
        return self.clock

    async def passing(self, fake: object, call: BindingCall, answer: Callable[[], Awaitable[object]], /) -> object:
        if not self._driving:  # a fixture, before the test
            return await answer()
        event = _event.get()
        name, (args, options) = self._name_of(fake, call.binding), call.canonical()
        place, time, began = seam.place.get(), self.clock.time(), next(self._moments)
        args = (*call.target, *args)
        entry = SimulatedCall(event.label, name, call.kind, call.method, args, options, place, time, began)
        self.log.append(entry)
        self._check(event, entry)
        await self._turn(event, entry)
        when, fault = self._fault_of(entry, event)
        if when == 1:
            raise self._failed(entry, event, fault, "before its effect")
        try:
            entry.result = await self._answered(call, answer, event)
        except BaseException as error:
            entry.error = error
            entry.ended = next(self._moments)
            raise
        entry.took_effect = next(self._moments)
        if when == 2:
            raise self._failed(entry, event, fault, "after its effect")
        await self._turn(event, entry)
        entry.ended = next(self._moments)
        return entry.result

    async def _answered(self, call: BindingCall, answer: Callable[[], Awaitable[object]], event: Event) -> object:
        if call.kind != "durable_object":
            return await answer()
        # The object is elsewhere: it does not die with the event that calls it.
        inside = _event.set(Event(f"{event.label or 'the test'} in {call.target[0]}", mortal=False))
        try:
            return await answer()
        finally:
            _event.reset(inside)

    def _fault_of(self, entry: SimulatedCall, event: Event) -> tuple[int, BaseException]:
        """Draw when the call fails, and how: 0 never, 1 before its effect, 2 after it."""
        if event.mortal and (when := self.draw("crash", 3)):
            return when, IsolateDied()
        if entry.kind in _ERRORS and (drawn := self.draw("error", 5)):
            kind, *texts = _ERRORS[entry.kind]
            text = texts[(drawn - 1) // 2]
            return 1 + (drawn - 1) % 2, kind(text.format(method=entry.method, METHOD=entry.method.upper()))
        return 0, IsolateDied()

    def _failed(self, entry: SimulatedCall, event: Event, fault: BaseException, when: str) -> BaseException:
        event.alive = not isinstance(fault, IsolateDied)
        entry.fault = f"the {'binding fails' if event.alive else 'isolate dies'} {when}"
        if event.alive:
            entry.error, entry.ended = fault, next(self._moments)
        return fault

    def _check(self, event: Event, entry: SimulatedCall) -> None:
        if not event.alive:
            entry.fault = entry.fault or "its isolate has died"
            raise IsolateDied

    async def event(self, label: str, at: int, run: Callable[[], Awaitable[T]], /) -> T | None:
        self._counts[label] = number = self._counts.get(label, 0) + 1
        event = Event(label if number == 1 else f"{label} (no. {number})")
        before = _event.set(event)
        try:
            return await super().event(label, at, run)
        except BaseException:
            if event.alive:
                raise
            return None
        finally:
            _event.reset(before)

    def draw(self, fault: str, options: int, /) -> int:
        """See `Seam.draw`. The age of a KV read is asked for by `places`."""
        rate = 0.5 if fault == "places" else self._rates.get(fault)
        if rate is None:
            return 0
        drawn = self.tape.draw(
            options, lambda: 1 + below(self._random, options - 1) if self._random.random() < rate else 0
        )
        if drawn:
            self.reached.add(fault)
        return drawn

    def has_timers(self, clock: Clock, /) -> None:
        assert isinstance(clock, FakeClock)
        self._clocks[clock] = None

    async def rest(self) -> None:
        if not self._driving:
            await super().rest()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._walkers.append(future)
        await future

    # ------------------------------------------------------------------ the schedule

    def _name_of(self, fake: object, binding: str) -> str:
        """The name of a fake's binding, with a number where another fake has it already."""
        name = self._fakes.get(fake)
        if name is None:
            taken = sum(known.partition("#")[0] == binding for known in self._fakes.values())
            name = self._fakes[fake] = f"{binding}#{taken + 1}" if taken else binding
        return name

    async def _turn(self, event: Event, entry: SimulatedCall) -> None:
        task = self._tasks.setdefault(asyncio.current_task(), len(self._tasks))
        point = Point(task, asyncio.get_running_loop().create_future())
        self._parked.append(point)
        self.lengths[task] = self.lengths.get(task, 0) + 1
        try:
            await point.go
        finally:
            if point in self._parked:  # it was cancelled while it waited
                self._parked.remove(point)
        self._check(event, entry)

    def _go_on(self) -> None:
        # The plain order: the task that ran goes on, else the one that has waited longest.
        self._parked.sort(key=lambda point: point.task != self._last)
        chosen = self._parked.pop(self.tape.draw(len(self._parked), lambda: self._strategy(self._parked)))
        self._last = chosen.task
        if not chosen.go.done():
            chosen.go.set_result(None)

    def _move_time(self) -> bool:
        """Move every clock to the next timer. Returns False if there is none."""
        waits = [wait for clock in self._clocks if (wait := clock.until_next()) is not None]
        if not waits:
            return False
        for clock in [*self._clocks]:
            clock.advance(min(waits))
        return True

    async def drive(self, test: Coroutine[Any, Any, T]) -> T:
        """Run a test to its end, and whatever it leaves behind until that waits too."""
        task = asyncio.ensure_future(test)
        self._driving = True
        patience = _PATIENCE
        while True:
            await super().rest()
            if self._parked:
                self._go_on()
            elif task.done():
                break
            elif self._walkers:
                self._walkers.pop(0).set_result(None)
            elif not self._move_time():
                if patience <= 0:
                    waiting = sorted(each.get_name() for each in asyncio.all_tasks() - {asyncio.current_task()})
                    task.cancel()
                    raise StuckError(
                        f"nothing can go on: no call of a binding and no timer is left, and {', '.join(waiting)} still "
                        "wait. Look for two tasks that wait for each other"
                    )
                patience -= 0.001
                await asyncio.sleep(0.001)
        self._driving = False
        return task.result()

    @contextmanager
    def installed(self) -> Generator[None]:
        """Be the run that the fakes ask, with its own time and randomness, and then check what it has left.

        Raises AssertionError for calls that break a check and for work that is left behind, and RuntimeError inside
        another run.
        """
        if isinstance(seam.running, Simulation):
            raise RuntimeError("a simulation runs already: one cannot run inside another")
        forget_contexts()
        forget_ids()
        forget_all()
        numbers = random.Random(0)
        state = random.getstate()
        random.seed(0)
        clock = self.clock

        def urandom(size: int) -> bytes:
            return bytes(below(numbers, 256) for _ in range(size))

        time: dict[str, Any] = {
            name: staticmethod(getattr(clock, name)) for name in ("time", "monotonic", "sleep", "call_later")
        }
        with (
            mock.patch.multiple(SystemClock, **time),
            mock.patch.object(os, "urandom", urandom),
            mock.patch.object(random, "_urandom", urandom),
            mock.patch.object(seam, "running", self),
        ):
            try:
                yield
            finally:
                random.setstate(state)
                forget_ids()
        for check in self.checks:
            check(self.log)
        if left := left_behind():
            raise AssertionError("\n".join(left))
