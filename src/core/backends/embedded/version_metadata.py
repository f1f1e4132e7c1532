"""The embedded version: a program that runs here was never uploaded, so its id is made up when it starts."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import attrs

from core.context import Clock


@attrs.frozen
class EmbeddedVersionMetadata:
    """A version without a tag. See `VersionMetadata`."""

    id: str
    tag: str
    timestamp: str

    @classmethod
    def of(cls, clock: Clock) -> EmbeddedVersionMetadata:
        """The version that starts now."""
        return cls(str(uuid4()), "", datetime.fromtimestamp(clock.time(), UTC).isoformat())
