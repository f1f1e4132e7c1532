"""The servers that a process can answer with: granian over RSGI, or uvicorn over ASGI,
on a socket that is open already.

Each begins at once and returns when it was asked to stop and its requests in flight are finished. The word of a proxy
in front of a client is put into the scope here, checked, and a WebSocket that is open when the server stops is closed
with 1001. A kept connection ends with an answer that says so, where one is asked for before the server has stopped: a
client would else send its next request into the end, and may not send a POST again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from core.app import App
from core.errors import MissingExtraError
from core.hosts.process import BackgroundContext
from core.runtime.cpython.options import Front

if TYPE_CHECKING:
    from core.metrics import Meter

__all__ = ["serve_with"]

# Seconds that a new connection has to send its request when the server stops, and a kept one to learn that it ends.
_ARRIVALS: Final = 0.5


async def serve_with(
    server: str,
    app: App[Any],
    env: object,
    context: BackgroundContext,
    listener: socket.socket,
    front: Front,
    *,
    stop: asyncio.Event,
    started: Callable[[], None],
    meter: Meter | None = None,
) -> None:
    """Serve until `stop` is set; `started` is called once it answers. Raises MissingExtraError.

    `meter` has the requests and the calls of bindings counted.
    """
    hosted: Any
    if server == "granian":
        from core.hosts.rsgi import rsgi

        hosted, serve = rsgi(app, env, context=context), _granian
    else:
        from core.hosts.asgi import asgi

        hosted, serve = asgi(app, env, context=context), _uvicorn
    if meter is not None:
        from core.metrics import measure

        measure(app, env, meter)
    await serve(hosted, listener, front, stop, started)


# granian --------------------------------------------------------------------------------------------------------------


async def _granian(
    hosted: Any, listener: socket.socket, front: Front, stop: asyncio.Event, started: Callable[[], None]
) -> None:
    try:
        from granian._granian import SocketHolder
        from granian.constants import Interfaces
        from granian.server.embed import Server
    except ImportError:
        raise MissingExtraError("core serve --python: pip install 'core-edge[serve]'") from None

    class Inherited(Server):
        def _init_shared_socket(self) -> None:
            # The supervisor's: connections wait in it while processes come and go.
            self._ssp: Any = None
            holder: Any = SocketHolder  # its stub has no arguments
            self._shd: Any = holder(os.dup(listener.fileno()), False, 2048)

    logging.getLogger("_granian").setLevel(logging.WARNING)
    answering: Any = _Rsgi(hosted, front, stop)
    server: Any = Inherited(answering, interface=Interfaces.RSGI, log_enabled=False)
    serving = asyncio.ensure_future(server.serve())
    while not server.wrks and not serving.done():  # noqa: ASYNC110 - granian has no signal for its start
        await asyncio.sleep(0.01)
    if not serving.done():
        started()
        await _first(serving, stop)
        _stop_accepting(listener)
        await asyncio.sleep(_ARRIVALS)
        server.stop()
    await serving


def _stop_accepting(listener: socket.socket) -> None:
    """Leave new connections at `listener` to the other processes that have it.

    granian cannot do that by itself: it resets a connection that was accepted a moment ago and has not sent its
    request. Every descriptor of the socket in this process, granian's own among them, is made one of a socket that
    nobody knows.
    """
    same = os.fstat(listener.fileno())
    unknown = socket.socket(listener.family)
    with unknown:
        unknown.setblocking(False)
        unknown.bind(("::1" if listener.family == socket.AF_INET6 else "127.0.0.1", 0))
        unknown.listen(1)
        for name in os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"):
            with contextlib.suppress(OSError):  # the one that lists them is gone
                if os.path.samestat(os.fstat(int(name)), same):
                    os.dup2(unknown.fileno(), int(name), inheritable=False)


class _Rsgi:
    """An RSGI application whose scopes have the proxy's values, and whose WebSockets end with the server."""

    def __init__(self, inner: Any, front: Front, stop: asyncio.Event) -> None:
        self._inner = inner
        self._stop = stop
        self._origin = _origin_of(front)
        self._ip_header = front.ip_header
        self._proto_header = front.proto_header
        self._believes = front != Front()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        if self._believes:
            scope = self._seen(scope)
        if scope.proto != "http":
            protocol = _RsgiSession(protocol, self._stop)
        elif self._stop.is_set():
            protocol = _LastAnswer(protocol)
        await self._inner.__rsgi__(scope, protocol)

    def _seen(self, scope: Any) -> Any:
        get = scope.headers.get
        scheme, authority, client = scope.scheme, scope.authority, scope.client
        if self._origin is not None:
            scheme, authority = self._origin
        elif self._proto_header is not None:
            scheme = _scheme(get(self._proto_header)) or scheme
        if self._ip_header is not None:
            client = f"{_address(get(self._ip_header)) or ''}:0"
        return SimpleNamespace(
            proto=scope.proto,
            method=scope.method,
            path=scope.path,
            query_string=scope.query_string,
            scheme=scheme,
            server=scope.server,
            client=client,
            authority=authority,
            headers=scope.headers,
        )


class _LastAnswer:
    """granian's side of a request whose answer ends its connection."""

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol

    def __call__(self) -> Any:
        return self._protocol()

    def __aiter__(self) -> Any:
        return aiter(self._protocol)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._protocol, name)
        if not name.startswith("response_"):
            return method

        def respond(status: int, headers: Any, *rest: Any) -> Any:
            return method(status, [*headers, ("connection", "close")], *rest)

        return respond


class _RsgiSession:
    """granian's WebSocket, which is closed with the server. RSGI sends no code with a close."""

    def __init__(self, protocol: Any, stop: asyncio.Event) -> None:
        self._protocol = protocol
        self._stop = stop
        self.close = protocol.close

    async def accept(self) -> Any:
        transport = await self._protocol.accept()
        receive, stop, close = transport.receive, self._stop, self._protocol.close

        async def receive_until_stopped() -> Any:
            message = await _unless(stop, receive())
            if message is not None:
                return message
            close(1001)
            return SimpleNamespace(kind=0, data=None)

        return SimpleNamespace(
            receive=receive_until_stopped, send_str=transport.send_str, send_bytes=transport.send_bytes
        )


# uvicorn --------------------------------------------------------------------------------------------------------------


async def _uvicorn(
    hosted: Any, listener: socket.socket, front: Front, stop: asyncio.Event, started: Callable[[], None]
) -> None:
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("core serve --python --server uvicorn: pip install 'core-edge[dev]'") from None

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield  # the process has its own

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for server in self.servers:
                server.close()
            # uvicorn, too, would reset a connection that has not sent its request yet.
            await asyncio.sleep(_ARRIVALS)
            await super().shutdown(sockets)

    server = Server(
        uvicorn.Config(
            _Asgi(hosted, front, stop),
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws="websockets-sansio",
        )
    )
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    await _first(serving, stop)
    server.should_exit = True
    await serving


class _Asgi:
    """An ASGI application whose scopes have the proxy's values, and whose WebSockets end with the server."""

    def __init__(self, inner: Any, front: Front, stop: asyncio.Event) -> None:
        self._inner = inner
        self._stop = stop
        self._front = front
        self._origin = _origin_of(front)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._front != Front():
            self._see(scope)
        if scope["type"] == "websocket":
            receive, send = self._session(receive, send)
        elif self._stop.is_set():
            send = _last_answer(send)
        await self._inner(scope, receive, send)

    def _see(self, scope: Any) -> None:
        front = self._front
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        socket_scheme = scope["type"] == "websocket"
        scheme = None
        if self._origin is not None:
            scheme, host = self._origin
            others = [pair for pair in scope["headers"] if pair[0].lower() != b"host"]
            scope["headers"] = [(b"host", host.encode("latin-1")), *others]
        elif front.proto_header is not None:
            scheme = _scheme(headers.get(front.proto_header))
        if scheme is not None:
            scope["scheme"] = scheme.replace("http", "ws") if socket_scheme else scheme
        if front.ip_header is not None:
            address = _address(headers.get(front.ip_header))
            scope["client"] = None if address is None else (address, 0)

    def _session(self, receive: Any, send: Any) -> tuple[Any, Any]:
        closed = False

        async def receive_until_stopped() -> Any:
            nonlocal closed
            message = await _unless(self._stop, receive())
            if message is not None:
                return message
            if not closed:
                closed = True
                await send({"type": "websocket.close", "code": 1001, "reason": "the server stops"})
            return {"type": "websocket.disconnect", "code": 1001}

        async def send_while_open(message: Any) -> None:
            if closed:
                raise OSError("the server has stopped")
            await send(message)

        return receive_until_stopped, send_while_open


def _last_answer(send: Any) -> Any:
    async def send_and_close(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return send_and_close


# for both servers -----------------------------------------------------------------------------------------------------


async def _first(work: asyncio.Future[Any], stop: asyncio.Event) -> None:
    """Wait until `work` is done or `stop` is set."""
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()


async def _unless(stop: asyncio.Event, message: Awaitable[Any]) -> Any:
    """The next message, or None where `stop` is set first."""
    waiting = asyncio.ensure_future(message)
    try:
        await _first(waiting, stop)
    finally:
        if not waiting.done():
            waiting.cancel()
    return waiting.result() if waiting.done() and not waiting.cancelled() else None


def _origin_of(front: Front) -> tuple[str, str] | None:
    if front.origin is None:
        return None
    scheme, _, host = front.origin.partition("://")
    return scheme, host


def _scheme(value: str | None) -> str | None:
    """`http` or `https`, where the proxy says exactly that."""
    return value if value in ("http", "https") else None


def _address(value: str | None) -> str | None:
    """An IP address, where the proxy says exactly one."""
    try:
        return None if value is None else str(ipaddress.ip_address(value.strip()))
    except ValueError:
        return None
