"""`simulate` and `replay`: an async test under every schedule and fault that its runs reach."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial, wraps
from typing import Any, TypeAlias

import attrs

from core.testing import seam
from core.testing.simulation.choices import Tape
from core.testing.simulation.explore import explore
from core.testing.simulation.log import SimulatedCall
from core.testing.simulation.scheduler import Check, Fault, Settings, Simulation

AsyncTest: TypeAlias = Callable[..., Coroutine[Any, Any, None]]

SIMULATED = "__core_simulated__"
"""The attribute of a test that has its coroutine function and its `Settings`."""
asked: set[tuple[str, str]] = set()
"""The faults that tests asked for: the name of a test and the fault, for the end of a session."""
reached: set[tuple[str, str]] = set()
"""Those that a run of theirs has reached."""


def simulate(
    *, runs: int = 200, faults: Collection[Fault] = (), places: int = 1, seed: int = 0, checks: Sequence[Check] = ()
) -> Callable[[AsyncTest], Callable[..., Any]]:
    """Run an async test `runs` times, each in another order of its calls of bindings.

        @simulate(runs=500)
        async def test_no_increment_is_lost() -> None:
            counters = FakeKVNamespace()
            client = Client(app, Env(COUNTERS=counters))
            await asyncio.gather(client.post("/increments"), client.post("/increments"))
            assert await counters.get("n") == "2"

    Every call of a fake waits for its turn before and after its effect. Which one goes on is drawn, by a strategy that
    is drawn for each run; the first run is the order without a simulation. Time stands still until nothing else can
    happen. Randomness and the time of `req.clock` are replaced meanwhile, `datetime.now()` is not, and each run is made
    twice and compared.

    `faults` are drawn too:

    - `"error"`: a binding fails, before its effect or after it, in the platform's words.
    - `"crash"`: the isolate of a request, batch or schedule dies at a call, with its `wait_until`. A client is answered
      500, a batch is delivered again. Modules and lifespans stay, with what they hold.
    - `"queue"`: `FakeQueue.deliver` and `consume` hand messages over twice, late, and in smaller batches.
    - `"evict"`: a Durable Object that nothing runs in loses its instance before a call.
    - `"alarm"`: an alarm that ended well runs once more.
    - `"cron"`: `Client.trigger` comes up twice.
    - `"replica"`: a read in a session of D1 (`with_session`) comes from a replica that lags, though never behind what
      the session has seen and written.

    With `places` above 1, clients are at that many places in turn, and a read of a `FakeKVNamespace` may be up to 60
    seconds old, but for what its own place wrote or has seen. `checks` read the calls of each run: see
    `core.testing.linearizable`. The same `seed` is the same runs, in every version of Python.

    The failure that is raised is the shortest that was found, with the calls of its run and the line of `replay` that
    repeats it. A test with parameters gets its fixtures anew for each run; it needs the pytest plugin. Under
    Hypothesis, `@given(…)` above `@simulate(…)`, each example is one run whose choices Hypothesis draws, so that they
    shrink together with the arguments; `runs` and `seed` are then Hypothesis' own. Raises ValueError for a fault that
    there is not.
    """
    settings = Settings(runs=runs, faults=faults, places=places, seed=seed, checks=checks)
    return lambda test: _simulated(test, settings)


def replay(deviations: str, /) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test once, with these deviations from the plain order, as a failure of `simulate` names them.

        @replay("3=1 9=2")
        @simulate(runs=500)
        async def test_no_increment_is_lost() -> None: ...

    Raises ValueError for another text than that of a report.
    """
    Tape.read(deviations)

    def repeat(test: Callable[..., Any]) -> Callable[..., Any]:
        known: tuple[AsyncTest, Settings] = getattr(test, SIMULATED, (test, Settings()))
        return _simulated(known[0], attrs.evolve(known[1], replay=deviations))

    return repeat


def call_log() -> Sequence[SimulatedCall]:
    """The calls of the running simulation, in the order in which they began. Raises RuntimeError outside of one."""
    if not isinstance(seam.running, Simulation):
        raise RuntimeError("call_log() is for tests under @simulate")
    return seam.running.log


def _simulated(test: AsyncTest, settings: Settings) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(test):
        raise TypeError(f"simulate: {test.__qualname__} is not an async function")
    if inspect.signature(test).parameters:

        @wraps(test)
        async def run_with(*args: Any, **given: Any) -> None:
            hypothesis = sys.modules.get("hypothesis")
            if hypothesis is None or not hypothesis.currently_in_test_context():
                await test(*args, **given)  # one run of those that the pytest plugin makes
                return
            from core.testing.simulation.drawn import run_example

            await run_example(partial(test, *args, **given), settings)

        setattr(run_with, SIMULATED, (test, settings))
        return run_with

    def once(simulation: Simulation) -> None:
        with asyncio.Runner() as runner:
            runner.run(simulation.drive(test()))

    @wraps(test)
    def run() -> None:
        noted(f"{test.__module__}.{test.__qualname__}", settings, explore(once, settings))

    del run.__dict__["__wrapped__"]  # pytest-asyncio would see a coroutine function
    setattr(run, SIMULATED, (test, settings))
    return run


def noted(name: str, settings: Settings, found: set[str]) -> None:
    """Remember which faults a test asked for, and which its runs have reached."""
    if settings.replay is None:
        faults = (*settings.faults, *(["places"] if settings.places > 1 else []))
        asked.update((name, fault) for fault in faults)
        reached.update((name, fault) for fault in found)
