"""Many runs of one test: which are made, how a failure is made short, and how it is told."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Final, TypeAlias

from core.testing.simulation.choices import Tape
from core.testing.simulation.scheduler import Settings, Simulation

# How many runs a failure may cost to be made short.
_SHRINKING: Final = 400


class NotRepeatableError(AssertionError):
    """A run that was repeated with the same choices went another way."""


Runner: TypeAlias = Callable[[Simulation], None]
"""Makes one run of an installed simulation: drives the test, and raises its error."""


def explore(run: Runner, settings: Settings) -> set[str]:
    """Make the runs of `settings`. Returns the faults that were reached; raises the shortest failure, with a note."""

    def once(tape: Tape, seed: int = 0, lengths: Mapping[int, int] | None = None) -> Simulation:
        made = Simulation(tape, settings, seed=seed, lengths=lengths)
        try:
            with made.installed():
                run(made)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # pytest.fail raises one
            made.error = error
        return made

    if settings.replay is not None:
        made = once(Tape.read(settings.replay))
        if made.error is not None:
            raise made.error
        return made.reached
    reached: set[str] = set()
    # What hundreds of runs log helps nobody; a run that is repeated logs as usual.
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        plain = passing = made = once(Tape({}))
        for number in range(settings.runs):
            if number:
                made = once(Tape(), settings.seed * 1_000_003 + number, plain.lengths)
            _compare(made, once(Tape(made.tape.deviations)))
            reached |= made.reached
            if made.error is not None:
                raise _failure(*_shortest(made, passing, once), number=number, settings=settings)
            passing = made
    finally:
        logging.disable(level)
    return reached


def _compare(first: Simulation, second: Simulation) -> None:
    """Refuse two runs of the same choices that differ: something else than the tape decides."""
    one, other = [call.call for call in first.log], [call.call for call in second.log]
    if one == other and first.tape.options == second.tape.options:
        return
    pairs = enumerate([*zip_longest(one, other, fillvalue="no call"), ("no call", "no call")])
    at, calls = next((at, pair) for at, pair in pairs if pair[0] != pair[1] or at == len(one) == len(other))
    error = NotRepeatableError(
        f"two runs with the same choices differ: call {at + 1} was {calls[0]}, then {calls[1]}. Something beside the "
        "schedule decides: `datetime.now()`, for which `req.clock.time()` has the time of the run, the order of a set, a "
        "value kept from the run before. Make it in the test"
    )
    raise error from (first.error or second.error)


def _shortest(
    failed: Simulation, passing: Simulation, once: Callable[[Tape], Simulation]
) -> tuple[Simulation, Simulation]:
    """The failing run with the fewest deviations that was found, and the passing run that was tried last before it."""
    left = _SHRINKING
    kind = type(failed.error)

    def attempt(deviations: Mapping[int, int]) -> bool:
        nonlocal failed, passing, left
        left -= 1
        made = once(Tape(deviations))
        if isinstance(made.error, kind) and _weight(made.tape.deviations) < _weight(failed.tape.deviations):
            failed = made
            return True
        if made.error is None:
            passing = made
        return False

    # The plain order with one choice that differs is the shortest there is.
    if len(failed.tape.deviations) > 1:
        for position, value in [*failed.tape.deviations.items()]:
            if attempt({position: value}):
                break
    while left > 0:
        before = _weight(failed.tape.deviations)
        size = len(failed.tape.deviations)
        while size:
            at = 0
            while at < len(failed.tape.deviations) and left > 0:
                remaining = [*failed.tape.deviations.items()]
                if not attempt(dict(remaining[:at] + remaining[at + size :])):
                    at += size
            size //= 2
        for position, value in [*failed.tape.deviations.items()]:
            # A smaller choice, or the same one earlier: fewer calls are then between it and the next.
            if left <= 0 or attempt({**failed.tape.deviations, position: value - 1}):
                break
        if _weight(failed.tape.deviations) == before:
            break
    return failed, passing


def _weight(deviations: Mapping[int, int]) -> tuple[int, int, int]:
    return len(deviations), sum(deviations.values()), sum(deviations)


def _failure(failed: Simulation, passing: Simulation, *, number: int, settings: Settings) -> BaseException:
    """The error of a run, with what a developer needs to see and to repeat it."""
    error = failed.error
    assert error is not None
    count = len(failed.tape.deviations)
    deviations = "1 deviation" if count == 1 else f"{count} deviations"
    before, after = ([str(call) for call in run.log] for run in (passing, failed))
    difference = [line.rstrip("\n") for line in difflib.ndiff(before, after) if not line.startswith("?")]
    error.add_note(
        "\n".join(
            [
                f"run {number + 1} of {settings.runs} (seed {settings.seed}) failed; it needs {deviations} from the plain order.",
                "Its calls, and how (+, -) they differ from a run that passed:",
                *(f"  {line}" for line in difference),
                "To repeat it, put this line above the test:",
                f'  @replay("{failed.tape}")',
            ]
        )
    )
    return error
