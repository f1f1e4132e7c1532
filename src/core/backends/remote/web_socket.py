"""WebSockets that reach their Durable Object through another process, as either process has the other end.

The web process holds the client's connection, and the object its own end; each message is one frame of the link in
between, so that the order is theirs. A client that reads slowly keeps the link full, and then counts against the
object's own limit. Where the process that has the object ends without a word, the client is closed with 1012, which
asks it to connect again.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Final

from core.backends.remote.link import Frame, Link, Lost
from core.http.streams import encode
from core.http.websocket import HostedWebSocket, WebSocketClosed, as_message, check_close

_CODE: Final = struct.Struct(">H")
_RESTART: Final = 1012, "Service Restart"


class RemoteWebSocket(HostedWebSocket):
    """A WebSocket whose other end is in the process at the end of `link`.

    `lost` is the code and reason of its close where that process ends without a word. The subprotocol is a header of
    the object's response.
    """

    def __init__(self, link: Link, lost: tuple[int, str] = _RESTART) -> None:
        super().__init__()
        self._link = link
        self._lost = lost

    async def receive(self) -> str | bytes:
        self.require_open()
        try:
            kind, payload = await self._link.receive()
        except Lost:
            raise self._end(*self._lost) from None
        if kind is Frame.CLOSE:
            raise self._end(_CODE.unpack(payload[:2])[0], payload[2:].decode())
        return payload.decode() if kind is Frame.TEXT else payload

    async def send(self, message: str | bytes, /) -> None:
        self.require_open()
        sent = as_message(message)
        with suppress(Lost):  # its last messages, and why it closed, may not have been read yet
            if isinstance(sent, str):
                await self._link.send(Frame.TEXT, encode(sent))
            else:
                await self._link.send(Frame.BYTES, sent)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        check_close(code, reason)
        self.end(code, reason)

    def end(self, code: int, reason: str = "") -> None:
        """Close with any code, as a host does when the client is lost (1006)."""
        if self.closed is None:
            self._link.put(Frame.CLOSE, _CODE.pack(code) + encode(reason))
            self._end(code, reason)

    def _end(self, code: int, reason: str) -> WebSocketClosed:
        self._link.close()
        return self.note_close(code, reason)
