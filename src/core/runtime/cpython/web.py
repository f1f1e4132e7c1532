"""The application of a process of `core serve --python`, as its server gets it.

The word of a proxy in front of a client is put into the scope here, checked, and a WebSocket that is open when the
server stops is closed with 1001.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from core.http.addresses import one_address
from core.runtime.options import Front


class Fronted:
    """An ASGI application whose scopes have the proxy's values, and whose WebSockets end with the server."""

    def __init__(self, inner: Any, front: Front, stop: asyncio.Event) -> None:
        self._inner = inner
        self._stop = stop
        self._front = front
        self._believes = front != Front()
        self._origin = None if front.origin is None else front.origin.split("://")

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        if self._believes:
            self._see(scope)
        if scope["type"] == "websocket":
            receive, send = self._session(receive, send)
        answering: Awaitable[None] = self._inner(scope, receive, send)
        return answering

    def _see(self, scope: Any) -> None:
        front = self._front
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        socket_scheme = scope["type"] == "websocket"
        scheme = None
        if self._origin is not None:
            scheme, host = self._origin
            others = [pair for pair in scope["headers"] if pair[0].lower() != b"host"]
            scope["headers"] = [(b"host", host.encode("latin-1")), *others]
        elif front.proto_header is not None:
            scheme = headers.get(front.proto_header)
        if scheme in ("http", "https"):  # exactly that
            scope["scheme"] = scheme.replace("http", "ws") if socket_scheme else scheme
        if front.ip_header is not None:
            address = one_address(headers.get(front.ip_header))
            scope["client"] = None if address is None else (address, 0)

    def _session(self, receive: Any, send: Any) -> tuple[Any, Any]:
        closed = False

        async def receive_until_stopped() -> Any:
            nonlocal closed
            message = await unless_stopped(self._stop, receive())
            if message is not None:
                return message
            if not closed:
                closed = True
                await send({"type": "websocket.close", "code": 1001, "reason": "the server stops"})
            return {"type": "websocket.disconnect", "code": 1001}

        async def send_while_open(message: Any) -> None:
            if closed:
                raise OSError("the server has stopped")
            await send(message)

        return receive_until_stopped, send_while_open


async def unless_stopped(stop: asyncio.Event, work: Awaitable[Any]) -> Any:
    """The result of `work`, or None where `stop` is set first: then it is cancelled."""
    waiting, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not waiting.done():
            waiting.cancel()
    return waiting.result() if waiting.done() and not waiting.cancelled() else None
