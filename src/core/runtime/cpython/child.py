"""One process of `core serve --python`: it loads the application and does its job until it is told to stop.

`web` answers requests. `state` has the parts that exist once: the Durable Objects, which it also answers for, the
consumers of queues and the crons. The supervisor is told on the control socket, a line each: `loaded`, `ready`, or
`failed` with the reason; what it asks is answered by the event loop that answers requests. SIGTERM stops.

A thread says where the process is while its event loop is blocked: it needs the interpreter now and then, and knows the
requests in flight. Where something keeps the interpreter for itself, the handler of SIGUSR1 answers: it is written in C
and knows the stacks alone.

The word of a proxy in front of a client is put into the scope here, checked, and a WebSocket that is open when the
server stops is closed with 1001.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cattrs.preconf.json import make_converter

from core.assembly.project import Background, Loaded, load, measure_state
from core.backends.remote.durable_object import ObjectServer
from core.errors import DeveloperError
from core.hosts.asgi import asgi
from core.hosts.process import BackgroundContext, comes_first, trace_where_asked
from core.http.addresses import one_address
from core.runtime.options import Front, Job
from core.runtime.process import die_with_parent
from core.runtime.secrets import secrets_of
from core.telemetry.logs import TextFormatter

if TYPE_CHECKING:
    from core.hosts.server import Server
    from core.telemetry.metrics import Meter


_BEAT = 0.1
# Seconds that a new connection has to send its request when the server stops, and a kept one to learn that it ends.
_ARRIVALS = 0.5


def main(arguments: list[str]) -> int:
    job = make_converter().loads(arguments[0], Job)
    die_with_parent(job.parent)
    # The terminal's Ctrl-C is for the supervisor, which stops its processes in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if job.records is not None:
        from core.hosts.output import log_as_json

        log_as_json(records=open(job.records, "w", encoding="utf-8", errors="backslashreplace"))  # noqa: SIM115  # kept
    else:
        logging.basicConfig(level=logging.INFO)
        logging.root.handlers[0].setFormatter(TextFormatter())
        # That a process began and ended is the supervisor's to say, in its own words.
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
    fastest: Callable[[], asyncio.AbstractEventLoop] | None = None
    if job.role == "web":
        with contextlib.suppress(ImportError):  # there is none for Windows
            fastest = import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=fastest) as runner:
        return runner.run(_Child(job).run())


def _message_of(error: BaseException) -> str:
    from core.explain.failure import failure_of  # loaded after a failure only

    return failure_of(error).as_text()


class _Child:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._control = socket.socket(fileno=job.control)
        self._stop = asyncio.Event()
        self._context = BackgroundContext()
        self._meter: Meter | None = None
        self._server: Server | None = None
        self._lag = 0.0

    async def run(self) -> int:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop.set)
        answer_where(self._job.reports)
        reader, self._writer = await asyncio.open_connection(sock=self._control)
        listening = asyncio.create_task(self._listen(reader))
        try:
            loaded = await self._load()
            if loaded is None:
                return 1
            self._tell("loaded")
            try:
                if self._job.options.metrics:
                    from core.telemetry.metrics import Meter

                    self._meter = Meter()
                    self._measure_lag(time.monotonic())
                await (self._serve(loaded) if self._job.role == "web" else self._keep(loaded))
                await self._context.drain()
                self._give_numbers()
            finally:
                await loaded.close()
            return 0
        finally:
            listening.cancel()
            self._writer.close()

    def _tell(self, line: str) -> None:
        self._writer.write(f"{line}\n".encode())

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while asked := await reader.readline():
            if asked == b"measure\n":
                self._give_numbers()
            problem = None if self._server is None else self._server.problem()
            self._tell(f"condition {json.dumps(problem or '')}")
        self._stop.set()  # the supervisor is gone

    def _give_numbers(self) -> None:
        if self._meter is not None:
            self._meter.set("core_process_event_loop_lag_seconds", self._job.name, to=self._lag)
            self._lag = 0.0
            if (server := self._server) is not None:
                self._meter.set("core_process_open_connections", self._job.name, to=server.open_connections)
                self._meter.set("core_process_requests_in_flight", self._job.name, to=server.requests_in_flight)
            self._tell(f"numbers {json.dumps(self._meter.snapshot())}")

    def _measure_lag(self, due: float) -> None:
        """Keep how late the running loop does at most what is due, ten times a second from now on."""
        now = time.monotonic()
        self._lag = max(self._lag, now - due)
        asyncio.get_running_loop().call_later(_BEAT, self._measure_lag, now + _BEAT)

    async def _load(self) -> Loaded | None:
        options = self._job.options
        try:
            return await load(
                options.config,
                options.state,
                environment=options.environment,
                migrate=options.migrate,
                read_secrets=lambda configuration, env_class: secrets_of(
                    configuration, env_class, os.environ, options.secrets_dir, warn=self._warn
                ),
                objects_at=self._job.objects_at,
            )
        except DeveloperError as error:
            await self._fail(str(error))
        except (Exception, SystemExit) as error:  # the application's own modules may raise anything
            await self._fail(f"the application cannot be loaded:\n{_message_of(error)}")
        return None

    def _warn(self, line: str) -> None:
        """Have the supervisor write a warning, once, however many processes have it."""
        self._tell(f"warn {json.dumps(line)}")

    async def _fail(self, reason: str) -> None:
        self._tell(f"failed {json.dumps(reason)}")
        await self._writer.drain()

    async def _serve(self, loaded: Loaded) -> None:
        listener = socket.socket(fileno=self._job.listener)
        try:
            await loaded.app.startup(loaded.env)
        except Exception as error:  # a lifespan may raise anything
            await self._fail(f"the application cannot be started:\n{_message_of(error)}")
            return
        try:
            from core.hosts.server import Server
        except ImportError:
            await self._fail("core serve --python: pip install 'core-edge[serve]'")
            return
        options = self._job.options
        try:
            hosted = asgi(loaded.app, loaded.env, context=self._context)
            if self._meter is not None:
                from core.telemetry.metrics import measure

                measure(loaded.app, loaded.env, self._meter)
            self._server = Server(
                Fronted(hosted, options.front, self._stop),
                options.limits,
                arrivals=_ARRIVALS,
                started=lambda: self._tell("ready"),
            )
            await self._server.serve_until(listener, self._stop)
        except DeveloperError as error:
            await self._fail(str(error))

    async def _keep(self, loaded: Loaded) -> None:
        """Run the parts that exist once, from when the process before this one has given them up."""
        await unless_stopped(self._stop, loaded.start())
        if self._stop.is_set():
            return
        tracer = trace_where_asked(loaded.app, loaded.env)
        if self._meter is not None:
            measure_state(loaded, self._meter)
        objects = ObjectServer(socket.socket(fileno=self._job.listener), loaded.bindings.namespaces, tracer)
        await objects.start()
        background = Background(loaded, self._context)
        background.start()
        self._tell("ready")
        await self._stop.wait()
        await objects.close()
        await background.stop()


def answer_where(descriptor: int) -> None:
    """From now on answer at a socket, each time that it is asked. Called on the loop that answers requests."""
    asked = socket.socket(fileno=descriptor)
    faulthandler.register(signal.SIGUSR1, file=asked.fileno(), all_threads=True)
    loop, answering = asyncio.get_running_loop(), threading.get_ident()
    threading.Thread(target=_answer, args=(asked, loop, answering), name="core stacks", daemon=True).start()


def _answer(asked: socket.socket, loop: asyncio.AbstractEventLoop, answering: int) -> None:
    while asked.recv(1):
        try:
            stacks = _where(loop, answering)
        except Exception as error:  # what it reads changes meanwhile
            stacks = f"the requests in flight cannot be read: {error!r}"
        asked.sendall(f"{stacks}\0".encode("utf-8", "replace"))


def _where(loop: asyncio.AbstractEventLoop, answering: int) -> str:
    from core.hosts.in_flight import calls_of, frames_of, requests_in_flight

    running = frames_of(answering)
    parts = [requests_in_flight(loop, running)]
    for thread in threading.enumerate():
        if thread.ident is not None and thread is not threading.current_thread():
            frames = running if thread.ident == answering else frames_of(thread.ident)
            parts.append(f"thread {thread.name}\n{calls_of(frames)}")
    return "\n".join(parts)


class Fronted:
    """An ASGI application whose scopes have the proxy's values, and whose WebSockets end with the server."""

    def __init__(self, inner: Any, front: Front, stop: asyncio.Event) -> None:
        self._inner = inner
        self._stop = stop
        self._front = front
        self._believes = front != Front()
        self._origin = None if front.origin is None else front.origin.split("://")

    def __call__(self, scope: Any, receive: object, send: object) -> Awaitable[None]:
        if self._believes:
            self._see(scope)
        if scope["type"] == "websocket":
            receive, send = self._session(receive, send)
        answering: Awaitable[None] = self._inner(scope, receive, send)
        return answering

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
            scheme = headers.get(front.proto_header)
        if scheme in ("http", "https"):  # exactly that
            scope["scheme"] = scheme.replace("http", "ws") if socket_scheme else scheme
        if front.ip_header is not None:
            address = one_address(headers.get(front.ip_header))
            scope["client"] = None if address is None else (address, 0)

    def _session(self, receive: Any, send: Any) -> tuple[Any, object]:
        closed = False

        async def receive_until_stopped() -> object:
            nonlocal closed
            message = await unless_stopped(self._stop, receive())
            if message is not None:
                return message
            if not closed:
                closed = True
                await send({"type": "websocket.close", "code": 1001, "reason": "the server stops"})
            return {"type": "websocket.disconnect", "code": 1001}

        async def send_while_open(message: object) -> None:
            if closed:
                raise OSError("the server has stopped")
            await send(message)

        return receive_until_stopped, send_while_open


async def unless_stopped(stop: asyncio.Event, work: Awaitable[object]) -> object:
    """The result of `work`, or None where `stop` is set first: then it is cancelled."""
    waiting = asyncio.ensure_future(work)
    try:
        return waiting.result() if await comes_first(waiting, stop) and not waiting.cancelled() else None
    finally:
        waiting.cancel()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
