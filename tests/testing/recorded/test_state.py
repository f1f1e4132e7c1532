"""The difference of two readings of what bindings hold."""

from __future__ import annotations

from core.testing.recorded.state import alone


class Megabytes(bytes):
    """Bytes of which nobody may make a repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise AssertionError("it would take a second")


def test_long_values_are_told_apart_without_their_repr() -> None:
    before = {"FILES": [{"key": "a", "value": Megabytes(b"a" * 2000)}, {"key": "b", "value": Megabytes(b"b" * 2000)}]}
    after = {"FILES": [{"key": "a", "value": Megabytes(b"a" * 2000)}, {"key": "b", "value": Megabytes(b"c" * 2000)}]}

    assert alone(before, before) == {}
    [found] = alone(after, before)["FILES"]
    assert found is after["FILES"][1]
    assert alone({"T": [{"a": "x" * 2000}]}, {"T": [{"a": b"x" * 2000}]}) != {}
