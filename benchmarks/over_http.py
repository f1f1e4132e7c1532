"""Over HTTP, with wrk: one process per peer.

`core` is served as `core serve --python` does it, Robyn and Hono by servers of their own, each with one process.
uvicorn runs every other ASGI peer with the same settings (uvloop, httptools, one worker), and core once more.
`row` reads a row of SQLite: core by its embedded D1 into an attrs class, every other peer by a statement of its own on
the same file. What counts is the processor time of a request, as a ratio to core's in one run: wrk and the server share
the machine, so rates say less. Peers take turns in several rounds, and the best of each counts: what else a machine
does can only make a server slower.

    python -m benchmarks.over_http [--rounds 4] [--seconds 2] [--peers …]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.peers import rows
from benchmarks.workloads import ROWS

ON_UVICORN = "core on uvicorn"
PEERS = (
    "core",
    ON_UVICORN,
    "raw",
    "hayate",
    "blacksheep",
    "falcon",
    "starlette",
    "litestar",
    "fastapi",
    "robyn",
    "hono",
)
PATHS = {
    "plaintext": "/",
    "json": "/json",
    "param": "/users/7",
    "full": "/full/users/7?page=2&limit=10",
    "row": "/rows/7",
}
EXPECTED: dict[str, object] = {
    "json": {"message": "hello"},
    "param": {"id": "7"},
    "full": {"id": "7", "page": 2, "limit": 10, "rows": ROWS},
    "row": {"id": 7, "name": "user 7", "email": "user7@example.test"},
}
COMPARED = ("json", "full", "row")
HONO = Path(__file__).resolve().parent.parent / ".make" / "hono"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def command(peer: str, port: int) -> list[str]:
    """The command that starts a peer's server."""
    python = [sys.executable, "-m"]
    if peer == "robyn":
        return [*python, "benchmarks.peers.robyn_app", str(port)]
    if peer == "hono":
        node = HONO / "node_modules" / ".bin" / "node"
        program = Path(__file__).with_name("peers") / "hono_app.mjs"
        return [str(node), "--no-warnings", str(program), str(HONO), "serve", str(port)]
    if peer == "core":
        return [*python, "benchmarks.serve", str(port)]
    return [
        *python, "uvicorn", "benchmarks.serve:application", "--host", "127.0.0.1", "--port", str(port), "--loop",
        "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "error", "--no-proxy-headers",
        "--no-server-header", "--no-date-header",
    ]  # fmt: skip


def wait_for(port: int) -> None:
    """Return once something answers there."""
    for _ in range(200):
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=1)
            connection.request("GET", "/")
            connection.getresponse().read()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server did not start")


def verify(port: int) -> None:
    """Raises where a peer answers something else than it is measured for."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    for name, expected in EXPECTED.items():
        connection.request("GET", PATHS[name])
        answer = json.loads(connection.getresponse().read())
        if answer != expected:
            raise RuntimeError(f"{name}: {answer}")
    connection.close()


def wrk(port: int, path: str, connections: int, seconds: int) -> tuple[float, float]:
    """Requests per second, and the 99th percentile in milliseconds. Raises where answers were not 200."""
    done = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{port}{path}"],
        capture_output=True,
        text=True,
        check=True,
    )
    if "Non-2xx" in done.stdout:
        raise RuntimeError(done.stdout)
    rate = float(re.findall(r"Requests/sec:\s+([\d.]+)", done.stdout)[0])
    value, unit = re.findall(r"99%\s+([\d.]+)(us|ms|s)", done.stdout)[0]
    return rate, float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


def resident(pid: int) -> float:
    """Megabytes that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def seconds_of(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server, at once where it does not end by itself: Robyn 0.88 waits for ever on a SIGTERM."""
    server.terminate()
    try:
        server.wait(3)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def measure(peer: str, seconds: int, database: Path) -> dict[str, float]:
    """Requests per second by path, percentiles, and the server's processor time per request."""
    port = free_port()
    application = "core" if peer == ON_UVICORN else peer
    environment = {**os.environ, "CORE_BENCH_PEER": application, "CORE_BENCH_DATABASE": str(database)}
    found: dict[str, float] = {}
    server = subprocess.Popen(command(peer, port), env=environment)
    try:
        wait_for(port)
        verify(port)
        wrk(port, "/", 64, 1)
        for name, path in PATHS.items():
            spent = seconds_of(server.pid)
            rate, p99 = wrk(port, path, 64, seconds)
            found[name] = rate
            found[f"{name} µs"] = (seconds_of(server.pid) - spent) / (rate * seconds) * 1e6
            if name == "param":
                found["p99 at 64"] = p99
        found["p99 at 512"] = wrk(port, PATHS["param"], 512, seconds)[1]
    finally:
        end(server)
    return found


def nearest(results: dict[str, dict[str, float]], name: str) -> str:
    """The framework that is nearest to core on one workload, and how far away it is."""
    times = {peer: row[f"{name} µs"] for peer, row in results.items() if peer not in ("raw", "core", ON_UVICORN)}
    if not times:
        return f"{name}: no other framework was measured"
    peer = min(times, key=lambda peer: times[peer])
    return f"{name}: {peer}, {times[peer] / results['core'][f'{name} µs']:.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {name: {} for name in options.peers.split(",")}
    if not (HONO / "node_modules" / "@hono" / "node-server").exists():
        print("Hono's server is missing (make bench installs it where npm is), so it was left out.\n")
        results.pop("hono", None)
    with tempfile.TemporaryDirectory(prefix="core-bench-") as folder:
        database = Path(folder) / "d1" / "bench.sqlite"
        rows.make(database)
        for _ in range(options.rounds):
            for name, best in results.items():
                for column, value in measure(name, options.seconds, database).items():
                    choose = max if column in PATHS else min  # rates; all others are times
                    best[column] = choose(value, best.get(column, value))
    ours = results["core"]
    print("| one process | json | full | row | CPU µs: json | full | row | full/s | p99 64, ms | p99 512, ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, row in results.items():
        ratios = " | ".join(f"{row[f'{each} µs'] / ours[f'{each} µs']:.2f}" for each in COMPARED)
        times = " | ".join(f"{row[f'{each} µs']:.0f}" for each in COMPARED)
        print(
            f"| {name} | {ratios} | {times} | {row['full']:,.0f} | {row['p99 at 64']:.1f} | {row['p99 at 512']:.1f} |"
        )
    print("\nThe framework nearest to core: " + "; ".join(nearest(results, name) for name in COMPARED) + ".")
    if options.json:
        Path(options.json).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
