"""Which version of the worker is running."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["VersionMetadata"]


@runtime_checkable
class VersionMetadata(Protocol):
    """The version that answers: for logs, and for telling two deployments apart."""

    @property
    def id(self) -> str:
        """Its id, a UUID."""
        ...

    @property
    def tag(self) -> str:
        """What it was tagged with when it was uploaded; empty when it was not."""
        ...

    @property
    def timestamp(self) -> str:
        """When it was uploaded, in ISO 8601."""
        ...
