"""The version that is running, as the runtime reports it: a plain object, read once."""

from __future__ import annotations

import attrs


@attrs.frozen
class WorkerdVersionMetadata:
    id: str = ""
    tag: str = ""
    timestamp: str = ""
