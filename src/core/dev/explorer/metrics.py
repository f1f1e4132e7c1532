"""The panel "Metrics": the numbers that `core serve --metrics` gives, counted since the application was loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from core.assembly.background import measure_state
from core.assembly.project import Loaded
from core.dev.explorer.places import Places
from core.request import Request
from core.response import Response
from core.router import Router
from core.telemetry.metrics import BUCKETS, CONTENT_TYPE, FAMILIES, Meter, Snapshot, exposition

api: Router[Places] = Router()


def counting(loaded: Loaded | None) -> Callable[[], Snapshot]:
    """Count from now on. Returns the function that gives the numbers."""
    meter = Meter()
    if loaded is not None:
        measure_state(loaded, meter)
    return meter.snapshot


@api.get("/metrics")
async def _metrics(req: Request[Places], res: Response) -> None:
    numbers = req.env.numbers()
    res.json(
        {
            name: [_row(FAMILIES[name].labels, labels, values) for labels, values in numbers.get(name, ())]
            for name in FAMILIES
        }
    )


@api.get("/metrics/text")
async def _text(req: Request[Places], res: Response) -> None:
    res.header("content-type", CONTENT_TYPE)
    res.send(exposition([req.env.numbers()]).encode())


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
