"""A request over HTTP/1.1 and its answer, as ASGI has them: what is read of the one, and how the other is written.

RFC 9112 says how an answer is framed. Importing this needs uvicorn.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any, Final

import attrs
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, HttpToolsProtocol

from core.errors import CLIENT_GONE
from core.hosts.process import FAILED, STATUS_SENT, UNAVAILABLE

_FAILED_HEADERS: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"21"),
    (b"connection", b"close"),
)
_COPIED_MOST: Final = 65536


def _refusal(status: int, text: bytes, headers: bytes = b"") -> bytes:
    """The answer of a connection to what is no request."""
    head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n%b\r\n"
    return STATUS_LINE[status] + head % (len(text), headers) + text


TIMEOUT: Final = _refusal(408, b"Request Timeout")
INVALID: Final = _refusal(400, b"Invalid HTTP request received.")
CODING: Final = _refusal(501, b"The only transfer coding of a request is chunked.")
VERSION: Final = _refusal(
    426, b"The version of WebSockets here is 13.", b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
)


async def answer_for_itself(scope: object, receive: object, send: Any) -> None:
    """The application that answers `OPTIONS *`."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@attrs.define(eq=False)
class Exchange:
    """A request and its answer: the two callables that ASGI hands to an application.

    As little as it can be, since all that a server adds to a request is here: a body is waited for where one is read,
    and an answer whose length is known is written at once. Headers are tuples of bytes, with names in lower case.
    """

    _connection: HttpToolsProtocol
    _app: Any
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
    ended: bool = False
    """The client sends no more behind its request. It may read the answer, or be gone."""
    task: asyncio.Task[None] = attrs.field(init=False)
    _news: bool = False
    _read: bool = False  # the body, whole
    _event: asyncio.Event | None = None  # made where somebody waits
    _head: bytes = b""  # of an answer whose body has not begun
    _left: int | None = None  # of the body, in bytes; None where chunks, or the connection's end, tell

    async def run(self) -> None:
        """Answer the request. An error that the host has logged breaks the connection without a second record."""
        try:
            await self._app(self.scope, self.receive, self.send)
            if not self.complete and not self.gone:
                if not self.ended:
                    raise RuntimeError("the application has not answered")
                self.gone = True
                self._connection.transport.close()
        except BaseException as error:
            if self.task.cancelling():  # by the server, which ends
                if self.start is None:
                    self._connection.transport.write(UNAVAILABLE)
            elif self.scope.get(FAILED) is not error:
                self._connection.logger.error("Exception in ASGI application\n", exc_info=error)
                if self.start is None:
                    await self.send({"type": "http.response.start", "status": 500, "headers": _FAILED_HEADERS})
                    await self.send({"type": "http.response.body", "body": b"Internal Server Error"})
            if not self.complete:
                self.gone = True
                self._connection.transport.write(self._head)
                self._connection.transport.close()
        finally:
            self._connection.tasks.discard(self.task)

    async def receive(self) -> dict[str, object]:
        """The next part of the body; that the client is gone, or has its answer, where there is no other."""
        connection = self._connection
        if self.waited_for and not connection.transport.is_closing():
            self.waited_for = False
            connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self._is_over():
            connection.flow.resume_reading()
            if self._event is None and not self._news:
                self._event = asyncio.Event()
            if self._event is not None:
                await self._event.wait()
                self._event.clear()
            self._news = False
        if self._is_over():
            return {"type": "http.disconnect"}
        body, self.body = self.body, b""
        self._read = not self.more_body
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def _is_over(self) -> bool:
        return self.gone or self.complete or (self.ended and self._read)

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
            if self.waited_for:
                # Nothing says whether the body comes yet, or the next request.
                self.waited_for = self.keep_alive = False
            headers = (*connection.server_state.default_headers, *message.get("headers", ()))
            write = _known_head if len(headers) <= _FEW else _head
            bodiless = self.scope["method"] == "HEAD" or message["status"] in (204, 304)
            head, self._left, self.keep_alive = write(
                message["status"], headers, bodiless, self.scope["http_version"], self.keep_alive
            )
            self.start = message
            if self._left is None:
                connection.transport.write(head)  # a stream may be silent for long
            else:
                self._head = head
            return
        if self.complete or message["type"] != "http.response.body":
            raise RuntimeError(f"{message['type']} {'after the answer' if self.complete else 'within the body'}")
        body = message.get("body", b"")
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
            connection.on_response_complete()

    def is_stream(self) -> bool:
        """True while a body is sent whose length is not known."""
        return self.start is not None and not self.complete and self._left is None

    def is_events(self) -> bool:
        """True while a stream of events is sent: it has no end of its own, and its reader asks for it again."""
        headers = self.start.get("headers", ()) if self.is_stream() else ()
        return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)

    def cut(self, status: int = CLIENT_GONE) -> None:
        """Tell the application that its client is gone, or which `status` this server answered."""
        self.scope.setdefault(STATUS_SENT, status)
        self.gone = True
        self.tell()


# Most headers are the same on every answer. Those that differ fill the table with time, and then it begins again.
_LINES: dict[tuple[bytes, bytes], bytes] = {}
_LINES_MOST: Final = 1024
_known_line: Final = _LINES.get


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


def _head(
    status: int, headers: tuple[tuple[bytes, bytes], ...], bodiless: bool, version: str, keep_alive: bool
) -> tuple[bytes, int | None, bool]:
    """The head of an answer; the length of its body, None where chunks, or the connection's end, will tell; and whether
    the connection is kept behind it.
    """
    left = 0 if bodiless else None
    lines = [STATUS_LINE[status]]
    for pair in headers:
        line = _known_line(pair)
        if line is None:
            name, value = pair
            if name == b"content-length":
                if not value.isdigit():
                    raise RuntimeError("a header cannot be sent: content-length")
                if not bodiless:
                    left = int(value)
                line = b"content-length: " + value + b"\r\n"
            elif name == b"connection" and b"close" in value.lower():
                keep_alive = False
                continue
            else:
                line = _line(pair)
        lines.append(line)
    if version != "1.0":
        if left is None:
            lines.append(b"transfer-encoding: chunked\r\n")
        ending = b"\r\n"
    else:
        # Which has no chunks, and closes a connection of which nothing is said (RFC 9112, appendix C.2.2).
        keep_alive = keep_alive and left is not None
        ending = b"connection: keep-alive\r\n\r\n"
    lines.append(ending if keep_alive else b"connection: close\r\n\r\n")
    return b"".join(lines), left, keep_alive


# The head of an answer with few headers is the same again and again; one with more has an id among them, or a cookie.
_FEW: Final = 4
_known_head: Final = lru_cache(256)(_head)
