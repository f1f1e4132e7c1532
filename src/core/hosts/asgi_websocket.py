"""WebSockets over ASGI 3: the opening handshake runs through the application, the session over the connection.

A route that refuses is answered with its own status where the server can send one
(`websocket.http.response`), else with the 403 that closing before accepting means.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from core.dispatch.dispatcher import Dispatcher
from core.http.streams import well_formed
from core.http.websocket import HostedWebSocket, as_message, check_close
from core.request import AnyRequest
from core.response import Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiWebSocket(HostedWebSocket):
    """An accepted connection."""

    def __init__(self, receive: Receive, send: Send, protocol: str | None) -> None:
        super().__init__(protocol)
        self._receive = receive
        self._send = send

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketClosed when there will be none."""
        self.require_open()
        message = await self._receive()
        if message["type"] != "websocket.receive":
            raise self.note_close(message.get("code") or 1005, message.get("reason") or "")
        text: str | None = message.get("text")
        if text is not None:
            return text
        data: bytes = message.get("bytes") or b""
        return data

    async def send(self, message: str | bytes, /) -> None:
        """Send one message. Raises WebSocketClosed when the connection is closed."""
        self.require_open()
        sent = as_message(message)
        await self._give({"type": "websocket.send", "text" if isinstance(sent, str) else "bytes": sent})

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection. A second call does nothing."""
        check_close(code, reason)
        if self.closed is None:
            self.note_close(code, reason)
            await self._give({"type": "websocket.close", "code": code, "reason": well_formed(reason)})

    async def _give(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:  # the error of servers for a client that is gone (ASGI, 2.4)
            closed = self.note_close(1006, "")
            if message["type"] == "websocket.send":
                raise closed from None


async def serve_websocket(
    req: AnyRequest, scope: Message, receive: Receive, send: Send, dispatcher: Dispatcher
) -> None:
    """Serve one connection, from its opening to its end."""
    await receive()  # websocket.connect
    # Servers keep the handshake's own headers to themselves, or pass them on; the application reads them either way.
    names = {name for name, _ in scope["headers"]}
    if b"upgrade" not in names:
        scope["headers"] = [*scope["headers"], (b"upgrade", b"websocket")]
    if b"sec-websocket-protocol" not in names and scope.get("subprotocols"):
        offered = ", ".join(scope["subprotocols"]).encode("latin-1", "replace")
        scope["headers"] = [*scope["headers"], (b"sec-websocket-protocol", offered)]
    res = Response()
    await dispatcher.respond(req, res)
    upgrade = res.upgrade
    if res.status_code != 101 or upgrade is None:
        await _refuse(res, scope, send)
        return
    # Set-Cookie comes once for each cookie, as in every other answer.
    own = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in res.own_headers()]
    try:
        await send({"type": "websocket.accept", "subprotocol": upgrade.protocol, "headers": own})
    except BaseException:
        upgrade.cancel()
        raise
    await upgrade.run(AsgiWebSocket(receive, send, upgrade.protocol))


async def _refuse(res: Response, scope: Message, send: Send) -> None:
    if "websocket.http.response" not in (scope.get("extensions") or {}) or res.status_code == 101:
        await send({"type": "websocket.close", "code": 1000})
        return
    response = res.to_http()
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
    body = await response.bytes()
    await send({"type": "websocket.http.response.start", "status": res.status_code, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
