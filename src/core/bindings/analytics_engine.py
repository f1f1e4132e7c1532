"""An Analytics Engine dataset: points of data that are written and forgotten, and queried elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["AnalyticsEngineDataset"]


@runtime_checkable
class AnalyticsEngineDataset(Protocol):
    """A dataset. At most 250 points per request."""

    def write_data_point(
        self,
        *,
        indexes: Sequence[str | bytes | None] = (),
        blobs: Sequence[str | bytes | None] = (),
        doubles: Sequence[float] = (),
    ) -> None:
        """Write one point. Nothing is waited for, and nothing fails later on.

        `indexes`: one sampling key, at most 96 bytes. `blobs`: at most 20 texts, together 16 KiB. `doubles`: at most 20
        numbers. Raises BindingTypeError for more.
        """
        ...
