"""What `core.mcp` adds to a start: milliseconds of CPU for its import, in a fresh process with bytecode cached.

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
{READY}
begun = time.process_time()
{IMPORT}
print((time.process_time() - begun) * 1000)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=40)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-c", _PROGRAM]
        taken = [float(subprocess.check_output(command, env=environment)) for _ in range(times + 1)]
    print(f"{best_tenth(taken[1:]):.2f} ms, the mean of the best tenth of {times} starts")


if __name__ == "__main__":
    main()
