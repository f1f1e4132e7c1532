"""One connection between the process that has the Durable Objects and one that calls them: frames of a kind and bytes.

A call at a time goes over it, or one WebSocket for as long as that is open. The web process holds the client's
connection, and the object its own end; each message is one frame, so that the order is theirs. A client that reads
slowly keeps the link full, and then counts against the object's own limit. Where the process that has the object ends
without a word, the client is closed with 1012, which asks it to connect again.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from enum import IntEnum
from typing import Final

from core.http.streams import encode
from core.http.websocket import HostedWebSocket, WebSocketClosed, as_message, check_close

_HEAD: Final = struct.Struct(">BQ")
_CODE: Final = struct.Struct(">H")
_RESTART: Final = 1012, "Service Restart"


class Frame(IntEnum):
    """The kinds of frames. A call is answered with BEGUN, then RESULT or RAISED; chunks of a body end with END."""

    CALL = 0
    BEGUN = 1
    RESULT = 2
    RAISED = 3
    CHUNK = 4
    END = 5
    TEXT = 6
    BYTES = 7
    CLOSE = 8


class Lost(Exception):
    """The other end has closed the connection."""


class Link:
    """One connection, for one call after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        # Of a frame whose receiver was cancelled before the rest came.
        self._head: bytes = b""

    def put(self, kind: Frame, payload: bytes = b"") -> None:
        """Send a frame, whether or not the other end has room for it."""
        self._writer.write(_HEAD.pack(kind, len(payload)) + payload)

    async def send(self, kind: Frame, payload: bytes = b"") -> None:
        """Send a frame, and wait while the other end has no room. Raises Lost."""
        try:
            self.put(kind, payload)
            await self._writer.drain()
        except OSError as error:
            raise Lost from error

    async def receive(self) -> tuple[Frame, bytes]:
        """The next frame. Raises Lost where there is none. It can be cancelled, and called again."""
        try:
            self._head = self._head or await self._reader.readexactly(_HEAD.size)
            kind, size = _HEAD.unpack(self._head)
            payload = await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Lost from error
        self._head = b""
        return Frame(kind), payload

    @property
    def is_open(self) -> bool:
        return not (self._reader.at_eof() or self._writer.is_closing())

    def close(self) -> None:
        """Close it, after the messages on their way."""
        self._writer.close()


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
