"""Every key-value namespace keeps the contract."""

from __future__ import annotations

from pathlib import Path

from tests.contracts.contract import Case
from tests.contracts.kv import contract
from tests.contracts.places import Kind, standing_in

from core.backends.embedded.kv import EmbeddedKVNamespace
from core.bindings.kv import KVNamespace
from core.testing.kv import FakeKVNamespace

KIND: Kind[KVNamespace] = Kind(contract, EmbeddedKVNamespace, lambda clock, name: FakeKVNamespace(clock=clock))


async def test_a_key_value_namespace_keeps_its_contract(
    case_in_place: tuple[str, Case[KVNamespace]], tmp_path: Path
) -> None:
    name, case = case_in_place
    with standing_in(name, KIND, tmp_path) as place:
        await case.run(place.binding, other=place.other, clock=place.clock)
