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
from typing import Any, Protocol, cast, overload, runtime_checkable

import attrs
from typing_extensions import TypeForm, TypeVar

from core.errors import CoreError
from core.http.headers import Headers
from core.http.json import dumps, loads
from core.http.streams import encode, well_formed

__all__ = [
    "BufferedWebSocket",
    "ClientEnd",
    "ConnectedWebSocket",
    "HostedWebSocket",
    "Upgrade",
    "WebSocket",
    "WebSocketClosed",
    "check_close",
    "close_as",
    "hand_over",
    "pair",
    "relay",
]

log: logging.Logger = logging.getLogger("core")

T = TypeVar("T")

_MOST_REASON_BYTES = 123

_closing: set[asyncio.Future[None]] = set()


class WebSocketClosed(Exception):
    """The connection is closed: why `code` and `reason` tell. 1005 is a close without a code, 1006 a lost connection.

    `socket` is the WebSocket that is closed, so that who sends to many knows which one to let go.
    """

    def __init__(self, code: int = 1005, reason: str = "", socket: WebSocket | None = None) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.socket = socket

    def __str__(self) -> str:
        return f"the WebSocket is closed: {self.code}{' ' + self.reason if self.reason else ''}"


@runtime_checkable
class WebSocket(Protocol):
    """An open WebSocket. A host's own derives from it, and has `protocol`, `receive`, `send` and `close`.

    Read it in a loop:

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
        """Close the connection. `code` is 1000, or 3000 to 4999; `reason` at most 123 bytes.

        A second call does nothing.
        """
        ...

    async def send_json(self, value: object, /) -> None:
        """Send a value as JSON, in one message of text: all that `res.json` takes.

        Raises WebSocketClosed when the connection is closed, ValueError and TypeError as `res.json` does.
        """
        await self.send(dumps(value))

    @overload
    async def receive_json(self, /) -> Any: ...
    @overload
    async def receive_json(self, type_: TypeForm[T], /) -> T: ...
    async def receive_json(self, type_: Any = Any, /) -> object:
        """The next message as JSON, and as a `T` when a type is given, read as strictly as `req.json(T)`.

            move = await socket.receive_json(Move)

        Raises WebSocketClosed when there will be none, CoreError(400, "Invalid JSON") and ValidationError. A handler
        that lets such an error through closes the connection with 1008; one that catches it can answer
        `socket.send_json(error.body)` and go on.
        """
        message = await self.receive()
        try:
            value = loads(message)
        except ValueError:
            raise CoreError(400, "Invalid JSON") from None
        if type_ is Any:
            return value
        from core.validation.structure import structure_sent

        return structure_sent(value, type_)

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        """The messages until the connection closes."""
        try:
            while True:
                yield await self.receive()
        except WebSocketClosed:
            return


@attrs.frozen(eq=False)
class Upgrade:
    """The action of a route on a WebSocket, once its host has opened it.

    A host that finds one on a response of status 101 opens the connection with `protocol` and calls `run`.
    """

    _session: Callable[[WebSocket], Awaitable[None]]
    protocol: str | None
    """The subprotocol that was agreed on, if any."""
    headers: tuple[tuple[str, str], ...] = ()
    """The application's own headers on the answer to the handshake."""
    peer: WebSocket | None = None
    """The open WebSocket that the connection is handed over to, which a host may connect by itself."""
    _on_cancel: Callable[[], None] | None = attrs.field(default=None, alias="on_cancel")

    def cancel(self) -> None:
        """Tell what the connection was to be handed over to that it was refused after all, instead of `run`."""
        if self._on_cancel is not None:
            self._on_cancel()

    async def run(self, socket: WebSocket, /) -> None:
        """Run the session to its end and close the connection: with 1011 where the handler fails, which is logged, and
        with 1008 where it raises a CoreError below 500, since the client's message was wrong.

        That this connection is closed is not a failure. That another one is, to which the handler sends too, is one.
        """
        try:
            await self._session(socket)
        except Exception as error:
            if _is_closing_of(socket, error):
                return
            if isinstance(error, CoreError) and error.status < 500:
                await socket.close(1008, _shortened(error.message))
                return
            log.exception("a WebSocket handler failed")
            await socket.close(1011, "Internal Error")
        else:
            await socket.close()


def _is_closing_of(socket: WebSocket, error: BaseException) -> bool:
    """Return True if `error` says nothing but that `socket` is closed; tasks of a group may each say so."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_closing_of(socket, one) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    return isinstance(error, WebSocketClosed) and error.socket is socket


def _shortened(reason: str) -> str:
    return encode(reason)[:_MOST_REASON_BYTES].decode(errors="ignore")


def as_message(message: object) -> str | bytes:
    """A message as it is sent: text that is well-formed, or bytes. Raises TypeError for any other value."""
    given: Any = message  # not narrowed by what follows
    if isinstance(message, str):
        return well_formed(message)
    if isinstance(message, bytes | bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"send() takes str or bytes, not {type(message).__name__}. Write json.dumps(…) for values")


def check_close(code: int, reason: str) -> None:
    """Refuse a code or reason that no close frame may carry. Raises ValueError."""
    if type(code) is not int or not (code in (1000, 1001, 1008, 1009, 1011, 1012, 1013) or 3000 <= code <= 4999):
        raise ValueError(f"close(code={code!r}) must be 1000, or one of your own from 3000 to 4999")
    if len(encode(reason)) > _MOST_REASON_BYTES:
        raise ValueError(f"close(reason=…) must be at most {_MOST_REASON_BYTES} bytes of UTF-8")


class HostedWebSocket(WebSocket):
    """The base of a host's own: the subprotocol, and how the connection was closed."""

    def __init__(self, protocol: str | None = None) -> None:
        self._protocol = protocol
        self.closed: WebSocketClosed | None = None
        """The close of the connection, None while it is open."""

    @property
    def protocol(self) -> str | None:
        """The subprotocol that was agreed on, if any."""
        return self._protocol

    def require_open(self) -> None:
        """Raise WebSocketClosed when the connection is closed."""
        if self.closed is not None:
            raise self.closed

    def note_close(self, code: int, reason: str) -> WebSocketClosed:
        """The connection is closed; return the error that says so from now on."""
        self.closed = WebSocketClosed(code, reason, self)
        return self.closed


class BufferedWebSocket(HostedWebSocket):
    """The base of those whose messages come by themselves, and wait to be received."""

    def __init__(self, protocol: str | None = None) -> None:
        super().__init__(protocol)
        self._messages: deque[str | bytes] = deque()
        self._arrived = asyncio.Event()

    async def receive(self) -> str | bytes:
        """The next message. Raises WebSocketClosed when there will be none."""
        while not self._messages:
            self.require_open()
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.popleft()


class ConnectedWebSocket(BufferedWebSocket):
    """One end of a pair in memory."""

    def __init__(self, protocol: str | None = None) -> None:
        super().__init__(protocol)
        self._other: ConnectedWebSocket = self
        self.headers: Headers = Headers()
        """The headers of the answer to the handshake, at a client's end."""

    def connect(self, other: ConnectedWebSocket) -> None:
        """Make `other` the other end."""
        self._other, other._other = other, self

    async def send(self, message: str | bytes, /) -> None:
        """Send one message. Raises WebSocketClosed when the connection is closed."""
        message = as_message(message)
        self.require_open()
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
                side.closed = WebSocketClosed(code, well_formed(reason), side)
            side._arrived.set()


class ClientEnd:
    """The client's end of a pair, for `Response.websocket` alone.

    `connection` is there once the other end is accepted.
    """

    __slots__ = ("connection",)

    def __init__(self) -> None:
        self.connection: WebSocket | None = None


def hand_over(peer: WebSocket, protocol: str | None, headers: tuple[tuple[str, str], ...] = ()) -> Upgrade:
    """An upgrade whose connection is handed over to `peer`: messages go both ways until either side closes.

    `headers` are those of the peer's own answer to the handshake.
    """

    def close() -> None:
        closing = asyncio.ensure_future(close_as(peer, WebSocketClosed(1006)))
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)

    return Upgrade(lambda socket: relay(socket, peer), protocol, headers, peer, close)


async def relay(socket: WebSocket, peer: WebSocket) -> None:
    """Carry messages between two connections until either closes, and close the other one as it was."""
    both = {asyncio.ensure_future(_carry(socket, peer)), asyncio.ensure_future(_carry(peer, socket))}
    try:
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not any(one.cancelled() or one.exception() or one.result() for one in done):
            await asyncio.wait(both)  # the one that is closed may still have messages of before
    finally:
        for one in both:
            one.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        # The server stops, or a frame broke: the peer has not heard of it.
        await close_as(peer, WebSocketClosed(1006))


async def _carry(source: WebSocket, target: WebSocket) -> bool:
    """Carry messages until `source` is closed, and close `target` as it was; False where `target` is closed before."""
    while True:
        try:
            message = await source.receive()
        except WebSocketClosed as closed:
            await close_as(target, closed)
            return True
        try:
            await target.send(message)
        except WebSocketClosed:
            return False


async def close_as(socket: WebSocket, closed: WebSocketClosed) -> None:
    """Close a WebSocket as another one was closed, as far as its frames may say so."""
    end = getattr(socket, "end", None)
    if end is not None:  # without frames of its own, so that any code may close it
        end(closed.code, closed.reason)
        return
    code = 1000 if closed.code == 1005 else closed.code
    try:
        check_close(code, closed.reason)
    except ValueError:
        # No frame may carry the code: a lost connection, a protocol error.
        await socket.close(1011, "")
    else:
        await socket.close(code, closed.reason)


def pair(protocol: str | None = None) -> tuple[ConnectedWebSocket, ConnectedWebSocket]:
    """Two WebSockets that are connected to each other: a server's end, and a client's."""
    server, client = ConnectedWebSocket(protocol), ConnectedWebSocket(protocol)
    server.connect(client)
    return server, client
