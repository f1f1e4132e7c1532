"""One contract for each kind of binding, run in every place that this file knows.

A test module gives a `KIND`; `case_in_place` is each of its contract's cases in each place.
"""

from __future__ import annotations

import pytest
from tests.contracts.places import cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case_in_place" in metafunc.fixturenames:
        found = cases(metafunc.module.KIND)
        metafunc.parametrize("case_in_place", found, ids=[f"{place}-{case.name}" for place, case in found])
