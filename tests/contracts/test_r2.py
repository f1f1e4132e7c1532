"""Every object bucket keeps the contract."""

from __future__ import annotations

from pathlib import Path

from tests.contracts.contract import Case
from tests.contracts.places import Kind, standing_in
from tests.contracts.r2 import contract

from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.bindings.r2 import R2Bucket
from core.testing.r2 import FakeR2Bucket

KIND: Kind[R2Bucket] = Kind(contract, EmbeddedR2Bucket, lambda clock, name: FakeR2Bucket(clock=clock))


async def test_an_object_bucket_keeps_its_contract(case_in_place: tuple[str, Case[R2Bucket]], tmp_path: Path) -> None:
    name, case = case_in_place
    with standing_in(name, KIND, tmp_path) as place:
        await case.run(place.binding, other=place.other, clock=place.clock)
