"""Where a simulation meets the fakes: `running` is the one of the test that runs now, and None in every ordinary test.

Fakes ask it before they draw, wait or look at another place. This file knows no simulation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from core.bindings.calls import BindingCall
    from core.context import Clock

T = TypeVar("T")


class Timers(Protocol):
    """A clock that a simulation moves."""

    def until_next(self) -> float | None:
        """Seconds until the next timer; None where nothing waits for the clock."""
        ...

    def advance(self, seconds: float, /) -> object:
        """Move on by `seconds`, as soon as what it returns is dropped."""
        ...


class Seam(Protocol):
    """A simulation, as the fakes, the clock and the client see it."""

    places: int
    turns: Iterator[int]
    """The places of the clients that are made, one after the other."""
    faults: Collection[str]
    clocks: dict[Timers, None]
    """The clocks that are moved when nothing else can happen."""

    @property
    def clock(self) -> Clock:
        """The time of the run."""
        ...

    async def passing(self, fake: object, call: BindingCall, answer: Callable[[], Awaitable[Any]], /) -> Any:
        """Answer a call of a binding, when its turn has come."""
        ...

    async def event(self, label: str, place: int, run: Callable[[], Awaitable[T]], /) -> T | None:
        """Run a request, a batch or a schedule. Returns None if its isolate died."""
        ...

    def draw(self, fault: str, options: int, /) -> int:
        """Draw one of `options` where `fault` was asked for: 0, which is no fault, everywhere else."""
        ...

    async def rest(self) -> None:
        """Return when every task waits for something that only time brings."""
        ...


class IsolateDied(BaseException):  # not an Exception: no handler sees its own death
    """The isolate of an event died at a call of a binding. It is raised only in a simulation."""


running: Seam | None = None
place: ContextVar[int] = ContextVar("place", default=0)
"""The place at which a request came in, among those of `FakeKVNamespace(places=…)`."""
