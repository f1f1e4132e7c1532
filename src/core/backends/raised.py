"""An exception that has crossed to another process or worker: made anew there, whatever its `__init__` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def made_anew(cls: type[E], args: Sequence[object], attributes: Mapping[str, object]) -> E:
    """Return an exception of the class `cls` with the arguments and the attributes of another."""
    error = cls.__new__(cls, *args)
    error.args = tuple(args)
    error.__dict__.update(attributes)
    return error
