"""An application as an RSGI application, for granian.

    server = rsgi(app, env)

RSGI hands over the path decoded: `%2F` and `/` cannot be told apart any more, and `/a%2Fb` is routed as `/a/b`. Where
that matters, serve with `asgi`, to which granian gives the raw path. Routes and the scopes of middleware see one and
the same path here too, so nothing steps around an authenticator by it.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Any, Protocol

from core import http
from core.app import App
from core.context import EdgeMetadata
from core.hosts.process import (
    CLIENT_IP,
    BackgroundContext,
    has_no_length,
    join_headers,
    quote_path,
    stream_until_gone,
    trace_where_asked,
)
from core.http.paths import canonical_path
from core.request import NO_PARAMS, OpenRequest
from core.response import Response

__all__ = ["RsgiApplication", "RsgiRequest", "rsgi"]


class RsgiHeaders(Protocol):
    """The headers of a scope: a multi-mapping."""

    def items(self) -> list[tuple[str, str]]:
        """Every name and value; names in lower case, one pair for each line."""
        ...

    def get(self, name: str, /) -> str | None:
        """The first value of a name."""
        ...

    def get_all(self, name: str, /) -> list[str]:
        """Every value of a name."""
        ...


class RsgiScope(Protocol):
    """The scope of a request over RSGI (https://github.com/emmett-framework/granian/blob/master/docs/spec/RSGI.md)."""

    proto: str
    method: str
    path: str
    query_string: str
    scheme: str
    server: str
    client: str
    authority: str | None
    headers: RsgiHeaders


class RsgiRequest(OpenRequest):
    """A request over an RSGI scope."""

    _watch: asyncio.Future[object] | None = None

    def __init__(self, scope: RsgiScope, protocol: Any, env: object, ctx: BackgroundContext) -> None:
        # `__init__` of the base is not called: all of it is here.
        self.params = NO_PARAMS
        self.id = ""
        self._query = None
        self._scope = scope
        self._protocol = protocol
        self.method = scope.method
        path = scope.path
        if not (path.isascii() and path.isprintable()) or any(char in path for char in "%\\ ?#") or "/." in path:
            path = canonical_path(quote_path(path))
        self.path = path or "/"
        self.env = env
        self.ctx = ctx
        self.received: float = perf_counter()

    @property
    def url(self) -> str:
        """The absolute URL, from `:authority` or the Host header; from the server's address where neither is a host."""
        scope = self._scope
        origin = http.url.origin_of(scope.scheme, scope.authority, self.header("host"), scope.server)
        query = self.query_string
        return f"{origin}{self.path}{'?' + query if query else ''}"

    @property
    def headers(self) -> http.HeadersView:
        """The headers of the request."""
        cached: http.HeadersView | None = self.__dict__.get("_headers")
        if cached is None:
            cached = self.__dict__["_headers"] = join_headers(self._scope.headers.items(), self.ip)
        return cached

    def header(self, name: str, /) -> str | None:
        """The value of a header, or None."""
        key = name.lower()
        if key == CLIENT_IP:
            return self.ip
        values = self._scope.headers.get_all(key)
        if not values:
            return None
        return values[0] if len(values) == 1 else ("; " if key == "cookie" else ", ").join(values)

    @property
    def query_string(self) -> str:
        """The query string as it was sent, without the question mark."""
        return self._scope.query_string

    @property
    def ip(self) -> str | None:
        """The address of the connection."""
        return self._scope.client.rpartition(":")[0].strip("[]") or None

    @property
    def edge(self) -> EdgeMetadata | None:
        """None: this host knows no datacenters."""
        return None

    async def _read(self, most: int | None = None) -> builtins.bytes:
        if most is not None:
            # The server has the rest to itself: a length shows it, and a body without one is read in pieces.
            length = self.header("content-length")
            if length is None:
                chunks: list[bytes] = []
                size = 0
                async for chunk in self._chunks():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > most:
                        raise self._refused_body()
                return b"".join(chunks)
            if length.isascii() and length.isdigit() and (len(length) > 30 or int(length) > most):
                raise self._refused_body()
        body: bytes = await self._protocol()
        return body

    async def _chunks(self) -> AsyncIterator[builtins.bytes]:
        async for chunk in self._protocol:
            if chunk:
                yield chunk

    async def is_disconnected(self) -> bool:
        """Return True if the client has gone away, so that nobody waits for the answer. It never waits."""
        watch = self._watch
        if watch is None:
            watch = self._watch = asyncio.ensure_future(self._protocol.client_disconnect())
        await asyncio.sleep(0)
        return watch.done() and not watch.cancelled()

    def _opens_websocket(self) -> bool:
        return self._scope.proto != "http"


class RsgiApplication:
    """Returned by `rsgi`: an RSGI application, and its execution context."""

    def __init__(self, app: App[Any], env: object, context: BackgroundContext) -> None:
        self.context = context
        self._app = app
        self._env = env
        self._respond = app.dispatcher.respond

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse to start with an application that cannot work, and enter its lifespans."""
        self._app.check()
        if self._app.lifespans is not None and not loop.is_running():
            loop.run_until_complete(self._app.startup(self._env))

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Finish the work given to `wait_until`, and end the lifespans."""
        if (self.context.tasks or self._app.lifespans is not None) and not loop.is_closed():
            loop.run_until_complete(self._wind_up())

    async def _wind_up(self) -> None:
        await self.context.drain()
        await self._app.shutdown(self._env)

    async def __rsgi__(self, scope: RsgiScope, protocol: Any) -> None:
        """Serve one request."""
        if self._app.lifespans is not None:
            await self._app.lifespans.ensure(self._env)
        req = RsgiRequest(scope, protocol, self._env, self.context)
        req._app = self._app
        try:
            await self._answer(req, scope, protocol)
        finally:
            if req._watch is not None:
                req._watch.cancel()

    async def _answer(self, req: RsgiRequest, scope: RsgiScope, protocol: Any) -> None:
        if scope.proto != "http":
            from core.hosts.rsgi_websocket import serve_websocket

            await serve_websocket(req, protocol, self._app.dispatcher)
            return
        res = Response()
        await self._respond(req, res)
        headers = res.header_fields()
        body = res.body
        if body is None:
            if not (
                has_no_length(res.status_code, scope.method) or any(name == "content-length" for name, _ in headers)
            ):
                headers.append(("content-length", "0"))
            protocol.response_empty(res.status_code, headers)
        elif isinstance(body, str):
            protocol.response_bytes(res.status_code, headers, http.streams.encode(body))
        elif isinstance(body, bytes):
            protocol.response_bytes(res.status_code, headers, body)
        else:
            transport = protocol.response_stream(res.status_code, headers)
            await stream_until_gone(body, transport.send_bytes, protocol.client_disconnect)


def rsgi(app: App[Any], env: object = None, *, context: BackgroundContext | None = None) -> RsgiApplication:
    """Serve `app` with the bindings `env` on granian: `granian --interface rsgi module:server`.

    `context` becomes `req.ctx`. When the worker ends, all work given to `wait_until` is awaited.
    With `OTEL_EXPORTER_OTLP_ENDPOINT` set, spans are sent there (extra `otel`).
    """
    trace_where_asked(app, env)
    return RsgiApplication(app, env, context if context is not None else BackgroundContext())
