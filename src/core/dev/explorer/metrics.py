"""The panel "Metrics": the numbers that `core serve --metrics` gives, counted since the application was loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from core.assembly.background import measure_state
from core.dev.explorer.places import Panel, Places
from core.request import AnyRequest
from core.response import Response
from core.router import Router
from core.telemetry.metrics import BUCKETS, CONTENT_TYPE, FAMILIES, Meter, exposition


class MetricsPages(Panel):
    """The handlers. They count from the moment that they are made."""

    def __init__(self, places: Places) -> None:
        super().__init__(places)
        self._meter = Meter()
        self._set_gauges: Callable[[Meter], None] = (
            (lambda meter: None) if places.found is None else measure_state(places.found, self._meter)
        )

    def add_to(self, api: Router[Any, Any]) -> None:
        """Add the routes."""
        api.get("/metrics", self._metrics)
        api.get("/metrics/text", self._text)

    async def _metrics(self, req: AnyRequest, res: Response) -> None:
        self._set_gauges(self._meter)
        numbers = self._meter.snapshot()
        res.json(
            {
                name: [_row(FAMILIES[name].labels, labels, values) for labels, values in numbers.get(name, ())]
                for name in FAMILIES
            }
        )

    async def _text(self, req: AnyRequest, res: Response) -> None:
        self._set_gauges(self._meter)
        res.header("content-type", CONTENT_TYPE)
        res.send(exposition([self._meter.snapshot()]).encode())


def _row(names: Sequence[str], labels: Sequence[str], values: Sequence[float]) -> Mapping[str, object]:
    named = dict(zip(names, labels, strict=True))
    if len(values) == 1:
        return {**named, "value": values[0]}
    *counts, seconds = values
    times = {"mean": seconds / sum(counts), "p50": bound_of(counts, 50), "p95": bound_of(counts, 95)}
    return {**named, "value": sum(counts), **times}


def bound_of(counts: Sequence[float], percent: int) -> float | None:
    """The smallest bound of a bucket in seconds that `percent` of the observations stay within; None beyond the
    last.
    """
    for bound, within in zip(BUCKETS, accumulate(counts), strict=False):
        if 100 * within >= percent * sum(counts):
            return bound
    return None
