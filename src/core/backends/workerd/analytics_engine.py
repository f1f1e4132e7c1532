"""The platform's Analytics Engine datasets."""

from __future__ import annotations

from collections.abc import Sequence

from core.backends.workerd.conversion import call_now, options, translator, unwrap
from core.bindings.analytics_engine import AnalyticsEngineDataset
from core.errors import BindingError, BindingTypeError

_error = translator(BindingError, TypeError=BindingTypeError)


class WorkerdAnalyticsEngineDataset(AnalyticsEngineDataset):
    """`AnalyticsEngineDataset` over the runtime's."""

    __slots__ = ("_dataset",)

    def __init__(self, dataset: object) -> None:
        self._dataset = unwrap(dataset)

    def write_data_point(
        self,
        *,
        indexes: Sequence[str | bytes | None] = (),
        blobs: Sequence[str | bytes | None] = (),
        doubles: Sequence[float] = (),
    ) -> None:
        given = options(indexes=list(indexes), blobs=list(blobs), doubles=list(doubles))
        call_now(_error, self._dataset.writeDataPoint, **given)
