"""Another application below a prefix: an ASGI application, or a function of the Fetch standard.

An ASGI application (https://asgi.readthedocs.io/en/latest/specs/www.html) is given the whole path and, as `root_path`,
what comes before its own part of it; a function gets a request whose URL has no prefix any more. Requests go through
the middleware before them as to any route, on every host. A WebSocket of an ASGI application is a session like that of
`app.websocket`, which carries its messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

from core import http
from core.context import ExecutionContext, StateKey
from core.dispatch.answers import is_cross_site
from core.errors import CoreError, DeveloperError, HandlerError
from core.errors.body import BodyEndedError
from core.events.lifespan import Lifespan
from core.handlers import arguments_of, name_of
from core.http.driven import Owned
from core.http.paths import split_path
from core.http.websocket import Upgrade, WebSocket, WebSocketClosed
from core.request import AnyRequest
from core.response import Response

log: logging.Logger = logging.getLogger("core")

Message: TypeAlias = MutableMapping[str, Any]


class AsgiApp(Protocol):
    """An ASGI 3 application."""

    def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
        /,
    ) -> Awaitable[None]:
        """Serve one connection event."""
        ...


class Fetch(Protocol):
    """A function that answers a request."""

    def __call__(self, request: http.Request, /) -> Awaitable[http.Response]:
        """Answer."""
        ...


class FetchWithEnv(Protocol):
    """A function that answers a request with the bindings, as `App.fetch` does."""

    def __call__(self, request: http.Request, env: Any, ctx: ExecutionContext, /) -> Awaitable[http.Response]:
        """Answer."""
        ...


def is_asgi(target: object) -> bool:
    """Return True for an ASGI application: its first parameter is called `scope`, as the specification has it.

    Raises HandlerError for anything that is neither an ASGI application nor a function of one request.
    """
    import inspect

    demanded = arguments_of(target)
    if not callable(target) or demanded not in (1, 3):
        raise HandlerError(
            f"mount({name_of(target)}): give an ASGI application (scope, receive, send), or a function (request) or "
            "(request, env, ctx) that returns a http.Response"
        )
    return demanded == 3 and next(iter(inspect.signature(target).parameters)) == "scope"


def mounted_fetch(target: Callable[..., Awaitable[http.Response]], depth: int) -> Any:
    """The handler that asks a function, with the first `depth` segments of the path taken off."""
    with_env = arguments_of(target) == 3

    async def fetch(req: AnyRequest, res: Response) -> None:
        given = req.to_http()
        url = http.URL(given.url)
        url.pathname = "/" + "/".join(req.path.split("/")[depth + 1 :])
        request = http.Request(
            url, method=given.method, headers=given.headers, body=given.body, edge=given.edge, redirect="manual"
        )
        answer = target(request, req.env, req.ctx) if with_env else target(request)
        res.send(await answer)

    fetch.__qualname__ = name_of(target)
    return fetch


def mounted_asgi(target: AsgiApp, depth: int, state: StateKey[dict[str, Any]]) -> Any:
    """The handler that asks an ASGI application, whose root is the first `depth` segments of the path."""

    async def asgi(req: AnyRequest, res: Response) -> None:
        scope = _scope_of(req, depth)
        scope["state"] = state.of(req).copy()
        exchange = _Session() if req.method == "GET" and req._opens_websocket() else _Exchange(req.stream())
        if isinstance(exchange, _Session):
            if is_cross_site(req, res):
                raise CoreError(403, "Forbidden", code="CROSS_SITE_REQUEST")
            scope.update(_opening_of(req, scope["scheme"]))
        serving = asyncio.ensure_future(exchange.serve(target, scope))
        # Its work after its answer, such as background tasks, outlives the request.
        req.ctx.wait_until(exchange.wait_for(serving))
        try:
            answer = await exchange.answer(serving, head=req.method == "HEAD")
            if isinstance(answer, Upgrade):
                res.switch(answer)
            else:
                res.send(answer)
        except BaseException:
            exchange.close()
            raise

    asgi.__qualname__ = name_of(target)
    return asgi


class _Exchange:
    """The messages of one request and its answer, between the mounted application and the response."""

    def __init__(self, body: AsyncIterator[bytes] | None) -> None:
        self._body = body
        self._sent: asyncio.Queue[Message | None] = asyncio.Queue(1)
        self._closed = asyncio.Event()
        self._told = False  # whether the end of the application was waited for by who reads its answer
        self._gone: BodyEndedError | None = None

    async def wait_for(self, serving: asyncio.Future[None]) -> None:
        """Wait for the end of the application. An error that it raises behind its answer is logged."""
        await asyncio.wait((serving,))
        error = None if serving.cancelled() else serving.exception()
        # What it raises on a disconnect is how it ends: ASGI frameworks have an exception of their own for that.
        if error is not None and not self._told and self._gone is None:
            log.error("a mounted ASGI application failed behind its answer", exc_info=error)

    async def serve(self, target: AsgiApp, scope: Message) -> None:
        """Run the application to its end."""
        try:
            await target(scope, self._receive, self._send)
        finally:
            await self._put(None)

    def close(self) -> None:
        """Tell the application that nobody reads its answer any more."""
        self._closed.set()

    async def _receive(self) -> Message:
        if self._body is not None:
            try:
                async for chunk in self._body:
                    return {"type": "http.request", "body": chunk, "more_body": True}
            except BodyEndedError as error:
                self._gone = error
            self._body = None
            if self._gone is None:
                return {"type": "http.request", "body": b"", "more_body": False}
        if self._gone is None:
            await self._closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] in ("http.response.start", "http.response.body"):
            await self._put(message)

    async def _put(self, message: Message | None) -> None:
        """Hand a message over as soon as the one before it was taken; after `close` nobody takes one."""
        if self._closed.is_set():
            return
        putting = asyncio.ensure_future(self._sent.put(message))
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait((putting, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            putting.cancel()
            closed.cancel()

    async def answer(self, serving: asyncio.Future[None], *, head: bool) -> http.Response | Upgrade:
        """The answer: whole where it comes in one piece, else as a stream.

        Raises an error that the application raised before it.
        """
        start = await self._sent.get()
        return await self._answer(start, serving, head=head)

    async def _answer(self, start: Message | None, serving: asyncio.Future[None], *, head: bool) -> http.Response:
        if start is None:
            await self._end_of(serving)
            raise DeveloperError("the mounted ASGI application ended without an answer. It has to send one")
        headers = http.Headers()
        for name, value in _headers_of(start):
            headers.append(name, value)
        first = await self._sent.get()
        if first is None:
            await self._end_of(serving)
            raise DeveloperError(
                "the mounted ASGI application ended without a body. It has to send one, which may be empty"
            )
        whole = bytes(first.get("body", b""))
        if head or not first.get("more_body", False):
            self.close()
            return http.Response.assembled(int(start["status"]), headers, None if head else whole or None)
        # An answer that nobody reads ends the exchange too.
        return http.Response.assembled(int(start["status"]), headers, Owned(self._stream(whole, serving), self))

    async def aclose(self) -> None:
        """As `close`."""
        self.close()

    async def _end_of(self, serving: asyncio.Future[None]) -> None:
        """Raise the error that ended the application before its answer, if one did."""
        self._told = True
        if self._gone is not None:
            await asyncio.wait((serving,))
            raise self._gone
        await serving

    async def _stream(self, first: bytes, serving: asyncio.Future[None]) -> AsyncGenerator[bytes, None]:
        try:
            yield first
            while (message := await self._sent.get()) is not None:
                yield bytes(message.get("body", b""))
                if not message.get("more_body", False):
                    return
            await self._end_of(serving)
            raise DeveloperError("the mounted ASGI application ended before its body did")
        finally:
            self.close()


class _GoneError(OSError):
    """Raised by `send` behind the end of a WebSocket, as the specification says (2.4)."""


class _Session(_Exchange):
    """The messages of a WebSocket, between the mounted application and the connection."""

    def __init__(self) -> None:
        super().__init__(None)
        self._incoming: asyncio.Queue[Message] = asyncio.Queue(1)
        self._incoming.put_nowait({"type": "websocket.connect"})
        self._end: Message = {"type": "websocket.disconnect", "code": 1006, "reason": ""}

    def close(self, code: int = 1006, reason: str = "") -> None:
        """Tell the application that the connection is closed."""
        if self._closed.is_set():
            return
        self._end = {"type": "websocket.disconnect", "code": code, "reason": reason}
        super().close()
        if self._incoming.empty():
            self._incoming.put_nowait(self._end)  # it may be waiting

    async def _receive(self) -> Message:
        if self._closed.is_set() and self._incoming.empty():
            return self._end
        return await self._incoming.get()

    async def _send(self, message: Message) -> None:
        if self._closed.is_set():
            raise _GoneError("the WebSocket is closed")
        kind: str = message["type"]
        # A refusal with an answer of its own is written as an answer to any other request.
        await self._put({**message, "type": kind.removeprefix("websocket.") if ".http." in kind else kind})

    async def answer(self, serving: asyncio.Future[None], *, head: bool) -> http.Response | Upgrade:
        """The upgrade of an application that accepts, the answer of one that refuses.

        Raises an error that it raised before.
        """
        first = await self._sent.get()
        match None if first is None else first["type"]:
            case "websocket.accept":
                accepted: Message = first or {}
                own = [pair for pair in _headers_of(accepted) if pair[0].lower() != "sec-websocket-protocol"]
                protocol = accepted.get("subprotocol")
                return Upgrade(lambda socket: self._carry(socket, serving), protocol, tuple(own), on_cancel=self.close)
            case "websocket.close":
                raise CoreError(403, "Forbidden")
            case _:
                return await self._answer(first, serving, head=head)

    async def _carry(self, socket: WebSocket, serving: asyncio.Future[None]) -> None:
        """Carry messages both ways until the application or the client closes, and wait for the application's end."""
        reading = asyncio.ensure_future(self._read(socket))
        writing = asyncio.ensure_future(self._write(socket))
        try:
            await asyncio.wait((writing, serving), return_when=asyncio.FIRST_COMPLETED)
            if not self._closed.is_set():
                await writing  # the last message of the application
            self.close()
            self._told = True
            await serving  # raises the error that ended the session
        except _GoneError:
            pass
        finally:
            self.close()
            for one in (reading, writing, serving):
                one.cancel()

    async def _read(self, socket: WebSocket) -> None:
        """Hand the client's messages to the application, one by one."""
        try:
            while True:
                message = await socket.receive()
                kind = "text" if isinstance(message, str) else "bytes"
                await self._incoming.put({"type": "websocket.receive", kind: message})
        except WebSocketClosed as closed:
            self.close(closed.code, closed.reason)

    async def _write(self, socket: WebSocket) -> None:
        """Send the application's messages until it closes or ends."""
        while (message := await self._sent.get()) is not None:
            if message["type"] == "websocket.close":
                code, reason = _code_of(message), message.get("reason") or ""
                self.close(code, reason)
                await socket.close(code, reason)
                return
            text = message.get("text")
            try:
                await socket.send(message.get("bytes") or b"" if text is None else text)
            except WebSocketClosed as closed:
                self.close(closed.code, closed.reason)
                return


def _code_of(message: Message) -> int:
    """The code of a close; those that no handler of ours may send are the nearest that it may."""
    code = int(message.get("code") or 1000)
    if code in (1003, 1007):
        return 1008
    return code if code in (1000, 1001, 1008, 1009, 1011, 1012, 1013) or 3000 <= code <= 4999 else 1011


def _headers_of(message: Message) -> list[tuple[str, str]]:
    return [
        (bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in message.get("headers") or ()
    ]


def _opening_of(req: AnyRequest, scheme: str) -> Message:
    """The scope of a WebSocket, as far as it differs from that of a request."""
    offered = (req.header("sec-websocket-protocol") or "").split(",")
    return {
        "type": "websocket",
        "scheme": "wss" if scheme in ("https", "wss") else "ws",
        "subprotocols": [name.strip() for name in offered if name.strip()],
        "extensions": {"websocket.http.response": {}},
    }


def _scope_of(req: AnyRequest, depth: int) -> Message:
    root = req.root_path + "/".join(req.path.split("/")[: depth + 1])
    path = req.root_path + req.path
    url = http.URL(req.url)
    port = int(url.port) if url.port else 443 if url.protocol == "https:" else 80
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in req.headers.raw()
        if name != "edge-connecting-ip"  # the host's own word for `client`
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": req.method,
        "scheme": url.protocol.removesuffix(":"),
        "path": _decoded(path),
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": req.query_string.encode("latin-1", "replace"),
        "root_path": _decoded(root),
        "headers": headers,
        "client": None if req.ip is None else (req.ip, 0),
        "server": (url.hostname, port),
    }


def _decoded(path: str) -> str:
    """A path as a scope has it: percent-decoded, slashes in segments and at the end included."""
    decoded = "/".join(["", *split_path(path)])
    return f"{decoded}/" if path[-1:] == "/" else decoded


def asgi_lifespan(target: AsgiApp) -> Lifespan:
    """The lifespan of an ASGI application (https://asgi.readthedocs.io/en/latest/specs/lifespan.html); yields its
    state.
    """

    async def lifespan(env: object) -> AsyncIterator[dict[str, Any]]:
        state: dict[str, Any] = {}
        incoming: asyncio.Queue[Message] = asyncio.Queue()
        outgoing: asyncio.Queue[Message] = asyncio.Queue()
        scope: Message = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}
        serving = asyncio.ensure_future(_serve_lifespan(target, scope, incoming, outgoing))
        try:
            incoming.put_nowait({"type": "lifespan.startup"})
            _require_complete(await outgoing.get())
            yield state
            if not serving.done():
                incoming.put_nowait({"type": "lifespan.shutdown"})
                _require_complete(await outgoing.get())
        finally:
            serving.cancel()
            await asyncio.wait((serving,))

    return lifespan


async def _serve_lifespan(
    target: AsgiApp, scope: Message, incoming: asyncio.Queue[Message], outgoing: asyncio.Queue[Message]
) -> None:
    try:
        await target(scope, incoming.get, outgoing.put)
    except Exception:
        pass  # as the specification says: an application that raises knows no lifespan
    finally:
        outgoing.put_nowait({"type": "ended"})


def _require_complete(message: Message) -> None:
    if message["type"].endswith(".failed"):
        raise DeveloperError(f"the mounted ASGI application failed in its lifespan: {message.get('message', '')}")
