"""The places where contracts are tried: memory, a directory, and the fakes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import attrs
from tests.contracts.contract import Case, Contract

from core.backends.embedded.store import Store
from core.testing.clock import FakeClock

B = TypeVar("B")


@attrs.frozen
class Place(Generic[B]):
    """Two bindings of a kind, and the clock that they follow."""

    binding: B
    other: B
    clock: FakeClock


@attrs.frozen
class Kind(Generic[B]):
    """The makers of a kind of binding, one for each place."""

    contract: Contract[B]
    embedded: Callable[[Store, str], B]
    fake: Callable[[FakeClock, str], B]


# A new place is one line here and one branch in `standing_in`.
PLACES = ("memory", "disk", "fake")


def cases(kind: Kind[Any]) -> list[tuple[str, Case[Any]]]:
    """Every case in every place, for `parametrize`."""
    return [(place, case) for place in PLACES for case in kind.contract.cases]


@contextmanager
def standing_in(place: str, kind: Kind[B], folder: Path) -> Generator[Place[B]]:
    """A place to try one case in, empty."""
    clock = FakeClock()
    match place:
        case "memory" | "disk":
            with Store(None if place == "memory" else folder, clock=clock) as store:
                yield Place(kind.embedded(store, "one"), kind.embedded(store, "two"), clock)
        case "fake":
            yield Place(kind.fake(clock, "one"), kind.fake(clock, "two"), clock)
        case _:
            raise ValueError(f"no such place: {place}")
