"""Every rate limit that counts in this process keeps the contract."""

from __future__ import annotations

from pathlib import Path

from tests.contracts.contract import Case
from tests.contracts.places import Kind, standing_in
from tests.contracts.rate_limit import LIMIT, PERIOD, contract

from core.backends.embedded.rate_limit import EmbeddedRateLimit
from core.bindings.rate_limit import RateLimit
from core.testing.rate_limit import FakeRateLimit

KIND: Kind[RateLimit] = Kind(
    contract,
    lambda store, name: EmbeddedRateLimit(LIMIT, PERIOD, clock=store.clock),
    lambda clock, name: FakeRateLimit(limit=LIMIT, period=PERIOD, clock=clock),
)


async def test_a_rate_limit_keeps_its_contract(case_in_place: tuple[str, Case[RateLimit]], tmp_path: Path) -> None:
    name, case = case_in_place
    with standing_in(name, KIND, tmp_path) as place:
        await case.run(place.binding, other=place.other, clock=place.clock)
