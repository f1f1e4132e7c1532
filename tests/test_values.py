"""Values that attrs finishes when they are first used: nothing can tell them from those it finished at once."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import attrs
import cattrs
import pytest

from core.bindings.kv import KVKey
from core.values import field, frozen


def fresh() -> Any:
    @frozen
    class Value:
        name: str
        size: int = 0
        note: str | None = attrs.field(default=None, eq=False)

    return Value


FIRST_USES: dict[str, tuple[Callable[[Any], object], object]] = {
    "calling": (lambda value: value("a", size=2).size, 2),
    "has": (attrs.has, True),
    "fields": (lambda value: [field.name for field in attrs.fields(value)], ["name", "size", "note"]),
    "signature": (lambda value: [*inspect.signature(value).parameters], ["name", "size", "note"]),
    "match arguments": (lambda value: value.__match_args__, ("name", "size", "note")),
    "cattrs": (lambda value: cattrs.structure({"name": "a", "size": 2}, value).size, 2),
    "a subclass": (lambda value: attrs.frozen(type("Sub", (value,), {}))("a").name, "a"),
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_whatever_the_first_use_of_a_class_is_finds_it_finished(use: str) -> None:
    first, expected = FIRST_USES[use]
    assert first(fresh()) == expected


def test_a_value_is_equal_hashed_shown_and_copied_as_attrs_does_it() -> None:
    value = fresh()
    assert value("a", 1, "x") == value("a", 1, "y") != value("b", 1)
    assert hash(value("a", 1, "x")) == hash(value("a", 1, "y"))
    assert repr(value("a")).endswith("Value(name='a', size=0, note=None)")
    assert copy.copy(value("a")) == copy.deepcopy(value("a")) == value("a")


def test_a_value_is_matched_by_position() -> None:
    match KVKey("a", 2):
        case KVKey(name, expiration):
            assert (name, expiration) == ("a", 2)


def test_a_value_is_frozen() -> None:
    value = fresh()("a")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.name = "b"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del value.name


def test_a_field_is_made_by_attrs_as_late_as_its_class() -> None:
    @frozen
    class Late:
        name: str
        sizes: list[int] = field(factory=list[int])
        note: str = field(default="", eq=False, repr=False)

    first = Late("a")
    assert (first, first.sizes) == (Late("a", note="x"), [])
    assert first.sizes is not Late("a").sizes
    assert repr(first).endswith("Late(name='a', sizes=[])")


def test_a_value_that_came_from_another_process_is_whole_before_any_was_made_here() -> None:
    written = pickle.dumps(KVKey("a"))
    program = f"import pickle; value = pickle.loads({written!r}); print(value, value == value)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "KVKey(name='a', expiration=None, metadata=None) True\n"


def test_threads_that_meet_a_class_at_once_all_find_it_finished() -> None:
    for _ in range(20):
        value = fresh()
        barrier = Barrier(4)

        def make(value: Any = value, barrier: Barrier = barrier) -> Any:
            barrier.wait(120)
            return value("a").name

        with ThreadPoolExecutor(4) as pool:
            assert [made.result() for made in [pool.submit(make) for _ in range(4)]] == ["a"] * 4
