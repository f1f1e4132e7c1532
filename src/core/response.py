"""A response while it is being made.

Sending decides status and body; nothing leaves before the chain has unwound. Headers are staged
apart from both, so they are on whatever leaves in the end, also when an error discards what was
sent. This file does not know chains: `core.dispatch` decides when a response leaves.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Literal, Self

from core import http
from core.errors import AlreadySentError

# By their names: what is asked of a module that answers for names it has not is never found quickly.
from core.http.headers import check_name, check_value
from core.http.json import dumps

if TYPE_CHECKING:
    from contextvars import ContextVar, Token
    from datetime import datetime

    from core.http.websocket import Upgrade

__all__ = ["Block", "NULL_BODY_STATUSES", "Response"]

NULL_BODY_STATUSES = frozenset((101, 204, 205, 304))
"""Statuses whose responses never carry a body (RFC 9110, Fetch)."""

REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))

# What describes a body goes when the body is discarded (RFC 9110, section 8).
_ABOUT_THE_BODY = (
    "content-type",
    "content-length",
    "content-encoding",
    "content-language",
    "content-location",
    "content-range",
    "content-disposition",
    "etag",
    "last-modified",
)

_JSON = "application/json"
_TEXT = "text/plain;charset=UTF-8"
_HTML = "text/html;charset=UTF-8"

Body = str | bytes | AsyncIterable[bytes] | AsyncIterable[str] | None

_SLOTS = (
    "block",
    "body",
    "content_type",
    "hooks",
    "left",
    "sent",
    "set_cookies",
    "staged",
    "status_code",
    "tokens",
    "upgrade",
    "varies",
)


Hook = Callable[[Any, int, float], object]
"""`(req, status, duration_ms)`: what is called when a response leaves. It is given the request, so that a middleware's
can be one function for all of them."""


Tokens = tuple["ContextVar[Any]", "Token[Any]", "Tokens | None"]
"""A context variable that was set, the token to give it back with, and those that were set before it."""


class Block:
    """Headers that a middleware puts on responses alike: a host writes them as bytes once. See `Response.put`."""

    __slots__ = ("joined", "taken", "values", "varies", "written")

    def __init__(self, values: dict[str, str], varies: tuple[str, ...] = ()) -> None:
        self.values: dict[str, str] = values
        """By lower-case name, checked; none is `set-cookie`, and none describes a body."""
        self.varies: tuple[str, ...] = varies
        """What `Vary` names, where it is one of them. See `Response.vary`."""
        self.taken: frozenset[str] = frozenset((*values, "content-type", "content-length"))
        """Their names, and those of what describes the body. A header of another name can stand beside the block."""
        self.written: dict[str | None, list[tuple[bytes, bytes]]] = {}
        """What a host made of them, with each content type."""
        self.joined: dict[Block, Block] = _Joined(self)
        """The headers of both, by the block that is put later; its headers stand where both have one."""


class _Joined(dict[Block, Block]):
    """What a block becomes with later ones. Blocks are made when middleware is, so these stay as few as they are."""

    __slots__ = ("_earlier",)

    def __init__(self, earlier: Block) -> None:
        self._earlier = earlier

    def __missing__(self, later: Block) -> Block:
        earlier = self._earlier
        varies = (*earlier.varies, *(name for name in later.varies if name not in earlier.varies))
        values = {**earlier.values, **later.values}
        if varies:
            values["vary"] = ", ".join(varies)
        both = self[later] = Block(values, varies)
        return both


class Response:
    """The response to one request. All methods chain.

    res.status(201).header("Location", "/users/7").json({"id": 7})
    """

    if TYPE_CHECKING:

        @property
        def sent(self) -> bool:
            """Whether something was sent. It may still be discarded by an error."""
            ...

        @property
        def status_code(self) -> int:
            """The status, 200 until `status` sets another."""
            ...

    else:
        # Slots that are all set, and no defaults of the class: those take ten times as long to read and to replace.
        __slots__ = _SLOTS

    left: bool
    """Whether the response has left, and then `sent` is true as well. After that nothing can change it."""
    body: str | bytes | AsyncIterator[bytes] | None
    """The body that was sent."""
    content_type: str | None
    """The content type that belongs to the body; a staged `Content-Type` wins over it."""
    staged: dict[str, str] | None
    """Staged headers by lower-case name; not None where there is a block."""
    block: Block | None
    """Staged headers that are the same on every response. A name that is in `staged` too is the one there."""
    set_cookies: list[str] | None
    """Staged `Set-Cookie` values; where there are any, `staged` is not None."""
    upgrade: Upgrade | None
    """What to do on the WebSocket that a response of status 101 opens."""
    hooks: list[Hook] | None
    """Called when the response leaves; not None where anything has to be done then."""
    varies: tuple[str, ...]
    """Request headers that `Vary` names in the end, whatever is staged under it meanwhile. See `vary`."""
    tokens: Tokens | None
    """Of context variables that were set for this request, given back when all hooks have run."""

    def __init__(self) -> None:
        self.sent = self.left = False  # type: ignore[misc]  # read-only for handlers
        self.status_code = 200  # type: ignore[misc]  # likewise
        self.body = self.content_type = self.staged = self.set_cookies = None
        self.hooks = self.tokens = self.upgrade = self.block = None
        self.varies = ()

    def __repr__(self) -> str:
        return f"<Response {self.status_code}{' sent' if self.sent else ''}>"

    # -- staging

    def status(self, code: int, /) -> Self:
        """Set the status: 101 or 200 to 599. Raises ValueError for any other."""
        if type(code) is not int or not (200 <= code <= 599 or code == 101):
            raise ValueError(f"res.status({code!r}): a status is an int from 200 to 599, or 101")
        if self.left:
            raise self._gone("status")
        self.status_code = code  # type: ignore[misc]  # read-only for handlers
        return self

    def header(self, name: str, value: str | None, /) -> Self:
        """Stage a header, replacing what was staged under `name`; None takes it back.

        `Set-Cookie` is added, never replaced. Raises TypeError for a name or value that HTTP does not allow,
        a line break in it above all.
        """
        if self.left:
            raise self._gone("header")
        key = check_name(name)
        if value is not None:
            value = check_value(value)
        if key == "set-cookie":
            if value is None:
                self.set_cookies = None
            elif self.set_cookies is None:
                self.set_cookies = [value]
                if self.staged is None:
                    self.staged = {}
            else:
                self.set_cookies.append(value)
        elif value is None:
            if self.staged is not None:
                self.unblocked().pop(key, None)
        elif self.staged is None:
            self.staged = {key: value}
        else:
            self.staged[key] = value
        return self

    def append(self, name: str, value: str, /) -> Self:
        """Stage one more value under `name`, joined to what is there with a comma. A value that is there stays once.

        res.append("Vary", "Origin")
        """
        key = check_name(name)
        there = None if self.staged is None else self.unblocked().get(key)
        if there is None or key == "set-cookie":
            return self.header(name, value)
        if value.lower() in (part.strip().lower() for part in there.split(",")):
            return self
        return self.header(name, f"{there}, {value}")

    @property
    def headers(self) -> http.Headers:
        """The staged headers, live: what is written here is staged as `header` stages it."""
        staged = self.unblocked()
        if self.set_cookies is None:
            self.set_cookies = []
        if self.content_type is not None:
            staged.setdefault("content-type", self.content_type)
        return http.Headers.trusted(staged, self.set_cookies)

    def cookie(
        self,
        name: str,
        value: str,
        /,
        *,
        max_age: int | None = None,
        expires: datetime | None = None,
        path: str | None = "/",
        domain: str | None = None,
        secure: bool = False,
        http_only: bool = False,
        same_site: Literal["Strict", "Lax", "None"] | None = None,
        partitioned: bool = False,
    ) -> Self:
        """Set a cookie (RFC 6265). `max_age` is in seconds. Raises ValueError for what would not fit in one."""
        text = http.cookies.set_cookie(
            name,
            value,
            max_age=max_age,
            expires=expires,
            path=path,
            domain=domain,
            secure=secure,
            http_only=http_only,
            same_site=same_site,
            partitioned=partitioned,
        )
        return self.header("set-cookie", text)

    def delete_cookie(
        self, name: str, /, *, path: str | None = "/", domain: str | None = None, secure: bool = False
    ) -> Self:
        """Make the client forget a cookie. `path` and `domain` must be those it was set with."""
        return self.cookie(name, "", max_age=0, path=path, domain=domain, secure=secure)

    def vary(self, name: str, /) -> None:
        """Name a request header in `Vary` when the response leaves, whatever a handler stages under it meanwhile."""
        self._vary((name,))

    def _vary(self, names: tuple[str, ...]) -> None:
        if names:
            self.varies = (*self.varies, *names)
            if self.hooks is None:
                self.hooks = []

    def put(self, block: Block, /) -> None:
        """Stage all headers of a block, in the place of what was staged under their names; `Vary` as `vary` does."""
        staged = self.staged
        if staged is None:
            staged = self.staged = {}
        taken = block.taken
        for name in staged:
            if name in taken:
                vary = staged.get("vary")
                staged.update(block.values)
                if vary is not None and block.varies:
                    staged["vary"] = vary
                self._vary(block.varies)
                return
        self.block = block if self.block is None else self.block.joined[block]

    def unblocked(self) -> dict[str, str]:
        """All staged headers in `staged` itself, for whoever reads or removes what stands elsewhere until the end."""
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

    def on_send(self, callback: Callable[[int, float], object], /) -> Self:
        """Call `callback(status, duration_ms)` when the response leaves, after those registered before it.

        It is called once, with the final status and the milliseconds since the request was received. What it
        raises is logged and changes nothing.
        """
        if self.left:
            raise self._gone("on_send")

        def hook(req: object, status: int, duration_ms: float) -> None:
            callback(status, duration_ms)

        self.on_leave(hook)
        return self

    def on_leave(self, hook: Hook, /) -> None:
        """Call `hook(req, status, duration_ms)` when the response leaves, as `on_send` does it."""
        if self.hooks is None:
            self.hooks = [hook]
        else:
            self.hooks.append(hook)

    # -- sending

    def json(self, value: Any, /) -> Self:
        """Send `value` as JSON: what JSON takes, and attrs instances, datetimes, UUIDs, Decimals and enums.

        Raises ValueError for NaN and infinities, TypeError for what has no JSON form; both name the place.
        """
        if self.sent:
            raise self._gone("json")
        self.body = dumps(value)
        self.content_type = _JSON
        self.sent = True  # type: ignore[misc]  # read-only for handlers
        return self

    def text(self, text: str, /) -> Self:
        """Send plain text, as UTF-8. Raises TypeError for what is none."""
        if self.sent:
            raise self._gone("text")
        self.body = text if type(text) is str else _plain("text", text)
        self.content_type = _TEXT
        self.sent = True  # type: ignore[misc]  # read-only for handlers
        return self

    def html(self, html: str, /) -> Self:
        """Send HTML, as UTF-8. The text is sent as it is: escape what comes from outside.

        Raises TypeError for what is no text.
        """
        return self._send("html", _plain("html", html), _HTML)

    def send(self, body: str | bytes | bytearray | memoryview | None = None, /) -> Self:
        """Send a body as it is, or none. A text gets `text/plain` unless another content type is staged."""
        if isinstance(body, str):
            return self._send("send", _plain("send", body), _TEXT)
        if body is None or type(body) is bytes:
            return self._send("send", body, None)
        if isinstance(body, bytes | bytearray | memoryview):
            return self._send("send", bytes(body), None)
        raise TypeError(
            f"res.send() takes str, bytes or nothing, not {type(body).__name__}. "
            "Use res.json(value) for values and res.stream(chunks) for streams"
        )

    def redirect(self, url: str, /, status: int = 302) -> Self:
        """Send the client to `url`, absolute or relative, with 301, 302, 303, 307 or 308."""
        if status not in REDIRECT_STATUSES:
            raise ValueError(f"res.redirect(status={status!r}) must be 301, 302, 303, 307 or 308")
        if self.sent:
            raise self._gone("redirect")
        return self.status(status).header("location", _location(url))._send("redirect", None, None)

    def stream(
        self, chunks: AsyncIterable[bytes] | AsyncIterable[str], /, *, content_type: str = "application/octet-stream"
    ) -> Self:
        """Send a body in pieces, as they come. Texts go as UTF-8.

        The headers leave first. When the client goes away, the iterator is closed (`aclose`). An error while
        streaming is logged and cuts the response short, so that the client can tell.
        """
        return self._send("stream", http.streams.chunks_of(chunks), check_value(content_type))

    def sse(self, events: AsyncIterable[Any], /, *, keep_alive: float | None = 15.0) -> Self:
        """Send server-sent events (WHATWG HTML, section 9.2): texts, mappings or `http.sse.Event`s.

        `keep_alive` is the seconds of silence after which a comment keeps the connection open; None for none.
        """
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
        self.sent = True  # type: ignore[misc]  # read-only for handlers
        return self

    def _gone(self, method: str) -> AlreadySentError:
        if self.left:
            return AlreadySentError(
                f"res.{method}(): the response has left already. Await what must come before it, and keep `res` "
                "out of background work"
            )
        return AlreadySentError(
            f"res.{method}(): a response was sent already. Send once: `return` after sending, and send either "
            "before or after `await next()`"
        )

    # -- for whoever decides when it leaves

    def discard(self) -> None:
        """Take back what was sent, with the headers that describe it. Other staged headers stay."""
        if self.staged and self.status_code in REDIRECT_STATUSES:
            self.staged.pop("location", None)  # it belongs to the redirect, as the others belong to the body
        self.sent = False  # type: ignore[misc]  # read-only for handlers
        self.status_code = 200  # type: ignore[misc]  # likewise
        self.body = self.content_type = None
        if self.staged:
            for name in _ABOUT_THE_BODY:
                self.staged.pop(name, None)

    def state(self) -> dict[str, Any]:
        """How this response stands, for `restore`."""
        values = {name: getattr(self, name) for name in _SLOTS}
        return {name: value.copy() if isinstance(value, dict | list) else value for name, value in values.items()}

    def restore(self, state: dict[str, Any], /) -> None:
        """Let this response stand as it did when it gave `state`."""
        for name, value in state.items():
            setattr(self, name, value)

    def keep_varies(self) -> None:
        """Name in `Vary` what `varies` has and the staged header has not: a handler may have replaced it."""
        if self.block is not None:
            self.unblocked()  # which comes back here, without the block
            return
        staged = self.staged
        for name in self.varies:
            there = None if staged is None else staged.get("vary")
            if there == name:
                continue
            if staged is None:
                staged = self.staged = {"vary": name}
            elif there is None:
                staged["vary"] = name
            elif there != "*" and name.lower() not in map(str.strip, there.lower().split(",")):
                staged["vary"] = f"{there}, {name}"

    def keep_for_upgrade(self) -> None:
        """Leave only the headers of a handshake: what middleware stages on every response is none of an upgrade's."""
        self.block = None
        if self.staged:
            self.staged = {
                name: value
                for name, value in self.staged.items()
                if name in ("upgrade", "connection") or name.startswith("sec-websocket-")
            }

    def replace_body(self, body: str | bytes | AsyncIterator[bytes] | None, /) -> None:
        """Put another body in the place of the one that was sent, for middleware that encode or cut it."""
        if self.left:
            raise self._gone("replace_body")
        self.body = body

    def to_http(self) -> http.Response:
        """The standard value of this response."""
        body = self.body
        content_type = self.content_type
        if self.staged is None:
            headers = {} if content_type is None else {"content-type": content_type}
        else:
            headers = self.unblocked()
            if content_type is not None and "content-type" not in headers:
                headers["content-type"] = content_type
        return _assembled(
            self.status_code, (headers, self.set_cookies or []), body.encode() if isinstance(body, str) else body
        )


_assembled = http.Response.assembled


def _plain(method: str, text: object) -> str:
    """A text as hosts take it: a `str` and no subclass, whose methods may be anyone's (an enum's, a template's)."""
    if not isinstance(text, str):
        raise TypeError(f"res.{method}() takes str, not {type(text).__name__}. Use res.json(value) for values")
    return str.__str__(text)


def _location(url: str) -> str:
    """A URL for the Location header: what is not ASCII, and blanks, percent-encoded as UTF-8."""
    if url.isascii() and " " not in url:
        return url
    return "".join(
        char if char.isascii() and char != " " else "".join(f"%{byte:02X}" for byte in char.encode()) for char in url
    )
