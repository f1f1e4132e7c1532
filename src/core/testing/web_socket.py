"""The client's end of a WebSocket in a test: one that hears nothing says so."""

from __future__ import annotations

import asyncio

from core.http.websocket import ConnectedWebSocket

__all__ = ["ClientWebSocket"]

__tracebackhide__ = True  # pytest shows the line of the test


class ClientWebSocket(ConnectedWebSocket):
    """A client's end, as `Client.websocket` opens it."""

    patience: float | None = 30
    """The seconds that `receive` waits for a message before it raises TimeoutError; None waits for ever."""

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketClosed when there will be none, and TimeoutError."""
        try:
            async with asyncio.timeout(self.patience):
                return await super().receive()
        except TimeoutError:
            raise TimeoutError(f"receive(): no message came within {self.patience} seconds") from None
