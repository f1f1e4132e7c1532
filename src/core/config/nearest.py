"""The configuration file of a project, found by its name, at no cost: nothing is imported to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from core.errors import ConfigurationError

FILE_NAMES: Final = ("wrangler.json", "wrangler.jsonc", "wrangler.toml")
"""The names of a configuration file, in the order in which the platform's tools look for them."""


def discover(start: Path) -> Path:
    """The file `start`, or the nearest configuration file in or above it. Raises ConfigurationError."""
    start = start.absolute()
    if start.is_file():
        return start
    for directory in (start, *start.parents):
        for name in FILE_NAMES:
            if (directory / name).is_file():
                return directory / name
    raise ConfigurationError(
        [f"{start}: no wrangler.toml, wrangler.json or wrangler.jsonc here or above. Write one with name and main"]
    )
