"""The fakes keep their contracts in a simulation too, whichever call goes first or object is evicted."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.contract import Case
from tests.contracts.places import Kind, standing_in
from tests.contracts.test_d1 import KIND as D1
from tests.contracts.test_durable_object import KIND as DURABLE_OBJECT
from tests.contracts.test_kv import KIND as KV
from tests.contracts.test_queue import KIND as QUEUE
from tests.contracts.test_r2 import KIND as R2
from tests.contracts.test_rate_limit import KIND as RATE_LIMIT

from core.testing import simulate
from core.testing.simulation.scheduler import Fault

KINDS: tuple[Kind[Any], ...] = (KV, D1, R2, QUEUE, DURABLE_OBJECT, RATE_LIMIT)
CASES = [(kind, case) for kind in KINDS for case in kind.contract.cases if not case.heavy]

IN_MEMORY = {"an_aborted_object_starts_anew_from_what_was_kept"}
"""Cases that count on what an object has in memory between two calls."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "case"), CASES, ids=[f"{kind.contract.kind}-{case.name}" for kind, case in CASES])
def test_a_fake_keeps_its_contract_in_a_simulation(
    kind: Kind[Any], case: Case[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "core")

    async def test() -> None:
        with standing_in("fake", kind, tmp_path) as place:
            await case.run(place.binding, other=place.other, clock=place.clock)
            for binding in (place.binding, place.other):
                end = getattr(binding, "stop", None) or getattr(binding, "close", None)
                if end is not None:
                    await end()

    faults: list[Fault] = ["replica"] if case.name in IN_MEMORY else ["replica", "evict"]
    simulate(runs=20 if "session" in case.name else 4, faults=faults)(test)()
