"""The version of the worker that is running."""

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
        """The tag of the upload; empty without one."""
        ...

    @property
    def timestamp(self) -> str:
        """The time of the upload, in ISO 8601."""
        ...
