"""Memory: what a route keeps, what an idle connection keeps, and whether a million requests leave anything behind.

python -m benchmarks.memory [--requests 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import socket
import subprocess
from pathlib import Path

from benchmarks.in_process import batch, load
from benchmarks.over_http import command, free_port, resident, wait_for
from benchmarks.routes import bytes_per_route
from benchmarks.workloads import WORKLOADS

CONNECTIONS = 1000


async def after(requests: int) -> dict[int, float]:
    """Megabytes after some and after all of so many requests, the seven workloads in turn."""
    logging.disable(logging.CRITICAL)
    plain, full = await load("core"), await load("core", four=True)
    found: dict[int, float] = {}
    done = 0
    for part in (requests // 10, requests // 2, requests):
        while done < part:
            for workload in WORKLOADS:
                await batch(full if workload.name == "full" else plain, workload, 1000, done)
                done += 1000
        gc.collect()
        found[done] = resident(os.getpid())
    return found


def idle_connection(peer: str) -> float:
    """Bytes that a connection keeps in the server's process after its first answer, the server's own part included."""
    port = free_port()
    server = subprocess.Popen(command(peer, port), env={**os.environ, "CORE_BENCH_PEER": peer})
    try:
        wait_for(port)
        before = resident(server.pid)
        connections: list[socket.socket] = []
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.recv(4096)
            connections.append(connection)
        kept = resident(server.pid) - before
        for connection in connections:
            connection.close()
    finally:
        server.terminate()
        server.wait(20)
    return kept * 2**20 / CONNECTIONS


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    kept = bytes_per_route()
    idle = {peer: idle_connection(peer) for peer in ("raw", "core")}
    grown = asyncio.run(after(options.requests))
    print("| memory of core | |\n| --- | ---: |")
    print(f"| a route, tables included | {kept:,.0f} bytes |")
    print(f"| an idle connection (raw, under uvicorn: {idle['raw']:,.0f}) | {idle['core']:,.0f} bytes |")
    for count, megabytes in grown.items():
        print(f"| the process after {count:,} requests | {megabytes:.1f} MB |")
    if options.json:
        Path(options.json).write_text(json.dumps({"route": kept, "idle": idle, "after": grown}), encoding="utf-8")


if __name__ == "__main__":
    main()
