"""Many runs of one test: which are made, how a failure is made short, and how it is told."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import attrs

from core.testing.context import forget_contexts, left_behind
from core.testing.simulation.log import SimulatedCall
from core.testing.simulation.scheduler import FAULTS, Simulation
from core.testing.simulation.tape import Tape

Check: TypeAlias = Callable[[Sequence[SimulatedCall]], None]
"""Reads the calls of a run. Raises AssertionError for a run that breaks its rule."""

# How many runs a failure may cost to be made short.
_SHRINKING: Final = 400


class NotRepeatableError(AssertionError):
    """A run that was repeated with the same choices went another way."""


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


@attrs.frozen
class Run:
    """A run that was made: its choices, its calls, its error."""

    simulation: Simulation
    error: BaseException | None

    @property
    def deviations(self) -> dict[int, int]:
        """The choices that were not the plain ones."""
        return self.simulation.tape.deviations

    @property
    def lines(self) -> list[str]:
        """The calls as a report shows them, in the order in which they began."""
        return [str(call) for call in self.simulation.log]


Runner: TypeAlias = Callable[[Simulation], BaseException | None]
"""Makes one run: installs the simulation, drives the test, and returns its error."""


class _Once(Protocol):
    def __call__(self, tape: Tape, seed: int = 0, lengths: Mapping[int, int] | None = None) -> Run: ...


def directly(test: Callable[[], Coroutine[Any, Any, None]]) -> Runner:
    """Runs of a coroutine function without arguments, each in an event loop of its own."""

    def run(simulation: Simulation) -> BaseException | None:
        forget_contexts()
        with simulation.installed():
            try:
                with asyncio.Runner() as runner:
                    runner.run(simulation.drive(test()))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # pytest.fail raises one
                return error
        left = left_behind()
        return AssertionError("\n".join(left)) if left else None

    return run


def explore(run: Runner, settings: Settings) -> set[str]:
    """Make the runs of `settings`. Returns the faults that were reached; raises the shortest failure, with a note."""

    def once(tape: Tape, seed: int = 0, lengths: Mapping[int, int] | None = None) -> Run:
        simulation = Simulation(tape, seed=seed, lengths=lengths, faults=settings.faults, places=settings.places)
        error = run(simulation)
        if error is None:
            try:
                for check in settings.checks:
                    check(simulation.log)
            except AssertionError as broken:
                error = broken
        return Run(simulation, error)

    if settings.replay is not None:
        made = once(Tape.read(settings.replay))
        if made.error is not None:
            raise made.error
        return made.simulation.reached
    reached: set[str] = set()
    # What hundreds of runs log helps nobody; a run that is repeated logs as usual.
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        plain = passing = made = once(Tape({}))
        for number in range(settings.runs):
            if number:
                made = once(Tape(), settings.seed * 1_000_003 + number, plain.simulation.lengths)
            _compare(made, once(Tape(made.deviations)))
            reached |= made.simulation.reached
            if made.error is not None:
                raise _told(*_shortest(made, passing, once), number=number, settings=settings)
            passing = made
    finally:
        logging.disable(level)
    return reached


def _compare(first: Run, second: Run) -> None:
    """Refuse two runs of the same choices that differ: something else than the tape decides."""
    one, other = [call.call for call in first.simulation.log], [call.call for call in second.simulation.log]
    if one == other and first.simulation.tape.options == second.simulation.tape.options:
        return
    at = next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    calls = [calls[at] if at < len(calls) else "no call" for calls in (one, other)]
    error = NotRepeatableError(
        f"two runs with the same choices differ: call {at + 1} was {calls[0]}, then {calls[1]}. Something beside the "
        "schedule decides: a clock of its own, the order of a set, a value kept from the run before. Make it in the test"
    )
    raise error from (first.error or second.error)


def _shortest(failed: Run, passing: Run, once: _Once) -> tuple[Run, Run]:
    """The failing run with the fewest deviations that was found, and the passing run that was tried last before it."""
    left = _SHRINKING
    kind = type(failed.error)

    def attempt(deviations: Mapping[int, int]) -> bool:
        nonlocal failed, passing, left
        left -= 1
        made = once(Tape(deviations))
        if isinstance(made.error, kind) and _weight(made.deviations) < _weight(failed.deviations):
            failed = made
            return True
        if made.error is None:
            passing = made
        return False

    def pass_over() -> None:
        size = len(failed.deviations)
        while size:
            at = 0
            while at < len(failed.deviations) and left > 0:
                kept = [*failed.deviations.items()]
                if not attempt(dict(kept[:at] + kept[at + size :])):
                    at += size
            size //= 2
        for position, value in [*failed.deviations.items()]:
            if left <= 0:
                return
            # A smaller choice, or the same one earlier: fewer calls are then between it and the next.
            if attempt({**failed.deviations, position: value - 1}):
                return

    # The plain order with one choice that differs is the shortest there is.
    if len(failed.deviations) > 1:
        for position, value in [*failed.deviations.items()]:
            if attempt({position: value}):
                break
    while left > 0:
        before = _weight(failed.deviations)
        pass_over()
        if _weight(failed.deviations) == before:
            break
    return failed, passing


def _weight(deviations: Mapping[int, int]) -> tuple[int, int, int]:
    return len(deviations), sum(deviations.values()), sum(deviations)


def _told(failed: Run, passing: Run, *, number: int, settings: Settings) -> BaseException:
    """The error of a run, with what a developer needs to see and to repeat it."""
    error = failed.error
    assert error is not None
    count = len(failed.deviations)
    deviations = "1 deviation" if count == 1 else f"{count} deviations"
    difference = [line.rstrip("\n") for line in difflib.ndiff(passing.lines, failed.lines) if not line.startswith("?")]
    error.add_note(
        "\n".join(
            [
                f"run {number + 1} of {settings.runs} (seed {settings.seed}) failed; it needs {deviations} from the plain order.",
                "Its calls, and how (+, -) they differ from a run that passed:",
                *(f"  {line}" for line in difference),
                "To repeat it, put this line above the test:",
                f'  @replay("{failed.simulation.tape}")',
            ]
        )
    )
    return error
