"""The WebSockets that a Durable Object owns: the pair that one begins as, and the object's end of it.

An object's sockets outlive its instance: when the object is idle its memory goes, the connections stay, and the next
message makes the object anew. Data about a connection then has to be in its attachment and its tags.
"""

from __future__ import annotations

from typing import Any, Protocol

from core.errors import DurableObjectError
from core.http.websocket import ClientEnd, WebSocket
from core.values import frozen

__all__ = ["DurableObjectWebSocket", "WebSocketRequestResponsePair", "web_socket_pair"]


class SocketCarrier(Protocol):
    """An engine's own side of an accepted socket. See `DurableObjectWebSocket`."""

    def send(self, message: str | bytes, /) -> None: ...
    def close(self, code: int, reason: str, /) -> None: ...
    def serialize_attachment(self, value: Any, /) -> None: ...
    def deserialize_attachment(self) -> Any: ...


class DurableObjectWebSocket:
    """The object's end of a WebSocket. A connection has one; those from before and after an eviction are equal.

    Nothing here waits, so that the messages of one event are sent before another event's: every member of a room gets
    the same messages in the same order.
    """

    __slots__ = ("__weakref__", "_carrier", "_client")

    def __init__(self, carrier: SocketCarrier | None = None) -> None:
        self._carrier: SocketCarrier | None = carrier
        self._client: ClientEnd | None = None

    def __eq__(self, other: object) -> bool:
        if self._carrier is None or not isinstance(other, DurableObjectWebSocket):
            return self is other
        return self._carrier == other._carrier

    def __hash__(self) -> int:
        return object.__hash__(self) if self._carrier is None else hash(self._carrier)

    def send(self, message: str | bytes, /) -> None:
        """Send one message. To a client that is gone it is lost, as on any network.

        Raises WebSocketClosed after `close`, TypeError for anything but str and bytes.
        """
        self.carrier.send(message)

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection; a second call does nothing.

        `code` is 1000 or 3000 to 4999, `reason` at most 123 bytes. Raises ValueError for others.
        """
        self.carrier.close(code, reason)

    def serialize_attachment(self, value: Any, /) -> None:
        """Keep a copy of `value` with the connection, for as long as that is open. It replaces the one before.

        Values are those that storage takes, at most 16 384 bytes when written. Raises DurableObjectError for more, and
        DurableObjectTypeError for others.
        """
        self.carrier.serialize_attachment(value)

    def deserialize_attachment(self) -> Any:
        """Return a copy of the value that `serialize_attachment` kept last, or None."""
        return self.carrier.deserialize_attachment()

    @property
    def carrier(self) -> SocketCarrier:
        """The engine's side. Raises DurableObjectError before the socket is accepted."""
        if self._carrier is None:
            raise DurableObjectError(
                "the WebSocket is not accepted yet. Call self.ctx.accept_web_socket(server) before anything else"
            )
        return self._carrier

    def accepted(self, carrier: SocketCarrier, client: WebSocket) -> None:
        """Connect both ends. Engines call it. Raises DurableObjectError for a socket that was accepted before."""
        if self._carrier is not None or self._client is None:
            raise DurableObjectError(
                "Tried to accept a WebSocket that was accepted already. Make a pair for each: web_socket_pair()"
            )
        self._carrier = carrier
        self._client.connection = client


@frozen
class WebSocketRequestResponsePair:
    """A message that is answered without waking the object, and its answer. Each is at most 2048 characters."""

    request: str
    response: str


def web_socket_pair() -> tuple[ClientEnd, DurableObjectWebSocket]:
    """Return the two ends of a new WebSocket: the client's, for the response, and the object's, to accept.

    In an object's `fetch`:

        async def fetch(self, request: Request) -> Response:
            client, server = web_socket_pair()
            self.ctx.accept_web_socket(server, ["member"])
            return Response.websocket(client)
    """
    client, server = ClientEnd(), DurableObjectWebSocket()
    server._client = client
    return client, server
