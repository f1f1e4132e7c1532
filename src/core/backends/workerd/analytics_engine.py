"""The platform's Analytics Engine datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.backends.workerd.conversion import bridge, js_value, translated, unwrap
from core.errors import BindingError, BindingTypeError

__all__ = ["WorkerdAnalyticsEngineDataset"]


class WorkerdAnalyticsEngineDataset:
    """`AnalyticsEngineDataset` over the runtime's."""

    __slots__ = ("_dataset",)

    def __init__(self, dataset: Any) -> None:
        self._dataset = unwrap(dataset)

    def write_data_point(
        self,
        *,
        indexes: Sequence[str | bytes | None] = (),
        blobs: Sequence[str | bytes | None] = (),
        doubles: Sequence[float] = (),
    ) -> None:
        """Write one point. See `AnalyticsEngineDataset.write_data_point`."""
        try:
            self._dataset.writeDataPoint(
                indexes=js_value(list(indexes)), blobs=js_value(list(blobs)), doubles=js_value(list(doubles))
            )
        except bridge().JsException as error:
            raise translated(error, _error) from None


def _error(name: str, message: str) -> BindingError:
    return BindingTypeError(message) if name == "TypeError" else BindingError(message)
