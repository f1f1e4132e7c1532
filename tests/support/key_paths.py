"""Every key of a document, as the readers of configuration files give its position."""

from __future__ import annotations

from typing import Any, cast

from core.config.toml_text import KeyPath

__all__ = ["paths"]


def paths(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    """The paths of every key and index in a value."""
    found: set[KeyPath] = {path} if path else set()
    items: Any = ()
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        items = enumerate(cast("list[object]", value))
    for key, item in items:
        found |= paths(item, (*path, key))
    return found
