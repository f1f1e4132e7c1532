"""An application as an RSGI application, for granian.

    server = rsgi(app, env)

RSGI hands over the path decoded: `%2F` and `/` cannot be told apart any more, and `/a%2Fb` is routed as `/a/b`. Where
that matters, serve with `asgi`, to which granian gives the raw path. Routes and the scopes of middleware see one and
the same path here too, so nothing steps around an authenticator by it.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping
from time import perf_counter
from typing import Any, Protocol

from core import http
from core.app import App
from core.context import EdgeMetadata, ExecutionContext
from core.hosts.asgi import BackgroundContext
from core.request import NO_PARAMS, Params, Request
from core.response import Response

__all__ = ["RsgiApplication", "RsgiRequest", "rsgi"]

log: logging.Logger = logging.getLogger("core")


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
    """What RSGI says of a request (https://github.com/emmett-framework/granian/blob/master/docs/spec/RSGI.md)."""

    proto: str
    method: str
    path: str
    query_string: str
    scheme: str
    server: str
    client: str
    authority: str | None
    headers: RsgiHeaders


class RsgiRequest(Request[Any, Any, Any]):
    """A request over an RSGI scope."""

    def __init__(self, scope: RsgiScope, protocol: Any, env: object, ctx: BackgroundContext) -> None:
        # Request.__init__ is not called: all of it is here.
        self.params: Params[Any] = NO_PARAMS
        self.id = ""
        self._query = None
        self._scope = scope
        self._protocol = protocol
        self.method: str = scope.method
        path = scope.path
        if not (path.isascii() and path.isprintable()) or any(char in path for char in "%\\ ?#") or "/." in path:
            path = http.url.canonical_path(_quoted(path))
        self.path: str = path or "/"
        self.env: object = env
        self.ctx: ExecutionContext = ctx
        self.received: float = perf_counter()

    @property
    def url(self) -> str:
        """The absolute URL, from the Host header or `:authority`; where both are malformed, the server's address."""
        scope = self._scope
        host = scope.authority or scope.headers.get("host")
        if host is None or not host.isascii() or not host.isprintable() or any(char in "/?#@\\ " for char in host):
            host = scope.server
        query = self.query_string
        return f"{scope.scheme}://{host}{self.path}{'?' + query if query else ''}"

    @property
    def headers(self) -> http.Headers:
        """The headers of the request."""
        cached: http.Headers | None = self.__dict__.get("_headers")
        if cached is None:
            values: dict[str, str] = {}
            for name, text in self._scope.headers.items():
                if name == "edge-connecting-ip":
                    continue
                if name in values:
                    values[name] = f"{values[name]}{'; ' if name == 'cookie' else ', '}{text}"
                else:
                    values[name] = text
            ip = self.ip
            if ip is not None:
                values["edge-connecting-ip"] = ip
            cached = self.__dict__["_headers"] = http.Headers.trusted(values, [])
        return cached

    def header(self, name: str, /) -> str | None:
        """The value of a header, or None."""
        key = name.lower()
        if key == "edge-connecting-ip":
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

    async def _read(self) -> builtins.bytes:
        body: bytes = await self._protocol()
        return body

    async def _chunks(self) -> AsyncIterator[builtins.bytes]:
        async for chunk in self._protocol:
            if chunk:
                yield chunk


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path, safe="/~!$&'()*+,;=:@-._")


class RsgiApplication:
    """What `rsgi` returns: an RSGI application, and its execution context."""

    def __init__(self, app: App[Any], env: object, context: BackgroundContext) -> None:
        self.context = context
        self._app = app
        self._env = env
        self._respond = app.dispatcher.respond

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse to start with an application that cannot work."""
        self._app.check()

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Finish what was given to `wait_until`."""
        if self.context.tasks and not loop.is_closed():
            loop.run_until_complete(self.context.drain())

    async def __rsgi__(self, scope: RsgiScope, protocol: Any) -> None:
        """Serve one request."""
        req = RsgiRequest(scope, protocol, self._env, self.context)
        if scope.proto != "http":
            from core.hosts.rsgi_websocket import serve_websocket

            await serve_websocket(req, protocol, self._app.dispatcher)
            return
        res = Response()
        await self._respond(req, res)
        headers = _header_pairs(res)
        body = res.body
        if body is None:
            if (
                res.status_code not in (101, 204, 304)
                and scope.method != "HEAD"
                and not _has(headers, "content-length")
            ):
                headers.append(("content-length", "0"))
            protocol.response_empty(res.status_code, headers)
        elif isinstance(body, str):
            protocol.response_str(res.status_code, headers, body)
        elif isinstance(body, bytes):
            protocol.response_bytes(res.status_code, headers, body)
        else:
            await _stream(res.status_code, headers, body, protocol)


def rsgi(app: App[Any], env: object = None, *, context: BackgroundContext | None = None) -> RsgiApplication:
    """Serve `app` with the bindings `env` on granian: `granian --interface rsgi module:server`.

    `context` is what handlers see as `req.ctx`. When the worker ends, all work given to `wait_until` is awaited.
    """
    return RsgiApplication(app, env, context if context is not None else BackgroundContext())


def _header_pairs(res: Response) -> list[tuple[str, str]]:
    staged: Mapping[str, str] = res.unblocked()
    pairs = [*staged.items()]
    if res.content_type is not None and "content-type" not in staged:
        pairs.append(("content-type", res.content_type))
    pairs += [("set-cookie", value) for value in res.set_cookies or ()]
    return pairs


def _has(pairs: list[tuple[str, str]], name: str) -> bool:
    return any(key == name for key, _ in pairs)


async def _stream(status: int, headers: list[tuple[str, str]], chunks: Any, protocol: Any) -> None:
    """Send a body in pieces, and stop when the client is gone."""
    transport = protocol.response_stream(status, headers)

    async def write() -> None:
        async for chunk in chunks:
            if chunk:
                await transport.send_bytes(chunk)

    writer: asyncio.Future[None] = asyncio.ensure_future(write())
    gone: asyncio.Future[Any] = asyncio.ensure_future(_await(protocol.client_disconnect()))
    try:
        await asyncio.wait((writer, gone), return_when=asyncio.FIRST_COMPLETED)
        if writer.done():
            writer.result()
    finally:
        for task in (writer, gone):
            if not task.done():
                task.cancel()
        await asyncio.gather(writer, gone, return_exceptions=True)
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
