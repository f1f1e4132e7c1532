"""What was left out: narrowed by `is`, by `match` and by `isinstance`, with validators of what was given."""

from __future__ import annotations

from typing import assert_type

import attrs

from core import UNSET, Unset, given


def filled(instance: object, attribute: object, value: str) -> None: ...


def wide(instance: object, attribute: object, value: str | Unset) -> None: ...


@attrs.frozen
class Change:
    title: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    bio: str | Unset | None = UNSET
    tags: list[str] | Unset = attrs.field(default=UNSET)
    count: int | Unset = attrs.field(default=UNSET, validator=given(attrs.validators.ge(1), attrs.validators.le(9)))
    body: str | Unset = attrs.field(default=UNSET, validator=wide)


def by_is(change: Change) -> str:
    if change.title is UNSET:
        takes_unset(change.title)
        return ""
    assert_type(change.title, str)
    if change.bio is not UNSET:
        assert_type(change.bio, str | None)
    tags = None if change.tags is UNSET else change.tags
    assert_type(tags, list[str] | None)
    return change.title.upper()


def by_match(change: Change) -> str:
    match change.bio:
        case Unset.UNSET:
            return "kept"
        case None:
            return "emptied"
        case str():
            return change.bio


def by_isinstance(change: Change) -> str:
    return "" if isinstance(change.title, Unset) else change.title


def keeps(bio: str | Unset | None) -> str | Unset | None:
    return bio or None


def takes_unset(_: Unset) -> None: ...


Change(title="a", bio=None, tags=["x"], count=UNSET)
assert_type(Change().title, str | Unset)
