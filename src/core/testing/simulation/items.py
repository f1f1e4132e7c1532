"""Tests of pytest under simulation: the fixtures of a test are made anew for each of its runs."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any, cast

import pytest
from _pytest.runner import runtestprotocol

from core.testing.simulation.decorators import SIMULATED, noted
from core.testing.simulation.explore import explore
from core.testing.simulation.scheduler import Settings, Simulation


def simulate_item(item: pytest.Function, nextitem: pytest.Item | None, runs: int) -> bool | None:
    """Make the runs of a test, its own or `runs` of an async test without, and report it once: passed, or with the
    shortest failure. None for any other test, which is run as usual.
    """
    test = item.obj
    known: tuple[object, Settings] | None = getattr(test, SIMULATED, None)
    if not (known or runs) or not inspect.iscoroutinefunction(test) or hasattr(test, "hypothesis"):
        return None
    settings = Settings(runs=runs) if known is None else known[1]

    def run(simulation: Simulation) -> None:
        raised: list[BaseException] = []

        @wraps(test)
        async def driven(*args: object, **fixtures: object) -> None:
            try:
                await simulation.drive(test(*args, **fixtures))
            except BaseException as error:
                raised.append(error)
                raise

        item.obj = driven
        # Only the test itself is torn down between its runs.
        for report in runtestprotocol(item, log=False, nextitem=cast("Any", item.parent)):
            if not report.passed:
                if raised:
                    raise raised[0]
                raise pytest.skip.Exception if report.skipped else AssertionError(report.longreprtext)

    failure: BaseException | None = None
    try:
        noted(item.nodeid, settings, explore(run, settings))
    except (KeyboardInterrupt, SystemExit, pytest.exit.Exception):
        raise
    except BaseException as error:
        failure = error

    @wraps(test)
    async def reported(*args: object, **fixtures: object) -> None:
        if failure is not None:
            raise failure

    item.obj = reported
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    item.obj = test
    return True
