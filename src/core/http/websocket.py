"""WebSockets as a handler sees them (RFC 6455), whoever carries the frames.

A host implements `WebSocket` over its own kind of connection; `pair()` gives two that are connected
to each other in memory, for tests. Texts and bytes are whole messages; fragments, pings and masks are
the host's business.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, runtime_checkable

__all__ = ["ConnectedWebSocket", "Upgrade", "WebSocket", "WebSocketClosed", "check_close", "messages", "pair"]

log: logging.Logger = logging.getLogger("core")

_MOST_REASON_BYTES = 123


class WebSocketClosed(Exception):
    """The connection is closed: by whom `code` and `reason` tell. 1005 is a close without a code, 1006 a lost connection."""

    def __init__(self, code: int = 1005, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        return f"the WebSocket is closed: {self.code}{' ' + self.reason if self.reason else ''}"


@runtime_checkable
class WebSocket(Protocol):
    """An open WebSocket.

    async for message in socket:      # ends when the client closes
        await socket.send(message)
    """

    @property
    def protocol(self) -> str | None:
        """The subprotocol that was agreed on, if any."""
        ...

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketClosed when there will be none."""
        ...

    async def send(self, message: str | bytes, /) -> None:
        """Send one message. Raises WebSocketClosed when the connection is closed."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection. `code` is 1000, or 3000 to 4999; `reason` at most 123 bytes. A second call does nothing."""
        ...

    def __aiter__(self) -> AsyncIterator[str | bytes]:
        """The messages until the connection closes."""
        ...


class Upgrade:
    """What a route wants to do on a WebSocket, once its host has opened it.

    A host that finds one on a response of status 101 opens the connection with `protocol` and calls `run`.
    """

    __slots__ = ("_session", "protocol")

    def __init__(self, session: Callable[[WebSocket], Awaitable[None]], protocol: str | None) -> None:
        self._session = session
        self.protocol: str | None = protocol
        """The subprotocol that was agreed on, if any."""

    async def run(self, socket: WebSocket, /) -> None:
        """Run the session to its end and close the connection: with 1011 where the handler fails, which is logged."""
        try:
            await self._session(socket)
        except WebSocketClosed:
            return
        except Exception:
            log.exception("a WebSocket handler failed")
            await socket.close(1011, "Internal Error")
        else:
            await socket.close()


def check_close(code: int, reason: str) -> None:
    """Refuse what no close frame may carry. Raises ValueError."""
    if type(code) is not int or not (code in (1000, 1001, 1008, 1009, 1011, 1012, 1013) or 3000 <= code <= 4999):
        raise ValueError(f"close(code={code!r}) must be 1000, or one of your own from 3000 to 4999")
    if len(reason.encode("utf-8", "surrogatepass")) > _MOST_REASON_BYTES:
        raise ValueError(f"close(reason=…) must be at most {_MOST_REASON_BYTES} bytes of UTF-8")


class ConnectedWebSocket:
    """One end of a pair in memory."""

    def __init__(self, protocol: str | None = None) -> None:
        self._protocol = protocol
        self._other: ConnectedWebSocket = self
        self._messages: deque[str | bytes] = deque()
        self._arrived = asyncio.Event()
        self.closed: WebSocketClosed | None = None
        """How the connection was closed, None while it is open."""

    @property
    def protocol(self) -> str | None:
        """The subprotocol that was agreed on, if any."""
        return self._protocol

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketClosed when there will be none."""
        while not self._messages:
            if self.closed is not None:
                raise self.closed
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.popleft()

    async def send(self, message: str | bytes, /) -> None:
        """Send one message. Raises WebSocketClosed when the connection is closed."""
        if not isinstance(message, str | bytes):
            raise TypeError(f"send() takes str or bytes, not {type(message).__name__}. Write json.dumps(…) for values")
        if self.closed is not None:
            raise self.closed
        self._other._messages.append(message)
        self._other._arrived.set()
        await asyncio.sleep(0)  # as on a wire: the other side has its turn

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection for both."""
        check_close(code, reason)
        self.end(code, reason)

    def end(self, code: int, reason: str = "") -> None:
        """Close with any code, as a host does when a connection is lost (1006) or a handler fails (1011)."""
        for side in (self, self._other):
            if side.closed is None:
                side.closed = WebSocketClosed(code, reason)
            side._arrived.set()

    def __aiter__(self) -> AsyncIterator[str | bytes]:
        return messages(self)


async def messages(socket: WebSocket) -> AsyncIterator[str | bytes]:
    """The messages of a connection until it closes: what every WebSocket's own iteration is."""
    try:
        while True:
            yield await socket.receive()
    except WebSocketClosed:
        return


def pair(protocol: str | None = None) -> tuple[ConnectedWebSocket, ConnectedWebSocket]:
    """Two WebSockets that are connected to each other: a server's end, and a client's."""
    server, client = ConnectedWebSocket(protocol), ConnectedWebSocket(protocol)
    server._other, client._other = client, server
    return server, client
