"""The cost of a request, counted: a slow-down is seen here without timing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.cost import longer


def _count(*options: str) -> None:
    # A process of its own: coverage and debuggers use the same two hooks of the interpreter.
    command = [sys.executable, "-m", "benchmarks.cost", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parent.parent)
    assert done.returncode == 0, done.stderr


def test_a_request_takes_no_more_steps_than_the_baseline() -> None:
    _count("--steps")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is missing: apt install valgrind")
def test_a_request_takes_the_processor_no_more_instructions_than_the_baseline() -> None:
    _count()


def test_the_function_that_grew_is_named() -> None:
    kept = {"json": {"json:dumps": [100, 2, 3], "asgi:serve": [100, 1, 1]}}
    now = {"json": {"json:dumps": [107, 2, 4], "asgi:serve": [99, 1, 1], "json:new": [3, 1, 0]}}
    assert longer(kept, kept, {"json": 1020}, {"json": 1000}) == []
    (steps,) = longer(now, kept, {}, {})
    assert steps == (
        "json: 209 instructions, 200 in the baseline: json:dumps (+7 instructions, +1 calls of C), "
        "json:new (+3 instructions, +1 calls)"
    )
    (processor,) = longer(kept, kept, {"json": 1021}, {"json": 1000})
    assert processor == (
        "json: 1,021 instructions of the processor, 1,000 in the baseline: "
        "no function takes more steps, so what they call in C does"
    )
