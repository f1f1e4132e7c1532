"""What `core.mcp` adds to a start: milliseconds of CPU for its import, in a fresh process with bytecode cached.

A busy machine takes longer for everything, so the share of what is imported before it is told, too.

python -m benchmarks.mcp [--times 40]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from benchmarks.in_process import best_tenth

READY = "import attrs, asyncio\nfrom core import App, Request, Response, create_app\nimport core.validation.structure"
IMPORT = "from core.mcp import MCP"
_PROGRAM = f"""
import time
started = time.process_time()
{READY}
begun = time.process_time()
{IMPORT}
print((time.process_time() - begun) * 1000, (begun - started) * 1000)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=40)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-c", _PROGRAM]
        starts = [subprocess.check_output(command, env=environment).split() for _ in range(times + 1)]
    taken, before = ([float(each[place]) for each in starts[1:]] for place in (0, 1))
    share = best_tenth(taken) / best_tenth(before)
    print(f"{best_tenth(taken):.2f} ms, {share:.1%} of what core took, the mean of the best tenth of {times} starts")


if __name__ == "__main__":
    main()
