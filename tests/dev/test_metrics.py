"""The durations that the explorer shows, as far as the buckets of a histogram know them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.dev.explorer.app import bound_of
from core.telemetry.metrics import BUCKETS, Meter

DURATIONS = st.lists(st.floats(min_value=0, max_value=20), min_size=1, max_size=200)


@given(DURATIONS, st.integers(1, 100))
def test_it_is_the_bound_above_the_true_one(durations: list[float], percent: int) -> None:
    meter = Meter()
    for duration in durations:
        meter.observe("core_http_request_duration_seconds", "GET", "/", seconds=duration)
    [(_, [*counts, _])] = meter.snapshot()["core_http_request_duration_seconds"]
    true = sorted(durations)[-(-percent * len(durations) // 100) - 1]
    assert bound_of(counts, percent) == next((bound for bound in BUCKETS if true <= bound), None)
