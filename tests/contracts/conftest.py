"""One contract for each kind of binding, run in every place that this file knows.

A test module gives a `KIND`; `case_in_place` is each of its contract's cases in each place.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.contracts.places import Kind, cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case_in_place" in metafunc.fixturenames:
        kind = cast("Kind[Any]", vars(cast("Any", metafunc).module)["KIND"])
        # A fake is the binding in memory, with a record of its calls: `make check` tries that alone.
        found = [
            pytest.param((place, case), id=f"{place}-{case.name}", marks=() if place == "fake" else pytest.mark.slow)
            for place, case in cases(kind)
        ]
        metafunc.parametrize("case_in_place", found)
