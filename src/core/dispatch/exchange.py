"""The messages of ASGI between a mounted application and the response to one request, or the connection of a WebSocket.

https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from core import http
from core.errors import CoreError, DeveloperError
from core.errors.body import BodyEndedError
from core.http.driven import Owned
from core.http.websocket import Upgrade, WebSocket, WebSocketClosed

log: logging.Logger = logging.getLogger("core")

Message: TypeAlias = MutableMapping[str, Any]
_Event: TypeAlias = MutableMapping[str, object]
_Send: TypeAlias = Callable[[_Event], Awaitable[None]]

AsgiApp: TypeAlias = Callable[[_Event, Callable[[], Awaitable[_Event]], _Send], Awaitable[None]]
"""An ASGI 3 application: `(scope, receive, send)`."""


class Exchange:
    """The messages of one request and its answer, between the mounted application and the response."""

    def __init__(self, body: AsyncIterator[bytes] | None) -> None:
        self._body = body
        self._sent: asyncio.Queue[Message | None] = asyncio.Queue(1)
        self._closed = asyncio.Event()
        self._reported = False  # whether the end of the application was waited for by who reads its answer
        self._gone: BodyEndedError | None = None

    async def wait_for(self, serving: asyncio.Future[None]) -> None:
        """Wait for the end of the application. An error that it raises behind its answer is logged."""
        await asyncio.wait((serving,))
        error = None if serving.cancelled() else serving.exception()
        # What it raises on a disconnect is how it ends: ASGI frameworks have an exception of their own for that.
        if error is not None and not self._reported and self._gone is None:
            log.error("a mounted ASGI application failed behind its answer", exc_info=error)

    async def serve(self, target: AsgiApp, scope: Message) -> None:
        """Run the application to its end."""
        try:
            await target(scope, self._receive, self._send)
        finally:
            await self._put(None)

    def close(self) -> None:
        """Tell the application that nobody reads its answer any more."""
        self._closed.set()

    async def _receive(self) -> Message:
        if self._body is not None:
            try:
                async for chunk in self._body:
                    return {"type": "http.request", "body": chunk, "more_body": True}
            except BodyEndedError as error:
                self._gone = error
            self._body = None
            if self._gone is None:
                return {"type": "http.request", "body": b"", "more_body": False}
        if self._gone is None:
            await self._closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] in ("http.response.start", "http.response.body"):
            await self._put(message)

    async def _put(self, message: Message | None) -> None:
        """Hand a message over as soon as the one before it was taken; after `close` nobody takes one."""
        if self._closed.is_set():
            return
        putting = asyncio.ensure_future(self._sent.put(message))
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait((putting, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            putting.cancel()
            closed.cancel()

    async def answer(self, serving: asyncio.Future[None], *, head: bool) -> http.Response | Upgrade:
        """The answer: whole where it comes in one piece, else as a stream.

        Raises an error that the application raised before it.
        """
        start = await self._sent.get()
        return await self._answer(start, serving, head=head)

    async def _answer(self, start: Message | None, serving: asyncio.Future[None], *, head: bool) -> http.Response:
        if start is None:
            await self._end_of(serving)
            raise DeveloperError("the mounted ASGI application ended without an answer. It has to send one")
        headers = http.Headers()
        for name, value in _headers_of(start):
            headers.append(name, value)
        first = await self._sent.get()
        if first is None:
            await self._end_of(serving)
            raise DeveloperError(
                "the mounted ASGI application ended without a body. It has to send one, which may be empty"
            )
        whole = bytes(first.get("body", b""))
        if head or not first.get("more_body", False):
            self.close()
            return http.Response.assembled(int(start["status"]), headers, None if head else whole or None)
        # An answer that nobody reads ends the exchange too.
        return http.Response.assembled(int(start["status"]), headers, Owned(self._stream(whole, serving), self))

    async def aclose(self) -> None:
        """As `close`."""
        self.close()

    async def _end_of(self, serving: asyncio.Future[None]) -> None:
        """Raise the error that ended the application before its answer, if one did."""
        self._reported = True
        if self._gone is not None:
            await asyncio.wait((serving,))
            raise self._gone
        await serving

    async def _stream(self, first: bytes, serving: asyncio.Future[None]) -> AsyncGenerator[bytes, None]:
        try:
            yield first
            while (message := await self._sent.get()) is not None:
                yield bytes(message.get("body", b""))
                if not message.get("more_body", False):
                    return
            await self._end_of(serving)
            raise DeveloperError("the mounted ASGI application ended before its body did")
        finally:
            self.close()


class GoneError(OSError):
    """Raised by `send` behind the end of a WebSocket, as the specification says (2.4)."""


class Session(Exchange):
    """The messages of a WebSocket, between the mounted application and the connection."""

    def __init__(self) -> None:
        super().__init__(None)
        self._incoming: asyncio.Queue[Message] = asyncio.Queue(1)
        self._incoming.put_nowait({"type": "websocket.connect"})
        self._end: Message = {"type": "websocket.disconnect", "code": 1006, "reason": ""}

    def close(self, code: int = 1006, reason: str = "") -> None:
        """Tell the application that the connection is closed."""
        if self._closed.is_set():
            return
        self._end = {"type": "websocket.disconnect", "code": code, "reason": reason}
        super().close()
        if self._incoming.empty():
            self._incoming.put_nowait(self._end)  # it may be waiting

    async def _receive(self) -> Message:
        if self._closed.is_set() and self._incoming.empty():
            return self._end
        return await self._incoming.get()

    async def _send(self, message: Message) -> None:
        if self._closed.is_set():
            raise GoneError("the WebSocket is closed")
        kind: str = message["type"]
        # A refusal with an answer of its own is written as an answer to any other request.
        await self._put({**message, "type": kind.removeprefix("websocket.") if ".http." in kind else kind})

    async def answer(self, serving: asyncio.Future[None], *, head: bool) -> http.Response | Upgrade:
        """The upgrade of an application that accepts, the answer of one that refuses.

        Raises an error that it raised before.
        """
        first = await self._sent.get()
        if first is None or first["type"] not in ("websocket.accept", "websocket.close"):
            return await self._answer(first, serving, head=head)
        if first["type"] == "websocket.close":
            raise CoreError(403, "Forbidden")
        own = tuple(pair for pair in _headers_of(first) if pair[0].lower() != "sec-websocket-protocol")
        return Upgrade(lambda socket: self._carry(socket, serving), first.get("subprotocol"), own, on_cancel=self.close)

    async def _carry(self, socket: WebSocket, serving: asyncio.Future[None]) -> None:
        """Carry messages both ways until the application or the client closes, and wait for the application's end."""
        reading = asyncio.ensure_future(self._read(socket))
        writing = asyncio.ensure_future(self._write(socket))
        try:
            await asyncio.wait((writing, serving), return_when=asyncio.FIRST_COMPLETED)
            if not self._closed.is_set():
                await writing  # the last message of the application
            self.close()
            self._reported = True
            await serving  # raises the error that ended the session
        except GoneError:
            pass
        finally:
            self.close()
            for one in (reading, writing, serving):
                one.cancel()

    async def _read(self, socket: WebSocket) -> None:
        """Hand the client's messages to the application, one by one."""
        try:
            while True:
                message = await socket.receive()
                kind = "text" if isinstance(message, str) else "bytes"
                await self._incoming.put({"type": "websocket.receive", kind: message})
        except WebSocketClosed as closed:
            self.close(closed.code, closed.reason)

    async def _write(self, socket: WebSocket) -> None:
        """Send the application's messages until it closes or ends."""
        while (message := await self._sent.get()) is not None:
            if message["type"] == "websocket.close":
                code, reason = _code_of(message), message.get("reason") or ""
                self.close(code, reason)
                await socket.close(code, reason)
                return
            text = message.get("text")
            try:
                await socket.send(message.get("bytes") or b"" if text is None else text)
            except WebSocketClosed as closed:
                self.close(closed.code, closed.reason)
                return


def _code_of(message: Message) -> int:
    """The code of a close; those that no handler of ours may send are the nearest that it may."""
    code = int(message.get("code") or 1000)
    if code in (1003, 1007):
        return 1008
    return code if code in (1000, 1001, 1008, 1009, 1011, 1012, 1013) or 3000 <= code <= 4999 else 1011


def _headers_of(message: Message) -> list[tuple[str, str]]:
    return [
        (bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in message.get("headers") or ()
    ]
