"""A simulation whose tape Hypothesis draws: the choices of a run shrink together with the arguments of its test.

Loaded only where Hypothesis is: `@given` around `@simulate`, and `CoreStateMachine`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.control import current_build_context
from hypothesis.stateful import RuleBasedStateMachine
from typing_extensions import TypeVar

from core.app import App
from core.testing.client import Client
from core.testing.clock import FakeClock
from core.testing.environment import env
from core.testing.simulation.choices import Tape
from core.testing.simulation.scheduler import Check, Fault, Settings, Simulation

T = TypeVar("T")


class DrawnTape(Tape):
    """A tape of the example that Hypothesis tries now."""

    def __init__(self) -> None:
        super().__init__()
        self._data = current_build_context().data
        # One choice in so many leaves the plain order. The plain choice is 0, so that examples shrink to it.
        self._spread: int = self._data.draw(st.sampled_from([16, 4, 1]))

    def draw(self, options: int, choose: Callable[[], int]) -> int:
        """One of `options`, by number. `choose` is not asked: Hypothesis chooses."""
        return super().draw(options, lambda: self._data.draw(st.integers(0, options * self._spread - 1)))


async def run_example(test: Callable[[], Coroutine[Any, Any, None]], settings: Settings) -> None:
    """Make one run of a test, for one example of `@given`, in the event loop that is there."""
    simulation = Simulation(DrawnTape() if settings.replay is None else Tape.read(settings.replay), settings)
    before = asyncio.all_tasks()
    try:
        with simulation.installed():
            await simulation.drive(test())
    except Exception:
        note(_report(simulation))
        raise
    finally:
        tasks = asyncio.all_tasks() - before
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _report(simulation: Simulation) -> str:
    return "\n".join(["The calls of this run:", *(f"  {call}" for call in simulation.log)])


class CoreStateMachine(RuleBasedStateMachine):
    """A `RuleBasedStateMachine` of Hypothesis whose rules send requests to an application, under simulation.

        class Counting(CoreStateMachine):
            app = app
            visits = 0

            @rule(count=st.integers(1, 3))
            def visit(self, count: int) -> None:
                answers = self.run(*[self.client.post("/visits") for _ in range(count)])
                assert all(answer.status == 200 for answer in answers)
                self.visits += count

            @invariant()
            def every_visit_counts(self) -> None:
                [answer] = self.run(self.client.get("/visits"))
                ...

        TestCounting = Counting.TestCase

    `app` is the application; `faults`, `places` and `checks` are those of `simulate`. A machine has its `clock`, its
    `env` and one `client`; `make_env` may be overridden. Hypothesis draws the rules, their arguments and the order of
    the calls, and shrinks all of them. A failure is told with the calls of its run.
    """

    app: ClassVar[App[Any]]
    faults: ClassVar[Collection[Fault]] = ()
    places: ClassVar[int] = 1
    checks: ClassVar[Sequence[Check]] = ()

    def __init__(self) -> None:
        super().__init__()
        settings = Settings(faults=self.faults, places=self.places, checks=self.checks)
        self._simulation = Simulation(DrawnTape(), settings)
        self.clock: FakeClock = self._simulation.clock
        with ExitStack() as opened:
            opened.enter_context(self._simulation.installed())
            self._runner = opened.enter_context(asyncio.Runner())
            self.env: Any = self.make_env()
            self.client: Client[Any] = Client(self.app, self.env)
            self._opened = opened.pop_all()

    def make_env(self) -> object:
        """The Env of a machine: fakes on its clock, unless overridden."""
        assert self.app.env_class is not None, "the application was made without an Env class: override make_env"
        return env(self.app.env_class, clock=self.clock)

    def run(self, *awaitables: Awaitable[T]) -> list[T]:
        """Await all of these at once, in an order that is drawn. Returns their results, or raises the first error."""

        async def together() -> list[T]:
            return await asyncio.gather(*awaitables)

        return self._runner.run(self._simulation.drive(together()))

    def teardown(self) -> None:
        """End the run. A machine that overrides it calls this too."""
        note(_report(self._simulation))
        self._opened.__exit__(*sys.exc_info())
