"""An application as an ASGI 3 application, for uvicorn, hypercorn and their like.

    server = asgi(app, env)

The request is read from the scope when a handler asks, never copied beforehand. The client's
address is the connection's: `Edge-Connecting-IP` is answered by this host, whatever a client sent
under that name. Behind a proxy that one trusts, let the server put the proxy's word into the scope
(uvicorn's `--forwarded-allow-ips`).
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any, Final, Protocol, cast

from core import http
from core.app import App
from core.context import EdgeMetadata, ExecutionContext
from core.dispatch.answers import body_failed
from core.dispatch.finder import NO_CHAINS
from core.errors import CLIENT_GONE, NULL_BODY_STATUSES, CoreError
from core.hosts.process import FAILED, STATUS_SENT, BackgroundContext, trace_where_asked
from core.http.framing import has_no_length
from core.http.header_block import HeaderBlock
from core.http.headers import check_name
from core.http.streams import USV, close
from core.request import NO_PARAMS, OpenRequest
from core.response import Response

__all__ = ["AsgiApplication", "AsgiRequest", "BackgroundContext", "asgi"]

_MOST_AHEAD: Final = 65536
_SECONDS_AHEAD = 5.0
"""The time in which a stream begins to read its request's body, where more comes than is read ahead."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AsgiRequest(OpenRequest):
    """A request over an ASGI scope.

    `bound` makes the class of one application's requests, and `asgi` sets the attributes that differ from one to the
    next itself: a call of `__init__` would cost as much as all it does.
    """

    _scope: Scope
    _receive: Receive
    _index: dict[bytes, bytes] | None
    _headers: _ScopeHeaders | None = None

    @classmethod
    def bound(cls, env: object, ctx: ExecutionContext, app: App[Any] | None = None) -> Callable[[], AsgiRequest]:
        """The class of requests with these bindings and this context, to this application."""
        common = {"env": env, "ctx": ctx, "_app": app}
        made: Any = type("Request", (cls,), {**common, "__init__": object.__init__})
        return cast("Callable[[], AsgiRequest]", made)

    @property
    def url(self) -> str:
        """The absolute URL, from the Host header; from the server's address where that is missing, empty or malformed.

        A host is one by RFC 3986 and the URL standard, which normalises it.
        """
        scope = self._scope
        query = self.query_string
        origin = http.url.origin_of(scope.get("scheme", "http"), self.header("host"), _address(scope.get("server")))
        return f"{origin}{self.root_path}{self.path}{'?' + query if query else ''}"

    @property
    def root_path(self) -> str:
        """The root of the application: a prefix of the path that the server, or another application, took off."""
        root = _root_of(self._scope)
        return _quoted(root) if root else ""

    @property
    def headers(self) -> http.HeadersView:
        """The headers of the request."""
        view = self._headers
        if view is None:
            view = self._headers = _ScopeHeaders()
            view.req = self
        return view

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

    async def _read(self, most: int | None = None) -> builtins.bytes:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            body: bytes = message.get("body", b"")
            return body
        self._streamed = True  # until it is whole: nobody takes the rest for it where reading is cancelled
        chunks: list[bytes] = []
        size = 0
        while message["type"] == "http.request":
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if most is not None and size > most:
                raise self._lost_body(CoreError(413, "Payload Too Large"))
            if not message.get("more_body", False):
                self._streamed = False
                return b"".join(chunks)
            message = await self._receive()
        raise self._lost_body(self._body_ended())

    async def _chunks(self) -> AsyncIterator[builtins.bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise self._lost_body(self._body_ended())
            if chunk := message.get("body", b""):
                yield chunk
            more = message.get("more_body", False)

    def _body_ended(self) -> Exception:
        from core.errors.body import BodyEndedError

        return BodyEndedError(self._scope.get(STATUS_SENT, CLIENT_GONE))

    async def is_disconnected(self) -> bool:
        """Return True if the client has gone away, so that nobody waits for the answer. It never waits."""
        if self._scope["type"] != "http":
            return False  # a WebSocket's messages are its session's
        return await self._ahead().is_gone()

    def _ahead(self) -> _ReadAhead:
        receive = self._receive
        if not isinstance(receive, _ReadAhead):
            receive = self._receive = _ReadAhead(receive)
        return receive

    def _opens_websocket(self) -> bool:
        opens: bool = self._scope["type"] == "websocket"
        return opens


class _ScopeHeaders(http.HeadersView):
    """The headers of a scope: one is found among the bytes, all are decoded when more is asked for than one."""

    __slots__ = ("req",)
    req: AsgiRequest

    def get(self, name: str, default: object = None, /) -> Any:
        """The value of `name`, joined if there are several, or `default`."""
        value = self.req.header(name)
        return default if value is None else value

    def __getattr__(self, name: str) -> object:
        # Asked for what is not set: the members of a view, before the headers are decoded.
        if name not in http.HeadersView.__slots__:
            raise AttributeError(name)
        values: dict[str, str] = {}
        for key, text in self.req._scope["headers"]:
            header, value = key.decode("latin-1").lower(), text.decode("latin-1")
            if header in values:
                value = f"{values[header]}{'; ' if header == 'cookie' else ', '}{value}"
            values[header] = value
        values.pop("edge-connecting-ip", None)
        if (ip := self.req.ip) is not None:
            values["edge-connecting-ip"] = ip
        whole = http.HeadersView.trusted(values, [])
        self._values, self._cookies, self._parts = whole._values, whole._cookies, whole._parts
        return getattr(self, name)


class _ReadAhead:
    """The messages of the server, after those that were looked at ahead, which somebody may read yet."""

    def __init__(self, receive: Receive) -> None:
        self._source = receive
        self._seen: list[MutableMapping[str, Any]] = []
        self._turn = asyncio.Lock()  # of the one who asks the server
        self._taken = asyncio.Event()
        self._begun = self._skipped = False

    async def __call__(self) -> MutableMapping[str, object]:
        self._begun = True
        if self._skipped:
            raise RuntimeError(
                f"the body was skipped, since a stream had not begun to read it in {_SECONDS_AHEAD:g} seconds. "
                "Read it before the stream, or as the pieces are made"
            )
        if not self._seen:
            async with self._turn:
                if not self._seen:
                    self._seen.append(await self._source())
        message = self._seen[0]
        if message["type"] != "http.disconnect":
            del self._seen[0]
            self._taken.set()
        return message

    async def is_gone(self) -> bool:
        """Return True if the client has gone away; behind a large body that nobody reads it cannot be seen."""
        # Where somebody waits for the server already, it has nothing to tell.
        while not self._gone() and not self._is_full() and not self._turn.locked():
            asked = asyncio.ensure_future(self._source())
            await asyncio.sleep(0)
            if not asked.done():
                # A server keeps a message for whoever asks next: nothing is lost with the one who asked.
                asked.cancel()
                await asyncio.wait((asked,))
            if asked.cancelled():
                return False
            self._seen.append(asked.result())
        return self._gone()

    async def until_gone(self) -> None:
        """Wait until the client has gone away, which is told behind its body.

        A part of that is read ahead, and the rest waits for whoever reads it. Where nobody begins to, it is skipped.
        """
        while not self._gone():
            if not self._is_full():
                async with self._turn:
                    if not self._gone():
                        self._seen.append(await self._source())
                continue
            self._taken.clear()
            patience = 0 if self._skipped else None if self._begun else _SECONDS_AHEAD
            try:
                await asyncio.wait_for(self._taken.wait(), patience)
            except TimeoutError:
                self._seen.clear()
                self._skipped = True

    def _gone(self) -> bool:
        return bool(self._seen) and self._seen[-1]["type"] == "http.disconnect"

    def _is_full(self) -> bool:
        return sum(len(message.get("body", b"")) for message in self._seen) > _MOST_AHEAD


def _root_of(scope: Scope) -> str:
    root: str = scope.get("root_path") or ""
    return root.rstrip("/")


def _path_of(scope: Scope) -> str:
    """The path below the root, as it was sent.

    The specification has `root_path` begin `path` (https://asgi.readthedocs.io/en/latest/specs/www.html). Servers and
    frameworks of before 2024 give a `path` without it, and some a `raw_path` that differs from `path` in that.
    """
    path: str = scope["path"]
    raw: bytes | None = scope.get("raw_path")
    sent = _quoted(path) if raw is None else raw.partition(b"?")[0].decode("latin-1")
    root = _root_of(scope)
    if not root:
        return sent
    if path == root or path.startswith(f"{root}/"):
        path = path[len(root) :]
        # The path as sent may spell the root with escapes, in as many segments.
        sent = "".join([f"/{segment}" for segment in sent.split("/")[root.count("/") + 1 :]])
    from urllib.parse import unquote

    return (sent if unquote(sent) == path else _quoted(path)) or "/"


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path, safe="/~!$&'()*+,;=:@-._")


def _address(server: tuple[str, int | None] | None) -> str | None:
    """The server's address as a URL has it, None where there is none; one on a Unix socket has no port."""
    if server is None or server[1] is None:
        return None
    return f"[{server[0]}]:{server[1]}" if ":" in server[0] else f"{server[0]}:{server[1]}"


# -- headers as bytes


# Plain dicts, and a `get` that is bound once: a dict of a class of its own is asked more slowly.
_LENGTHS: dict[int, tuple[bytes, bytes]] = {}
_LENGTHS_MOST = 4096
_known_length = _LENGTHS.get


def _length_pair(length: int) -> tuple[bytes, bytes]:
    """`Content-Length`; the smaller ones are kept."""
    pair = (b"content-length", b"%d" % length)
    if length < _LENGTHS_MOST:
        _LENGTHS[length] = pair
    return pair


# Most values are the same on every response. Those that differ (ids, locations) must fill neither the memory nor the
# room of the others, so a name has room for a few.
_KEPT: dict[str, int] = {}
_KEPT_MOST = 16
_FULL: dict[str, bytes] = {}  # the names that have their few


_PAIRS: dict[tuple[str, str], tuple[bytes, bytes]] = {}
_known_pair = _PAIRS.get


def _pair(item: tuple[str, str]) -> tuple[bytes, bytes]:
    """A header by name and value, as bytes; a few values of each name are kept."""
    name, value = item
    if name in _FULL:
        return _FULL[name], value.encode("latin-1")
    pair = (name.encode("latin-1"), value.encode("latin-1"))
    if len(_KEPT) < 256 and len(value) < 1024:
        count = _KEPT[name] = _KEPT.get(name, 0) + 1
        _PAIRS[item] = pair
        if count == _KEPT_MOST:
            _FULL[name] = pair[0]
    return pair


_TYPES: dict[str, tuple[bytes, bytes]] = {
    text: (b"content-type", text.encode())
    for text in ("application/json", "text/plain;charset=UTF-8", "text/html;charset=UTF-8")
}


def _type_pair(content_type: str) -> tuple[bytes, bytes]:
    item = ("content-type", content_type)
    return _TYPES.get(content_type) or _known_pair(item) or _pair(item)


# Names of headers as bytes, by the spelling that was asked for. The client's address is none of them: it has no header.
_NAMES: dict[str, bytes] = {}
_NAMES_MOST = 1024


def _name(name: str) -> bytes:
    key = check_name(name, "get").encode("latin-1")
    if len(_NAMES) < _NAMES_MOST and key != b"edge-connecting-ip":
        _NAMES[name] = key
    return key


def header_pairs(res: Response, length: int | None) -> list[tuple[bytes, bytes]]:
    """The headers of a finalized response, as bytes; `length` is the body's, None for a stream."""
    content_type = res.content_type
    staged = res.staged
    block = res.block
    if staged is None:
        pairs = [] if content_type is None else [_type_pair(content_type)]
        if length is not None:
            pairs.append(_known_length(length) or _length_pair(length))
    elif block is not None and length is not None and block.header_names.isdisjoint(staged):
        pairs = (block.written.get(content_type) or _written(block, content_type)).copy()
        for item in staged.items():  # few, beside a block: a loop takes less than a list of their own
            pairs.append(_known_pair(item) or _pair(item))
        pairs.append(_known_length(length) or _length_pair(length))
    else:
        if block is not None:
            staged = res.unblocked()
        pairs = [_known_pair(item) or _pair(item) for item in staged.items()]
        if content_type is not None and "content-type" not in staged:
            pairs.append(_type_pair(content_type))
        if length is not None and "content-length" not in staged:
            pairs.append(_known_length(length) or _length_pair(length))
    if res.set_cookies is not None:
        pairs += [(b"set-cookie", value.encode("latin-1")) for value in res.set_cookies]
    return pairs


def _written(block: HeaderBlock, content_type: str | None) -> list[tuple[bytes, bytes]]:
    """The headers of a block as bytes, and the content type."""
    pairs = [_known_pair(item) or _pair(item) for item in block.values.items()]
    if content_type is not None:
        pairs.append(_type_pair(content_type))
    if len(block.written) < _KEPT_MOST:
        block.written[content_type] = pairs
    return pairs


class AsgiApplication(Protocol):
    """Returned by `asgi`: an ASGI 3 application, and its execution context."""

    context: BackgroundContext

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event."""
        ...


_new_response: Any = type("Response", (Response,), {"__slots__": (), "__init__": object.__init__})
"""Makes a response without a call of its constructor, whose attributes `serve` sets: a thirtieth of a plain request."""


def asgi(app: App[Any], env: object = None, *, context: BackgroundContext | None = None) -> AsgiApplication:
    """Serve `app` with the bindings `env` on any ASGI server.

    `context` becomes `req.ctx`. At the server's shutdown all work given to `wait_until` is awaited.
    With `OTEL_EXPORTER_OTLP_ENDPOINT` set, spans are sent there (extra `otel`).
    """
    ctx = context if context is not None else BackgroundContext()
    trace_where_asked(app, env)
    dispatcher = app.dispatcher
    bound = AsgiRequest.bound(env, ctx, app)
    chains_of = dispatcher.finder.chains.get

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await serve_other(scope, receive, send)
            return
        req = bound()
        # No defaults of the class: CPython sets an attribute more slowly where the class has one of that name.
        req.params = NO_PARAMS
        req.id = ""
        req._query = req._index = None
        req._scope = scope
        req._receive = receive
        req.method = method = scope["method"]
        path = scope["path"]
        try:
            # `path` was decoded by the server. Where that changed nothing it is as it was sent; the lengths tell.
            if scope["root_path"] or len(scope["raw_path"]) != len(path):
                path = _path_of(scope)
        except (KeyError, TypeError):  # both keys are optional, and `raw_path` may be None
            path = _path_of(scope)
        req.path = path  # made canonical by the dispatcher
        req.received = perf_counter()
        res = _new_response()  # whose attributes are set here too, as `Response.__init__` has it
        res._sent = res.finalized = False
        res._status_code = 200
        res.body = res.content_type = res.staged = res.set_cookies = None
        res.hooks = res.tokens = res.upgrade = res.block = None
        res.varies = ()
        try:  # as `Dispatcher.respond` has it, without a coroutine of its own
            chain = chains_of(method, NO_CHAINS).get(path)
            if chain is None:
                chain, req.params, req.path = dispatcher.finder.find(method, path)
            returned = await chain(req, res)
            if not res.sent:
                raise dispatcher.nothing_sent(req, returned)
        except Exception as error:
            await dispatcher.failures.answer(error, req, res)
        except BaseException as error:
            dispatcher.failures.end(error, req, res)
        if (
            method != "HEAD"
            and res.hooks is None
            and (res.status_code == 200 or res.status_code not in NULL_BODY_STATUSES)
        ):
            res.finalized = True  # as `Dispatcher.finish` has it
        else:
            dispatcher.finish(req, res)
        body: Any = res.body
        if body.__class__ is str:
            try:
                body = body.encode()
            except UnicodeEncodeError:
                body = body.encode("utf-8", USV)
        elif body is None:
            body = b""
        elif body.__class__ is not bytes:
            await _stream(res, body, req, send)
            return
        length = len(body)
        content_type = res.content_type
        if length and res.staged is None and content_type is not None:
            try:  # as `header_pairs` has it, without the call
                headers = [_TYPES[content_type], _LENGTHS[length]]
            except KeyError:
                headers = [_type_pair(content_type), _length_pair(length)]
        else:
            headers = header_pairs(res, length or (None if has_no_length(res.status_code, scope["method"]) else 0))
        await send({"type": "http.response.start", "status": res.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def serve_other(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            phase = ""
            while phase != "lifespan.shutdown":
                phase = (await receive())["type"]
                try:
                    if phase == "lifespan.startup":
                        app.check()
                        await app.startup(env)
                    else:
                        await ctx.drain()
                        await app.shutdown(env)
                except Exception as error:
                    from core.explain.diagnosis import words_of

                    await send({"type": f"{phase}.failed", "message": words_of(error)})
                    return
                await send({"type": f"{phase}.complete"})
        elif scope["type"] == "websocket":
            from core.hosts.asgi_websocket import serve_websocket

            # The opening handshake is a GET, and runs through the application as one.
            req = bound()
            req.params = NO_PARAMS
            req.id = ""
            req._query = req._index = None
            req._scope = scope
            req._receive = receive
            req.method = "GET"
            req.path = _path_of(scope)
            req.received = perf_counter()
            await serve_websocket(req, scope, receive, send, dispatcher)

    async def serve_started(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and app.lifespans is not None:
            await app.lifespans.ensure(env)
        await serve(scope, receive, send)

    # A server may not tell of its start, and an application that mounts this one does not either.
    served: Any = serve if app.lifespans is None else serve_started
    served.context = ctx
    return cast("AsgiApplication", served)


async def _stream(res: Response, chunks: AsyncIterator[bytes], req: AsgiRequest, send: Send) -> None:
    """Send a body until its client is gone, and end its generator with it, so that its resources are given back."""

    async def write() -> None:
        async for chunk in chunks:
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})

    tasks: list[asyncio.Future[None]] = []
    try:
        await send({"type": "http.response.start", "status": res.status_code, "headers": header_pairs(res, None)})
        if res.staged is not None and "content-length" in res.staged:
            # A server may hold such a head back until the body begins.
            await send({"type": "http.response.body", "body": b"", "more_body": True})
        writer, watcher = asyncio.ensure_future(write()), asyncio.ensure_future(req._ahead().until_gone())
        tasks += writer, watcher
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not writer.done():
            return
        writer.result()
    except Exception as error:
        from core.errors.body import BodyEndedError

        if not tasks:
            raise  # the client is gone (ASGI, 2.4)
        if isinstance(error, BodyEndedError):
            return  # it went away while chunks were made of its own body
        body_failed(error, req)
        req._scope[FAILED] = error
        raise  # so that a server breaks the connection
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close(chunks)
    await send({"type": "http.response.body", "body": b""})
