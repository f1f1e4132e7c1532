"""The development server's layer in front of the application: a line for each request, error pages, the explorer.

An ASGI application around the ASGI host. It changes one kind of answer only: where the application failed unexpectedly
and a developer is looking, it says why. An object of JSON that the application sends keeps all that it has, and gets
`development` beside it; other answers that the application chose, error or not, pass as they are.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import attrs

from core.app import App
from core.dev.error_page import to_html
from core.dev.exchange import Exchange, current
from core.dev.record import Recorder, TimedMiddleware
from core.dev.terminal import Style
from core.dev.watch import Unawaited
from core.explain.failure import Failure, failure_of, is_failure
from core.handlers import name_of
from core.hosts.asgi import AsgiApplication, BackgroundContext, Receive, Scope, Send, asgi
from core.middleware.logger import is_plain

EXPLORER: Final = "/_core"


@attrs.define(eq=False)
class DevApplication:
    """`app` with the bindings `env`, and around it the recorder and the pages of a developer. In the place of an
    application that could not be loaded stands its error.

    `may_read_errors` says by Host and Origin whether error pages are for whoever asks: on a public address they are
    not, unless one was told. `write` takes the lines for the terminal.
    """

    _app: App[Any] | BaseException
    _env: object
    root: Path
    recorder: Recorder
    context: BackgroundContext
    style: Style
    explorer: AsgiApplication | None = None
    may_read_errors: Callable[[str, str | None], bool] = lambda host, origin: True
    write: Callable[[str], None] = print
    unawaited: Unawaited | None = None
    inner: AsgiApplication | None = attrs.field(default=None, init=False)
    # One line for a request: an application writes it that has a logger with a format or a place of its own.
    _logs_itself: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        if isinstance(app := self._app, App):
            self.inner = asgi(app, self._env, context=self.context)
            app.dispatcher.failures.on_failure = self._note
            app.add_instrument(TimedMiddleware(self.recorder))
            chains = [[step for step, _ in chain] for entry, chain in app._chains() if entry.method is not None]
            self._logs_itself = bool(chains) and all(
                any(name_of(step) == "logger" and not is_plain(step) for step in chain) for chain in chains
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        path: str = scope["path"]
        if self.explorer is not None and (path == EXPLORER or path.startswith(f"{EXPLORER}/")):
            await self.explorer(scope, receive, send)
            return
        exchange = self.recorder.begin("request", scope["method"], _target(scope))
        scope["core.exchange"] = exchange.key
        exchange.request.headers = _headers(scope["headers"])
        token = current.set(exchange)
        answer = _Answer(self, exchange, scope, send)

        async def noted() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                exchange.request.add(message.get("body", b""))
            return message

        try:
            if isinstance(self._app, BaseException):
                await answer.explain(failure_of(self._app, self.root))
            elif self.inner is not None:
                await self.inner(scope, noted, answer.send)
        finally:
            current.reset(token)
            self.recorder.end(exchange)
            if not answer.written:
                self.write_line(exchange)
            if self.unawaited is not None:
                self.unawaited.settle(exchange)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket: one line when it opens, or is refused, and one exchange for all of its life."""
        exchange = self.recorder.begin("request", "WS", _target(scope))
        exchange.request.headers = _headers(scope["headers"])

        async def noted(message: Any) -> None:
            match message["type"]:
                case "websocket.accept":
                    exchange.status = 101
                case "websocket.http.response.start":
                    exchange.status = message["status"]
                case "websocket.close" if exchange.status is None:
                    exchange.status = 403
                case _:
                    pass
            if exchange.status is not None and exchange.duration is None:
                exchange.duration = self.recorder.elapsed(exchange)
                self.write(request_line(exchange, self.style))
            await send(message)

        token = current.set(exchange)
        try:
            if self.inner is not None:
                await self.inner(scope, receive, noted)
            else:
                await receive()
                await noted({"type": "websocket.close", "code": 1011})
        finally:
            current.reset(token)
            self.recorder.end(exchange)

    def _note(self, err: Exception) -> None:
        """Note an error that the application answers in its exchange."""
        exchange = current.get()
        if exchange is not None and is_failure(err):
            exchange.fail(err, self.root)

    def write_line(self, exchange: Exchange) -> None:
        """Write the line of a request, unless the application has one of its own."""
        if not self._logs_itself:
            self.write(request_line(exchange, self.style))

    def _tells(self, scope: Scope) -> bool:
        return self.may_read_errors(_header(scope, b"host") or "", _header(scope, b"origin"))


@attrs.define(eq=False)
class _Answer:
    _outer: DevApplication
    _exchange: Exchange
    _scope: Scope
    _send: Send
    _replaced: bool = False
    _held: tuple[Any, Failure, bytearray] | None = None
    written: bool = False

    async def send(self, message: Any) -> None:
        """Let a message through, or put the error page in its place."""
        exchange = self._exchange
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
            failure = exchange.failure
            if failure is not None and message["status"] >= 500 and self._outer._tells(self._scope):
                if _is_browser(self._scope):
                    self._replaced = True
                    await self.explain(failure, message["status"], message["headers"])
                    return
                if _is_plain_json(message["headers"]) and self._scope["method"] != "HEAD":
                    self._held = message, failure, bytearray()
                    return
        elif self._replaced:
            return
        elif self._held is not None:
            message = await self._extend(message, *self._held)
            if message is None:
                return
        elif message["type"] == "http.response.body":
            streams = message.get("more_body", False)
            if not streams or not self.written:
                exchange.duration = self._outer.recorder.elapsed(exchange)
            if streams and not self.written:
                # A stream may go on for hours: its line is written when it begins.
                exchange.streams = True
                self.written = True
                self._outer.write_line(exchange)
        await self._pass(message)

    async def _pass(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._exchange.response.headers = _headers(message["headers"])
        elif message["type"] == "http.response.body":
            self._exchange.response.add(message.get("body", b""))
        await self._send(message)

    async def _extend(self, message: Any, start: Any, failure: Failure, body: bytearray) -> object:
        """Add `development` to the object that the application answers; None while it is not there as a whole."""
        body += message.get("body", b"")
        if message.get("more_body", False):
            return None
        self._held = None
        try:
            document: Any = json.loads(body)
        except ValueError:
            document = None
        whole = document  # not narrowed by what follows
        if isinstance(document, dict):
            body[:] = json.dumps({"development": failure.as_json(), **whole}, ensure_ascii=False).encode()
        others = [(name, value) for name, value in start["headers"] if name not in (b"content-length", b"etag")]
        await self._pass({**start, "headers": [*others, (b"content-length", b"%d" % len(body))]})
        return {**message, "body": bytes(body)}

    async def explain(self, failure: Failure, status: int = 500, headers: Any = ()) -> None:
        """Answer with the record of a failure, as the client likes it best."""
        exchange = self._exchange
        exchange.status = status
        tells = self._outer._tells(self._scope)
        if not tells:
            content, body = b"application/json", b'{"error":"Internal Server Error"}'
        elif _is_browser(self._scope):
            outer = self._outer
            page = to_html(failure, exchange, in_explorer=outer.explorer is not None and outer.inner is not None)
            content, body = b"text/html; charset=utf-8", page.encode()
        else:
            document = {"error": "Internal Server Error", "development": failure.as_json()}
            content, body = b"application/json", json.dumps(document, ensure_ascii=False).encode()
        replaced = (b"content-type", b"content-length", b"content-security-policy", b"content-encoding", b"etag")
        others = [(name, value) for name, value in headers if name not in replaced]
        others += [
            (b"content-type", content),
            (b"content-length", b"%d" % len(body)),
            (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
            (b"cache-control", b"no-store"),
        ]
        exchange.duration = self._outer.recorder.elapsed(exchange)
        await self._pass({"type": "http.response.start", "status": status, "headers": others})
        await self._pass({"type": "http.response.body", "body": b"" if self._scope["method"] == "HEAD" else body})


class LogHandler(logging.Handler):
    """Notes log records in the exchange that wrote them, and writes them as lines, unless `write` is None. Below one
    that has an error is the record of the failure.
    """

    def __init__(self, root: Path, recorder: Recorder, *, write: Callable[[str], None] | None, style: Style) -> None:
        super().__init__()
        self._root = root
        self._recorder = recorder
        self._write = write
        self._style = style

    def emit(self, record: logging.LogRecord) -> None:
        colour = "red" if record.levelno >= logging.ERROR else "yellow" if record.levelno >= logging.WARNING else "dim"
        try:
            text, level = record.getMessage(), record.levelname.lower()
            error = record.exc_info[1] if record.exc_info else None
            failure = None if error is None else failure_of(error, self._root)
            self._recorder.log(level, record.name, text if failure is None else f"{text}\n{failure.as_text()}")
            if self._write is not None:
                line = f"{self._style(level, colour)} {printable(text.rstrip())}"
                below = "" if failure is None else "\n" + indent(failure.as_text(self._style), "  ")
                self._write(line + below)
        except Exception:
            self.handleError(record)


# -- words


def request_line(exchange: Exchange, style: Style) -> str:
    """The line of one exchange: time of day, method, path, status, duration, and its calls."""
    clock = time.strftime("%H:%M:%S", time.localtime(exchange.time))
    duration = "" if exchange.duration is None else f"{exchange.duration:.1f} ms"
    status = style.status(exchange.status) if exchange.status is not None else style("---", "dim")
    if exchange.kind != "request":
        status = style("ok ", "green") if exchange.outcome == "ok" else style("err", "red")
    calls = Counter(call.binding for call in exchange.calls)
    called = "  ".join(f"{name}×{count}" for name, count in calls.items())
    notes = "streams" if exchange.streams else ""
    if exchange.status is None and exchange.kind == "request":
        notes = "the client went away"
    parts = [style(clock, "dim"), f"{exchange.method:<6}", printable(exchange.path), status, style(duration, "dim")]
    parts += [style(text, "dim") for text in (called, notes) if text]
    return " ".join(part for part in parts if part)


def printable(text: str) -> str:
    """`text` without characters that move the cursor or begin a line."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _target(scope: Scope) -> str:
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _headers(pairs: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


def _is_plain_json(headers: Any) -> bool:
    given = dict(headers)
    content = given.get(b"content-type", b"")
    is_json = content.startswith((b"application/json", b"application/problem+json"))
    return is_json and b"content-encoding" not in given


def _header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def _is_browser(scope: Scope) -> bool:
    """Return True if a person looks at the answer: their browser loads it as a page."""
    mode = _header(scope, b"sec-fetch-dest")
    if mode is not None:
        return mode in ("document", "iframe")
    return "text/html" in (_header(scope, b"accept") or "")
