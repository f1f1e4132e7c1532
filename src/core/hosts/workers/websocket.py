"""WebSockets over the runtime's own: the pair that it makes, and the server's end as the application's `WebSocket`."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from core.backends.workerd.conversion import bridge, bytes_of, js_bytes
from core.context import ExecutionContext
from core.http.websocket import Messages, Upgrade, WebSocketClosed, check_close

__all__ = ["WorkersWebSocket", "open_socket"]


class WorkersWebSocket(Messages):
    """The server's end of a connection."""

    def __init__(self, socket: Any, protocol: str | None) -> None:
        self._socket = socket
        self._protocol = protocol
        self._messages: deque[str | bytes] = deque()
        self._arrived = asyncio.Event()
        self._closed: WebSocketClosed | None = None
        across = bridge()
        self._proxies = [across.create_proxy(self._on_message), across.create_proxy(self._on_close)]
        on_message, on_close = self._proxies
        socket.accept()
        # Bytes as bytes: newer compatibility dates would give Blobs, which have to be waited for.
        socket.binaryType = "arraybuffer"
        socket.addEventListener("message", on_message)
        socket.addEventListener("close", on_close)
        socket.addEventListener("error", on_close)

    @property
    def protocol(self) -> str | None:
        """The subprotocol that was agreed on, if any."""
        return self._protocol

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketClosed when there will be none."""
        while not self._messages:
            if self._closed is not None:
                raise self._closed
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.popleft()

    async def send(self, message: str | bytes, /) -> None:
        """Send one message. Raises WebSocketClosed when the connection is closed."""
        if self._closed is not None:
            raise self._closed
        if isinstance(message, str):
            outgoing: Any = message
        elif isinstance(message, (bytes, bytearray, memoryview)):
            outgoing = js_bytes(message)
        else:
            raise TypeError(f"send() takes str or bytes, not {type(message).__name__}. Write json.dumps(…) for values")
        try:
            self._socket.send(outgoing)
        except bridge().JsException:
            self._end(1006, "")
            raise WebSocketClosed(1006, "", self) from None
        # JavaScript has no word for a full connection: others have their turn instead.
        await asyncio.sleep(0)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection. A second call does nothing."""
        check_close(code, reason)
        if self._closed is None:
            self._say_close(code, reason)
            self._end(code, reason)

    def _on_message(self, event: Any) -> None:
        data = event.data
        self._messages.append(data if isinstance(data, str) else bytes_of(data))
        self._arrived.set()

    def _on_close(self, event: Any) -> None:
        code, reason = getattr(event, "code", None), getattr(event, "reason", None)
        code = code if isinstance(code, int) else 1006
        if self._closed is None:
            self._say_close(code, "")
        self._end(code, reason if isinstance(reason, str) else "")

    def _say_close(self, code: int, reason: str) -> None:
        """The closing handshake's side of ours. A code that may not be sent is answered without one."""
        try:
            if code in (1005, 1006, 1015):
                self._socket.close()
            else:
                self._socket.close(code, reason)
        except bridge().JsException:
            pass  # it is closed already

    def _end(self, code: int, reason: str) -> None:
        if self._closed is None:
            self._closed = WebSocketClosed(code, reason, self)
        self._arrived.set()
        proxies, self._proxies = self._proxies, []
        # Not at once: one of them may be what is running.
        for proxy in proxies:
            asyncio.get_running_loop().call_soon(proxy.destroy)


def open_socket(upgrade: Upgrade, ctx: ExecutionContext) -> Any:
    """The client's end for the runtime's response, while the session begins on the server's."""
    client, server = bridge().js.WebSocketPair.new().object_values()
    ctx.wait_until(upgrade.run(WorkersWebSocket(server, upgrade.protocol)))
    return client
