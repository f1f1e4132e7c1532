"""The log of a fake: one `Call` for each call of a method, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["Call"]


@attrs.frozen
class Call:
    """A method called on a fake: its name, its positional arguments and the options that were given."""

    method: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = attrs.Factory(dict[str, Any])
