"""All measurements in one run: tables to the terminal and to docs/explanation/performance.md, plots beside it.

make bench                        everything, about ten minutes on two processors
python -m benchmarks in_process   some of it
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from core.errors import DeveloperError
from core.runtime.toolchain import toolchain

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".make" / "measured"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
HONO = ROOT / ".make" / "hono"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"

PARTS = {
    "in_process": "The seven workloads in process",
    "fetch": "`app.fetch`",
    "routes": "Routes",
    "cold": "A fresh process",
    "over_http": "Over HTTP",
    "memory": "Memory",
    "cost": "Steps of the interpreter",
}


def run(part: str) -> str:
    """One measurement in a process of its own; what it printed."""
    command = [sys.executable, "-m", f"benchmarks.{part}"]
    if part != "cost":
        command += ["--json", str(KEPT / f"{part}.json")]
    if part == "fetch" and (HONO / "node_modules" / "hono").exists():
        command += ["--hono", str(HONO)]
    if part == "cold" and shutil.which("node") is not None:
        # Where `core` keeps its own, fetched now if it is not there yet.
        try:
            command += ["--pyodide", str(toolchain().root)]
        except DeveloperError as error:
            print(f"Nothing is measured under Pyodide: {error}", flush=True)
    if part == "over_http" and shutil.which("wrk") is None:
        return "wrk is missing (Debian: apt install wrk), so nothing was measured over HTTP."
    print(f"\n## {PARTS[part]}\n", flush=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    if process.wait() != 0:
        raise SystemExit(f"benchmarks.{part} failed")
    return "".join(lines).strip()


def write(tables: dict[str, str]) -> None:
    """Put the tables between the marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    plots = {
        "in_process": "![Time of each workload as a ratio to raw](../assets/performance-workloads.svg)",
        "routes": "![Time of a request by the number of routes](../assets/performance-routes.svg)",
        "cold": "![Milliseconds of a fresh process](../assets/performance-cold.svg)",
    }
    body = [f"Measured with Python {platform.python_version()} on {platform.machine()}, {processors()}.\n"]
    for part, table in tables.items():
        body += [f"### {PARTS[part]}\n", table + "\n"]
        if part in plots:
            body.append(plots[part] + "\n")
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(body) + f"\n{END}{after}", encoding="utf-8")


def processors() -> str:
    """The machine's processor, memory and system."""
    import os

    return f"{os.cpu_count()} processors"


def plot() -> None:
    """Draw what was kept."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "core"
    import matplotlib.pyplot as plt

    folder = ROOT / "docs" / "assets"

    def kept(part: str) -> Any:
        path = KEPT / f"{part}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def save(figure: Any, name: str) -> None:
        figure.tight_layout()
        figure.savefig(folder / f"performance-{name}.svg", metadata={"Date": None})
        plt.close(figure)

    workloads = kept("in_process")
    if workloads:
        figure, axes = plt.subplots(figsize=(9, 4))
        peers = [peer for peer in next(iter(workloads.values())) if peer != "raw"]
        for place, peer in enumerate(peers):
            xs = [number + (place - len(peers) / 2) * 0.11 for number in range(len(workloads))]
            axes.bar(xs, [values[peer] / values["raw"] for values in workloads.values()], 0.1, label=peer)
        axes.set_xticks(range(len(workloads)), list(workloads))
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_ylabel("time, as a ratio to raw ASGI")
        axes.legend(ncols=4, fontsize=8)
        save(figure, "workloads")
    routes = kept("routes")
    if routes:
        figure, axes = plt.subplots(figsize=(9, 4))
        for name, kinds in routes["costs"].items():
            sizes = sorted(map(int, kinds["last"]))
            axes.plot(sizes, [kinds["last"][str(size)] for size in sizes], marker="o", label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("routes")
        axes.set_ylabel("µs, a request to the last route")
        axes.legend(fontsize=8)
        save(figure, "routes")
    cold = kept("cold")
    if cold:
        figure, axes = plt.subplots(figsize=(9, 3))
        names = [name for name in cold if name in ("base", "core") or not name.startswith(("core", "pyodide"))]
        axes.barh(names, [cold[name] for name in names])
        axes.invert_yaxis()
        axes.set_xlabel("ms of processor time: import and an application of ten routes")
        save(figure, "cold")


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to measure; everything by default")
    parser.add_argument("--write", action="store_true", help="write the tables and plots into docs")
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    tables = {part: run(part) for part in (options.parts or PARTS)}
    if options.write:
        write(tables)
        plot()


if __name__ == "__main__":
    main()
