"""A connection of the HTTP server of `core serve --python` and `core dev`: uvicorn's with httptools.

Each request on it is answered by an `Exchange`. Added are limits (connections, and the time that a client may take:
`Limits`), which host is asked for (RFC 9112, section 3.2), a refusal of codings and versions that are not spoken here,
an answer to `OPTIONS *`, which asks the server itself whether it answers (RFC 9110, section 9.3.7), and an end in good
order. Importing this needs uvicorn and httptools.
"""

from __future__ import annotations

import asyncio
import re
import urllib.parse
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from core.hosts.exchange import CODING, INVALID, TIMEOUT, VERSION, Exchange, answer_for_itself
from core.hosts.limits import Limits
from core.hosts.process import TurnedAway

# uri-host [ ":" port ] of RFC 9110, section 7.2; an address in brackets is looked at by who uses it.
_HOST: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
_ASKED: Final = frozenset([b"expect", b"host", b"transfer-encoding"])
_TARGET: Final = re.compile(rb"[^:]+://(?:[^/?#]*@)?([^/?#]*)")


_OF_REQUEST: Final = ("http_version", "headers", "method", "path", "raw_path", "query_string")
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
# What a client says behind its body, when its request is answered already, is no header (RFC 9110, section 6.5.1).
_TRAILERS: Final = deque[tuple[bytes, bytes]](maxlen=0)
# The parser copies a line that has no end yet for each piece of it.
_FRAMING_MOST: Final = 65536
_CLOSING_SECONDS: Final = 5.0


class State(ServerState):
    """The state that the connections of a server share."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.turned_away: set[TurnedAway] = set()
        self.stopping = False


class Connection(HttpToolsProtocol):
    """A connection. `reading` is the part of a request that comes next, and `since` when `check` first saw it."""

    # Read and set more quickly than what the base class keeps in its dict.
    __slots__ = (
        "_asked", "_behind", "_checked", "_common", "_framing", "_refused_with", "_unsent", "active", "headers", "last",
        "reading", "since", "url",
    )  # fmt: skip
    server_state: State
    parser: Any  # without types
    app: Any
    scope: Any
    pipeline: Any  # of requests that wait for the answer to another

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.url: bytes = b""
        self.headers: Any = None  # before the first request
        self.last: Exchange | None = None
        """The request that came last."""
        self.active: Exchange | None = None
        """The request that is answered, or was answered last; further ones wait in `pipeline`."""
        self.reading: Literal["head", "body", "nothing"] = "head"
        self.since: float | None = None
        self._asked: list[tuple[bytes, bytes]] = []
        """The headers of the request that say which host is asked for, and how its body is framed."""
        self._checked: list[tuple[bytes, bytes]] | None = None
        """Those of an earlier request of HTTP/1.1, with which nothing was wrong."""
        self._common: dict[str, Any] = {}
        """The scope of each request, as far as it is the connection's."""
        self._refused_with: bytes = INVALID
        self._behind: Callable[[], None] | None = None
        """What is done behind the answers; set, nothing is read any more."""
        self._unsent = 0
        self._framing = 0
        """The bytes that came since a message began or a body went on, in the pieces behind that one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        state = self.server_state
        if len(state.connections) >= state.limits.connections:
            self.parser = None  # it refers to this
            TurnedAway(transport, state.turned_away, self.loop)
            return
        super().connection_made(transport)
        self._common = {
            **dict.fromkeys(_OF_REQUEST),  # a copy that has the places already is filled more quickly
            "type": "http",
            "asgi": _ASGI,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
        }

    # -- the parser's calls

    def on_message_begin(self) -> None:
        if self.reading == "nothing":
            self.reading = "head"
            self.since = None
        self._framing = -1
        self.url = b""
        self.headers = []
        self._asked = []
        self.expect_100_continue: bool = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _ASKED:
            if name != b"expect":
                self._asked.append((name, value))
            elif value.lower() == b"100-continue":
                self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser, url, headers = self.parser, self.url, self.headers
        version = parser.get_http_version()
        if version != "1.1" or self._asked != self._checked:
            self._check_asked(version)
        method = parser.get_method().decode("ascii")
        app = self.app
        if url[:1] == b"/" and b"#" not in url:  # nearly always
            raw_path, _, query = url.partition(b"?")
        elif url == b"*" and method == "OPTIONS":
            raw_path, query = b"*", b""
            app = answer_for_itself
        else:
            parsed = httptools.parse_url(url)
            # None in the URL of an origin alone (RFC 9110, section 4.2.3).
            raw_path, query = parsed.path or b"/", parsed.query or b""
            if parsed.host:
                self._ask_named_host(raw_path, query)
        path = raw_path.decode("ascii")
        scope = self.scope = self._common.copy()
        scope["http_version"] = version
        scope["headers"] = headers
        scope["method"] = method
        scope["path"] = urllib.parse.unquote(path) if "%" in path else path
        scope["raw_path"] = raw_path
        scope["query_string"] = query
        if parser.should_upgrade():
            if method == "CONNECT":
                raise ValueError("this is no proxy")
            if self._should_upgrade() and dict(headers).get(b"sec-websocket-version", b"13") != b"13":
                self._refused_with = VERSION
                raise ValueError("a version that is not spoken here")
            self.last = None  # `data_received` goes on
            return
        # Behind all that may be refused: what is refused is a head, of which nothing was begun.
        self.reading = "body"
        self.since = None
        self.headers = _TRAILERS
        exchange = self.last = Exchange(
            self,
            app,
            scope,
            keep_alive=parser.should_keep_alive() and not self.server_state.stopping,
            waited_for=self.expect_100_continue and version != "1.0",
        )
        active = self.active
        if active is None or active.complete:
            self._answer(exchange)
        else:
            self.flow.pause_reading()
            self.pipeline.append(exchange)

    def _check_asked(self, version: str) -> None:
        hosts = [value for name, value in self._asked if name == b"host"]
        if len(hosts) != 1:
            if hosts or version == "1.1":
                raise ValueError("a request has one Host")
        elif _HOST.fullmatch(hosts[0]) is None:
            raise ValueError("Host is not a host")
        for name, value in self._asked:
            if name == b"transfer-encoding":
                if version == "1.0":
                    raise ValueError("HTTP/1.0 has no codings: a proxy of it may see another end of the body")
                if value.lower() != b"chunked":
                    self._refused_with = CODING
                    raise ValueError("a coding that is not spoken here")
        if version == "1.1":
            self._checked = self._asked

    def _ask_named_host(self, path: bytes, query: bytes) -> None:
        """Take the host of a target that names one, whatever Host says (RFC 9112, section 3.2.2)."""
        named = _TARGET.match(self.url)
        if named is None or not named[1] or _HOST.fullmatch(named[1]) is None:
            raise ValueError("the target names no host")
        self.url = path + b"?" + query if query else path
        self.headers[:] = [(b"host", named[1]), *(pair for pair in self.headers if pair[0] != b"host")]

    def _answer(self, exchange: Exchange) -> None:
        self.active = exchange
        # At the loop's next turn: eager tasks take longer, since reading and answering alternate in the cache then.
        exchange.task = self.loop.create_task(exchange.run())
        self.tasks.add(exchange.task)

    def on_body(self, body: bytes) -> None:
        self._framing = -1
        self.since = None
        exchange = self.last
        if exchange is not None and not exchange.complete:
            exchange.body += body
            if len(exchange.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            exchange.tell()

    def on_message_complete(self) -> None:
        self.reading = "nothing"
        self.since = None
        exchange = self.last
        if exchange is not None and not exchange.complete:
            exchange.more_body = False
            exchange.tell()

    def send_400_response(self, msg: str) -> None:
        """Refuse what was sent: a head that is none, or a body that ends in the middle of its framing."""
        active = self._answered_now()
        if active is not None and (self.reading != "body" or self.pipeline):
            if self.reading == "body":
                self.pipeline.pop()
            self._do_behind(self._refuse)
            return
        if active is not None:
            active.cut(400)
        if active is not None and active.start is not None:
            self.transport.abort()
        elif active is None and self.reading == "body":
            self.transport.close()  # of a request that has its answer
        elif not self.transport.is_closing():
            self._refuse()

    def _refuse(self) -> None:
        self.transport.write(self._refused_with)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        while self._behind is None:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserError:
                self.logger.warning("Invalid HTTP request received.")
                self.send_400_response("")
            except httptools.HttpParserUpgrade as upgrade:
                if not self._should_upgrade():
                    data = self._without_upgrade(data[upgrade.args[0] :])
                    continue
                if self._answered_now() is None:
                    self.handle_websocket_upgrade()
                else:
                    self._do_behind(self.handle_websocket_upgrade)
            else:
                if self.reading != "nothing":
                    self._framing = 0 if self._framing < 0 else self._framing + len(data)
                    if self._framing > _FRAMING_MOST:
                        self.logger.warning("A head, or what is behind a body, is too long.")
                        self.send_400_response("")
            return

    def _without_upgrade(self, rest: bytes) -> bytes:
        """What was sent, for a new parser, as if no upgrade were asked for, which a server may do (RFC 9110, 7.8).

        The old one takes the body, and all that follows, for another protocol.
        """
        self.parser = httptools.HttpRequestParser(self)
        scope = self.scope
        lines = [b"%b %b HTTP/%b" % (scope["method"].encode(), self.url, scope["http_version"].encode())]
        lines += [b"%b: %b" % pair for pair in scope["headers"] if pair[0] != b"upgrade"]
        return b"\r\n".join(lines) + b"\r\n\r\n" + rest

    def _do_behind(self, behind: Callable[[], None]) -> None:
        self._behind = behind
        self.flow.pause_reading()

    def on_response_complete(self) -> None:
        # As uvicorn has it, without a timer for each request: `check` looks at idle connections too.
        state = self.server_state
        state.total_requests += 1
        if self.transport.is_closing():
            return
        active = self.active
        if active is not None and not active.keep_alive:
            if self.reading != "body" or self.last is not active:
                self.transport.close()
                return
            # Closed with bytes unread, the connection would be reset, and the answer lost with it.
            self.transport.write_eof()
            self._behind = self.transport.close
            self.since = None
            self.flow.resume_reading()
            return
        if self.reading != "body":
            self.since = None
        self.flow.resume_reading()
        if self.pipeline:
            self._answer(self.pipeline.popleft())
        elif self._behind is not None:
            self._behind()

    # -- time

    def check(self, now: float) -> None:
        """End the connection where its client has taken too long."""
        limits = self.server_state.limits
        if self.since is None:
            self.since = now
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
                    self.transport.write(TIMEOUT)
                self.transport.close()
        elif self.reading == "body":
            if self.flow.read_paused:
                self.since = now  # the application does not read
            elif _over(waited, limits.body_seconds):
                if active is not None:
                    active.cut(408)
                    if active.start is None:
                        self.transport.write(TIMEOUT)
                self.transport.close()
        elif active is None and _over(waited, limits.idle_seconds):
            self.transport.close()

    # -- the end

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio has it; that of uvicorn never keeps one open
        """Go on with answers to whole requests: a client may read after it has said that it sends no more.

        One that is gone says the same, so the applications are told; a stream that has begun has no end for it.
        """
        active, last = self._answered_now(), self.last
        if active is None or last is None or self.reading != "nothing" or active.is_stream():
            return False
        last.keep_alive = False
        for exchange in (active, *self.pipeline):
            exchange.ended = True
            exchange.tell()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if (active := self._answered_now()) is not None:
            active.cut()
        self.active = self.last = self._behind = None  # they refer to this
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
            if active.scope["http_version"] != "1.0":  # which has no chunks: its end is the connection's
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
