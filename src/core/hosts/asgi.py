"""An application as an ASGI 3 application, for uvicorn, hypercorn, granian and their like.

    server = asgi(app, env)

The request is read from the scope when a handler asks, never copied beforehand. The client's
address is the connection's: `Edge-Connecting-IP` is answered by this host, whatever a client sent
under that name. Behind a proxy that one trusts, let the server put the proxy's word into the scope
(uvicorn's `--forwarded-allow-ips`).
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any, Protocol, cast

from core import http
from core.app import App
from core.context import EdgeMetadata, ExecutionContext
from core.errors import CoreError
from core.request import NO_PARAMS, Request
from core.response import Block, Response

__all__ = ["AsgiApplication", "AsgiRequest", "BackgroundContext", "asgi"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log: logging.Logger = logging.getLogger("core")

CLIENT_IP = "edge-connecting-ip"


class BackgroundContext:
    """The execution context of a process: work given to `wait_until` runs on its event loop until `drain`."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Future[Any]] = set()

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        """Run `awaitable` to its end beside everything else. What it raises is logged."""
        task = asyncio.ensure_future(awaitable)
        self.tasks.add(task)
        task.add_done_callback(self._done)

    def pass_through_on_exception(self) -> None:
        """There is no origin behind this host: nothing to fall back to."""

    def _done(self, task: asyncio.Future[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work given to wait_until failed", exc_info=error)

    async def drain(self) -> None:
        """Wait until nothing is left, work that is added meanwhile included."""
        while self.tasks:
            await asyncio.wait(set(self.tasks))


class ClientDisconnected(Exception):
    """The client went away while its body was read."""


class AsgiRequest(Request[Any, Any, Any]):
    """A request over an ASGI scope.

    `bound` makes the class of one application's requests, and `asgi` sets what differs from one to the next itself: a
    call of `__init__` would cost as much as all it does.
    """

    _scope: Scope
    _receive: Receive
    _index: dict[bytes, bytes] | None

    @classmethod
    def bound(cls, env: object, ctx: ExecutionContext) -> Callable[[], AsgiRequest]:
        """The class of requests with these bindings and this context."""
        made: Any = type("AsgiRequest", (cls,), {"env": env, "ctx": ctx, "__init__": object.__init__})
        return cast("Callable[[], AsgiRequest]", made)

    @property
    def url(self) -> str:
        """The absolute URL, from the Host header; where that is missing or malformed, from the server's address."""
        scope = self._scope
        query = self.query_string
        host = self.header("host")
        if host is None or not _is_host(host):
            server = scope.get("server") or ("localhost", None)
            host = f"{server[0]}:{server[1]}" if server[1] else str(server[0])
        return f"{scope.get('scheme', 'http')}://{host}{self.path}{'?' + query if query else ''}"

    @property
    def headers(self) -> http.Headers:
        """The headers of the request."""
        values: dict[str, str] = {}
        cached: http.Headers | None = self.__dict__.get("_headers")
        if cached is None:
            for key, value in self._scope["headers"]:
                name, text = key.decode("latin-1").lower(), value.decode("latin-1")
                if name == CLIENT_IP:
                    continue
                if name in values:
                    values[name] = f"{values[name]}{'; ' if name == 'cookie' else ', '}{text}"
                else:
                    values[name] = text
            ip = self.ip
            if ip is not None:
                values[CLIENT_IP] = ip
            cached = self.__dict__["_headers"] = http.Headers.trusted(values, [])
        return cached

    def header(self, name: str, /) -> str | None:
        """The value of a header, or None."""
        try:
            key = _NAMES[name]
        except KeyError:
            key = _name(name)
            if key == b"edge-connecting-ip":
                return self.ip
        index = self._index
        if index is None:
            pairs = self._scope["headers"]
            index = self._index = dict(pairs)
            if len(index) != len(pairs):
                # Something comes twice, and has to be joined.
                index = self._index = {
                    name.encode("latin-1"): text.encode("latin-1") for name, text in self.headers.items()
                }
        value = index.get(key)
        return None if value is None else value.decode("latin-1")

    @property
    def query_string(self) -> str:
        """The query string as it was sent, without the question mark."""
        text: str = self._scope["query_string"].decode("latin-1")
        return text

    @property
    def ip(self) -> str | None:
        """The address of the connection."""
        client = self._scope.get("client")
        return None if client is None else client[0]

    @property
    def edge(self) -> EdgeMetadata | None:
        """None: this host knows no datacenters."""
        return None

    def _elapsed(self) -> float:
        # As in `Request`; this host knows no clock but the machine's.
        return (perf_counter() - self.received) * 1000.0

    async def _read(self) -> builtins.bytes:
        receive = self._receive
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            body: bytes = message.get("body", b"")
            return body
        chunks: list[bytes] = []
        while message["type"] == "http.request":
            chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(chunks)
            message = await receive()
        raise CoreError(400, "The request body ended early")

    async def _chunks(self) -> AsyncIterator[builtins.bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise CoreError(400, "The request body ended early")
            if chunk := message.get("body", b""):
                yield chunk
            more = message.get("more_body", False)


def _quoted(path: str) -> str:
    """A decoded path encoded again, for servers that give no `raw_path`."""
    from urllib.parse import quote

    return quote(path, safe="/~!$&'()*+,;=:@-._")


def _is_host(text: str) -> bool:
    return text.isascii() and text.isprintable() and not any(char in "/?#@\\ " for char in text)


# -- headers as bytes

_TYPES: dict[str | None, tuple[bytes, bytes]] = {
    text: (b"content-type", text.encode())
    for text in ("application/json", "text/plain;charset=UTF-8", "text/html;charset=UTF-8")
}
_LENGTHS = [(b"content-length", b"%d" % size) for size in range(4096)]


def _length_pair(length: int) -> tuple[bytes, bytes]:
    return _LENGTHS[length] if length < 4096 else (b"content-length", b"%d" % length)


# Most values are the same on every response. Those that differ (ids, locations) must fill neither the memory nor the
# room of the others, so a name has room for a few.
_PAIRS: dict[tuple[str, str], tuple[bytes, bytes]] = {}
_known_pair = _PAIRS.get
_KEPT: dict[str, int] = {}
_KEPT_MOST = 16
_FULL: dict[str, bytes] = {}  # the names that have their few


def _pair(item: tuple[str, str]) -> tuple[bytes, bytes]:
    name, value = item
    full = _FULL.get(name)
    if full is not None:
        return full, value.encode("latin-1")
    pair = (name.encode("latin-1"), value.encode("latin-1"))
    kept = _KEPT.get(name, 0)
    if len(_KEPT) < 256 and len(value) < 1024:
        _KEPT[name] = kept + 1
        _PAIRS[item] = pair
        if kept + 1 == _KEPT_MOST:
            _FULL[name] = pair[0]
    return pair


def _type_pair(content_type: str) -> tuple[bytes, bytes]:
    item = ("content-type", content_type)
    return _known_pair(item) or _pair(item)


# Names of headers as bytes, by the spelling that was asked for. The client's address is none of them: it has no header.
_NAMES: dict[str, bytes] = {}
_NAMES_MOST = 1024


def _name(name: str) -> bytes:
    key = name.lower().encode("latin-1", "replace")
    if len(_NAMES) < _NAMES_MOST and key != b"edge-connecting-ip":
        _NAMES[name] = key
    return key


def header_pairs(res: Response, length: int | None) -> list[tuple[bytes, bytes]]:
    """The headers of a response that has left, as bytes; `length` is the body's, None for a stream."""
    content_type = res.content_type
    staged = res.staged
    block = res.block
    if block is not None and staged is not None and length is not None:
        pairs = (block.written.get(content_type) or _written(block, content_type)).copy()
        taken = block.taken
        for item in staged.items():
            name = item[0]
            if name in taken:
                break  # staged after the block, in the place of what is there
            full = _FULL.get(name)  # as `_pair` has it, without the call
            pairs.append(_known_pair(item) or _pair(item) if full is None else (full, item[1].encode("latin-1")))
        else:
            # As `_length_pair` has it, without the call.
            pairs.append(_LENGTHS[length] if length < 4096 else (b"content-length", b"%d" % length))
            if res.set_cookies is not None:
                pairs += [(b"set-cookie", value.encode("latin-1")) for value in res.set_cookies]
            return pairs
    if staged is None:
        pairs = [] if content_type is None else [_TYPES.get(content_type) or _type_pair(content_type)]
        if length is not None:
            pairs.append(_length_pair(length))
    else:
        if block is not None:
            staged = res.unblocked()
        pairs = [_known_pair(item) or _pair(item) for item in staged.items()]
        if content_type is not None and "content-type" not in staged:
            pairs.append(_TYPES.get(content_type) or _type_pair(content_type))
        if length is not None and "content-length" not in staged:
            pairs.append(_length_pair(length))
    if res.set_cookies is not None:
        pairs += [(b"set-cookie", value.encode("latin-1")) for value in res.set_cookies]
    return pairs


def _written(block: Block, content_type: str | None) -> list[tuple[bytes, bytes]]:
    """The headers of a block as bytes, and the content type."""
    pairs = [_pair(item) for item in block.values.items()]
    if content_type is not None:
        pairs.append(_TYPES.get(content_type) or _type_pair(content_type))
    if len(block.written) < _KEPT_MOST:
        block.written[content_type] = pairs
    return pairs


class AsgiApplication(Protocol):
    """What `asgi` returns: an ASGI 3 application, and its execution context."""

    context: BackgroundContext

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event."""
        ...


def asgi(app: App[Any], env: object = None, *, context: BackgroundContext | None = None) -> AsgiApplication:
    """Serve `app` with the bindings `env` on any ASGI server.

    `context` is what handlers see as `req.ctx`. At the server's shutdown all work given to `wait_until` is awaited.
    """
    ctx = context if context is not None else BackgroundContext()
    respond = app.dispatcher.respond
    bound = AsgiRequest.bound(env, ctx)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _serve_other(scope, receive, send, app, ctx, bound)
            return
        req = bound()
        req.params = NO_PARAMS  # type: ignore[misc]  # read-only for handlers
        req.id = ""
        req._query = req._index = None
        req._scope = scope
        req._receive = receive
        req.method = scope["method"]  # type: ignore[misc]  # as above
        path = scope["path"]
        raw = scope.get("raw_path")
        # `path` was decoded by the server. Where that changed nothing it is as it was sent; the lengths tell.
        if raw is None:
            path = _quoted(path)
        elif len(raw) != len(path):
            path = raw.partition(b"?")[0].decode("latin-1")
        req.path = path  # type: ignore[misc]  # as above; made canonical by the dispatcher
        req.received = perf_counter()
        res = Response()
        await respond(req, res)
        body: Any = res.body
        if type(body) is str:
            body = body.encode()
        elif body is None:
            body = b""
        elif type(body) is not bytes:
            await _stream(res, receive, send)
            return
        length = len(body)
        if length and res.staged is None and (known := _TYPES.get(res.content_type)) is not None:
            # As `header_pairs` has it, without the call.
            headers = [known, _LENGTHS[length] if length < 4096 else (b"content-length", b"%d" % length)]
        else:
            headers = header_pairs(res, length or _length_of_none(res.status_code, scope["method"]))
        await send({"type": "http.response.start", "status": res.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    serve.context = ctx  # type: ignore[attr-defined]  # functions carry attributes
    return serve  # type: ignore[return-value]  # as above


def _length_of_none(status: int, method: str) -> int | None:
    """The length of no body. 101, 204 and 304 have none (RFC 9110, section 8.6), nor has an answer to HEAD of its own."""
    return None if status in (101, 204, 304) or method == "HEAD" else 0


async def _stream(res: Response, receive: Receive, send: Send) -> None:
    """Send a body in pieces, and stop when the client is gone."""
    chunks: Any = res.body
    await send({"type": "http.response.start", "status": res.status_code, "headers": header_pairs(res, None)})

    async def write() -> None:
        async for chunk in chunks:
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    writer, watcher = asyncio.ensure_future(write()), asyncio.ensure_future(watch())
    try:
        await asyncio.wait((writer, watcher), return_when=asyncio.FIRST_COMPLETED)
        if writer.done():
            writer.result()
            await send({"type": "http.response.body", "body": b""})
    finally:
        for task in (writer, watcher):
            if not task.done():
                task.cancel()
        await asyncio.gather(writer, watcher, return_exceptions=True)
        # The generator ends with the response, so that what it holds is given back.
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


async def _serve_other(
    scope: Scope, receive: Receive, send: Send, app: App[Any], ctx: BackgroundContext, bound: Callable[[], AsgiRequest]
) -> None:
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    app.check()
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await ctx.drain()
                await send({"type": "lifespan.shutdown.complete"})
                return
    elif scope["type"] == "websocket":
        from core.hosts.asgi_websocket import serve_websocket

        # The opening handshake is a GET, and runs through the application as one.
        req = bound()
        req.params = NO_PARAMS  # type: ignore[misc]  # read-only for handlers
        req.id = ""
        req._query = req._index = None
        req._scope = scope
        req._receive = receive
        req.method = "GET"  # type: ignore[misc]  # as above
        raw = scope.get("raw_path")
        req.path = _quoted(scope["path"]) if raw is None else raw.partition(b"?")[0].decode("latin-1")  # type: ignore[misc]  # as above
        req.received = perf_counter()
        await serve_websocket(req, scope, receive, send, app.dispatcher)
