"""The WebSockets of a Durable Object inside the runtime: accepted for hibernation, found again after an eviction."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from core.backends.workerd.conversion import bridge
from core.backends.workerd.engine import JsBacked, JsMethod, js_call
from core.backends.workerd.leaving import holders
from core.backends.workerd.web_socket import WorkerdWebSocket, js_message, say_close
from core.bindings.durable_object import DurableObjectState
from core.bindings.object_socket import DurableObjectWebSocket, SocketCarrier
from core.errors import DurableObjectError
from core.http.websocket import WebSocketClosed, check_close

# The states of a WebSocket that the WHATWG standard numbers.
_CLOSED = 3
# Those that a program holds, so that `member is not socket` leaves out the one who speaks, as it does on CPython. A
# number is another object's only when nobody holds the one that it was of.
_held: WeakValueDictionary[int, DurableObjectWebSocket] = WeakValueDictionary()


class WorkerdSocketCarrier(JsBacked, SocketCarrier):
    """One accepted socket. Two over the same object of JavaScript's are equal."""

    _errors = DurableObjectError
    deserialize_attachment: JsMethod = js_call(SocketCarrier.deserialize_attachment)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerdSocketCarrier) and bool(self._js == other._js)

    def __hash__(self) -> int:
        return hash(self._js.js_id)

    @property
    def is_closed(self) -> bool:
        """True once the object has closed it."""
        # While its client has not answered, the state says nothing of who began.
        socket = self._js
        if getattr(socket, "closed_by_stop", False):
            return False  # not by the object, which is to hear of it first
        return bool(getattr(socket, "closed_by_object", False)) or int(socket.readyState) == _CLOSED

    def send(self, message: str | bytes, /) -> None:
        outgoing = js_message(message)
        try:
            self._js.send(outgoing)
        except bridge().JsException:
            if self.is_closed:
                raise WebSocketClosed(1000, "") from None
            # The client is gone, and its close on the way.

    def close(self, code: int, reason: str, /) -> None:
        check_close(code, reason)
        if not self.is_closed:
            self._js.closed_by_object = True
            say_close(self._js, code, reason)

    def serialize_attachment(self, value: object, /) -> None:
        self._now("serializeAttachment", value)


def accept(state: Any, socket: DurableObjectWebSocket, tags: list[str]) -> None:
    """Make the runtime's own pair, and have the object accept its end."""
    client, server = bridge().js.WebSocketPair.new().object_values()
    carrier = WorkerdSocketCarrier(server)
    socket.accepted(carrier, WorkerdWebSocket(client, None))
    state._now("acceptWebSocket", server, tags)
    _held[server.js_id] = socket
    holders.add(str(state.id))


def forget_without_sockets(ctx: DurableObjectState) -> None:
    """Forget an object, by its `ctx`, where its last connection has gone."""
    if str(ctx.id) in holders and not ctx.get_web_sockets():
        holders.discard(str(ctx.id))


def socket_of(socket: Any) -> DurableObjectWebSocket:
    """The application's form of a socket that was accepted before: the one that it holds, else a new one."""
    held = _held.get(socket.js_id)
    if held is None:
        held = _held[socket.js_id] = DurableObjectWebSocket(WorkerdSocketCarrier(socket))
    return held
