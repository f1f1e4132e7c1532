"""A response while it is being made.

It is in one of three states:

    OPEN ── json, text, html, send, redirect, stream, sse, switch ──> SENT ── the dispatcher ──> FINALIZED
      ^                                                                │
      └────────────────────────── discard ─────────────────────────────┘

    OPEN        `sent` is False. Headers are staged; status and body may still be decided.
    SENT        `sent` is True. Status and body are decided; sending again raises AlreadySentError. Nothing is on the
                wire: headers may still be staged, and middleware may replace the body.
    FINALIZED   `finalized` is True too. The chain has unwound and the hooks have run; the host writes it, and every
                change raises AlreadySentError.

`discard` takes back status and body with the headers that describe them. Other staged headers stay, so they are on
whatever is sent afterwards: an error, a 404. This file does not know chains: `core.dispatch` decides when a response is
finalized.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self

from core import http
from core.errors import REDIRECT_STATUSES, AlreadySentError, HandlerError, plain_status
from core.http.header_block import HeaderBlock, joined

# By their names: a module with a `__getattr__` of its own never gives an attribute quickly.
from core.http.headers import check_name, check_value
from core.http.json import dumps

if TYPE_CHECKING:
    from contextvars import ContextVar, Token
    from typing import Unpack

    from core.http.cookies import CookieAttributes, CookieScope
    from core.http.websocket import Upgrade, WebSocket
    from core.signing import Secrets

# The headers that describe a body go when the body is discarded (RFC 9110, section 8).
_ABOUT_THE_BODY = (
    "content-type", "content-length", "content-encoding", "content-language", "content-location", "content-range",
    "content-disposition", "etag", "last-modified",
)  # fmt: skip

# The headers that `header` does not keep just so: cookies are never joined, and the framing is the server's.
_APART = frozenset(("content-length", "set-cookie", "transfer-encoding"))

# Names and values as they were given, to the checked ones: most are the same on every response. Those that differ may
# fill it, and then it begins anew.
_FIELDS: dict[tuple[str, str | None], tuple[str, str]] = {}
_FIELDS_MOST = 1024
_known_field = _FIELDS.get

_JSON = "application/json"
_TEXT = "text/plain;charset=UTF-8"
_BYTES = "application/octet-stream"
_HTML = "text/html;charset=UTF-8"

Body = str | bytes | AsyncIterable[bytes] | AsyncIterable[str] | None

_SLOTS = (
    "_sent", "_status_code", "block", "body", "content_type", "finalized", "hooks", "set_cookies", "staged", "tokens",
    "upgrade", "varies",
)  # fmt: skip


Hook = Callable[[Any, int, float], object]
"""`(req, status, duration_ms)`: called when a response is finalized. It is given the request, so that a middleware has
one function for all of them.
"""

Tokens = tuple["ContextVar[Any]", "Token[Any]", "Tokens | None"]
"""A context variable that was set, the token to give it back with, and those that were set before it."""


class Response:
    """The response to one request.

    All methods chain:

        res.status(201).header("Location", "/users/7").json({"id": 7})
    """

    # Slots that are all set, and no defaults of the class: those take ten times as long to read and to replace.
    # `passed_on` alone is set only where there is something in it.
    __slots__ = (*_SLOTS, "passed_on")

    _sent: bool
    _status_code: int

    if TYPE_CHECKING:

        @property
        def sent(self) -> bool:
            """True if something was sent. It may still be discarded by an error."""
            ...

        @property
        def status_code(self) -> int:
            """The status, 200 until `status` sets another."""
            ...

    finalized: bool
    """True if the response is final, and then `sent` is true as well. After that nothing can change it."""
    body: str | bytes | AsyncIterator[bytes] | None
    """The body that was sent."""
    content_type: str | None
    """The content type that belongs to the body; a staged `Content-Type` wins over it."""
    staged: dict[str, str] | None
    """Staged headers by lower-case name; not None where there is a block."""
    block: HeaderBlock | None
    """Staged headers that are the same on every response. A name that is in `staged` too is the one there."""
    set_cookies: list[str] | None
    """Staged `Set-Cookie` values; where there are any, `staged` is not None."""
    upgrade: Upgrade | None
    """The session on the WebSocket that a response of status 101 opens."""
    hooks: list[Hook] | None
    """Called when the response is finalized; not None where anything has to be done then."""
    varies: tuple[str, ...]
    """Request headers that `Vary` names in the end, whatever is staged under it meanwhile. See `vary`."""
    passed_on: frozenset[str]
    """The names of staged headers that came with a response which was passed on, and are discarded with it."""
    tokens: Tokens | None
    """Of context variables that were set for this request, given back when all hooks have run."""

    def __init__(self) -> None:
        self._sent = self.finalized = False
        self._status_code = 200
        self.body = self.content_type = self.staged = self.set_cookies = None
        self.hooks = self.tokens = self.upgrade = self.block = None
        self.varies = ()

    def __repr__(self) -> str:
        return f"<Response {self.status_code}{' sent' if self.sent else ''}>"

    # -- staging

    def status(self, code: int, /) -> Self:
        """Set the status: 200 to 599. Raises ValueError for any other; 101 is for `app.websocket` to answer."""
        if type(code) is not int or not 200 <= code <= 599:
            code = _checked_status(code)
        if self.finalized:
            raise self._gone("status")
        self._status_code = code
        return self

    def header(self, name: str, value: str | None, /) -> Self:
        """Stage a header, replacing the one staged under `name`; None takes it back.

        `Set-Cookie` is added, never replaced. `Transfer-Encoding` is left out: how a body is framed is for the server
        to say, and beside a length it would let two readers see two messages. `Content-Length` counts for a stream,
        which is held to it, and for the answer to HEAD; every other body has its own. Raises TypeError for a name or
        value that HTTP does not allow, a line break in it above all.
        """
        if self.finalized:
            raise self._gone("header")
        known = None if value.__class__ is not str else _known_field((name, value))
        if known is None:
            key = check_name(name)
            given, value = value, None if value is None else check_value(value)
            if key in _APART:
                self._stage_apart(key, value)
                return self
            if value is None:
                if self.staged is not None:
                    self.unblocked().pop(key, None)
                return self
            if given.__class__ is str and len(value) < 512:
                if len(_FIELDS) >= _FIELDS_MOST:
                    _FIELDS.clear()
                _FIELDS[name, given] = key, value
        else:
            key, value = known
        if self.staged is None:
            self.staged = {key: value}
        else:
            self.staged[key] = value
        return self

    def _stage_apart(self, key: str, value: str | None) -> None:
        if key == "transfer-encoding":
            return
        if key == "content-length":
            if value is not None:
                self.unblocked()[key] = value
                self._frame()
            elif self.staged is not None:
                self.unblocked().pop(key, None)
        elif value is None:
            self.set_cookies = None
        elif self.set_cookies is None:
            self.set_cookies = [value]
            if self.staged is None:
                self.staged = {}
        else:
            self.set_cookies.append(value)

    def _frame(self) -> None:
        from core.http.framing import frame_when_final

        frame_when_final(self)

    def append(self, name: str, value: str, /) -> Self:
        """Stage one more value under `name`, joined to the staged value with a comma. A value that is there stays once.

        `Vary: *` says it all, and gets nothing added.

            res.append("Vary", "Origin")
        """
        key = check_name(name)
        there = None if self.staged is None else self.unblocked().get(key)
        if there is None or key == "set-cookie":
            return self.header(name, value)
        joined = _joined(there, value, is_vary=key == "vary")
        return self if joined == there else self.header(name, joined)

    @property
    def headers(self) -> http.Headers:
        """The staged headers, live: a header written here is staged, or refused, as by `header`."""
        if self.set_cookies is None:
            self.set_cookies = []
        view = _StagedHeaders.trusted(self._with_content_type(), self.set_cookies)
        view.response = self
        return view

    def cookie(
        self, name: str, value: str, /, *, secret: Secrets | None = None, **attributes: Unpack[CookieAttributes]
    ) -> Self:
        """Set a cookie (RFC 6265). Its attributes are those of `core.http.cookies.set_cookie`: `max_age`, in seconds,
        `expires`, `path` (`/` by default), `domain`, `secure`, `http_only`, `same_site` and `partitioned`.

        Raises ValueError for a value that would not fit in one.

        With a `secret` the value is signed: `req.signed_cookie(name, secret)` reads it, and nothing else that a client
        sends. It is signed for this name and not encrypted; who brings it may have kept it for years, whatever
        `max_age` said. A list of secrets is signed with the first. Raises ValueError for an empty secret.

            res.cookie("cart", "7", secret=req.env.COOKIE_SECRET, http_only=True, secure=True)
        """
        if secret is not None:
            from core.signing import keys_of, sign

            value = sign(f"cookie {name}", value, keys_of(secret))
        return self.header("set-cookie", http.cookies.set_cookie(name, value, **attributes))

    def delete_cookie(self, name: str, /, **scope: Unpack[CookieScope]) -> Self:
        """Make the client forget a cookie. `path`, `domain` and `partitioned` must be those that it was set with.

        A browser keeps a cookie that its prefix or its attributes forbid to set: give the others too.
        """
        return self.cookie(name, "", max_age=0, **scope)

    def vary(self, name: str, /) -> None:
        """Name a request header in `Vary` when the response is finalized, whatever is staged under it meanwhile."""
        self._vary((name,))

    def _vary(self, names: tuple[str, ...]) -> None:
        if names:
            self.varies = (*self.varies, *names)
            if self.hooks is None:
                self.hooks = []

    def put(self, block: HeaderBlock, /) -> None:
        """Stage all headers of a block, replacing those staged under their names; `Vary` as `vary` does."""
        staged = self.staged
        if staged is None:
            staged = self.staged = {}
        if block.header_names.isdisjoint(staged):
            self.block = block if self.block is None else joined(self.block, block)
            return
        if block.dropped:
            staged = self.unblocked()
            for dropped in block.dropped & staged.keys():
                del staged[dropped]
        vary = staged.get("vary")
        staged.update(block.values)
        if vary is not None and block.varies:
            staged["vary"] = vary
        self._vary(block.varies)

    def unblocked(self) -> dict[str, str]:
        """All staged headers in `staged` itself, those of the block included, for code that reads or removes them."""
        staged = self.staged
        block = self.block
        if block is not None:
            staged = {**block.values, **(staged or {})}
            self.block = None
            self._vary(block.varies)
        elif staged is None:
            staged = {}
        self.staged = staged
        if self.varies:
            self.keep_varies()
        return staged

    def on_send(self, callback: Callable[[int, float], None], /) -> Self:
        """Call `callback(status, duration_ms)` when the response is finalized, after those registered before it.

        It is called once, with the final status and the milliseconds since the request was received. An error that it
        raises is logged and changes nothing. Nothing waits for it: give what has to be awaited to `req.ctx.wait_until`.

        Raises HandlerError for an async callback, and for one that cannot be called with two arguments.
        """
        if self.finalized:
            raise self._gone("on_send")
        _check_callback(callback)
        call: Callable[[int, float], object] = callback

        def hook(req: object, status: int, duration_ms: float) -> None:
            result = call(status, duration_ms)
            if isinstance(result, Coroutine):
                result.close()
                raise _is_async(callback)

        self.on_finalize(hook)
        return self

    def on_finalize(self, hook: Hook, /) -> None:
        """Call `hook(req, status, duration_ms)` when the response is finalized, as `on_send` does."""
        if self.hooks is None:
            self.hooks = [hook]
        else:
            self.hooks.append(hook)

    # -- sending

    def json(self, value: object, /) -> Self:
        """Send `value` as JSON: the values of JSON, and attrs instances, datetimes, UUIDs, Decimals and enums.

        Raises ValueError for NaN and infinities, TypeError for a value without a JSON form; both name the place.
        """
        if self.sent:
            raise self._gone("json")
        self.body = dumps(value)
        self.content_type = _JSON
        self._sent = True
        return self

    def text(self, text: str, /) -> Self:
        """Send plain text, as UTF-8. Raises TypeError for anything but a str."""
        if self.sent:
            raise self._gone("text")
        self.body = text if type(text) is str else _plain("text", text)
        self.content_type = _TEXT
        self._sent = True
        return self

    def html(self, html: str, /) -> Self:
        """Send HTML, as UTF-8. The text is sent as it is: escape text that comes from outside.

        Raises TypeError for anything but a str.
        """
        return self._send("html", _plain("html", html), _HTML)

    def send(self, body: str | bytes | bytearray | memoryview | http.Response | None = None, /) -> Self:
        """Send a body as it is, or none. Unless another content type is staged, a string gets `text/plain`, and bytes
        `application/octet-stream`.

        A `http.Response` is passed on: its status, its headers without those of its connection (RFC 9110, section
        7.6.1), and its body as it comes. Headers that are staged win over headers of its own; `Set-Cookie` and `Vary`
        of both are kept.

            res.send(await req.env.ASSETS.fetch(req.to_http()))

        One that opens a WebSocket, as a Durable Object's, hands the connection over. Raises TypeError for a body of
        another kind, or one that was read already; ValueError for a network error, which cannot be passed on.
        """
        if isinstance(body, str):
            return self._send("send", _plain("send", body), _TEXT)
        if body is None:
            return self._send("send", None, None)
        if isinstance(body, bytes | bytearray | memoryview):
            # Without a type, a browser would guess one by the bytes: HTML in an upload would run as a page.
            return self._send("send", bytes(body), _BYTES)
        if isinstance(body, http.Response):
            return self._pass_on(body)
        raise _unfit("send", "str, bytes, a http.Response or nothing", body)

    def file(
        self,
        path: str | os.PathLike[str],
        /,
        *,
        filename: str | None = None,
        inline: bool = False,
        content_type: str | None = None,
    ) -> Self:
        """Send a file of the machine, in whole or in part.

            res.file(report, filename="Report für 2026.pdf")

        `filename`: the name that the client saves it under, in any language (RFC 6266); `inline` shows it instead,
        under that name. `content_type`: by default that of the path's ending. `ETag`, `Last-Modified`, `If-None-Match`,
        `If-Modified-Since`, `Range` and `If-Range` are honoured as by `static`; a status other than 200 sends the
        whole.

        `path` is yours: never put together of text that a client sent, for which there is `static`. On the hosted
        platform there are no files: send an object's body with `stream`. Raises OSError where there is no such file,
        and ValueError for a `filename` that is none.
        """
        if self.sent:
            raise self._gone("file")
        from core.http import files

        file = files.read(path)
        if filename is not None:
            self.header("content-disposition", files.content_disposition(filename, inline=inline))
        self.header("content-type", content_type or files.content_type(os.fspath(path)))
        for name, value in file.known.headers.items():
            self.header(name, value)
        self.header("content-length", str(file.known.size))
        body = file.part(0, file.known.size)
        # The first of all, so that the others are told what becomes of it.
        self.hooks = [partial(files.apply_conditions, file, body, self), *(self.hooks or ())]
        return self._send("file", body, None)

    def _pass_on(self, response: http.Response) -> Self:
        from core.http.forwarding import end_to_end

        if self.sent:
            raise self._gone("send")
        if response.web_socket is not None:
            return self._hand_over(response, response.web_socket)
        if not 200 <= response.status <= 599:
            raise ValueError(
                f"res.send(): a response of status {response.status} cannot be passed on. Answer a WebSocket with "
                "app.websocket(path), and a failed request with a CoreError of your own"
            )
        whole = response.body_bytes_or_none()
        values, cookies = end_to_end(response.headers)
        content_type = values.pop("content-type", None)
        if whole:
            values.pop("content-length", None)  # it is the host's; an answer to HEAD keeps its own
        staged = self.unblocked()
        own = staged.copy()
        if "vary" in values and "vary" in own:
            own["vary"] = values["vary"] if "*" in values["vary"] else own["vary"]
            for name in values["vary"].split(","):
                own["vary"] = _joined(own["vary"], name.strip())
        self.staged = {**values, **own}
        self.passed_on = frozenset(values.keys() - staged.keys())
        if "content-length" in self.staged:
            self._frame()
        if cookies:
            self.set_cookies = [*cookies, *(self.set_cookies or [])]
        self._status_code = response.status
        if whole is not None:
            return self._send("send", whole or None, content_type)
        from core.http.driven import Driven

        return self._send("send", Driven(response.taken()), content_type)

    def _hand_over(self, response: http.Response, socket: WebSocket) -> Self:
        from core.http.forwarding import end_to_end
        from core.http.websocket import hand_over

        values, cookies = end_to_end(response.headers)
        allowed = values.pop("access-control-allow-origin", None)  # the other sites that may connect
        if allowed is not None:
            self.header("access-control-allow-origin", allowed)
        own = [(name, value) for name, value in values.items() if not name.startswith(("sec-websocket-", "content-"))]
        own += [("set-cookie", cookie) for cookie in cookies]
        return self.switch(hand_over(socket, response.headers.get("sec-websocket-protocol"), tuple(own)))

    def redirect(self, url: str, /, status: int = 302) -> Self:
        """Send the client to `url`, absolute or relative, with 301, 302, 303, 307 or 308."""
        if status not in REDIRECT_STATUSES:
            from core.errors.mistakes import refused_redirect

            raise ValueError(refused_redirect(status))
        if self.sent:
            raise self._gone("redirect")
        return self.status(status).header("location", _location(url))._send("redirect", None, None)

    def stream(
        self, chunks: AsyncIterable[bytes] | AsyncIterable[str], /, *, content_type: str = "application/octet-stream"
    ) -> Self:
        """Send a body in pieces, as they come. Texts go as UTF-8.

        The headers leave first. When the client goes away, the iterator is closed (`aclose`). An error while
        streaming is logged and cuts the response short, so that the client can tell.

        Raises TypeError for what cannot be iterated over with `async for`: a list or a generator that is not async
        would keep every other request waiting between two pieces.
        """
        _require_async_iterable("stream", chunks)
        from core.http.driven import Driven

        return self._send("stream", Driven(chunks), check_value(content_type))

    def sse(self, events: AsyncIterable[object], /, *, keep_alive: float | None = 15.0) -> Self:
        """Send server-sent events (WHATWG HTML, section 9.2): `core.http.sse.Event`s, or texts and values as their
        data.

        A mapping is data as any other value is, so that data of a client names no event. `keep_alive` is the seconds of
        silence after which a comment keeps the connection open; None for none.

        Raises TypeError for what cannot be iterated over with `async for`, ValueError for a `keep_alive` of 0 or less.
        """
        _require_async_iterable("sse", events)
        if keep_alive is not None and not keep_alive > 0:
            raise ValueError(
                f"res.sse(keep_alive={keep_alive!r}) must be above 0, in seconds. Use None for no comments"
            )
        from core.http.sse import encode_events

        if self.sent:
            raise self._gone("sse")
        if self.staged is None or "cache-control" not in self.staged:
            self.header("cache-control", "no-cache")
        return self._send("sse", encode_events(events, keep_alive), "text/event-stream")

    def _send(self, method: str, body: str | bytes | AsyncIterator[bytes] | None, content_type: str | None) -> Self:
        if self.sent:
            raise self._gone(method)
        self.body = body
        self.content_type = content_type
        self._sent = True
        return self

    def _gone(self, method: str) -> AlreadySentError:
        if self.finalized:
            way = "Await what must come before it, and keep `res` out of background work and of `on_send`"
            if isinstance(self.body, AsyncIterator):
                way = "Set what a stream is sent with before its first piece: status, headers and cookies leave ahead of it"
            return AlreadySentError(f"res.{method}(): the response was already finalized. {way}")
        return AlreadySentError(
            f"res.{method}(): a response was sent already. Send once: `return` after sending, and send either "
            "before or after `await next()`"
        )

    # -- for middleware that change a sent response, and for the dispatcher

    def discard(self) -> None:
        """Take back the body that was sent, with the headers that describe it. Other staged headers stay."""
        if self.staged and self.status_code in REDIRECT_STATUSES:
            self.staged.pop("location", None)  # it belongs to the redirect, as the others belong to the body
        if self.upgrade is not None:
            self.upgrade.cancel()
            self.upgrade = None
        self._sent = False
        self._status_code = 200
        self.body = self.content_type = None
        if self.staged:
            for name in _ABOUT_THE_BODY:
                self.staged.pop(name, None)
            for name in getattr(self, "passed_on", ()):
                self.staged.pop(name, None)

    def state(self) -> dict[str, object]:
        """The state of this response, for `restore`."""
        values = {name: getattr(self, name) for name in _SLOTS}
        return {name: value.copy() if isinstance(value, dict | list) else value for name, value in values.items()}

    def restore(self, state: dict[str, object], /) -> None:
        """Put this response back into the state that `state` returned."""
        for name, value in state.items():
            setattr(self, name, value)

    def keep_varies(self) -> None:
        """Add to `Vary` the names of `varies` that the staged header lacks: a handler may have replaced it."""
        if self.block is not None:
            self.unblocked()  # which comes back here, without the block
            return
        staged = self.staged
        if staged is None:
            staged = self.staged = {}
        for name in self.varies:
            there = staged.get("vary")
            if there != name:
                staged["vary"] = name if there is None else _joined(there, name)

    def switch(self, upgrade: Upgrade, /) -> Self:
        """Send the answer to an opening handshake. The host opens the connection, and only where it can."""
        self.upgrade = upgrade
        self._status_code = 101
        self.header("Upgrade", "websocket").header("Connection", "Upgrade")
        if upgrade.protocol is not None:
            self.header("Sec-WebSocket-Protocol", upgrade.protocol)
        return self._send("send", None, None)

    def keep_for_upgrade(self) -> None:
        """Keep only the headers of a handshake: those that middleware stages on every response do not belong on it.

        Cookies stay, and the headers that the route itself gives (`app.websocket(path, headers=…)`).
        """
        self.block = None
        if self.staged:
            self.staged = {
                name: value
                for name, value in self.staged.items()
                if name in ("upgrade", "connection") or name.startswith("sec-websocket-")
            }
        for name, value in () if self.upgrade is None else self.upgrade.headers:
            self.header(name, value)

    def own_headers(self) -> list[tuple[str, str]]:
        """The headers on the answer to a handshake that are the application's, and not the handshake's."""
        return [
            (name, value)
            for name, value in self.header_fields()
            if name not in ("upgrade", "connection", "sec-websocket-protocol", "sec-websocket-accept")
        ]

    def replace_body(self, body: str | bytes | AsyncIterator[bytes] | None, /) -> None:
        """Replace the body that was sent, for middleware that encode or cut it."""
        if self.finalized:
            raise self._gone("replace_body")
        self.body = body

    def header_fields(self) -> list[tuple[str, str]]:
        """All headers as names and values, the content type and the cookies included, for a host to send."""
        if self.staged is None:  # as for most responses
            return [] if self.content_type is None else [("content-type", self.content_type)]
        return [*self._with_content_type().items(), *[("set-cookie", value) for value in self.set_cookies or ()]]

    def to_http(self) -> http.Response:
        """The standard value of this response."""
        body = self.body
        data = http.streams.encode(body) if isinstance(body, str) else body
        return http.Response.assembled(self.status_code, (self._with_content_type(), self.set_cookies or []), data)

    def _with_content_type(self) -> dict[str, str]:
        """All staged headers, and the content type of the body where no other is staged."""
        staged = self.unblocked()
        if self.content_type is not None:
            staged.setdefault("content-type", self.content_type)
        return staged


def _joined(there: str, value: str, *, is_vary: bool = True) -> str:
    """The list of a header with one more value, or as it is where that says it already: itself, or `Vary: *`."""
    parts = [part.strip().lower() for part in there.split(",")]
    return there if value.lower() in parts or (is_vary and "*" in parts) else f"{there}, {value}"


class _StagedHeaders(http.Headers):
    """The headers of a response, without those that `Response.header` does not keep; closed when it is final."""

    __slots__ = ("response",)

    response: Response

    def __setitem__(self, name: str, value: str) -> None:
        self._stage(check_name(name), value, super().__setitem__)

    def append(self, name: str, value: str) -> None:
        self._stage(check_name(name, "append"), value, super().append)

    def _stage(self, key: str, value: str, put: Callable[[str, str], None]) -> None:
        self._refuse_if_final()
        if key != "transfer-encoding":
            put(key, value)
            if key == "content-length":
                self.response._frame()

    def delete(self, name: str) -> None:
        self._refuse_if_final()
        super().delete(name)

    def clear(self) -> None:
        self._refuse_if_final()
        super().clear()

    def _refuse_if_final(self) -> None:
        if self.response.finalized:
            raise self.response._gone("header")


if not TYPE_CHECKING:
    # Two names for one slot: handlers read `sent` and `status_code`, only the framework sets `_sent` and
    # `_status_code`.
    Response.sent = Response._sent
    Response.status_code = Response._status_code


def _checked_status(given: object) -> int:
    code = plain_status(given)
    if code is None or not 200 <= code <= 599:
        from core.errors.mistakes import refused_status

        raise ValueError(refused_status(given))
    return code


# inspect.CO_GENERATOR, CO_COROUTINE and CO_ASYNC_GENERATOR: a call of these runs nothing.
_RUNS_NOTHING = 0x20 | 0x80 | 0x200


def _check_callback(callback: Any) -> None:
    """Refuse a callback of `on_send` that can never work."""
    if isinstance(callback, FunctionType):
        plain = callback.__code__
        if plain.co_argcount == 2 and not (plain.co_kwonlyargcount or plain.co_flags & _RUNS_NOTHING):
            return  # nearly always: a plain function of two arguments
    import inspect

    runs_nothing = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(kind(each) for kind in runs_nothing for each in (callback, getattr(callback, "__call__", None))):
        raise _is_async(callback)
    try:
        inspect.signature(callback).bind(200, 0.0)
    except ValueError:
        pass  # a builtin that does not say
    except TypeError as error:
        raise HandlerError(
            f"res.on_send({_named(callback)}): {error}. It is called with (status, duration_ms)"
        ) from None


def _is_async(callback: object) -> HandlerError:
    return HandlerError(
        f"res.on_send({_named(callback)}): nothing awaits it, since the response is being finalized. Write a plain function of "
        "(status, duration_ms), and give what has to be awaited to req.ctx.wait_until(…)"
    )


def _named(callback: object) -> str:
    return str(getattr(callback, "__qualname__", None) or repr(callback)).rpartition("<locals>.")[2]


def _plain(method: str, text: object) -> str:
    """A string as hosts take it: a `str` and no subclass, whose methods may be anyone's (an enum's, a template's)."""
    if not isinstance(text, str):
        raise _unfit(method, "str", text)
    return str.__str__(text)


def _unfit(method: str, wanted: str, given: object) -> TypeError:
    from core.errors.mistakes import unfit_body

    return TypeError(unfit_body(method, wanted, given))


def _require_async_iterable(method: str, given: object) -> None:
    if not hasattr(given, "__aiter__"):
        raise TypeError(
            f"res.{method}() takes an async iterable, not {type(given).__name__}. Write an `async def` that yields, or "
            "`async def pieces():` with `for piece in …: yield piece` around what is at hand already"
        )


def _location(url: str) -> str:
    """A URL for the Location header: blanks and characters beyond ASCII are percent-encoded as UTF-8."""
    if url.isascii() and " " not in url:
        return url
    from core.http.escapes import percent_encode

    return percent_encode(r"[^\x00-\x1f!-\x7f]+", http.streams.well_formed(url))
