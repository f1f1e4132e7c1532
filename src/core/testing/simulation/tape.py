"""The tape: every choice of a run, in order, as one integer each. 0 is always what happens without a simulation.

So a run is written down as its deviations, `"3=1 9=2"`: choice 3 was 1, choice 9 was 2, every other one 0. A choice
among one is none, and is not on the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


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
