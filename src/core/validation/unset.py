"""What was left out, told from null: `UNSET`, the value of a field that nobody gave.

Decided here: it is the one member of an enum, which every type checker narrows by `is`, and it is true, so that
`bio or None` leaves it as it is and no `if title:` is taken for a test of it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, get_args

__all__ = ["Given", "UNSET", "Unset", "given", "leaving_out", "may_be_left_out"]

T = TypeVar("T")


class Unset(enum.Enum):
    """The type of `UNSET`, for annotations: `title: str | Unset = UNSET`."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    __str__ = __repr__


UNSET: Final = Unset.UNSET
"""The value of a field that was left out. Ask for it with `is`: `if change.title is not UNSET`."""


class Given:
    """A validator that is not asked of UNSET."""

    def __init__(self, validator: Callable[[object, object, Any], object]) -> None:
        self.validator = validator

    def __call__(self, instance: object, attribute: object, value: object) -> None:
        if value is not UNSET:
            self.validator(instance, attribute, value)


def given(*validators: Callable[[Any, Any, T], object]) -> Callable[[object, Any, T | Unset], None]:
    """Return the validators for a field that may be left out: they are asked of a value that was given.

    For a title of 1 to 80 characters:

        title: str | Unset = attrs.field(default=UNSET, validator=given(min_len(1), max_len(80)))
    """
    from attrs.validators import and_

    return and_(*map(Given, validators))


def leaving_out(
    write: Callable[[object], dict[str, object]], fields: Iterable[Any]
) -> Callable[[Any], dict[str, object]]:
    """Return the function that makes a dict of an object, without the fields that are UNSET where some may be."""
    if any(field.default is UNSET or "Unset" in str(field.type) for field in fields):
        return lambda value: {name: part for name, part in write(value).items() if part is not UNSET}
    return write


def may_be_left_out(hint: object) -> bool:
    """Return True if the type of a field takes UNSET."""
    return hint is Unset or Unset in get_args(hint)
