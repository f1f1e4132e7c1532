"""The choices of a run: the tape that they are written on, and the strategies of a schedule, of which a run draws one.

The tape has every choice, in order, as one integer each. 0 is always what happens without a simulation. So a run is
written down as its deviations, `"3=1 9=2"`: choice 3 was 1, choice 9 was 2, every other one 0. A choice among one is
none, and is not on the tape.

No strategy finds every shape of bug: a random walk seldom starves a task, few deviations seldom nest three. A run draws
a plain walk, few deviations, or a uniform random walk over orders (SURW: weighted by the calls that a task has left).
"""

from __future__ import annotations

import asyncio
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import TypeAlias

import attrs


class Tape:
    """The choices of one run. `deviations` repeats a run; without them, choices are made as the run asks for them."""

    def __init__(self, deviations: Mapping[int, int] | None = None) -> None:
        self.drawn: list[int] = []
        self.options: list[int] = []
        self._given = deviations

    @classmethod
    def read(cls, text: str) -> Tape:
        """The tape of a text such as `"3=1 9=2"`. Raises ValueError for any other text."""
        try:
            pairs = [(int(position), int(value)) for position, value in (part.split("=") for part in text.split())]
        except ValueError:
            raise ValueError(f'replay("{text}"): write the deviations as a report shows them, "3=1 9=2"') from None
        return cls(dict(pairs))

    def draw(self, options: int, choose: Callable[[], int]) -> int:
        """One of `options`, by number: by `choose` where nothing is repeated."""
        if options < 2:
            return 0
        value = choose() if self._given is None else self._given.get(len(self.drawn), 0)
        if value >= options:
            value = 0
        self.drawn.append(value)
        self.options.append(options)
        return value

    @property
    def deviations(self) -> dict[int, int]:
        """The choices that were not 0, by position."""
        return {position: value for position, value in enumerate(self.drawn) if value}

    def __str__(self) -> str:
        return " ".join(f"{position}={value}" for position, value in self.deviations.items())


@attrs.frozen(eq=False)
class Point:
    """A call that waits for its turn: its task, and what ends its wait."""

    task: int
    go: asyncio.Future[None]


Strategy: TypeAlias = Callable[[Sequence[Point]], int]
"""Chooses which of the waiting calls goes on, by number: the first is the one that goes on without a simulation."""


def below(random: Random, limit: int) -> int:
    """A number below `limit`. `Random.random` is the same in every version of Python; the methods over it are not."""
    return int(random.random() * limit)


def _walk(random: Random, deviation: float) -> Strategy:
    """Any of them, or, with `deviation`, the first but for that part of the choices."""
    return lambda points: below(random, len(points)) if random.random() < deviation else 0


def _orders(random: Random, lengths: Mapping[int, int]) -> Strategy:
    """A uniform random walk: a task is as likely as it has points left, by a run in the plain order."""
    left = dict(lengths)

    def pick(points: Sequence[Point]) -> int:
        weights = [*accumulate(max(left.get(point.task, 1), 1) for point in points)]
        chosen = bisect(weights, below(random, weights[-1]))
        task = points[chosen].task
        left[task] = left.get(task, 1) - 1
        return chosen

    return pick


def draw_strategy(random: Random, lengths: Mapping[int, int]) -> Strategy:
    """One of the strategies. `lengths` are the points of each task in a run in the plain order."""
    which = below(random, 3)
    return _orders(random, lengths) if which == 2 else _walk(random, (1.0, 0.1)[which])
