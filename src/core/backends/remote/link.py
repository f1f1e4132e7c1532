"""One connection between the process that has the Durable Objects and one that calls them: frames of a kind and bytes.

A call at a time goes over it, or one WebSocket for as long as that is open.
"""

from __future__ import annotations

import asyncio
import struct
from enum import IntEnum
from typing import Final

_HEAD: Final = struct.Struct(">BQ")


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
