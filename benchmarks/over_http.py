"""Over HTTP, with wrk: one process per peer under one and the same server.

uvicorn runs every ASGI peer with the same settings (uvloop, httptools, one worker). Requests per second are at 64
connections, the 99th percentile at 64 and 512. wrk and the server share the machine, so what counts is the order. Peers
take turns in several rounds, and the best of each counts: what else a machine does can only make a server slower.

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
import time
from http.client import HTTPConnection
from pathlib import Path

PEERS = ("raw", "core", "hayate", "blacksheep", "falcon", "starlette", "litestar", "fastapi")
PATHS = {"plaintext": "/", "param": "/users/7", "full": "/full/users/7?page=2&limit=10"}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def command(peer: str, port: int, workers: int = 1) -> list[str]:
    """The command that starts a peer's server."""
    python = [sys.executable, "-m"]
    return [
        *python, "uvicorn", "benchmarks.serve:application", "--host", "127.0.0.1", "--port", str(port), "--loop",
        "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "error", "--no-proxy-headers",
        "--no-server-header", "--no-date-header", "--workers", str(workers),
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


def wrk(port: int, path: str, connections: int, seconds: float) -> tuple[float, float]:
    """Requests per second, and the 99th percentile in milliseconds. Raises where answers were not 200."""
    done = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", f"http://127.0.0.1:{port}{path}"],
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


def measure(peer: str, seconds: float) -> dict[str, float]:
    """Requests per second by path, percentiles, and the server's processor time per request."""
    port = free_port()
    environment = {**os.environ, "CORE_BENCH_PEER": peer}
    found: dict[str, float] = {}
    server = subprocess.Popen(command(peer, port), env=environment)
    try:
        wait_for(port)
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
        server.terminate()
        server.wait(20)
    return found


def several_workers(seconds: float) -> dict[int, float]:
    """Requests per second of core with one and with two workers, which only tells more where there are more cores."""
    found: dict[int, float] = {}
    for workers in (1, 2):
        port = free_port()
        server = subprocess.Popen(command("core", port, workers), env={**os.environ, "CORE_BENCH_PEER": "core"})
        try:
            wait_for(port)
            found[workers] = wrk(port, PATHS["param"], 64, seconds)[0]
        finally:
            server.terminate()
            server.wait(20)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {name: {} for name in options.peers.split(",")}
    for _ in range(options.rounds):
        for name, best in results.items():
            for column, value in measure(name, options.seconds).items():
                choose = max if column in PATHS else min  # rates; all others are times
                best[column] = choose(value, best.get(column, value))
    print("| uvicorn, one worker | plaintext/s | param/s | full/s | CPU µs, param | p99 64, ms | p99 512, ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, row in results.items():
        print(
            f"| {name} | {row['plaintext']:,.0f} | {row['param']:,.0f} | {row['full']:,.0f} "
            f"| {row['param µs']:.0f} | {row['p99 at 64']:.1f} | {row['p99 at 512']:.1f} |"
        )
    workers = several_workers(options.seconds)
    print(
        f"\ncore with one worker: {workers[1]:,.0f}/s, with two: {workers[2]:,.0f}/s, on {os.cpu_count()} processors."
    )
    if options.json:
        Path(options.json).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
