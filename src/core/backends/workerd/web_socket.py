"""A WebSocket of the runtime's as the application's: the end of a pair that a worker holds itself.

The runtime lets a request touch its own sockets alone. A message that another request sends (a lobby of plain
`@app.websocket` routes in one process) waits in an outbox, whose promise was made in the socket's own request: what
resolves it is of no matter, its continuation runs there (`handle_cross_request_promise_resolution`, since 2024-10-14).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from core.backends.workerd.conversion import bridge, bytes_of, js_bytes
from core.backends.workerd.leaving import GOING_AWAY, destroy_later, when_leaving
from core.errors import DeveloperError
from core.http.websocket import BufferedWebSocket, as_message, check_close

_OF_ANOTHER_REQUEST: Final = "on behalf of a different request"

_session: ContextVar[object] = ContextVar("session", default=None)


class WorkerdWebSocket(BufferedWebSocket):
    """`WebSocket` over the runtime's. It is accepted when it is first used: until then it can be handed on."""

    def __init__(self, socket: Any, protocol: str | None) -> None:
        super().__init__(protocol)
        self.js_socket = socket
        """The runtime's own object."""
        self._accepted = False
        self.session: object | None = None
        """Stands for the session that the socket is of; `within` sets it."""
        self._proxies: list[Any] = []
        self._stay: Callable[[], object] = lambda: None
        # The messages of other requests, and the function that resolves the promise which sends it.
        self._outbox: deque[Callable[[], object]] = deque()
        self._wake: Any = None
        self._drain_proxy: Any = None
        self._drained = asyncio.Event()
        self._drained.set()

    def within(self) -> None:
        """Take the running task, and those that it begins, for the session that the socket is of."""
        self.session = object()
        _session.set(self.session)

    def accept(self) -> None:
        """Begin to receive, in the request that the socket is of. A second call does nothing."""
        if self._accepted:
            return
        self._accepted = True
        across, socket = bridge(), self.js_socket
        self._proxies = [across.create_proxy(self._on_message), across.create_proxy(self._on_close)]
        on_message, on_close = self._proxies
        socket.accept()
        # Bytes as bytes: newer compatibility dates would give Blobs, which have to be waited for.
        socket.binaryType = "arraybuffer"
        socket.addEventListener("message", on_message)
        socket.addEventListener("close", on_close)
        socket.addEventListener("error", on_close)
        self._drain_proxy = across.create_proxy(self._drain)
        self._arm()
        self._stay = when_leaving(self._go_away)

    def _go_away(self) -> None:
        if self.closed is None:
            self._drain_now()
            say_close(self.js_socket, *GOING_AWAY)
            self._end(*GOING_AWAY)

    def _arm(self) -> None:
        """Make the promise that another request resolves. Only in a turn of the socket's own request."""
        promise = bridge().js.Promise.withResolvers()
        self._wake = promise.resolve
        promise.promise.then(self._drain_proxy)

    def _drain_now(self) -> None:
        outbox, self._outbox = self._outbox, deque()
        for send in outbox:
            send()
        self._drained.set()

    def _drain(self, _: object = None) -> None:
        """Send the messages of other requests, in the turn of the socket's own."""
        self._wake = None
        self._drain_now()
        if self.closed is None:
            self._arm()
        else:
            destroy_later(self._drain_proxy)

    def _leave(self, send: Callable[[], object]) -> None:
        """Leave the messages that this request may not send to the socket's own."""
        self._outbox.append(send)
        self._drained.clear()
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    async def drained(self) -> None:
        """Return when nothing is left to be sent by the socket's own request, which has to live until then."""
        await self._drained.wait()

    async def receive(self) -> str | bytes:
        self.accept()
        return await super().receive()

    async def send(self, message: str | bytes, /) -> None:
        outgoing = js_message(message)
        self.accept()
        self.require_open()
        # Behind the messages that wait already, or it would overtake them.
        if self._outbox or not self._send(outgoing):
            self._leave(lambda: self._send(outgoing))
        self.require_open()
        # JavaScript has no word for a full connection: others have their turn instead.
        await asyncio.sleep(0)

    def _send(self, outgoing: Any) -> bool:
        """Send a message. Returns False in the turn of another request; a connection that is gone ends the socket."""
        try:
            self.js_socket.send(outgoing)
        except bridge().JsException as error:
            if _OF_ANOTHER_REQUEST in str(error):
                return False
            self._end(1006, "")
        return True

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection. A second call does nothing.

        Raises DeveloperError in another request than the socket's own: the runtime takes such a close without a word,
        and sends nothing.
        """
        check_close(code, reason)
        if self.closed is not None:
            return
        if self.session is not None and _session.get() is not self.session:
            raise DeveloperError(
                "a WebSocket that another request has opened cannot be closed from here: workerd would not tell its "
                "client. Send it a message and let its own handler return, or let a Durable Object own the connections "
                "(self.ctx.accept_web_socket)"
            )
        self.accept()
        # The messages of other requests are sent before.
        self._drain_now()
        say_close(self.js_socket, code, reason)
        self._end(code, reason)

    def _on_message(self, event: Any) -> None:
        data = event.data
        self._messages.append(data if isinstance(data, str) else bytes_of(data))
        self._arrived.set()

    def _on_close(self, event: object) -> None:
        code, reason = getattr(event, "code", None), getattr(event, "reason", None)
        code = code if isinstance(code, int) else 1006
        if self.closed is None:
            say_close(self.js_socket, code, "")
        self._end(code, reason if isinstance(reason, str) else "")

    def _end(self, code: int, reason: str) -> None:
        if self.closed is None:
            self.note_close(code, reason)
        self._arrived.set()
        self._stay()
        proxies, self._proxies = self._proxies, []
        if self._wake is not None:
            # Nothing will be left any more; else the outbox is yet to be emptied.
            self._wake = None
            proxies.append(self._drain_proxy)
        destroy_later(*proxies)


def js_message(message: object) -> object:
    """A message as JavaScript sends it. Raises TypeError for a value that is neither text nor bytes."""
    sent = as_message(message)
    return sent if isinstance(sent, str) else js_bytes(sent)


def say_close(socket: Any, code: int, reason: str) -> None:
    """Do our half of the closing handshake; a code that may not be sent is answered without one."""
    with contextlib.suppress(bridge().JsException):  # it is closed already
        if code in (1005, 1006, 1015):
            socket.close()
        else:
            socket.close(code, reason)
