"""Rules for the fields of a body, beyond their types."""

from typing import Any

KEEP: Any = None
"""The default of a field that may be left out of a change: `title: str = KEEP`. What is sent as null is not a
`str`, and refused; in SQL, `coalesce(?, title)` keeps what is there."""

LEAST_PASSWORD = 8


def filled(instance: object, attribute: object, value: str) -> None:
    if value is not KEEP and not value.strip():
        raise ValueError("can't be blank")


def long_enough(instance: object, attribute: object, value: str) -> None:
    if value is not KEEP and len(value) < LEAST_PASSWORD:
        raise ValueError(f"is too short (minimum is {LEAST_PASSWORD} characters)")
