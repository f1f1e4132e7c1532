"""The application for the servers: the peer that CORE_BENCH_PEER names, with the seven workloads.

`/full` alone has the four middleware: it goes to a second application, here as for every peer.

    python -m benchmarks.serve PORT     serves it by the server of `core serve --python`
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from importlib import import_module
from typing import Any

from benchmarks.in_process import start

PEER = os.environ.get("CORE_BENCH_PEER", "core")
_module = import_module(f"benchmarks.peers.{'raw' if PEER == 'raw' else f'{PEER}_app'}")
_plain, _full = _module.build([], False), _module.build([], True)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Hand on to one of the two; the lifespan goes to both."""
    if scope["type"] == "http":
        await (_full if scope["path"].startswith("/full") else _plain)(scope, receive, send)
    elif scope["type"] == "lifespan" and PEER != "raw":
        assert (await receive())["type"] == "lifespan.startup"
        await start(_plain)
        await start(_full)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    from core.hosts.limits import Limits
    from core.hosts.server import Server

    await start(_plain)
    await start(_full)
    listener = socket.create_server(("127.0.0.1", port), backlog=2048)
    await Server(application, Limits(), arrivals=0).serve(sockets=[listener])


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
