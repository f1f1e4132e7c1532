"""The fakes keep their contracts in a simulation too: whichever call goes first, and however far a replica lags."""

from typing import Any

import pytest
from tests.contracts.contract import Case
from tests.contracts.places import Kind
from tests.contracts.test_d1 import KIND as D1
from tests.contracts.test_kv import KIND as KV
from tests.contracts.test_r2 import KIND as R2

from core.testing import FakeClock, simulate

CASES = [(kind, case) for kind in (KV, D1, R2) for case in kind.contract.cases if not case.heavy]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "case"), CASES, ids=[f"{kind.contract.kind}-{case.name}" for kind, case in CASES])
def test_a_fake_keeps_its_contract_in_a_simulation(kind: Kind[Any], case: Case[Any]) -> None:
    async def test() -> None:
        clock = FakeClock()
        await case.run(kind.fake(clock), other=kind.fake(clock), clock=clock)

    simulate(runs=20 if "session" in case.name else 2, faults=["replica"])(test)()
