"""Every SQL database keeps the contract."""

from __future__ import annotations

from pathlib import Path

from tests.contracts.contract import Case
from tests.contracts.d1 import contract
from tests.contracts.places import Kind, standing_in

from core.backends.embedded.d1 import EmbeddedD1Database
from core.bindings.d1 import D1Database
from core.testing.d1 import FakeD1Database

KIND: Kind[D1Database] = Kind(contract, EmbeddedD1Database, lambda clock, name: FakeD1Database(clock=clock))


async def test_a_sql_database_keeps_its_contract(case_in_place: tuple[str, Case[D1Database]], tmp_path: Path) -> None:
    name, case = case_in_place
    with standing_in(name, KIND, tmp_path) as place:
        await case.run(place.binding, other=place.other, clock=place.clock)
