"""A connection of the HTTP server of `core serve --python` and `core dev`: uvicorn's with httptools.

Added to it are limits (connections, and the time that a client may take: `Limits`), the check of Host (RFC 9112,
section 3.2), an answer to `OPTIONS *`, which asks the server itself whether it answers (RFC 9110, section 9.3.7), and
an end in good order. Importing this needs uvicorn and httptools.
"""

from __future__ import annotations

import asyncio
import re
import urllib.parse
from typing import Any, Final, Literal, cast

import attrs
import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from core.errors import CLIENT_GONE
from core.hosts.limits import Limits
from core.hosts.process import FAILED, TOLD, UNAVAILABLE

# uri-host [ ":" port ] of RFC 9110, section 7.2; an address in brackets is looked at by who uses it.
_HOST: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
_TIMEOUT: Final = (
    STATUS_LINE[408] + b"content-type: text/plain; charset=utf-8\r\ncontent-length: 15\r\nconnection: close\r\n\r\n"
    b"Request Timeout"
)
_FAILED_HEADERS: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"21"),
    (b"connection", b"close"),
)
_FRAMING: Final = frozenset((b"content-length", b"connection"))
_COPIED_MOST: Final = 65536
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_TURNED_AWAY_MOST: Final = 256
_TURNED_AWAY_SECONDS: Final = 2.0
_CLOSING_SECONDS: Final = 5.0


class State(ServerState):
    """The state that the connections of a server share."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.turned_away: set[_TurnedAway] = set()
        self.stopping = False


@attrs.define(eq=False)
class Exchange:
    """A request and its answer: the two callables that ASGI hands to an application.

    As little as it can be, since all that a server adds to a request is here: a body is waited for where one is read,
    and an answer whose length is known is written at once.
    """

    _connection: Connection
    scope: Any
    keep_alive: bool
    waited_for: bool
    """The client asks first whether its body is wanted (RFC 9110, section 10.1.1)."""
    body: bytes = b""
    """The part that nobody has read yet."""
    more_body: bool = True
    start: Any = None
    """The message that the answer began with."""
    complete: bool = False
    """The answer is written, whole."""
    gone: bool = False
    """Nothing more is sent, and nothing read."""
    task: asyncio.Task[None] | None = None
    _news: bool = False
    _event: asyncio.Event | None = None  # made where somebody waits
    _head: bytes = b""  # of an answer whose body has not begun
    _left: int | None = None  # of the body, in bytes; None where chunks, or the connection's end, tell

    async def run(self, app: Any) -> None:
        """Answer the request. An error that the host has logged breaks the connection without a second record."""
        try:
            await app(self.scope, self.receive, self.send)
            if not self.complete and not self.gone:
                raise RuntimeError("the application has not answered")
        except BaseException as error:
            if self.scope.get(FAILED) is not error:
                self._connection.logger.error("Exception in ASGI application\n", exc_info=error)
                if self.start is None:
                    await self.send({"type": "http.response.start", "status": 500, "headers": _FAILED_HEADERS})
                    await self.send({"type": "http.response.body", "body": b"Internal Server Error"})
            if not self.complete:
                self.gone = True
                self._connection.transport.write(self._head)
                self._connection.transport.close()
        finally:
            self._connection.tasks.discard(cast("Any", self.task))

    async def receive(self) -> dict[str, Any]:
        """The next part of the body; that the client is gone, or has its answer, where there is no other."""
        connection = self._connection
        if self.waited_for and not connection.transport.is_closing():
            self.waited_for = False
            connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self.gone and not self.complete:
            connection.flow.resume_reading()
            event = self._event
            if event is None:
                event = self._event = asyncio.Event()
                if self._news:
                    event.set()
            await event.wait()
            event.clear()
        if self.gone or self.complete:
            return {"type": "http.disconnect"}
        body, self.body = self.body, b""
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def tell(self) -> None:
        """Let `receive` look again."""
        self._news = True
        if self._event is not None:
            self._event.set()

    async def send(self, message: Any) -> None:
        """Write the answer's head, or a part of its body."""
        connection = self._connection
        if connection.flow.write_paused and not self.gone:
            await connection.flow.drain()
        if self.gone:
            return
        if self.start is None:
            if message["type"] != "http.response.start":
                raise RuntimeError(f"{message['type']} before http.response.start")
            head = self._written(message)
            self.start = message
            self.waited_for = False
            if self._left is None:
                connection.transport.write(head)  # a stream may be silent for long
            else:
                self._head = head
            return
        if self.complete or message["type"] != "http.response.body":
            raise RuntimeError(f"{message['type']} {'after the answer' if self.complete else 'within the body'}")
        body = message["body"]
        more = message.get("more_body", False)
        if self._left is not None:
            if self.scope["method"] == "HEAD":
                body = b""
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the body has another length than its head says")
            head, self._head = self._head, b""
            if len(body) > _COPIED_MOST:
                connection.transport.write(head)
                head = b""
            connection.transport.write(head + body)
        elif self.scope["http_version"] == "1.0":
            connection.transport.write(body)
        else:
            last = b"" if more else b"0\r\n\r\n"
            connection.transport.write(b"%x\r\n%b\r\n%b" % (len(body), body, last) if body else last)
        if not more:
            self.complete = True
            self.tell()
            if not self.keep_alive:
                connection.transport.close()
            connection.on_response_complete()

    def _written(self, message: Any) -> bytes:
        """The head of an answer. Sets how long its body is, None where chunks, or the connection's end, will tell."""
        status = message["status"]
        bodiless = self.scope["method"] == "HEAD" or status in (204, 304)
        self._left = 0 if bodiless else None
        lines = [STATUS_LINE[status]]
        for pair in (*self._connection.server_state.default_headers, *message["headers"]):
            if pair[0] in _FRAMING:
                if pair[0] == b"content-length":
                    if not pair[1].isdigit():
                        raise RuntimeError("a header cannot be sent: content-length")
                    if not bodiless:
                        self._left = int(pair[1])
                elif b"close" in pair[1].lower():
                    self.keep_alive = False
                    continue
            lines.append(_known_line(pair) or _line(pair))
        if self._left is None and self.scope["http_version"] != "1.0":
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        return b"".join(lines)

    def is_events(self) -> bool:
        """True while a stream of events is sent: it has no end of its own, and its reader asks for it again."""
        return (
            self.start is not None
            and not self.complete
            and self._left is None
            and any(
                name == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in self.start["headers"]
            )
        )

    def cut(self, told: int = CLIENT_GONE) -> None:
        """Tell the application that its client is gone, or was `told` a status by this server."""
        self.scope.setdefault(TOLD, told)
        self.gone = True
        self.tell()


# Most headers are the same on every answer. Those that differ fill the table with time, and then it begins again.
_LINES: dict[tuple[bytes, bytes], bytes] = {}
_LINES_MOST: Final = 1024
_known_line = _LINES.get


def _line(pair: tuple[bytes, bytes]) -> bytes:
    """A header as it is written. Raises RuntimeError for one that would break the head."""
    name, value = pair
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value) or name == b"transfer-encoding":
        raise RuntimeError(f"a header cannot be sent: {name.decode('latin-1')}")
    if len(_LINES) == _LINES_MOST:
        _LINES.clear()
    line = b"%b: %b\r\n" % pair
    if len(value) < _LINES_MOST:
        _LINES[pair] = line
    return line


class Connection(HttpToolsProtocol):
    """A connection. `reading` is the part of a request that comes next, and `since` when its time began."""

    server_state: State
    parser: Any  # without types
    app: Any
    scope: Any
    headers: Any  # None before the first request
    pipeline: Any  # of requests that wait for the answer to another, and who answers them
    last: Exchange | None = None
    """The request that came last."""
    active: Exchange | None = None
    """The request that is answered, or was answered last; further ones wait in `pipeline`."""
    reading: Literal["head", "body", "nothing"] = "head"
    since: float = 0.0
    _host: bytes = b""
    _broken = False
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        state = self.server_state
        if len(state.connections) >= state.limits.connections:
            self.parser = None  # it refers to this
            _TurnedAway(transport, state, self.loop)
            return
        super().connection_made(transport)
        self.since = self.loop.time()

    # -- the parser's calls

    def on_message_begin(self) -> None:
        if self.reading == "nothing":
            self.reading = "head"
            self.since = self.loop.time()
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        parser, headers = self.parser, self.headers
        version = parser.get_http_version()
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1:
            if hosts or version == "1.1":
                raise ValueError("a request has one Host")
        elif hosts[0] != self._host:
            if _HOST.fullmatch(hosts[0]) is None:
                raise ValueError("Host is not a host")
            self._host = hosts[0]
        self.reading = "body"
        self.since = self.loop.time()
        method = parser.get_method().decode("ascii")
        app = self.app
        if self.url == b"*" and method == "OPTIONS":
            path, raw_path, query = "*", b"*", b""
            app = _answer_for_itself
        else:
            parsed = httptools.parse_url(self.url)
            raw_path, query = parsed.path, parsed.query or b""
            path = raw_path.decode("ascii")
            if "%" in path:
                path = urllib.parse.unquote(path)
        scope = self.scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": headers,
            "method": method,
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
        }
        if parser.should_upgrade() and self._should_upgrade():
            self.last = None
            return
        exchange = self.last = Exchange(
            self,
            scope,
            keep_alive=version != "1.0" and parser.should_keep_alive() and not self.server_state.stopping,
            waited_for=self.expect_100_continue,
        )
        active = self.active
        if active is None or active.complete:
            self._answer(exchange, app)
        else:
            self.flow.pause_reading()
            self.pipeline.append((exchange, app))

    def _answer(self, exchange: Exchange, app: Any) -> None:
        self.active = exchange
        task = exchange.task = self.loop.create_task(exchange.run(app))
        self.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        self.since = self.loop.time()
        exchange = self.last
        if exchange is not None and not exchange.complete:
            exchange.body += body
            if len(exchange.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            exchange.tell()

    def on_message_complete(self) -> None:
        self.reading = "nothing"
        self.since = self.loop.time()
        exchange = self.last
        if exchange is not None and not exchange.complete:
            exchange.more_body = False
            exchange.tell()

    def send_400_response(self, msg: str) -> None:
        """Refuse what was sent: a head that is none, or a body that ends in the middle of its framing."""
        active = self._answered_now()
        if active is not None and (self.reading != "body" or self.pipeline):
            # The requests before it are answered first.
            self._broken = True
            self.flow.pause_reading()
            if self.reading == "body":
                self.pipeline.pop()
            return
        if active is not None:
            active.cut(400)
        if active is not None and active.start is not None:
            self.transport.abort()
        elif not self.transport.is_closing():
            super().send_400_response(msg)

    def data_received(self, data: bytes) -> None:
        if not self._broken:
            super().data_received(data)

    def on_response_complete(self) -> None:
        # As uvicorn has it, without a timer for each request: `check` looks at idle connections too.
        state = self.server_state
        state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.reading != "body":
            self.since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._answer(*self.pipeline.popleft())
        elif self._broken:
            super().send_400_response("Invalid HTTP request received.")

    # -- time

    def check(self, now: float) -> None:
        """End the connection where its client has taken too long."""
        limits = self.server_state.limits
        waited = now - self.since
        active = self._answered_now()
        if self.transport.is_closing() or self.flow.write_paused:
            # What was written is not taken.
            unsent = self.transport.get_write_buffer_size()
            if unsent != self._unsent:
                self._unsent, self.since = unsent, now
            elif _over(waited, _CLOSING_SECONDS if self.transport.is_closing() else limits.body_seconds):
                self.transport.abort()
        elif self.reading == "head":
            if active is None and _over(waited, limits.head_seconds):
                if self.headers is not None:  # else it has said nothing
                    self.transport.write(_TIMEOUT)
                self.transport.close()
        elif self.reading == "body":
            if self.flow.read_paused:
                self.since = now  # the application does not read
            elif _over(waited, limits.body_seconds):
                if active is not None:
                    active.cut(408)
                    if active.start is None:
                        self.transport.write(_TIMEOUT)
                self.transport.close()
        elif active is None and _over(waited, limits.idle_seconds):
            self.transport.close()

    # -- the end

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if (active := self._answered_now()) is not None:
            active.cut()
        self.active = self.last = None  # they refer to this
        self.pipeline.clear()

    def keep_no_longer(self) -> None:
        """End the connection with the answer that it is giving."""
        for exchange in (self.active, self.last):
            if exchange is not None:
                exchange.keep_alive = False

    def shutdown(self) -> None:
        """Called by the server at its end."""
        if self.waits():
            self.transport.close()
        else:
            self.keep_no_longer()

    def end_events(self) -> None:
        """End a stream of events as if there were no more."""
        active = self._answered_now()
        if active is not None and active.is_events() and not active.gone:
            self.transport.write(b"0\r\n\r\n")
            self.transport.close()
            active.cut()

    def waits(self) -> bool:
        """True while no request is being answered."""
        return self._answered_now() is None

    def _answered_now(self) -> Exchange | None:
        active = self.active
        return None if active is None or active.complete else active


def _over(waited: float, seconds: float) -> bool:
    return 0 < seconds < waited


class _TurnedAway(asyncio.Protocol):
    """A connection beyond the limit: answered 503 when its request comes, so that the client reads it."""

    def __init__(self, transport: asyncio.Transport, state: State, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._all = state.turned_away
        self._answered = False
        transport.set_protocol(self)
        self._timer = loop.call_later(_TURNED_AWAY_SECONDS, transport.abort)
        if len(self._all) >= _TURNED_AWAY_MOST:
            transport.write(UNAVAILABLE)
            transport.close()
        else:
            self._all.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._answered:
            self._answered = True
            self._transport.write(UNAVAILABLE)
            # Closed with bytes unread, the connection would be reset, and the answer lost with it.
            self._transport.write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.discard(self)
        self._timer.cancel()


async def _answer_for_itself(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
