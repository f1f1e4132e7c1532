"""The cost of one request, in instructions of the interpreter: a slow-down is seen here without timing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MEASURE = "import json; from benchmarks.cost import measure; print(json.dumps(measure()))"
WORKLOADS = ("plaintext", "json", "param", "full", "post", "notfound", "error")


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, int]]:
    # A process of its own: coverage and debuggers use the same two hooks of the interpreter.
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def allowed() -> dict[str, dict[str, int]]:
    """The baseline of this Python; of the nearest one before it where it has none of its own."""
    kept: dict[str, dict[str, dict[str, int]]]
    kept = json.loads((ROOT / "benchmarks" / "baseline.json").read_text(encoding="utf-8"))
    versions = {tuple(map(int, version.split("."))): counts for version, counts in kept.items()}
    return versions[max(version for version in versions if version <= sys.version_info[:2])]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_request_costs_no_more_than_the_baseline(
    workload: str, counted: dict[str, dict[str, int]], allowed: dict[str, dict[str, int]]
) -> None:
    for kind, number in counted[workload].items():
        # A few more, for versions of attrs and cattrs that do the same in other steps.
        most = round(allowed[workload][kind] * 1.02) + 1
        assert number <= most, (
            f"{workload}: {number} {kind}, where the baseline has {allowed[workload][kind]}. Make it shorter again, or "
            "write the new number with `python -m benchmarks.cost --write` and say why in the commit"
        )
