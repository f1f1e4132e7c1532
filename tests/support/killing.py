"""A process that writes and is killed with SIGKILL, several times in a row."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["written_until_killed"]


def written_until_killed(program: str, state: Path, log: Path, *, seed: int) -> list[int]:
    """Run `program` four times, each time killed at a random moment.
    Returns the numbers that its writes had answers for.

    Its arguments are `state`, `log` and the first number to write. It appends a number to `log` when its write is
    answered.
    """
    pauses = random.Random(seed)
    first = 0
    for _ in range(4):
        before = log.stat().st_size if log.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", program, str(state), str(log), str(first)])
        try:
            deadline = time.monotonic() + 120
            while not log.exists() or log.stat().st_size < before + 100:  # some 30 answers of this process
                assert time.monotonic() < deadline, "the process wrote nothing"
                time.sleep(0.01)
            time.sleep(pauses.uniform(0.1, 0.4))
        finally:
            process.kill()
            process.wait()
        first = int(log.read_text().split()[-1]) + 1
    return [int(line) for line in log.read_text().split()]
