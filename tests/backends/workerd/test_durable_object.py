"""The methods that a stub of workerd's object offers, by the class that the Env names."""

from __future__ import annotations

from typing import Any, Protocol

from core import DurableObject
from core.backends.workerd.durable_object import _may_be_called


class Counter(DurableObject[Any]):
    async def add(self) -> int:
        return 1

    def local(self) -> int:
        return 1


class Adds(Protocol):
    async def add(self) -> int: ...


def test_a_class_offers_its_public_async_methods() -> None:
    assert _may_be_called(Counter, "add")
    assert not _may_be_called(Counter, "local")
    assert not _may_be_called(Counter, "nope")


def test_any_method_may_be_called_where_the_class_is_not_known() -> None:
    for cls in (None, Any, Adds):
        assert _may_be_called(cls, "add")
