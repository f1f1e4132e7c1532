"""A contract and its cases: how promises are collected, and how one of them is tried on an implementation.

Nothing here knows a kind of binding. The cases beside this file are plain coroutines over a binding's Protocol. They
need no pytest, no sqlite3, no threads and no sockets, so that they run inside the runtime too, on the real bindings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import attrs

B = TypeVar("B")
E = TypeVar("E", bound=BaseException)


class MovingClock(Protocol):
    """A clock that the cases about time move, such as `core.testing.FakeClock`. The binding must follow it."""

    def time(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        ...

    def advance(self, seconds: float, /) -> Awaitable[None]:
        """Move on by `seconds`; awaited, due timers fire."""
        ...


@attrs.frozen
class Case(Generic[B]):
    """One promise: `name` says it, `run` tries it.

    `timed`: it needs a clock. `paired`: it needs a second binding of the kind. `heavy`: it moves megabytes.
    """

    name: str
    body: Callable[..., Awaitable[None]] = attrs.field(repr=False)
    clean: Callable[[Any], Awaitable[None]] = attrs.field(repr=False)
    timed: bool = False
    paired: bool = False
    heavy: bool = False

    def __str__(self) -> str:
        return self.name

    async def run(self, binding: B, *, other: B | None = None, clock: MovingClock | None = None) -> None:
        """Try the promise on a binding, which is emptied first. Raises AssertionError where it does not keep it.

        Raises ValueError where the case needs `clock` or `other` and has none: leave such cases out by `timed` and
        `paired`.
        """
        await self.clean(binding)
        arguments: list[Any] = [binding]
        if self.paired:
            if other is None:
                raise ValueError(f"{self.name} needs a second binding: run(binding, other=…)")
            await self.clean(other)
            arguments.append(other)
        if self.timed:
            if clock is None:
                raise ValueError(f"{self.name} needs a clock that it can move: run(binding, clock=…)")
            arguments.append(clock)
        await self.body(*arguments)


class Contract(Generic[B]):
    """The promises of one kind of binding. `clean` empties a binding before each case."""

    def __init__(self, kind: str, clean: Callable[[B], Awaitable[None]]) -> None:
        self.kind = kind
        self.clean = clean
        self.cases: list[Case[B]] = []

    def case(
        self, *, timed: bool = False, paired: bool = False, heavy: bool = False
    ) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
        """Add the decorated function to the contract: `(binding)`, `(binding, other)`, `(binding, clock)`."""

        def add(body: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
            self.cases.append(Case(body.__name__, body, self.clean, timed, paired, heavy))
            return body

        return add

    def select(self, *, timed: bool = True, paired: bool = True, heavy: bool = True) -> list[Case[B]]:
        """The cases that an implementation can be tried with, by what it has."""
        return [
            case
            for case in self.cases
            if (timed or not case.timed) and (paired or not case.paired) and (heavy or not case.heavy)
        ]


async def refused(call: Awaitable[object], kind: type[E], message: str | None = None) -> E:
    """Await a call that must raise a `kind`, with exactly this message where one is given, and return the error."""
    try:
        answer = await call
    except kind as error:
        if message is not None and str(error) != message:
            raise AssertionError(f"want the message {message!r}, got {str(error)!r}") from error
        return error
    raise AssertionError(f"want {kind.__name__}: {message}, got the answer {answer!r:.200}")
