"""Instructions per request, counted by valgrind: a slow-down is seen without timing, whatever else the machine does.

A process answers one workload some thousand times, another answers it twice as often; the difference is the requests'
own. Counts differ between builds of Python, so they are compared with each other, as ratios to `raw`.

    python -m benchmarks.instructions [--peers core,starlette]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.in_process import PEERS, batch, load, table
from benchmarks.workloads import WORKLOADS

COUNT = 1000


def count(peer: str, name: str, requests: int) -> int:
    """The instructions of a whole process that answers so many requests."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "counted")
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={output}"]
        command += [sys.executable, "-m", "benchmarks.instructions", "--inside", f"{peer},{name},{requests}"]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise RuntimeError(done.stderr[-2000:])
    return int(found[1].replace(",", ""))


def per_request(peer: str, name: str) -> float:
    """Instructions per request."""
    return (count(peer, name, 3 * COUNT) - count(peer, name, COUNT)) / (2 * COUNT)


def measure(peers: list[str], names: list[str]) -> dict[str, dict[str, float]]:
    """Instructions per request, by workload and peer."""
    pairs = [(peer, name) for name in names for peer in peers]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        counts = dict(zip(pairs, pool.map(lambda pair: per_request(*pair), pairs), strict=True))
    return {name: {peer: counts[peer, name] for peer in peers} for name in names}


def main() -> None:
    """Count and print; or, with `--inside`, be what is counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default=",".join(PEERS[1:]))
    parser.add_argument("--workloads", default=",".join(workload.name for workload in WORKLOADS))
    parser.add_argument("--inside", default="")
    options = parser.parse_args()
    if options.inside:
        peer, name, requests = options.inside.split(",")
        asyncio.run(_answer(peer, name, int(requests)))
        return
    peers = ["raw", *(peer for peer in options.peers.split(",") if peer and peer != "raw")]
    results = measure(peers, options.workloads.split(","))
    print(table(results).replace("raw, µs", "raw, instructions"))


async def _answer(peer: str, name: str, requests: int) -> None:
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    app = await load(peer, four=name == "full")
    await batch(app, workload, 100, 0)
    # When the collector comes depends on the whole process, and it would be most of the difference.
    gc.disable()
    await batch(app, workload, requests, 0)
    # No farewell: what ends the process is not measured.
    os._exit(0)


if __name__ == "__main__":
    main()
