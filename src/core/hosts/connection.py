"""A connection of the HTTP server of `core serve --python` and `core dev`: uvicorn's with httptools.

Added to it are limits (connections, and the time that a client may take: `Limits`), the check of Host (RFC 9112,
section 3.2), an answer to `OPTIONS *`, which asks the server itself whether it answers (RFC 9110, section 9.3.7), and
an end in good order. Importing this needs uvicorn and httptools.
"""

from __future__ import annotations

import asyncio
import re
import urllib.parse
from collections.abc import MutableMapping
from typing import Any, Final, Literal, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
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


class _Cycle(RequestResponseCycle):
    """A request and its answer. It knows how its answer began."""

    start: Any = None

    def send(self, message: Any) -> Any:
        if not self.response_started:
            self.start = message
        return super().send(message)

    async def run_asgi(self, app: Any) -> None:
        """Answer the request. An error that the host has logged breaks the connection without a second record."""

        async def run(scope: Any, receive: Any, send: Any) -> None:
            try:
                await app(scope, receive, send)
            except Exception as error:
                if scope.get(FAILED) is not error:
                    raise
                self.disconnected = True  # nothing more is sent
                self.transport.close()

        await super().run_asgi(run)

    def is_events(self) -> bool:
        """True while a stream of events is sent: it has no end of its own, and its reader asks for it again."""
        return (
            self.response_started
            and not self.response_complete
            and bool(self.chunked_encoding)
            and any(
                name.lower() == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in self.start.get("headers", ())
            )
        )

    def cut(self, told: int = CLIENT_GONE) -> None:
        """Tell the application that its client is gone, or was `told` a status by this server."""
        scope: MutableMapping[str, object] = cast("Any", self.scope)
        scope.setdefault(TOLD, told)
        self.disconnected = True
        self.message_event.set()


class Connection(HttpToolsProtocol):
    """A connection. `reading` is the part of a request that comes next, and `since` when its time began."""

    server_state: State
    parser: Any  # without types
    app: Any
    scope: Any  # None before the first request
    cycle: Any  # the request that came last, of _Cycle
    active: _Cycle | None = None
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
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        parser = self.parser
        version = parser.get_http_version()
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) != 1:
            if hosts or version == "1.1":
                raise ValueError("a request has one Host")
        elif hosts[0] != self._host:
            if _HOST.fullmatch(hosts[0]) is None:
                raise ValueError("Host is not a host")
            self._host = hosts[0]
        self.reading = "body"
        self.since = self.loop.time()
        scope = self.scope
        scope["method"] = parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        if parser.should_upgrade() and self._should_upgrade():
            return
        app = self.app
        if self.url == b"*" and scope["method"] == "OPTIONS":
            path, raw_path, query = "*", b"*", b""
            app = _answer_for_itself
        else:
            parsed = httptools.parse_url(self.url)
            raw_path, query = parsed.path, parsed.query or b""
            path = raw_path.decode("ascii")
            if "%" in path:
                path = urllib.parse.unquote(path)
        scope["path"] = self.root_path + path
        scope["raw_path"] = self.root_path.encode("ascii") + raw_path
        scope["query_string"] = query
        state = self.server_state
        cycle = self.cycle = _Cycle(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,
            state.default_headers,
            asyncio.Event(),
            self.expect_100_continue,
            version != "1.0" and parser.should_keep_alive() and not state.stopping,
            self.on_response_complete,
        )
        active = self.active
        if active is None or active.response_complete:
            self.active = cycle
            self._start_asgi_task(cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, app))

    def on_body(self, body: bytes) -> None:
        self.since = self.loop.time()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.reading = "nothing"
        self.since = self.loop.time()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what was sent: a head that is none, or a body that ends in the middle of its framing."""
        active = self._answered_now()
        if active is not None and (self.reading != "body" or self.pipeline):
            # The requests before it are answered first.
            self._broken = True
            self.flow.pause_reading()
            if self.reading == "body":
                self.pipeline.popleft()
            return
        if active is not None:
            active.cut(400)
        if active is not None and active.response_started:
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
            cycle, app = self.pipeline.pop()
            self.active = cast("_Cycle", cycle)
            self._start_asgi_task(cycle, app)
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
                if self.scope is not None:  # else it has said nothing
                    self.transport.write(_TIMEOUT)
                self.transport.close()
        elif self.reading == "body":
            if self.flow.read_paused:
                self.since = now  # the application does not read
            elif _over(waited, limits.body_seconds):
                if active is not None:
                    active.cut(408)
                    if not active.response_started:
                        self.transport.write(_TIMEOUT)
                self.transport.close()
        elif active is None and _over(waited, limits.idle_seconds):
            self.transport.close()

    # -- the end

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if (active := self._answered_now()) is not None:
            active.cut()

    def keep_no_longer(self) -> None:
        """End the connection with the answer that it is giving."""
        if self.active is not None:
            self.active.keep_alive = self.cycle.keep_alive = False

    def end_events(self) -> None:
        """End a stream of events as if there were no more."""
        active = self._answered_now()
        if active is not None and active.is_events() and not active.disconnected:
            self.transport.write(b"0\r\n\r\n")
            self.transport.close()
            active.cut()

    def waits(self) -> bool:
        """True while no request is being answered."""
        return self._answered_now() is None

    def _answered_now(self) -> _Cycle | None:
        active = self.active
        return None if active is None or active.response_complete else active


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
