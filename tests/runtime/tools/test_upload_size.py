"""The sizes that the hosted platform refuses, and the words for them."""

from __future__ import annotations

import pytest

from core.cli.build import upload_problem
from core.runtime.bundle import PackageSize


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([(64 * 1024 * 1024, 30_000_000)], None),
        (
            [(60_000_000, 1_000_000), (8_000_000, 9_000)],
            "68,000 kB of Python files, more than the 64 MiB (67,109 kB) that",
        ),
    ],
)
def test_a_worker_that_is_too_large_is_told_with_its_largest_packages(
    sizes: list[tuple[int, int]], said: str | None
) -> None:
    packages = [PackageSize(f"package{index}", "1", 1, *pair) for index, pair in enumerate(sizes)]
    problem = upload_problem(reversed(packages))
    if said is None:
        assert problem is None
    else:
        assert problem is not None
        assert problem.startswith(said)
        assert f"The largest are package0 ({sizes[0][0] / 1000:,.0f} kB)" in problem
        assert "--without NAME" in problem
