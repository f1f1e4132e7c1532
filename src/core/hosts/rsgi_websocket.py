"""WebSockets over RSGI: the opening handshake runs through the application, the session over granian's transport.

RSGI agrees on no subprotocols, puts no headers on the handshake's answer, and answers a refusal with a bare 403. A
route that gives headers of its own is refused here; where one of the three matters, serve with `asgi`.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from core.dispatch import Dispatcher
from core.http.streams import well_formed
from core.http.websocket import Messages, WebSocketClosed, check_close
from core.request import AnyRequest
from core.response import Response

__all__ = ["RsgiWebSocket", "serve_websocket"]

log: logging.Logger = logging.getLogger("core")

_CLOSE: Final = 0  # the kinds of messages, as RSGI numbers them
_BYTES: Final = 1


class RsgiWebSocket(Messages):
    """An accepted connection."""

    protocol: str | None = None
    """RSGI agrees on no subprotocol."""

    def __init__(self, transport: Any, protocol: Any) -> None:
        self._transport: Any = transport
        self._protocol = protocol
        self._closed: WebSocketClosed | None = None

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketClosed when there will be none."""
        if self._closed is not None:
            raise self._closed
        message = await self._transport.receive()
        if message.kind == _CLOSE:
            raise self._end(WebSocketClosed(socket=self))
        data: str | bytes = bytes(message.data) if message.kind == _BYTES else message.data
        return data

    async def send(self, message: str | bytes, /) -> None:
        """Send one message. Raises WebSocketClosed when the connection is closed."""
        if self._closed is not None:
            raise self._closed
        try:
            if isinstance(message, str):
                await self._transport.send_str(well_formed(message))
            elif isinstance(message, bytes | bytearray | memoryview):
                await self._transport.send_bytes(bytes(message))
            else:
                raise TypeError(
                    f"send() takes str or bytes, not {type(message).__name__}. Write json.dumps(…) for values"
                )
        except (OSError, RuntimeError):  # granian's errors for a client that is gone
            raise self._end(WebSocketClosed(1006, "", self)) from None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection. RSGI sends neither code nor reason. A second call does nothing."""
        check_close(code, reason)
        if self._closed is None:
            self._end(WebSocketClosed(code, reason, self))
            self._protocol.close(code)

    def _end(self, closed: WebSocketClosed) -> WebSocketClosed:
        # granian closes the connection when nobody has the transport any more.
        self._closed, self._transport = closed, None
        return closed


async def serve_websocket(req: AnyRequest, protocol: Any, dispatcher: Dispatcher) -> None:
    """Serve one connection, from its opening to its end."""
    res = Response()
    await dispatcher.respond(req, res)
    if res.status_code != 101 or res.upgrade is None:
        protocol.close(res.status_code if res.status_code >= 400 else 403)
        return
    lost = sorted({name for name, _ in res.own_headers()})
    if lost:
        ours = {name.lower() for name, _ in res.upgrade.headers}
        log.log(
            logging.ERROR if ours else logging.WARNING,
            "%s: RSGI puts no headers on the answer to a WebSocket's handshake, so %s cannot be sent. Serve with "
            "`core serve --python --server uvicorn` or another ASGI server, or send them with a request before",
            req.path,
            ", ".join(lost),
        )
        if ours:
            protocol.close(500)
            return
    await res.upgrade.run(RsgiWebSocket(await protocol.accept(), protocol))
