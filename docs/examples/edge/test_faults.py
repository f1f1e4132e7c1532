"""Each planted bug is found soon, and nothing is found in what repairs it."""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import attrs
import pytest

from core.testing import Client, FakeDurableObjectNamespace, simulate
from edge import scenarios
from edge.faults import Counter, app
from edge.scenarios import Version, bindings

RUNS = int(os.environ.get("CORE_RUNS", "50"))
"""How many runs a repaired handler passes: ten times as many as find the bug. `make fuzz` asks for 5,000."""


@attrs.frozen
class Planted:
    scenario: Callable[[Version], Awaitable[None]]
    faults: tuple[Literal["queue", "cron", "crash", "alarm"], ...] = ()
    places: int = 1


PLANTED = [
    Planted(scenarios.lost_update),
    Planted(scenarios.check_then_insert),
    Planted(scenarios.await_in_an_object),
    Planted(scenarios.duplicate_delivery, faults=("queue",)),
    Planted(scenarios.poison_message, faults=("queue",)),
    Planted(scenarios.cron_twice, faults=("cron",)),
    Planted(scenarios.logged_out_elsewhere, places=2),
    Planted(scenarios.missing_is_remembered, places=2),
    Planted(scenarios.overwritten_object),
    Planted(scenarios.cut_off, faults=("crash",)),
    Planted(scenarios.alarm_retried, faults=("alarm",)),
    Planted(scenarios.burst),
]


def run(planted: Planted, version: Version, runs: int) -> None:
    async def test() -> None:
        await planted.scenario(version)

    simulate(runs=runs, faults=planted.faults, places=planted.places)(test)()


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.scenario.__name__)
def test_the_bug_is_found_and_told_in_at_most_three_deviations(planted: Planted) -> None:
    began = time.process_time()
    with pytest.raises(AssertionError) as failure:
        run(planted, "broken", 500)
    assert time.process_time() - began < 2
    deviations = re.search(r"needs (\d+) deviation", failure.value.__notes__[-1])
    assert deviations is not None
    assert int(deviations[1]) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.scenario.__name__)
def test_nothing_is_found_in_the_repaired_one(planted: Planted) -> None:
    run(planted, "repaired", RUNS)


@pytest.mark.slow
# --8<-- [start:first]
@simulate(runs=200)
async def test_every_visit_is_counted() -> None:
    client = Client(app, bindings(COUNTERS=FakeDurableObjectNamespace(Counter)))
    answers = await asyncio.gather(*[client.post("/repaired/visits") for _ in range(3)])
    assert sorted([(await answer.json())["visits"] for answer in answers]) == [1, 2, 3]


# --8<-- [end:first]
