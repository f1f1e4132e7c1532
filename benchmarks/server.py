"""Processor time of a request: the server of `core serve --python` beside plain uvicorn, in rounds that take turns.

Both have httptools and uvloop, one process, and the same ASGI application, which answers with four bytes. What differs
is what `core.hosts.server` adds: limits, the check of Host, counts. wrk asks over 64 kept connections.

    python -m benchmarks.server [--rounds 7] [--seconds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.over_http import seconds_of, wait_for, wrk

SERVERS = ("uvicorn", "core")


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer every request alike."""
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"pong"})


def serve(name: str) -> None:
    """Serve on a free port, which is printed, until the process is ended."""
    import uvloop

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    server: Any
    if name == "core":
        from core.hosts.limits import Limits
        from core.hosts.server import Server

        server = Server(application, Limits(), arrivals=0)
    else:
        import uvicorn

        config = uvicorn.Config(
            application, http="httptools", lifespan="off", log_config=None, access_log=False, server_header=False
        )
        server = uvicorn.Server(config)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.serve(sockets=[listener]))


def measure(name: str, seconds: int) -> float:
    """Microseconds of processor time for one request."""
    command = [sys.executable, "-m", "benchmarks.server", "--serve", name]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        wait_for(port)
        wrk(port, "/", 64, 1)
        spent = seconds_of(server.pid)
        rate, _ = wrk(port, "/", 64, seconds)
        return (seconds_of(server.pid) - spent) / (rate * seconds) * 1e6
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--serve", choices=SERVERS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    found: dict[str, list[float]] = {name: [] for name in SERVERS}
    for _ in range(options.rounds):
        for name, times in found.items():
            times.append(measure(name, options.seconds))
    for name, times in found.items():
        print(f"{name}: least {min(times):.1f}, median {statistics.median(times):.1f} µs of processor time a request")


if __name__ == "__main__":
    main()
