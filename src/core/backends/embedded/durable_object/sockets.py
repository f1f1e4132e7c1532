"""The WebSockets of one object: who is connected, under which tags, and how their messages reach the object.

They outlive the object's instance, and end with the process. One task for each reads its messages, and hands them in
their order to the object that lives then; as on the platform, a handler that waits does not keep the next message back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from core import spans
from core.backends.embedded.clone import load
from core.backends.embedded.durable_object.arguments import encode_value
from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair
from core.context import Clock
from core.errors import DurableObjectError
from core.http.websocket import ConnectedWebSocket, WebSocketClosed, as_message, check_close

MAX_SOCKETS: Final = 32_768
MAX_TAGS: Final = 10
MAX_TAG: Final = 256
MAX_ATTACHMENT: Final = 16_384

# The most that may wait for one client that reads slower than the room writes, in messages and in bytes.
_MOST_MESSAGES: Final = 16_384
_MOST_BYTES: Final = 16 * 1024 * 1024

# Handlers of one client's messages that may wait at the same time. Beyond that, the client's next messages do.
_MOST_EVENTS: Final = 64

Deliver: TypeAlias = Callable[[str, tuple[Any, ...]], Awaitable[None]]
"""Calls a method of the object with arguments."""

_log = logging.getLogger("core.durable_object")


class _Outbox(ConnectedWebSocket):
    """The client's end, which knows how much waits to be read."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: int = 0

    async def receive(self) -> str | bytes:
        message = await super().receive()
        self.bytes -= len(message)
        return message

    def put(self, message: str | bytes) -> bool:
        """Add a message. Returns False where too much waits already."""
        if len(self._messages) >= _MOST_MESSAGES or self.bytes + len(message) > _MOST_BYTES:
            return False
        self.bytes += len(message)
        self._messages.append(message)
        self._arrived.set()
        return True


class _Carrier:
    """One accepted socket."""

    __slots__ = ("_attachment", "answered", "client", "closing", "server", "tags")

    def __init__(self, tags: tuple[str, ...]) -> None:
        self.tags: tuple[str, ...] = tags
        self.server: ConnectedWebSocket = ConnectedWebSocket()
        self.client: _Outbox = _Outbox()
        self.server.connect(self.client)
        # True once the object has closed it.
        self.closing: bool = False
        # When the last automatic answer was sent.
        self.answered: datetime | None = None
        self._attachment: bytes | None = None

    def send(self, message: str | bytes, /) -> None:
        message = as_message(message)
        if self.closing:
            closed = self.server.closed
            assert closed is not None
            raise WebSocketClosed(closed.code, closed.reason)
        if self.server.closed is None and not self.client.put(message):
            _log.warning("a client reads slower than its room writes: its WebSocket was closed with 1013")
            self.server.end(1013, "Try Again Later")

    def close(self, code: int, reason: str, /) -> None:
        check_close(code, reason)
        if not self.closing:
            self.closing = True
            self.server.end(code, reason)

    def serialize_attachment(self, value: object, /) -> None:
        data = encode_value(value)
        if len(data) > MAX_ATTACHMENT:
            raise DurableObjectError(
                f"A WebSocket 'attachment' cannot be larger than {MAX_ATTACHMENT} bytes. "
                f"'attachment' was {len(data)} bytes."
            )
        self._attachment = data

    def deserialize_attachment(self) -> object:
        return None if self._attachment is None else load(self._attachment)


def carrier_of(socket: DurableObjectWebSocket) -> _Carrier:
    """The side of an accepted socket that an object does not see."""
    carrier = socket.carrier
    if not isinstance(carrier, _Carrier):
        raise DurableObjectError("the WebSocket is of another engine")
    return carrier


class ObjectSockets:
    """The WebSockets of one object. `deliver` hands an event to the object, `clock` tells when an answer was sent."""

    def __init__(self, deliver: Deliver, clock: Clock) -> None:
        self._deliver = deliver
        self._clock = clock
        self._members: dict[DurableObjectWebSocket, tuple[_Carrier, asyncio.Task[None]]] = {}
        self.auto_response: WebSocketRequestResponsePair | None = None

    def __len__(self) -> int:
        return len(self._members)

    def accept(self, socket: DurableObjectWebSocket, tags: Sequence[str]) -> None:
        """Connect a socket. See `DurableObjectState.accept_web_socket`."""
        distinct = tuple(dict.fromkeys(tags))
        if len(distinct) > MAX_TAGS:
            raise DurableObjectError(f"a Hibernatable WebSocket cannot have more than {MAX_TAGS} tags")
        for tag in distinct:
            if len(tag) > MAX_TAG:
                raise DurableObjectError(f'"{tag}" is longer than the max tag length ({MAX_TAG} characters).')
        if len(self._members) >= MAX_SOCKETS:
            raise DurableObjectError(
                f"only {MAX_SOCKETS} websockets can be accepted on a single Durable Object instance"
            )
        carrier = _Carrier(distinct)
        socket.accepted(carrier, carrier.client)
        reading = asyncio.get_running_loop().create_task(self._read(socket, carrier))
        self._members[socket] = carrier, reading

    def tagged(self, tag: str | None) -> list[DurableObjectWebSocket]:
        """The sockets that the object has not closed, those that have a tag where one is given."""
        return [
            socket
            for socket, (carrier, _) in self._members.items()
            if not carrier.closing and (tag is None or tag in carrier.tags)
        ]

    def end(self, code: int) -> None:
        """Close every socket, with nothing said to the object: it was reset, or its process ends."""
        members, self._members = self._members, {}
        for carrier, reading in members.values():
            carrier.closing = True
            carrier.server.end(code)
            reading.cancel()

    async def _read(self, socket: DurableObjectWebSocket, carrier: _Carrier) -> None:
        running: set[asyncio.Future[None]] = set()
        # The trace of the request that joined has ended with its response.
        spans.running.set(None)
        try:
            while True:
                message = await carrier.server.receive()
                automatic = self.auto_response
                if automatic is not None and message == automatic.request:
                    carrier.send(automatic.response)
                    carrier.answered = datetime.fromtimestamp(self._clock.time(), UTC)
                    continue
                event = asyncio.ensure_future(self._event("web_socket_message", socket, message))
                running.add(event)
                event.add_done_callback(running.discard)
                while len(running) >= _MOST_EVENTS:
                    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        except WebSocketClosed as closed:
            clean = closed.code != 1006
            reason = closed.reason if clean else "WebSocket disconnected without sending Close frame."
            await self._event("web_socket_close", socket, closed.code, reason, clean)
            # The closing handshake's other half, where the object has left it to us.
            carrier.closing = True
        finally:
            self._members.pop(socket, None)

    async def _event(self, method: str, *args: object) -> None:
        try:
            await self._deliver(method, args)
        except Exception:
            _log.exception("%s of a Durable Object failed; the WebSocket stays as it is", method)
        except asyncio.CancelledError:
            # `ctx.abort()` inside of the handler cancels the call, and the end of the process this task.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
