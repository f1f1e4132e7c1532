"""The platform's Analytics Engine datasets."""

from __future__ import annotations

from collections.abc import Sequence

from core.backends.workerd.engine import JsBacked
from core.bindings.analytics_engine import AnalyticsEngineDataset


class WorkerdAnalyticsEngineDataset(JsBacked, AnalyticsEngineDataset):
    def write_data_point(
        self,
        *,
        indexes: Sequence[str | bytes | None] = (),
        blobs: Sequence[str | bytes | None] = (),
        doubles: Sequence[float] = (),
    ) -> None:
        self._now("writeDataPoint", indexes=indexes, blobs=blobs, doubles=doubles)
