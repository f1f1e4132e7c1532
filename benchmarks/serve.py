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


class _Rsgi:
    """The same of core's RSGI host."""

    def __init__(self) -> None:
        from benchmarks.peers import core_app
        from core.hosts.rsgi import rsgi

        self._plain, self._full = rsgi(core_app.application([], False)), rsgi(core_app.application([], True))

    def __rsgi_init__(self, loop: Any) -> None:
        self._plain.__rsgi_init__(loop)
        self._full.__rsgi_init__(loop)

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        await (self._full if scope.path.startswith("/full") else self._plain).__rsgi__(scope, protocol)


rsgi_application = _Rsgi() if PEER == "core" else None
