"""Who goes on: the strategies of a schedule, of which every run draws one.

No strategy finds every shape of bug: a random walk seldom starves a task, few deviations seldom nest three. A run draws
a plain walk, few deviations, PCT (Burckhardt et al., 2010), POS (Yuan et al., 2018) or a uniform random walk over
orders (weighted by the calls that a task has left).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol

import attrs


@attrs.frozen(eq=False)
class Point:
    """A call that waits for its turn: its task, what it touches, and whether it writes."""

    task: int
    touches: object
    writes: bool


class Strategy(Protocol):
    """Chooses which of the waiting calls goes on: the first of them is the one that goes on without a simulation."""

    def pick(self, points: Sequence[Point]) -> int:
        """The number of the point that goes on."""
        ...


def below(random: Random, count: int) -> int:
    """A number below `count`. `Random.random` is the same in every version of Python; the methods over it are not."""
    return int(random.random() * count)


class Walk:
    """Any of them, or, with `deviation`, the first but for that part of the choices."""

    def __init__(self, random: Random, deviation: float = 1.0) -> None:
        self._random = random
        self._deviation = deviation

    def pick(self, points: Sequence[Point]) -> int:
        """See `Strategy.pick`."""
        return below(self._random, len(points)) if self._random.random() < self._deviation else 0


class Priorities:
    """PCT: a priority for each task, and `changes` moments at which the task that would go on falls to the last."""

    def __init__(self, random: Random, length: int, changes: int) -> None:
        self._random = random
        self._priorities: dict[int, float] = {}
        self._at = {below(random, max(length, 1)) for _ in range(changes)}
        self._now = 0

    def pick(self, points: Sequence[Point]) -> int:
        """See `Strategy.pick`."""
        for point in points:
            if point.task not in self._priorities:
                self._priorities[point.task] = 1 + self._random.random()
        chosen = self._highest(points)
        if self._now in self._at:
            self._priorities[points[chosen].task] = -float(self._now)
            chosen = self._highest(points)
        self._now += 1
        return chosen

    def _highest(self, points: Sequence[Point]) -> int:
        return max(range(len(points)), key=lambda number: self._priorities[points[number].task])


class Events:
    """POS: a priority for each call. Those that race with the chosen one are given another."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._priorities: dict[Point, float] = {}

    def pick(self, points: Sequence[Point]) -> int:
        """See `Strategy.pick`."""
        for point in points:
            if point not in self._priorities:
                self._priorities[point] = self._random.random()
        chosen = max(range(len(points)), key=lambda number: self._priorities[points[number]])
        first = points[chosen]
        for point in points:
            if point is not first and point.touches == first.touches and (point.writes or first.writes):
                self._priorities[point] = self._random.random()
        return chosen


class Orders:
    """A uniform random walk: a task is as likely as it has points left, by a run in the plain order."""

    def __init__(self, random: Random, lengths: Mapping[int, int]) -> None:
        self._random = random
        self._left = dict(lengths)

    def pick(self, points: Sequence[Point]) -> int:
        """See `Strategy.pick`."""
        weights = [max(self._left.get(point.task, 1), 1) for point in points]
        at = self._random.random() * sum(weights)
        chosen = 0
        while chosen < len(points) - 1 and at >= weights[chosen]:
            at -= weights[chosen]
            chosen += 1
        task = points[chosen].task
        self._left[task] = self._left.get(task, 1) - 1
        return chosen


def draw_strategy(random: Random, lengths: Mapping[int, int]) -> Strategy:
    """One of the strategies. `lengths` are the points of each task in a run in the plain order."""
    which = below(random, 6)
    if which == 0:
        return Walk(random)
    if which == 1:
        return Walk(random, 0.1)
    if which in (2, 3):
        return Priorities(random, sum(lengths.values()), which - 1)
    return Events(random) if which == 4 else Orders(random, lengths)
