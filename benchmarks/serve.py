"""The application for the servers: the peer that CORE_BENCH_PEER names, with the seven workloads.

`/full` alone has the four middleware: it goes to a second application, here as for every peer.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

PEER = os.environ.get("CORE_BENCH_PEER", "core")
_module = import_module(f"benchmarks.peers.{'raw' if PEER == 'raw' else f'{PEER}_app'}")
_plain, _full = _module.build([], False), _module.build([], True)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Hand on to one of the two; the lifespan goes to both."""
    if scope["type"] == "http":
        await (_full if scope["path"].startswith("/full") else _plain)(scope, receive, send)
    elif scope["type"] == "lifespan" and PEER != "raw":
        from benchmarks.in_process import start

        assert (await receive())["type"] == "lifespan.startup"
        await start(_plain)
        await start(_full)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
