"""The version that is running, as the runtime reports it: a plain object, read once."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class WorkerdVersionMetadata:
    """`VersionMetadata` by value."""

    id: str = ""
    tag: str = ""
    timestamp: str = ""

    @classmethod
    def of(cls, found: Mapping[str, object]) -> WorkerdVersionMetadata:
        """Return the version of the runtime's object."""
        return cls(**{name: str(found.get(name) or "") for name in ("id", "tag", "timestamp")})
