"""Every Hyperdrive keeps the contract: one of a connection string, and the fake."""

from __future__ import annotations

import pytest
from tests.contracts.contract import Case
from tests.contracts.hyperdrive import contract

from core.backends.embedded.hyperdrive import EmbeddedHyperdrive
from core.bindings.hyperdrive import Hyperdrive
from core.testing.hyperdrive import FakeHyperdrive

PLACES = (
    EmbeddedHyperdrive("postgres://ada:p%40ss%2Fword@db.example:6543/shop%20one?sslmode=disable"),
    EmbeddedHyperdrive("postgresql://ada:secret@[::1]/shop"),
    FakeHyperdrive(),
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", contract.cases, ids=str)
async def test_a_hyperdrive_keeps_its_contract(case: Case[Hyperdrive], place: Hyperdrive) -> None:
    await case.run(place)
