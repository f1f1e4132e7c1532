"""Rules for the fields of a body, beyond their types."""

from core import describe

LEAST_PASSWORD = 8


def filled(instance: object, attribute: object, value: str) -> None:
    if not value.strip():
        raise ValueError("can't be blank")


def long_enough(instance: object, attribute: object, value: str) -> None:
    if len(value) < LEAST_PASSWORD:
        raise ValueError(f"is too short (minimum is {LEAST_PASSWORD} characters)")


describe(filled, holds={"pattern": r"\S"})
describe(long_enough, holds={"minLength": LEAST_PASSWORD})
