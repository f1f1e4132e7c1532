"""What was left out, taken for a value or for null."""

from __future__ import annotations

import attrs

from core import UNSET, Unset


def filled(instance: object, attribute: object, value: str) -> None: ...


@attrs.frozen
class Change:
    title: str | Unset = UNSET
    bio: str | Unset | None = UNSET


def upper(change: Change) -> str | None:
    change.title.upper()  # E
    if change.bio is not UNSET:
        change.bio.upper()  # E
    if change.title is not None:
        change.title.upper()  # E
    takes_str(change.title)  # E
    return change.bio or None  # E


def takes_str(text: str) -> None: ...


Change(title=None)  # E
Change(title=1)  # E


@attrs.frozen
class Wrong:
    title: str = UNSET  # E
    plain: str | Unset = attrs.field(default=UNSET, validator=filled)  # E
