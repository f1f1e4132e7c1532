"""The HTTP server of `core serve --python` and `core dev`: uvicorn with httptools, on a socket that is open already.

Decided here: when it looks at its connections, and how it ends. Nobody who has just arrived is cut off, a kept
connection ends with an answer that says so, and a stream of events with its last chunk. Importing this needs uvicorn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn

from core.hosts.connection import Connection, State
from core.hosts.limits import Limits
from core.hosts.process import comes_first


class Server(uvicorn.Server):
    """uvicorn for one ASGI application. Signals are somebody else's; set `should_exit` to end it.

    `started` is called once it answers. It ends when the requests in flight are answered, or after `grace` seconds;
    before, a new connection has `arrivals` seconds to send its request, and a kept one as long to learn that it ends.
    """

    servers: list[asyncio.Server]

    def __init__(
        self,
        application: Any,
        limits: Limits,
        *,
        arrivals: float,
        grace: int | None = None,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
        super().__init__(
            uvicorn.Config(
                application,
                interface="asgi3",
                http=Connection,
                lifespan="off",
                log_config=None,
                access_log=False,
                # An X-Forwarded-For from this machine is a client's word like any other.
                proxy_headers=False,
                server_header=False,
                ws="websockets-sansio",
                timeout_graceful_shutdown=grace,
            )
        )
        self.server_state: State = State(limits)
        self._arrivals = arrivals
        self._started = started

    async def serve_until(
        self, listener: socket.socket, stop: asyncio.Event, ending: Callable[[], None] = lambda: None
    ) -> None:
        """Serve until `stop` is set, and end in good order; `ending` is called as that begins."""
        serving = asyncio.ensure_future(self.serve(sockets=[listener]))
        try:
            await comes_first(serving, stop)
            self.should_exit = True
            ending()
            await serving
        finally:
            serving.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # once a second
            now = asyncio.get_running_loop().time()
            for connection in self._connections():
                connection.check(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        state = self.server_state
        state.stopping = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self._arrivals
        for connection in self._connections():
            connection.keep_no_longer()
        # A connection that was accepted a moment ago has not sent its request yet, and the next one of a kept
        # connection may be on its way; uvicorn would reset them.
        while loop.time() < until and any(map(Connection.waits, self._connections())):  # noqa: ASYNC110 - no event of its own
            await asyncio.sleep(0.01)
        for connection in self._connections():
            connection.end_events()
        await super().shutdown(sockets)

    def _connections(self) -> list[Connection]:
        return [one for one in self.server_state.connections if isinstance(one, Connection)]

    @property
    def open_connections(self) -> int:
        """The number of open connections, WebSockets included."""
        return len(self.server_state.connections)

    @property
    def requests_in_flight(self) -> int:
        """The number of requests that are being answered, WebSockets included."""
        return len(self.server_state.tasks)

    def problem(self) -> str | None:
        """The reason why it can take no further connection, or None."""
        most = self.server_state.limits.connections
        if self.open_connections >= most:
            return f"all of its {most} connections are taken"
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            return f"it can open no further file: {error.strerror}"
        return None


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return False for the complaint of uvicorn about each WebSocket that is refused, whose answer it has sent."""
    return record.msg != "ASGI callable returned without completing handshake."
