"""Every Durable Object keeps the contract."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.contracts.contract import Case
from tests.contracts.durable_object import Subject, contract
from tests.contracts.places import Kind, standing_in

from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.bindings.durable_object import DurableObjectNamespace
from core.testing.durable_object import FakeDurableObjectNamespace

KIND: Kind[DurableObjectNamespace[Subject]] = Kind(
    contract,
    lambda store, name: EmbeddedDurableObjectNamespace(store, name, Subject),
    lambda clock, name: FakeDurableObjectNamespace(Subject, name=name, clock=clock),
)


async def test_durable_objects_keep_their_contract(
    case_in_place: tuple[str, Case[DurableObjectNamespace[Subject]]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name, case = case_in_place
    caplog.set_level(logging.CRITICAL, "core.durable_object")
    with standing_in(name, KIND, tmp_path) as place:
        try:
            await case.run(place.binding, other=place.other, clock=place.clock)
        finally:
            for namespace in (place.binding, place.other):
                assert isinstance(namespace, EmbeddedDurableObjectNamespace)
                await namespace.close()
