"""WebSockets, which the workers runtime alone can give: a handler takes the request up and talks to its client.

@app.get("/echo")
async def echo(req: Request[Env], res: Response) -> None:
    socket = upgrade(req, res)

    async def talk() -> None:
        async for message in socket:
            socket.send(message)

    req.ctx.wait_until(talk())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from core.backends.workerd.crossing import bridge, bytes_of, js_bytes
from core.errors import CoreError, DeveloperError
from core.hosts.workers.request import WorkersRequest
from core.request import Request
from core.response import Response

__all__ = ["WebSocket", "upgrade"]


class WebSocket:
    """One end of a connection. Iterating gives its messages, str or bytes, and ends when the client closes it."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._messages: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self.close_code: int | None = None
        """Why the client closed it (RFC 6455, section 7.4); None while it is open."""
        across = bridge()
        self._proxies = [
            across.create_proxy(self._on_message),
            across.create_proxy(self._on_close),
        ]
        on_message, on_close = self._proxies
        socket.accept()
        # Bytes as bytes: newer compatibility dates would give Blobs, which have to be waited for.
        socket.binaryType = "arraybuffer"
        socket.addEventListener("message", on_message)
        socket.addEventListener("close", on_close)
        socket.addEventListener("error", on_close)

    def send(self, message: str | bytes) -> None:
        """Send a text or bytes. Raises ConnectionError when it is closed."""
        try:
            self._socket.send(message if isinstance(message, str) else js_bytes(message))
        except bridge().JsException as error:
            raise ConnectionError(str(error)) from None

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it. A second call does nothing."""
        if self._proxies:
            self._socket.close(code, reason)
            self._end(code)

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        while (message := await self._messages.get()) is not None:
            yield message

    def _on_message(self, event: Any) -> None:
        data = event.data
        self._messages.put_nowait(data if isinstance(data, str) else bytes_of(data))

    def _on_close(self, event: Any) -> None:
        code = getattr(event, "code", None)
        code = code if isinstance(code, int) else 1006
        if self._proxies:
            try:
                # The closing handshake: a code that may not be sent is answered without one.
                self._socket.close(*(() if code in (1005, 1006, 1015) else (code,)))
            except bridge().JsException:
                pass
        self._end(code)

    def _end(self, code: int) -> None:
        if self.close_code is None:
            self.close_code = code
            self._messages.put_nowait(None)
        proxies, self._proxies = self._proxies, []
        # Not at once: one of them may be what is running.
        for proxy in proxies:
            asyncio.get_running_loop().call_soon(proxy.destroy)


def upgrade(req: Request[Any, Any, Any], res: Response) -> WebSocket:
    """Answer 101 and give the connection.

    Raises CoreError(426) when the client asks for no WebSocket, and DeveloperError on a host that has none.
    """
    if (req.header("upgrade") or "").lower() != "websocket":
        raise CoreError(426, "Expected Upgrade: websocket", headers={"Upgrade": "websocket"})
    if not isinstance(req, WorkersRequest):
        raise DeveloperError("this host has no WebSockets. Run the application with `core dev --runtime workerd`")
    pair = bridge().js.WebSocketPair.new().object_values()
    res.status(101).send()
    res.web_socket = pair[0]  # type: ignore[attr-defined]  # only this host's response knows of it
    return WebSocket(pair[1])
