"""The arguments that no engine of a bucket takes, with the words for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import R2TypeError
from core.http.streams import well_formed


def check_custom_metadata(metadata: Mapping[Any, object] | None) -> dict[str, str]:
    """A copy of custom metadata. Raises R2TypeError where a name or a value is not a str."""
    custom: dict[str, str] = {}
    for name, value in (metadata or {}).items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise R2TypeError(f"custom_metadata[{name!r}] must be a str, not {value!r}. Write str(...) around it")
        custom[well_formed(name)] = well_formed(value)
    return custom
