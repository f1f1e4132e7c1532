"""What `core check` finds, for the start-up screen and the explorer: one line for each finding."""

from __future__ import annotations

from core.hosts.dev.project import Loaded

__all__ = ["findings_of"]


def findings_of(loaded: Loaded) -> list[str]:
    """The findings in the application's Env and configuration, as `file:line: error: message  [code]`."""
    return []
